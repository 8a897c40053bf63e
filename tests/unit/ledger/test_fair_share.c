/* Shapley's values of calls that saturate a device: ledger/fair_share.h. */
#include "ledger/fair_share.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define PRE IPW_PHASE_PREFILL
#define DEC IPW_PHASE_DECODE

/* v of a group by the law of fair_share.h. */
static double drawn(const struct ipw_fair *f, const int32_t *count)
{
    double rest = 1;

    for (int p = 0; p < IPW_PHASE_COUNT; p++)
        for (int32_t i = 0; i < count[p]; i++) rest *= 1 - f->single_w[p] / f->cap_w;
    return f->cap_w * (1 - rest);
}

/* By its definition: over all orders, for one call of phase p; by how many of each phase come
 * before it: each such group is before it in as many orders as there are ways to choose it. */
static double shapley(const struct ipw_fair *f, const int32_t *count, int p)
{
    int32_t n = count[PRE] + count[DEC], others[IPW_PHASE_COUNT] = {0};
    double sum = 0;

    others[PRE] = count[PRE] - (p == PRE);
    others[DEC] = count[DEC] - (p == DEC);
    for (int32_t a = 0; a <= others[PRE]; a++) {
        for (int32_t b = 0; b <= others[DEC]; b++) {
            int32_t before[IPW_PHASE_COUNT] = {0}, with[IPW_PHASE_COUNT] = {0};
            double ways =
                exp(lgamma(others[PRE] + 1) - lgamma(a + 1) - lgamma(others[PRE] - a + 1) +
                    lgamma(others[DEC] + 1) - lgamma(b + 1) - lgamma(others[DEC] - b + 1));
            double orders = exp(lgamma(a + b + 1) + lgamma(n - a - b) - lgamma(n + 1));

            before[PRE] = with[PRE] = a;
            before[DEC] = with[DEC] = b;
            with[p]++;
            sum += ways * orders * (drawn(f, with) - drawn(f, before));
        }
    }
    return sum;
}

static void test_against_the_definition(void **state)
{
    static const int32_t crowds[][2] = {{1, 0}, {1, 1}, {2, 0}, {1, 3}, {5, 2}, {8, 24}, {40, 60}};
    static const double laws[][3] = {{358, 268, 600}, {545, 355, 560}, {10, 2, 1e6}, {0, 300, 500}};

    (void)state;
    for (size_t k = 0; k < sizeof laws / sizeof *laws; k++) {
        struct ipw_fair f = {.cap_w = laws[k][2]};

        f.single_w[PRE] = laws[k][0];
        f.single_w[DEC] = laws[k][1];
        for (size_t i = 0; i < sizeof crowds / sizeof *crowds; i++) {
            int32_t count[IPW_PHASE_COUNT] = {0};
            double w[IPW_PHASE_COUNT], whole;

            count[PRE] = crowds[i][0];
            count[DEC] = crowds[i][1];
            ipw_fair_weights(&f, count, w);
            whole = drawn(&f, count);
            if (count[PRE]) assert_near(w[PRE], shapley(&f, count, PRE), 1e-4 * whole);
            if (count[DEC]) assert_near(w[DEC], shapley(&f, count, DEC), 1e-4 * whole);
            assert_near(count[PRE] * w[PRE] + count[DEC] * w[DEC], whole, 1e-4 * whole);
            assert_near(w[IPW_PHASE_TOOL], 0, 0);
        }
    }
}

/* Thousands in flight, a device that is full with one, and one that draws nothing. */
static void test_edges(void **state)
{
    struct ipw_fair f = {.cap_w = 500};
    int32_t count[IPW_PHASE_COUNT] = {0};
    double w[IPW_PHASE_COUNT];

    (void)state;
    f.single_w[DEC] = 500;
    count[DEC] = 2000;
    ipw_fair_weights(&f, count, w);
    assert_near(w[DEC] * 2000, 500, 0.5);
    count[IPW_PHASE_TOOL] = 3;
    ipw_fair_weights(&f, count, w);
    assert_near(w[IPW_PHASE_TOOL], 0, 0);
    f.single_w[DEC] = f.cap_w = 0;
    ipw_fair_weights(&f, count, w);
    assert_near(w[DEC], 0, 0);
}

UNIT(fair_share)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_definition),
        cmocka_unit_test(test_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
