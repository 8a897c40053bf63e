#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/stats.h"

static void known_sets(void **state)
{
    static const struct {
        double values[6];
        size_t n, counted;
        double mean, median, min, max, std;
    } cases[] = {
        {{0}, 0, 0, NAN, NAN, NAN, NAN, NAN},
        {{7}, 1, 1, 7, 7, 7, 7, 0},
        {{NAN, 7, NAN}, 3, 1, 7, 7, 7, 7, 0},
        {{4, 2}, 2, 2, 3, 3, 2, 4, 1.4142135623730951},
        {{2, 4, 4, 4, 5, 11}, 6, 6, 5, 4, 2, 11, 3.0983866769659336},
        {{3, -1, 2}, 3, 3, 4.0 / 3, 2, -1, 3, 2.0816659994661326},
        {{1e15, 1e15 + 2, 1e15 + 4}, 3, 3, 1e15 + 2, 1e15 + 2, 1e15, 1e15 + 4, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_stats s = {0};
        struct ipw_stats_result r;

        for (size_t k = 0; k < cases[i].n; k++) ipw_stats_add(&s, cases[i].values[k]);
        r = ipw_stats_result(&s);
        assert_int_equal(r.n, cases[i].counted);
        if (!r.n) {
            assert_true(isnan(r.mean) && isnan(r.median) && isnan(r.min) && isnan(r.max) &&
                        isnan(r.std));
        } else {
            assert_true(fabs(r.mean - cases[i].mean) < 1e-12);
            assert_true(r.median == cases[i].median);
            assert_true(r.min == cases[i].min && r.max == cases[i].max);
            assert_true(fabs(r.std - cases[i].std) < 1e-12);
        }
        ipw_stats_clear(&s);
        assert_int_equal(ipw_stats_result(&s).n, 0);
        ipw_stats_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_sets)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
