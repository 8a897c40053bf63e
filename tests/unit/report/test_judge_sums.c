/* The verdicts of a run, counted apart from its scores. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/judge_sums.h"
#include "unit/unit.h"

static void add(struct ipw_judge_sums *s, const char *verdict, const char *reason, double gpu_j)
{
    struct ipw_judgement j = IPW_JUDGEMENT_NONE;

    j.verdict = verdict;
    j.reason = reason;
    j.model = "m";
    j.asked = verdict ? 1 : 0;
    j.input_tokens = 10;
    j.output_tokens = 2;
    j.wall_s = 0.5;
    j.gpu_j = gpu_j;
    ipw_judge_sums_add(s, &j);
}

static void verdicts_are_counted(void **state)
{
    struct ipw_judge_sums s = {0};
    struct ipw_buf out = IPW_BUF(4096);

    (void)state;
    add(&s, "correct", NULL, 3);
    add(&s, "incorrect", NULL, 4);
    add(&s, "not_attempted", NULL, 5);
    add(&s, NULL, "refused", NAN);
    ipw_judge_sums_add(&s, NULL);
    ipw_judge_sums_say(&out, &s);
    assert_string_equal(
        ipw_buf_str(&out),
        "m: 1 correct, 1 incorrect, 1 not attempted, 1 without a verdict (refused); "
        "30 tokens in, 6 out, GPU 12.0\xC2\xA0J in its calls; the rest of the time after the run "
        "is in "
        "no account");
    ipw_buf_release(&out);
}

static void an_unknown_part_leaves_the_sum_unknown(void **state)
{
    struct ipw_judge_sums s = {0};

    (void)state;
    add(&s, "correct", NULL, 3);
    add(&s, "correct", NULL, NAN);
    assert_true(isnan(s.gpu_j));
    assert_true(s.wall_s == 1.0);
}

static void no_judge_is_nothing(void **state)
{
    struct ipw_judge_sums s = {0};
    struct ipw_buf out = IPW_BUF(4096);

    (void)state;
    ipw_judge_sums_say(&out, &s);
    assert_int_equal(out.len, 0);
    ipw_buf_release(&out);
}

UNIT(judge_sums)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_counted),
        cmocka_unit_test(an_unknown_part_leaves_the_sum_unknown),
        cmocka_unit_test(no_judge_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
