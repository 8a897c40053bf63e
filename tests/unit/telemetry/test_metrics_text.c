/* The Prometheus text: headings, labels with odd characters, values, histograms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "telemetry/metrics_text.h"
#include "unit/unit.h"

static void samples(void **state)
{
    struct ipw_buf out = IPW_BUF(IPW_KIB);

    (void)state;
    ipw_metrics_family(&out, "a_watts", "gauge", "Of a.");
    ipw_metrics_begin(&out, "a_watts");
    ipw_metrics_end(&out, 312.5);
    ipw_metrics_begin(&out, "a_watts");
    ipw_metrics_label(&out, "x", "q\"b\\n\n");
    ipw_metrics_label(&out, "y", "");
    ipw_metrics_end_joules(&out, 1000001);
    assert_string_equal(ipw_buf_str(&out), "# HELP a_watts Of a.\n# TYPE a_watts gauge\n"
                                           "a_watts 312.5\n"
                                           "a_watts{x=\"q\\\"b\\\\n\\n\",y=\"\"} 1.000001\n");
    ipw_buf_release(&out);
}

static void histogram(void **state)
{
    struct ipw_buf out = IPW_BUF(4 * IPW_KIB), want = IPW_BUF(4 * IPW_KIB);
    struct ipw_metrics_histogram h = {.sum_s = 0};

    (void)state;
    ipw_metrics_histogram_add(&h, ipw_metrics_bounds_s[0]); /* a bound is in its own bucket */
    ipw_metrics_histogram_add(&h, 0);
    ipw_metrics_histogram_add(&h, 1000);
    ipw_metrics_histogram_write(&out, &h, "d_seconds", "Duration.");
    ipw_buf_adds(&want, "# HELP d_seconds Duration.\n# TYPE d_seconds histogram\n");
    for (int i = 0; i < IPW_METRICS_BUCKETS; i++)
        ipw_buf_addf(&want, "d_seconds_bucket{le=\"%g\"} 2\n", ipw_metrics_bounds_s[i]);
    ipw_buf_adds(&want, "d_seconds_bucket{le=\"+Inf\"} 3\nd_seconds_sum 1000.005\n"
                        "d_seconds_count 3\n");
    assert_string_equal(ipw_buf_str(&out), ipw_buf_str(&want));
    ipw_buf_release(&out);
    ipw_buf_release(&want);
}

UNIT(metrics_text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),
        cmocka_unit_test(histogram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
