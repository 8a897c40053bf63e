#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/stats.h"
#include "report/repeats.h"
#include "unit/unit.h"

#define assert_near(a, b, by) assert_true(fabs((double)(a) - (double)(b)) <= (by))

static void add(struct ipw_summary *s, const char *id, int epoch, int resolved, double j)
{
    char name[16];
    struct ipw_query_trace q = {.id = name,
                                .outcome = "answered",
                                .completed = true,
                                .output_tokens = 10,
                                .end_ns = 2 * IPW_NS_PER_S};
    struct ipw_query_details r = {.epoch = epoch, .is_resolved = resolved, .cost_usd = NAN};

    snprintf(name, sizeof name, "%s", id);
    q.energy[IPW_DOMAIN_CPU] = (struct ipw_figure){.known = true, .j = j};
    ipw_summary_add(s, &q, &r);
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

/* The interval of an accuracy read "80 % to 107 %": it is Wilson's, so that it stays a
 * proportion. */
static void an_accuracy_stays_within_0_and_1(void **state)
{
    for (int tasks = 3; tasks <= 30; tasks += 3) {
        for (int wrong = 0; wrong <= tasks; wrong++) {
            struct ipw_summary s;
            struct ipw_repeats r;
            const struct ipw_interval *a = &r.metrics[IPW_REPEAT_ACCURACY];

            ipw_summary_init(&s);
            for (int i = 0; i < 2 * tasks; i++) {
                char id[8];

                snprintf(id, sizeof id, "q%d", i / 2);
                add(&s, id, i % 2, i / 2 >= wrong, 1);
            }
            ipw_repeats_of(&r, &s);
            assert_string_equal(a->method, "wilson");
            assert_true(a->lo >= 0 && a->lo <= a->mean && a->mean <= a->hi && a->hi <= 1);
            assert_true(a->hi - a->lo > 0.05); /* all right is not certainty */
            ipw_summary_release(&s);
        }
    }
    (void)state;
}

/* With one query a task it is the plain interval; the same answers once more change it little: they
 * are no new tasks. */
static void repeats_are_no_new_tasks(void **state)
{
    struct ipw_interval once, thrice, joules_once, joules_thrice;
    double plain_lo, plain_hi;

    (void)state;
    for (int epochs = 1; epochs <= 3; epochs += 2) {
        struct ipw_summary s;
        struct ipw_repeats r;

        ipw_summary_init(&s);
        for (int i = 0; i < 8 * epochs; i++) {
            char id[8];

            snprintf(id, sizeof id, "q%d", i % 8);
            add(&s, id, i / 8, i % 8 < 6, 10 + i % 8);
        }
        ipw_repeats_of(&r, &s);
        *(epochs == 1 ? &once : &thrice) = r.metrics[IPW_REPEAT_ACCURACY];
        *(epochs == 1 ? &joules_once : &joules_thrice) = r.metrics[IPW_REPEAT_JOULES];
        ipw_summary_release(&s);
    }
    ipw_stats_wilson(&plain_lo, &plain_hi, 0.75, 8);
    assert_near(once.lo, plain_lo, 1e-12);
    assert_near(once.hi, plain_hi, 1e-12);
    assert_near(thrice.mean, 0.75, 1e-12);
    assert_true(thrice.hi - thrice.lo >= once.hi - once.lo);
    /* s of 10..17 is sqrt(6), n 8, t(7) 2.3646243; whole copies of the tasks leave it as it is */
    assert_near(joules_once.lo, 13.5 - 2.3646243 * sqrt(6.0 / 8), 1e-6);
    assert_near(joules_thrice.lo, joules_once.lo, 1e-9);
    assert_near(joules_thrice.hi, joules_once.hi, 1e-9);
}

static struct ipw_repeats of_tasks(int n, const char *folder)
{
    struct ipw_summary s;
    struct ipw_repeats r;

    ipw_summary_init(&s);
    s.place.folder = folder;
    for (int i = 0; i < n; i++) {
        char id[12];

        snprintf(id, sizeof id, "q%d", i);
        add(&s, id, 0, i % 4 != 0, 10 + i % 7);
    }
    ipw_repeats_of(&r, &s);
    assert_int_equal(s.place.error, 0);
    ipw_summary_release(&s);
    return r;
}

static void ratios_are_bootstrapped_or_have_no_interval(void **state)
{
    struct ipw_repeats few = of_tasks(19, NULL), r = of_tasks(56, NULL);
    const struct ipw_interval *ratio = &r.metrics[IPW_REPEAT_IPJ];

    (void)state;
    assert_string_equal(few.metrics[IPW_REPEAT_IPJ].method, "none");
    assert_true(isnan(few.metrics[IPW_REPEAT_IPJ].lo));
    assert_string_equal(ratio->method, "bootstrap");
    assert_near(ratio->mean, 0.75 / 13, 1e-12);
    assert_near(ratio->min, 0, 0);
    assert_near(ratio->max, 0.1, 0);
    /* 0.75 has a standard error of 0.058, 13 one of 0.27: 0.0046 of the ratio */
    assert_true(ratio->lo > 0.0457 && ratio->lo < 0.0527);
    assert_true(ratio->hi > 0.0627 && ratio->hi < 0.0697);
}

/* Of more tasks than one block holds the interval is as wide as the formula says, and a file makes
 * no difference to it. */
static void many_tasks_are_drawn_block_by_block(void **state)
{
    enum { N = 3 * 8192 + 100 };
    struct ipw_repeats memory = of_tasks(N, NULL), file = of_tasks(N, "/tmp");
    const struct ipw_interval *j = &memory.metrics[IPW_REPEAT_JOULES];
    double half = 1.959964 * 2 / sqrt(N); /* the deviation of 10 to 16 is 2 */

    (void)state;
    assert_int_equal(memory.tasks, N);
    assert_string_equal(j->method, "bootstrap");
    assert_near(j->lo, j->mean - half, 0.1 * half);
    assert_near(j->hi, j->mean + half, 0.1 * half);
    for (int m = 0; m < IPW_REPEAT_METRICS; m++) {
        const struct ipw_interval *a = &memory.metrics[m], *b = &file.metrics[m];

        assert_int_equal(a->n, b->n);
        assert_true(isnan(a->lo) ? isnan(b->lo) : a->lo == b->lo && a->hi == b->hi);
    }
}

UNIT(repeats)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeats_of_a_task_are_averaged_first),
        cmocka_unit_test(one_task_over_and_over_is_taken_by_epoch),
        cmocka_unit_test(an_accuracy_stays_within_0_and_1),
        cmocka_unit_test(repeats_are_no_new_tasks),
        cmocka_unit_test(ratios_are_bootstrapped_or_have_no_interval),
        cmocka_unit_test(many_tasks_are_drawn_block_by_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
