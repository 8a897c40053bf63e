#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "report/repeats.h"

#define assert_near(a, b, by) assert_true(fabs((double)(a) - (double)(b)) <= (by))

static void case_51_two_values_have_no_interval_three_have_t(void **state)
{
    const double v[] = {1, 2, 3};
    struct ipw_interval two = ipw_interval_of(v, 2), three = ipw_interval_of(v, 3);

    (void)state;
    assert_string_equal(two.method, "none");
    assert_true(isnan(two.lo) && isnan(two.hi));
    assert_near(two.mean, 1.5, 0);
    assert_string_equal(three.method, "t");
    /* mean 2, deviation 1, t(2) 4.302653 */
    assert_near(three.lo, 2 - 4.302653 / sqrt(3), 1e-5);
    assert_near(three.hi, 2 + 4.302653 / sqrt(3), 1e-5);
    assert_near(three.min, 1, 0);
    assert_near(three.max, 3, 0);
    assert_true(isnan(ipw_interval_of(v, 0).mean));
}

static void from_20_on_the_bootstrap_and_always_the_same(void **state)
{
    double v[40], w[40];
    struct ipw_interval t, b, again, ratio;

    (void)state;
    for (int i = 0; i < 40; i++) {
        v[i] = (i * 7 % 40) + 0.5;
        w[i] = 2 * v[i];
    }
    t = ipw_interval_of(v, 19);
    assert_string_equal(t.method, "t");
    b = ipw_interval_of(v, 40);
    again = ipw_interval_of(v, 40);
    assert_string_equal(b.method, "bootstrap");
    assert_true(b.lo == again.lo && b.hi == again.hi);
    /* a mean of 20 with a standard error of 1.85: about 16.4 to 23.6 */
    assert_true(b.lo > 15.5 && b.lo < 17.3);
    assert_true(b.hi > 22.7 && b.hi < 24.5);
    ratio = ipw_interval_of_ratio(w, v, 40);
    assert_near(ratio.mean, 2, 1e-12);
    assert_near(ratio.lo, 2, 1e-9); /* the same ratio in every resample */
    assert_near(ratio.hi, 2, 1e-9);
    assert_string_equal(ipw_interval_of_ratio(w, v, 19).method, "none");
}

static void add(struct ipw_summary *s, const char *id, int epoch, int resolved, double j)
{
    struct ipw_summary_row row = {.id = ipw_strdup(id),
                                  .outcome = ipw_strdup("answered"),
                                  .epoch = epoch,
                                  .completed = true,
                                  .resolved = resolved,
                                  .output_tokens = 10,
                                  .wall_s = 2};

    row.energy[IPW_DOMAIN_CPU] = (struct ipw_summary_figure){.known = true, .j = j};
    IPW_GROW(s->rows, s->cap, s->n + 1);
    s->rows[s->n++] = row;
}

static void repeats_of_a_task_are_averaged_first(void **state)
{
    struct ipw_summary s;
    struct ipw_repeats r;
    char id[8];

    (void)state;
    ipw_summary_init(&s);
    for (int epoch = 0; epoch < 3; epoch++) {
        for (int i = 0; i < 4; i++) {
            snprintf(id, sizeof id, "q%d", i);
            add(&s, id, epoch, i < 2, 10 * i + epoch);
        }
    }
    ipw_repeats_of(&r, &s);
    assert_int_equal(r.tasks, 4);
    assert_int_equal(r.epochs, 3);
    assert_string_equal(r.by, "task");
    assert_int_equal(r.metrics[IPW_REPEAT_CPU_J].n, 4);
    assert_near(r.metrics[IPW_REPEAT_CPU_J].mean, 16, 1e-12);
    assert_near(r.metrics[IPW_REPEAT_CPU_J].min, 1, 1e-12);
    assert_near(r.metrics[IPW_REPEAT_ACCURACY].mean, 0.5, 1e-12);
    assert_near(r.metrics[IPW_REPEAT_IPJ].mean, 0.5 / 16, 1e-12);
    assert_int_equal(r.metrics[IPW_REPEAT_GPU_J].n, 0);
    ipw_summary_release(&s);
}

static void one_task_over_and_over_is_taken_by_epoch(void **state)
{
    struct ipw_summary s;
    struct ipw_repeats r;

    (void)state;
    ipw_summary_init(&s);
    for (int epoch = 0; epoch < 5; epoch++) add(&s, "q", epoch, epoch != 2, 10 + epoch);
    ipw_repeats_of(&r, &s);
    assert_string_equal(r.by, "epoch");
    assert_int_equal(r.metrics[IPW_REPEAT_JOULES].n, 5);
    assert_string_equal(r.metrics[IPW_REPEAT_JOULES].method, "t");
    assert_near(r.metrics[IPW_REPEAT_JOULES].mean, 12, 1e-12);
    assert_near(r.metrics[IPW_REPEAT_ACCURACY].mean, 0.8, 1e-12);
    ipw_summary_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_51_two_values_have_no_interval_three_have_t),
        cmocka_unit_test(from_20_on_the_bootstrap_and_always_the_same),
        cmocka_unit_test(repeats_of_a_task_are_averaged_first),
        cmocka_unit_test(one_task_over_and_over_is_taken_by_epoch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
