/* Several devices in a domain, one that is lost, and a run that is cut down: the books of each. */
#include <stdlib.h>

#include "ledger/ledger_priv.h"
#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU     IPW_DOMAIN_GPU
#define BOARDS  3
#define QUERIES 24

static int64_t uj_of(struct ipw_figure f)
{
    if (!f.known) fail_msg("not known: %s", f.reason);
    return (int64_t)(f.j * 1e6 + (f.j < 0 ? -0.5 : 0.5));
}

static struct ipw_ledger *boards(size_t n, int64_t period_ns)
{
    struct ipw_channel c[BOARDS];

    for (size_t i = 0; i < n; i++) {
        c[i] = test_counter("", GPU, 0, 900);
        snprintf(c[i].name, sizeof c[i].name, "gpu%zu", i);
        c[i].period_ns = period_ns;
    }
    return ipw_ledger_new(c, n);
}

/* Case 33, for each device: under each rule, whatever the queries do, the shares of a board and its
 * idle part are its total, and the boards are the domain, to the microjoule. */
static void test_33_each_device_conserves(void **state)
{
    uint64_t seed = 33;

    (void)state;
    for (int run = 0; run < 120; run++) {
        struct ipw_ledger *l = boards(BOARDS, run % 2 ? S(0.1) : 0);
        int64_t ordinal[QUERIES], t0[QUERIES], t1[QUERIES], v[BOARDS] = {0}, shown[BOARDS] = {0};
        int64_t sum[BOARDS] = {0}, all = 0;
        size_t begun = 0, ended = 0;

        ipw_ledger_set_share(l, (enum ipw_share)(run / 2 % 2));
        if (run % 4 == 0) ipw_ledger_set_baseline(l, GPU, 90);
        for (int i = 0; i <= 600; i++) {
            int64_t t = S(1) + i * S(0.02);

            for (int b = 0; b < BOARDS; b++) {
                v[b] += (int64_t)test_random(&seed) % J(12);
                if (run % 2 == 0 || i % 5 == b) shown[b] = v[b];
            }
            ipw_ledger_row(l, 0, BOARDS, t, shown);
            if (i < 20 || i > 560) continue;
            if (begun < QUERIES && test_random(&seed) % 12 == 0) {
                ordinal[begun] = ipw_ledger_query_begin(l, t0[begun] = t + 3);
                tell_phase(l, ordinal[begun], IPW_PHASE_PREFILL, t + 3, t + S(0.1));
                tell_phase(l, ordinal[begun++], IPW_PHASE_DECODE, t + S(0.1), t + S(0.4));
            }
            if (ended < begun && t > t0[ended] + S(0.5) &&
                (i == 560 || test_random(&seed) % 12 == 0)) {
                ipw_ledger_query_end(l, ordinal[ended], t1[ended] = t + 7);
                ended++;
            }
        }
        while (ended < begun) {
            ipw_ledger_query_end(l, ordinal[ended], t1[ended] = S(12.5) + (int64_t)ended);
            ended++;
        }
        for (int i = 0; i < 40; i++) {
            for (int b = 0; b < BOARDS; b++) shown[b] = v[b] += J(1);
            ipw_ledger_row(l, 0, BOARDS, S(13.01) + i * S(0.02), shown);
        }
        for (size_t q = 0; q < begun; q++) {
            int64_t parts = 0, cuts[4] = {t0[q], t0[q] + 1000003, t0[q] + S(0.2), t1[q]};
            struct ipw_figure windows[3], one[3];

            ipw_ledger_figures(l, ask_windows(ordinal[q], GPU), cuts, 3, windows);
            for (size_t b = 0; b < BOARDS; b++) {
                int64_t uj = uj_of(
                    ipw_ledger_figure(l, ask_device(b, ask_query(ordinal[q], GPU, t0[q], t1[q]))));

                sum[b] += uj;
                parts += uj;
                ipw_ledger_figures(l, ask_device(b, ask_windows(ordinal[q], GPU)), cuts, 3, one);
                for (int k = 0; k < 3; k++) windows[k].j -= (double)uj_of(one[k]) / 1e6;
                assert_int_equal(uj_of(one[0]) + uj_of(one[1]) + uj_of(one[2]), uj);
            }
            for (int k = 0; k < 3; k++) assert_near(windows[k].j, 0, 4e-7);
            assert_int_equal(parts,
                             uj_of(ipw_ledger_figure(l, ask_query(ordinal[q], GPU, t0[q], t1[q]))));
        }
        for (size_t b = 0; b < BOARDS; b++) {
            int64_t total =
                uj_of(ipw_ledger_figure(l, ask_device(b, ask_total(GPU, S(1), S(13.5)))));

            all += total;
            assert_int_equal(
                sum[b] + uj_of(ipw_ledger_figure(l, ask_device(b, ask_idle(GPU, S(1), S(13.5))))),
                total);
        }
        assert_int_equal(all, uj_of(ipw_ledger_figure(l, ask_total(GPU, S(1), S(13.5)))));
        ipw_ledger_free(l);
    }
}

/* A board that falls silent holds up neither the books nor the memory: its figures are null from
 * there on, the other's go on, and when it speaks again a chain of its own begins. */
static void test_13_lost_device_is_not_kept_for(void **state)
{
    struct ipw_ledger *l = boards(2, 0);
    int64_t q = -1, begun = 0;
    size_t most_instants = 0, most_queries = 0, most_samples = 0;

    (void)state;
    for (int i = 0; i <= 36000; i++) { /* an hour; silent from 100 s to 3000 s */
        int64_t t = S(1) + i * S(0.1), v[2] = {J(10 * i), i % 2 ? IPW_NO_VALUE : J(20 * i)};
        bool silent = i > 1000 && i < 30000;

        ipw_ledger_row(l, 0, silent && i < 15000 ? 1 : 2, t, v); /* no rows, then failing ones */
        if (silent && i >= 15000) {
            int64_t failed = IPW_NO_VALUE;
            ipw_ledger_row(l, 1, 1, t, &failed);
        }
        if (silent && i >= 15000) continue;
        if (i % 20 != 10) continue;
        if (q >= 0) {
            ipw_ledger_query_end(l, q, t - 5);
            ipw_ledger_forget(l, q - 2);
        }
        begun = t;
        q = ipw_ledger_query_begin(l, t);
        tell_phase(l, q, IPW_PHASE_DECODE, t, t + S(1));
        if (l->books[1]->queue.n > most_instants) most_instants = l->books[1]->queue.n;
        if (l->n_queries > most_queries) most_queries = l->n_queries;
        if (l->books[0]->series.n > most_samples) most_samples = l->books[0]->series.n;
        if (i == 5010) {
            assert_true(ipw_ledger_covered_ns(l) >= t - S(0.2));
            assert_unknown(ipw_ledger_figure(l, ask_query(q - 1, GPU, t - S(2), t - 5)), "lost");
            assert_unknown(
                ipw_ledger_figure(l, ask_device(1, ask_query(q - 1, GPU, t - S(2), t - 5))),
                "lost");
            assert_near(
                ipw_ledger_figure(l, ask_device(0, ask_query(q - 1, GPU, t - S(2), t - 5))).j, 200,
                1e-3);
        }
    }
    assert_true(most_instants < 2000 && most_queries < 1000 && most_samples < 30000);
    assert_near(
        ipw_ledger_figure(l, ask_device(1, ask_query(q - 1, GPU, begun - S(2), begun - 5))).j, 400,
        1e-3);
    assert_unknown(ipw_ledger_figure(l, ask_device(1, ask_total(GPU, S(1), S(3600)))), "lost");
    assert_true(ipw_ledger_figure(l, ask_device(0, ask_total(GPU, S(1), S(3600)))).known);
    ipw_ledger_free(l);
}

/* A run that is cut down: the queries in flight leave at the last reading, which no published step
 * has passed yet, and still nothing is lost. */
static void test_cut_down_run_balances(void **state)
{
    (void)state;
    for (int rule = 0; rule < 2; rule++) {
        struct ipw_ledger *l = boards(2, S(0.1));
        int64_t q[3], end = 0, sum = 0;

        ipw_ledger_set_share(l, (enum ipw_share)rule);
        for (int i = 0; i <= 237; i++) {
            int64_t v[2] = {J(3 * (i / 10) * 10), J(7 * ((i + 4) / 10) * 10 + 1)};

            end = S(1) + i * S(0.01);
            if (i == 40 || i == 77 || i == 229) {
                size_t k = i == 40 ? 0 : i == 77 ? 1 : 2;
                q[k] = ipw_ledger_query_begin(l, end + 13);
                tell_phase(l, q[k], IPW_PHASE_PREFILL, end + 13, INT64_MAX);
            }
            ipw_ledger_row(l, 0, 2, end, v);
        }
        assert_int_equal(ipw_ledger_read_ns(l), end);
        for (int k = 0; k < 3; k++) ipw_ledger_query_end(l, q[k], end);
        ipw_ledger_close(l, end);
        for (int k = 0; k < 3; k++) {
            int64_t from = k == 0 ? S(1.4) : k == 1 ? S(1.77) : S(3.29);
            sum += uj_of(ipw_ledger_figure(l, ask_query(q[k], GPU, from + 13, end)));
        }
        assert_int_equal(sum + uj_of(ipw_ledger_figure(l, ask_idle(GPU, S(1), end))),
                         uj_of(ipw_ledger_figure(l, ask_total(GPU, S(1), end))));
        ipw_ledger_free(l);
    }
}

UNIT(ledger_devices)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_33_each_device_conserves),
        cmocka_unit_test(test_13_lost_device_is_not_kept_for),
        cmocka_unit_test(test_cut_down_run_balances),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
