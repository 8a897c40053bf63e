/* Random runs of the ledger: whatever happens, each joule is booked once. */
#include <stdlib.h>

#include "ledger/ledger.h"

#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define RUNS         2000
#define MOST_QUERIES 40

struct query {
    int64_t t0, t1, ordinal;
};

struct edge {
    int64_t t;
    int change;
    size_t query;
};

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->t != y->t) return x->t < y->t ? -1 : 1;
    return y->change - x->change; /* one comes before another goes */
}

static int64_t uj_of(struct ipw_figure f) { return (int64_t)(f.j * 1e6 + (f.j < 0 ? -0.5 : 0.5)); }

struct script {
    struct query queries[MOST_QUERIES];
    struct edge edges[2 * MOST_QUERIES];
    size_t n_queries, n_edges;
    int64_t start, end;
    int channels;
};

static void make_script(struct script *s, uint64_t *seed)
{
    double length = test_uniform(seed, 0.5, 20);

    s->start = S(100);
    s->end = s->start + S(length);
    s->channels = 1 + (int)(test_random(seed) % 3);
    s->n_queries = 1 + test_random(seed) % MOST_QUERIES;
    s->n_edges = 0;
    for (size_t i = 0; i < s->n_queries; i++) {
        double at = test_uniform(seed, 0, length);
        double lasts = test_uniform(seed, 0, (length - at) * (test_random(seed) % 4 ? 0.3 : 1));
        struct query *q = &s->queries[i];

        q->t0 = s->start + S(at);
        q->t1 = test_random(seed) % 20 ? q->t0 + S(lasts) : q->t0;
        if (q->t1 > s->end) q->t1 = s->end;
        s->edges[s->n_edges++] = (struct edge){q->t0, 1, i};
        s->edges[s->n_edges++] = (struct edge){q->t1, -1, i};
    }
    qsort(s->edges, s->n_edges, sizeof *s->edges, by_time);
}

static void tell_edges(struct ipw_ledger *l, struct script *s, size_t *done, int64_t upto)
{
    for (; *done < s->n_edges && s->edges[*done].t <= upto; (*done)++) {
        const struct edge *e = &s->edges[*done];
        struct query *q = &s->queries[e->query];

        if (e->change > 0) {
            q->ordinal = ipw_ledger_query_begin(l, e->t);
        } else {
            ipw_ledger_query_end(l, q->ordinal, e->t);
        }
    }
}

/* Queries, the parts of each, and idle, against the total.  False: a counter had not moved yet, or
 * had fallen silent, when the run ended: then there is no total. */
static bool check_balance(const struct ipw_ledger *l, const struct script *s, uint64_t *seed)
{
    struct ipw_figure all = ipw_ledger_figure(l, ask_total(IPW_DOMAIN_CPU, s->start, s->end));
    int64_t sum = 0, idle, total = uj_of(all);

    if (!all.known) {
        assert_string_equal(all.reason, "stuck");
        return false;
    }

    for (size_t i = 0; i < s->n_queries; i++) {
        const struct query *q = &s->queries[i];
        struct ipw_figure whole = ipw_ledger_figure(
                              l, ask_query(q->ordinal, IPW_DOMAIN_CPU, q->t0, q->t1)),
                          part[6];
        int64_t cuts[7] = {q->t0}, parts = 0;
        size_t n = 1 + test_random(seed) % 6;

        assert_true(whole.known);
        assert_true(whole.j >= 0);
        for (size_t k = 1; k < n; k++) {
            int64_t span = q->t1 - cuts[k - 1];
            cuts[k] = cuts[k - 1] + (int64_t)(test_uniform(seed, 0, 1) * (double)span);
        }
        cuts[n] = q->t1;
        ipw_ledger_figures(l, ask_windows(q->ordinal, IPW_DOMAIN_CPU), cuts, n, part);
        for (size_t k = 0; k < n; k++) {
            assert_true(part[k].known);
            parts += uj_of(part[k]);
        }
        assert_int_equal(parts, uj_of(whole));
        sum += uj_of(whole);
    }
    idle = uj_of(ipw_ledger_figure(l, ask_idle(IPW_DOMAIN_CPU, s->start, s->end)));
    assert_true(llabs(sum + idle - total) <= (int64_t)s->n_queries * s->channels);
    return true;
}

static void test_books_balance(void **state)
{
    uint64_t seed = 20261121;
    int balanced = 0;

    (void)state;
    for (int run = 0; run < RUNS; run++) {
        struct ipw_channel channels[3];
        struct script s;
        struct ipw_ledger *l;
        int64_t values[3] = {0}, moduli[3], t, booked[MOST_QUERIES];
        bool asked[MOST_QUERIES] = {false};
        size_t done = 0;
        double h = test_uniform(&seed, 0.001, 0.15);
        int publish = 1 + (int)(test_random(&seed) % 6);
        int64_t shown[3];

        make_script(&s, &seed);
        for (int c = 0; c < s.channels; c++) {
            moduli[c] = test_random(&seed) % 2 ? RANGE_15 + 15 : RANGE_61 + 61;
            channels[c] = test_counter("", IPW_DOMAIN_CPU, moduli[c], 1000);
            if (test_random(&seed) % 4 == 0) channels[c].period_ns = S(0.1);
            values[c] = shown[c] = moduli[c] - J(test_uniform(&seed, 0, 2000));
        }
        l = ipw_ledger_new(channels, (size_t)s.channels);
        t = s.start;
        for (int i = 0;; i++) {
            int64_t step = S(test_uniform(&seed, 0.2 * h, 1.8 * h));

            if (test_random(&seed) % 2) tell_edges(l, &s, &done, t);
            if (test_random(&seed) % 30 == 0 && i > 0 && t < s.end) {
                int64_t failed[3] = {IPW_NO_VALUE, IPW_NO_VALUE, IPW_NO_VALUE};
                ipw_ledger_row(l, 0, (size_t)s.channels, t, failed);
            } else {
                ipw_ledger_row(l, 0, (size_t)s.channels, t, shown);
            }
            /* A query is booked as soon as it is covered, as in a run: that figure must last. */
            for (size_t q = 0; q < s.n_queries; q++) {
                if (asked[q] || s.queries[q].t1 > ipw_ledger_covered_ns(l)) continue;
                tell_edges(l, &s, &done, t);
                booked[q] =
                    uj_of(ipw_ledger_figure(l, ask_query(s.queries[q].ordinal, IPW_DOMAIN_CPU,
                                                         s.queries[q].t0, s.queries[q].t1)));
                asked[q] = true;
            }
            if (t >= s.end) break;
            if (t + step > s.end) step = s.end - t;
            t += step;
            for (int c = 0; c < s.channels; c++) {
                double w = test_uniform(&seed, 0, 900);
                values[c] = (values[c] + (int64_t)(w * (double)step / 1e3)) % moduli[c];
                if (i % publish == 0) shown[c] = values[c];
            }
        }
        tell_edges(l, &s, &done, s.end);
        balanced += check_balance(l, &s, &seed);
        for (size_t q = 0; q < s.n_queries; q++) {
            if (!asked[q]) continue;
            assert_int_equal(booked[q], uj_of(ipw_ledger_figure(
                                            l, ask_query(s.queries[q].ordinal, IPW_DOMAIN_CPU,
                                                         s.queries[q].t0, s.queries[q].t1))));
        }
        ipw_ledger_free(l);
    }
    assert_true(balanced > RUNS * 95 / 100);
}

/* Case 53: scaling all powers, shifting all clocks. */
static void test_53_scaling_and_shifting(void **state)
{
    (void)state;
    for (uint64_t run = 1; run <= 50; run++) {
        struct ipw_figure f[3];

        for (int k = 0; k < 3; k++) {
            struct ipw_channel c = test_counter("package-0", IPW_DOMAIN_CPU, 0, 100000);
            struct ipw_ledger *l = ipw_ledger_new(&c, 1);
            int64_t shift = k == 1 ? S(123456.789) : 0, scale = k == 2 ? 7 : 1, v = 0, t = S(1);
            uint64_t seed = run;

            ipw_ledger_query_begin(l, S(1.5) + shift);
            ipw_ledger_query_begin(l, S(1.7) + shift);
            for (int i = 0; i < 100; i++) {
                ipw_ledger_row(l, 0, 1, t + shift, &v);
                t += 10000000 + (int64_t)(test_random(&seed) % 20000000);
                v += (int64_t)(test_random(&seed) % 9000000) * scale;
            }
            f[k] =
                ipw_ledger_figure(l, ask_query(0, IPW_DOMAIN_CPU, S(1.5) + shift, S(1.9) + shift));
            assert_true(f[k].known);
            ipw_ledger_free(l);
        }
        assert_near(f[1].j, f[0].j, 0);
        assert_near(f[2].j, 7 * f[0].j, 2e-5);
    }
}

/* Case 25: one turn of two hours at 20 Hz, 144,000 readings (a ring holds 2046), beside short
 * queries whose ends trim what nobody needs: all of it is there. */
static void test_25_one_turn_of_two_hours(void **state)
{
    struct ipw_channel c = test_counter("package-0", IPW_DOMAIN_CPU, RANGE_15 + 15, 400);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    int64_t v = 0, sum = 0, end = S(1) + INT64_C(144000) * S(0.05);

    (void)state;
    ipw_ledger_query_begin(l, S(1));
    for (int64_t i = 0; i <= 144000; i++) {
        ipw_ledger_row(l, 0, 1, S(1) + i * S(0.05), &v);
        v = (v + 13000019 + i % 977) % (RANGE_15 + 15);
        if (i < 144000) sum += 13000019 + i % 977;
        if (i % 1000 == 999) {
            int64_t q = ipw_ledger_query_begin(l, S(1) + i * S(0.05));

            ipw_ledger_query_end(l, q, S(1) + i * S(0.05));
            ipw_ledger_forget(l, q);
        }
    }
    ipw_ledger_query_end(l, 0, end);
    {
        struct ipw_figure f = ipw_ledger_figure(l, ask_query(0, IPW_DOMAIN_CPU, S(1), end));

        assert_true(f.known);
        assert_int_equal(f.provenance, IPW_PROV_MEASURED);
        assert_int_equal(uj_of(f), sum);
        assert_int_equal(f.samples, 144001);
        assert_near(f.coverage, 1, 0);
    }
    ipw_ledger_free(l);
}

/* Case 25 and a long run: trimmed as it goes, it keeps little and still balances. */
static void test_25_long_run_trimmed(void **state)
{
    struct ipw_channel c = test_counter("package-0", IPW_DOMAIN_CPU, RANGE_15 + 15, 400);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    int64_t v = 0, sum = 0, n = 0, begun[2] = {0, 0};

    (void)state;
    /* 10 h at 5 Hz; two queries overlap all the time, one of 2 s after the other. */
    for (int64_t i = 0; i <= 180000; i++) {
        int64_t t = S(1) + i * S(0.2);

        ipw_ledger_row(l, 0, 1, t, &v);
        v = (v + 13000019 + i % 977) % (RANGE_15 + 15);
        if (i >= 25 && i % 5 == 0) {
            int q = (int)(i / 5 % 2);
            if (begun[q]) {
                ipw_ledger_query_end(l, n, t - 5000003);
                sum += uj_of(
                    ipw_ledger_figure(l, ask_query(n, IPW_DOMAIN_CPU, begun[q], t - 5000003)));
                ipw_ledger_forget(l, n++);
            }
            begun[q] = t;
            ipw_ledger_query_begin(l, t);
        }
    }
    for (int q = 1; q >= 0; q--) {
        int64_t end = S(1) + INT64_C(180000) * S(0.2);
        ipw_ledger_query_end(l, n, end);
        sum += uj_of(ipw_ledger_figure(l, ask_query(n, IPW_DOMAIN_CPU, begun[q], end)));
        n++;
    }
    {
        int64_t t0 = S(1), t1 = S(1) + INT64_C(180000) * S(0.2);
        struct ipw_figure total = ipw_ledger_figure(l, ask_total(IPW_DOMAIN_CPU, t0, t1));
        struct ipw_figure idle = ipw_ledger_figure(l, ask_idle(IPW_DOMAIN_CPU, t0, t1));

        assert_true(total.known && idle.known);
        assert_true(idle.j > 60); /* the first 5 s, and no more than that but the short breaks */
        assert_true(llabs(uj_of(total) - uj_of(idle) - sum) <= n);
        assert_int_equal(total.samples, 180001);
        assert_unknown(ipw_ledger_figure(l, ask_idle(IPW_DOMAIN_CPU, S(1000), t1)), "not_covered");
        assert_unknown(ipw_ledger_figure(l, ask_query(0, IPW_DOMAIN_CPU, S(1000), S(1001))),
                       "not_covered");
    }
    ipw_ledger_free(l);
}

UNIT(ledger_random)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_books_balance),
        cmocka_unit_test(test_53_scaling_and_shifting),
        cmocka_unit_test(test_25_one_turn_of_two_hours),
        cmocka_unit_test(test_25_long_run_trimmed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
