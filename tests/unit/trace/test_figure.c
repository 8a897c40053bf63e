/* Sums in whole microjoules, and the reasons that decide something. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/figure.h"

static void sums_are_whole_microjoules(void **state)
{
    (void)state;
    assert_true(ipw_figure_add_j(0.1, 0.2) == 0.3);
    assert_true(ipw_figure_add_j(1e-6, 0.4e-6) == 1e-6);
    assert_true(isnan(ipw_figure_add_j(1, NAN)));
}

static void reasons_by_their_text(void **state)
{
    (void)state;
    assert_int_equal(ipw_reason_of("no_sensor"), IPW_REASON_NO_SENSOR);
    assert_int_equal(ipw_reason_of("permission"), IPW_REASON_PERMISSION);
    assert_int_equal(ipw_reason_of("switched_off"), IPW_REASON_SWITCHED_OFF);
    assert_int_equal(ipw_reason_of("remote"), IPW_REASON_REMOTE);
    assert_int_equal(ipw_reason_of("suspended"), IPW_REASON_SUSPENDED);
    assert_int_equal(ipw_reason_of("gap_too_long"), IPW_REASON_GAP_TOO_LONG);
    assert_int_equal(ipw_reason_of("gpu_lost"), IPW_REASON_OTHER);
    assert_int_equal(ipw_reason_of(""), IPW_REASON_OTHER);
    assert_int_equal(ipw_reason_of(NULL), IPW_REASON_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_whole_microjoules),
        cmocka_unit_test(reasons_by_their_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
