#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "run/pacing.h"
#include "unit/unit.h"

static struct ipw_pacing pacing(double rate, const char *pattern)
{
    struct ipw_pacing p;
    struct ipw_err err;

    if (ipw_pacing_parse(&p, &(struct ipw_pacing_options){rate, pattern}, &err))
        fail_msg("%s", err.text);
    return p;
}

static void constant_gaps(void **state)
{
    struct ipw_pacing p = pacing(4, "constant");

    (void)state;
    for (int i = 0; i < 10; i++) assert_int_equal(ipw_pacing_gap_ns(&p), 250000000);
}

/* The gaps of a Poisson process: their mean is 1 / rate, and so is their deviation; a seed gives
 * the same gaps again. */
static void poisson_gaps(void **state)
{
    struct ipw_pacing p = pacing(10, NULL), again = pacing(10, "poisson"),
                      other = pacing(10, "poisson:1");
    double sum = 0, squares = 0;
    int n = 100000, differ = 0;

    (void)state;
    for (int i = 0; i < n; i++) {
        int64_t gap = ipw_pacing_gap_ns(&p);

        assert_true(gap >= 0);
        assert_int_equal(gap, ipw_pacing_gap_ns(&again));
        differ += gap != ipw_pacing_gap_ns(&other);
        sum += (double)gap / 1e9;
        squares += (double)gap / 1e9 * ((double)gap / 1e9);
    }
    assert_true(fabs(sum / n - 0.1) < 0.001);
    assert_true(fabs(sqrt(squares / n - sum / n * (sum / n)) - 0.1) < 0.002);
    assert_true(differ > n - 10);
}

static void refused(void **state)
{
    static const struct {
        double rate;
        const char *pattern, *says;
    } wrong[] = {
        {-1, NULL, "--rate"},
        {NAN, NULL, "--rate"},
        {1e9, NULL, "--rate"},
        {1, "gamma", "expected poisson, poisson:SEED, constant or recorded"},
        {0, "recorded:0", "expected recorded:SPEED"},
        {0, "recorded:x", "not a number"},
        {1, "recorded", "leave out --rate"},
        {0, "recordings", "expected poisson"},
        {1, "poisson:x", "expected poisson"},
        {1, "poissons", "expected poisson"},
        {0, "constant", "needs --rate"},
    };
    struct ipw_pacing p;
    struct ipw_err err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ipw_pacing_options o = {wrong[i].rate, wrong[i].pattern};

        assert_int_equal(ipw_pacing_parse(&p, &o, &err), IPW_EINVAL);
        if (!strstr(err.text, wrong[i].says)) fail_msg("%zu: %s", i, err.text);
    }
    p = pacing(0, NULL);
    assert_true(p.rate == 0 && !p.recorded);
    p = pacing(0, "recorded:2.5");
    assert_true(p.recorded && p.speed == 2.5);
}

UNIT(pacing)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_gaps),
        cmocka_unit_test(poisson_gaps),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
