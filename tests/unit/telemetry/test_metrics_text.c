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

UNIT(metrics_text)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
