#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/metrics.h"
#include "trace/channel_stats.h"
#include "unit/unit.h"

static const struct ipw_channel channels[] = {
    {.name = "gpu0", .kind = IPW_CHANNEL_COUNTER},
    {.name = "gpu0/mem_util", .kind = IPW_CHANNEL_METRIC, .unit = "pct"},
    {.name = "gpu0/mem_used", .kind = IPW_CHANNEL_METRIC, .unit = "bytes"},
};

/* Readings of the memory's use at 1, 2, 3, ... s, within a query from the first to the last. */
static void read_all(struct ipw_query_trace *q, const int64_t *pct, size_t n)
{
    struct ipw_metrics *m = ipw_metrics_new(channels, 3);

    *q = (struct ipw_query_trace){.start_ns = 1, .end_ns = (int64_t)n};
    for (size_t i = 0; i < n; i++) {
        int64_t row[] = {5, pct[i] < 0 ? pct[i] : pct[i] * 1000, IPW_NO_VALUE};

        ipw_metrics_row(m, 0, 3, (int64_t)i + 1, row);
    }
    ipw_metrics_fill(m, q);
    ipw_metrics_free(m);
}

static void case_12_negatives_are_dropped_and_zero_is_a_value(void **state)
{
    static const struct {
        int64_t pct[3];
        size_t n;
        double avg, max; /* NAN: none */
    } cases[] = {
        {{40, 60, 80}, 3, 60, 80},
        {{50, -1, 70}, 3, 60, 70},
        {{-1, -1, -1}, 3, NAN, NAN},
        {{0, 100}, 2, 50, 100},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_query_trace q;
        double max, avg;

        read_all(&q, cases[i].pct, cases[i].n);
        avg = ipw_channel_stats_mbu(&q, &max);
        if (isnan(cases[i].avg)) {
            assert_true(isnan(avg) && isnan(max));
            assert_int_equal(q.n_metrics, 0);
        } else {
            assert_true(avg == cases[i].avg && max == cases[i].max);
            assert_int_equal(q.n_metrics, 1);
            assert_string_equal(q.metrics[0].name, "gpu0/mem_util");
            assert_string_equal(q.metrics[0].unit, "pct");
        }
        ipw_query_trace_release(&q);
    }
}

static void only_what_was_read_within_the_query_counts(void **state)
{
    struct ipw_metrics *m = ipw_metrics_new(channels, 3);
    struct ipw_query_trace q = {.start_ns = 200, .end_ns = 299};

    (void)state;
    ipw_metrics_trim(m, 200); /* before the first reading of a slow sensor */
    for (int64_t t = 0; t < 400; t++) {
        int64_t row[] = {5, t * 1000, 7000};

        ipw_metrics_row(m, 0, 3, t, row);
        if (t == 250) ipw_metrics_trim(m, 200);
    }
    ipw_metrics_fill(m, &q);
    assert_int_equal(q.n_metrics, 2);
    assert_string_equal(q.metrics[0].name, "gpu0/mem_used"); /* by name */
    assert_int_equal(q.metrics[1].n, 100);
    assert_true(q.metrics[1].min == 200 && q.metrics[1].max == 299);
    assert_true(q.metrics[1].avg == 249.5 && q.metrics[1].median == 249.5);
    ipw_query_trace_release(&q);
    ipw_metrics_free(m);
}

UNIT(metrics)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_12_negatives_are_dropped_and_zero_is_a_value),
        cmocka_unit_test(only_what_was_read_within_the_query_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
