/* What a long run forgets changes nothing of what it is asked later. */
#include "ledger/ledger.h"

#include <stdlib.h>

#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU
enum { LANES = 4, STEPS = 6000, BATCH = 37 };
#define STEP_NS S(0.02)

struct lane {
    int64_t query, t0_ns, t1_ns; /* t0 0: nothing is going on in it */
    bool over;
};

static void rows(struct ipw_ledger *l, size_t channel, int64_t uj[STEPS + 1], int from, int to)
{
    for (int i = from; i < to; i++) ipw_ledger_row(l, channel, 1, S(1) + i * STEP_NS, &uj[i]);
}

static void begin(struct ipw_ledger *l, struct lane *lane, int64_t t0, int64_t t1, int64_t first_ns)
{
    lane->query = ipw_ledger_query_begin(l, t0);
    ipw_ledger_phase(l, lane->query, IPW_PHASE_PREFILL, t0, first_ns);
    ipw_ledger_phase(l, lane->query, IPW_PHASE_DECODE, first_ns, t1);
}

static void same(struct ipw_figure a, struct ipw_figure b)
{
    if (!a.known || !b.known) fail_msg("not known: %s", a.known ? b.reason : a.reason);
    assert_true(a.j == b.j && a.lo_j == b.lo_j && a.hi_j == b.hi_j);
    assert_int_equal(a.provenance, b.provenance);
}

static void compare(struct ipw_ledger *whole, struct ipw_ledger *trimmed, const struct lane *q)
{
    int64_t t[4] = {q->t0_ns, q->t0_ns + (q->t1_ns - q->t0_ns) / 3, q->t1_ns - 1000, q->t1_ns};
    struct ipw_figure a[3], b[3];

    same(ipw_ledger_figure(whole, ask_query(q->query, GPU, q->t0_ns, q->t1_ns)),
         ipw_ledger_figure(trimmed, ask_query(q->query, GPU, q->t0_ns, q->t1_ns)));
    ipw_ledger_figures(whole, ask_windows(q->query, GPU), t, 3, a);
    ipw_ledger_figures(trimmed, ask_windows(q->query, GPU), t, 3, b);
    for (int i = 0; i < 3; i++) same(a[i], b[i]);
    for (size_t d = 0; d < 2; d++) {
        struct ipw_account x, y;

        x = ipw_ledger_account(whole, ask_device(d, ask_query(q->query, GPU, q->t0_ns, q->t1_ns)));
        y = ipw_ledger_account(trimmed,
                               ask_device(d, ask_query(q->query, GPU, q->t0_ns, q->t1_ns)));
        same(x.attributed, y.attributed);
        assert_true(x.exclusive_j == y.exclusive_j && x.marginal_j == y.marginal_j);
    }
}

/* Two boards, the rows of one of which come late and many at once; queries that overlap all the
 * time.  One ledger forgets whenever it can, the other never does. */
static void test_25_trimmed_books_are_the_same(void **state)
{
    (void)state;
    for (int share = IPW_SHARE_EQUAL; share <= IPW_SHARE_PHASE; share++) {
        static int64_t uj[2][STEPS + 1];
        struct ipw_channel c[2] = {test_counter("gpu0", GPU, 0, 700),
                                   test_counter("gpu1", GPU, 0, 700)};
        struct ipw_ledger *l[2] = {ipw_ledger_new(c, 2), ipw_ledger_new(c, 2)};
        struct lane lanes[LANES] = {{0}};
        uint64_t seed = 25;
        int asked = 0;

        for (int i = 1; i <= STEPS; i++) {
            uj[0][i] = uj[0][i - 1] + (int64_t)test_random(&seed) % J(12);
            uj[1][i] = uj[1][i - 1] + (int64_t)test_random(&seed) % J(12);
        }
        for (int k = 0; k < 2; k++) {
            ipw_ledger_set_share(l[k], (enum ipw_share)share);
            ipw_ledger_set_baseline(l[k], GPU, 60);
        }
        for (int i = 0; i < STEPS; i++) {
            int64_t now = S(1) + i * STEP_NS, oldest = now;

            for (struct lane *q = lanes; q < lanes + LANES; q++) {
                if (q->t0_ns && !q->over && q->t1_ns <= now) {
                    for (int k = 0; k < 2; k++) ipw_ledger_query_end(l[k], q->query, q->t1_ns);
                    q->over = true;
                }
            }
            for (int k = 0; k < 2; k++) {
                rows(l[k], 0, uj[0], i, i + 1);
                if (i % BATCH == BATCH - 1) rows(l[k], 1, uj[1], i + 1 - BATCH, i + 1);
            }
            for (struct lane *q = lanes; q < lanes + LANES; q++) {
                if (q->over && ipw_ledger_covered_ns(l[1]) >= q->t1_ns) {
                    compare(l[0], l[1], q);
                    asked++;
                    *q = (struct lane){0};
                }
                if (!q->t0_ns && i > 50 && test_random(&seed) % 8 == 0) {
                    int64_t first = now + (int64_t)(test_random(&seed) % 20 + 1) * STEP_NS / 7;

                    q->t0_ns = now;
                    q->t1_ns = now + (int64_t)(30 + test_random(&seed) % 60) * STEP_NS;
                    for (int k = 0; k < 2; k++) begin(l[k], q, now, q->t1_ns, first);
                }
                if (q->t0_ns && q->t0_ns < oldest) oldest = q->t0_ns;
            }
            ipw_ledger_trim(l[1], oldest);
        }
        assert_true(asked > 200);
        for (int k = 0; k < 2; k++) ipw_ledger_free(l[k]);
    }
}

UNIT(ledger_trim)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_25_trimmed_books_are_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
