/* pass@k against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/pass_at.h"
#include "unit/unit.h"

static bool near(double a, double b) { return fabs(a - b) < 1e-12; }

static void one_task(void **state)
{
    (void)state;
    assert_true(near(ipw_pass_at_of(5, 2, 1), 0.4));
    assert_true(near(ipw_pass_at_of(5, 2, 2), 0.7)); /* 1 - C(3,2) / C(5,2) = 1 - 3 / 10 */
    assert_true(near(ipw_pass_at_of(5, 2, 4), 1));   /* only 3 are wrong */
    assert_true(near(ipw_pass_at_of(5, 0, 3), 0));
    assert_true(near(ipw_pass_at_of(5, 5, 1), 1));
    assert_true(near(ipw_pass_at_of(200, 10, 100), 1 - 0.0007710260627178503));
}

static void add(struct ipw_summary *s, const char *id, int resolved)
{
    struct ipw_query_trace q = {.id = (char *)id, .completed = true, .outcome = (char *)"answered"};
    struct ipw_query_details r = {.is_resolved = resolved};

    ipw_summary_add(s, &q, &r);
}

static void tasks_are_averaged(void **state)
{
    struct ipw_summary s;
    struct ipw_pass_at p;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < 5; i++) {
        add(&s, "a", i < 2);
        add(&s, "b", 0);
        add(&s, "unscored", -1);
    }
    add(&s, "b", 0);
    ipw_pass_at_fill(&p, &s);
    assert_int_equal(p.n, 3); /* 1, 2, 5: the fewest answers of a scored task are 5 */
    assert_int_equal(p.k[2], 5);
    assert_true(near(p.share[0], 0.2));
    assert_true(near(p.share[1], 0.35));
    assert_true(near(p.share[2], 0.5));
    ipw_summary_release(&s);
}

static void one_answer_each_is_no_repeat(void **state)
{
    struct ipw_summary s;
    struct ipw_pass_at p;

    (void)state;
    ipw_summary_init(&s);
    ipw_pass_at_fill(&p, &s);
    assert_int_equal(p.n, 0);
    add(&s, "a", 1);
    add(&s, "b", 0);
    ipw_pass_at_fill(&p, &s);
    assert_int_equal(p.n, 0);
    ipw_summary_release(&s);
}

UNIT(pass_at)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_task),
        cmocka_unit_test(tasks_are_averaged),
        cmocka_unit_test(one_answer_each_is_no_repeat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
