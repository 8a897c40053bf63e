/* Many queries at once, by every sharing rule: each joule is booked once, to the microjoule, and
 * each query gets what the rule says. */
#include <stdlib.h>

#include "ledger/ledger.h"

#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU
enum { LANES = 400, QUERIES = 3000, DEVICES = 2, ROWS = 4000, CUTS = 8 };
#define ROW_NS S(0.005)

struct part { /* of a query, between two instants */
    int64_t t0_ns, t1_ns;
};

struct query {
    struct part parts[CUTS];
    int64_t t0_ns, t1_ns;
    double due[DEVICES]; /* joules that the rule gives it, by other means */
    bool asked;
};

struct crowd {
    struct query queries[QUERIES];
    int64_t uj[DEVICES][ROWS + 1];
    struct ipw_ledger *l;
    enum ipw_share rule;
    int64_t given[DEVICES];
};

static struct crowd crowd;

static int64_t uj_of(struct ipw_figure f) { return (int64_t)(f.j * 1e6 + (f.j < 0 ? -0.5 : 0.5)); }

static int64_t row_ns(int i) { return S(1) + i * ROW_NS; }

static void make(struct crowd *c, enum ipw_share rule, uint64_t *seed)
{
    struct ipw_channel channels[DEVICES] = {test_counter("gpu0", GPU, 0, 2000),
                                            test_counter("gpu1", GPU, 0, 2000)};

    *c = (struct crowd){.l = ipw_ledger_new(channels, DEVICES), .rule = rule};
    ipw_ledger_set_share(c->l, rule);
    ipw_ledger_set_baseline(c->l, GPU, 100);
    for (int i = 1; i <= ROWS; i++) {
        for (int d = 0; d < DEVICES; d++)
            c->uj[d][i] = c->uj[d][i - 1] + 1 + (int64_t)(test_random(seed) % (d ? 40 : 4000000));
    }
    /* Lane after lane: a query begins some time after the one before it in its lane has ended. */
    for (int i = 0; i < QUERIES; i++) {
        struct query *q = &c->queries[i], *before = i >= LANES ? &c->queries[i - LANES] : NULL;
        int64_t t = before ? before->t1_ns + S(test_uniform(seed, 0, 0.3))
                           : S(1.5) + i * 1000 + S(test_uniform(seed, 0, 0.0000005));

        q->t0_ns = t;
        for (int k = 0; k < CUTS; k++) {
            int64_t to = t + S(test_uniform(seed, 0.001, 0.3));

            q->parts[k] = (struct part){t, to};
            t = to;
        }
        q->t1_ns = t;
    }
}

struct change {
    int64_t t_ns;
    int query, part; /* part CUTS: it leaves */
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->t_ns != y->t_ns) return x->t_ns < y->t_ns ? -1 : 1;
    if (x->query != y->query) return x->query < y->query ? -1 : 1;
    return x->part - y->part;
}

static struct change changes[QUERIES * (CUTS + 1)];
static int64_t ordinals[QUERIES];

static void tell(struct crowd *c, const struct change *at)
{
    static const enum ipw_phase phases[] = {IPW_PHASE_PREFILL, IPW_PHASE_DECODE, IPW_PHASE_TOOL};

    if (at->part == CUTS) {
        ipw_ledger_query_end(c->l, ordinals[at->query], at->t_ns);
        return;
    }
    if (!at->part) ordinals[at->query] = ipw_ledger_query_begin(c->l, at->t_ns);
    /* Told of phases, the ledger splits steps by its fit; without, a step is a straight line. */
    if (c->rule == IPW_SHARE_PHASE)
        tell_phase(c->l, ordinals[at->query], phases[at->part % 3], at->t_ns, INT64_MAX);
}

/* A query that is covered: asked now, as a run does, and its windows sum to it. */
static void book(struct crowd *c, int i)
{
    struct query *q = &c->queries[i];
    int64_t cuts[CUTS + 1] = {q->t0_ns}, sum = 0, whole;
    struct ipw_figure parts[CUTS];

    for (int k = 0; k < CUTS; k++) cuts[k + 1] = q->parts[k].t1_ns;
    ipw_ledger_figures(c->l, ask_windows(ordinals[i], GPU), cuts, CUTS, parts);
    whole = uj_of(ipw_ledger_figure(c->l, ask_query(ordinals[i], GPU, q->t0_ns, q->t1_ns)));
    for (int k = 0; k < CUTS; k++) {
        assert_true(parts[k].known && parts[k].j >= 0);
        assert_true(parts[k].lo_j <= parts[k].j && parts[k].j <= parts[k].hi_j);
        sum += uj_of(parts[k]);
    }
    assert_int_equal(sum, whole);
    for (size_t d = 0; d < DEVICES; d++) {
        struct ipw_figure f =
            ipw_ledger_figure(c->l, ask_device(d, ask_query(ordinals[i], GPU, q->t0_ns, q->t1_ns)));

        c->given[d] += uj_of(f);
        if (!isnan(q->due[d])) assert_near(f.j, q->due[d], 2e-6 + 1e-6 * q->due[d]);
    }
    q->asked = true;
}

static int64_t straight(const struct crowd *c, int d, int64_t t_ns)
{
    int i = (int)((t_ns - row_ns(0)) / ROW_NS);

    return c->uj[d][i] +
           (int64_t)((__int128)(c->uj[d][i + 1] - c->uj[d][i]) * (t_ns - row_ns(i)) / ROW_NS);
}

/* What the rule gives, cell by cell and query by query; under `phase` only the ledger's fit
 * knows. */
static void share(struct crowd *c, size_t n_changes)
{
    static int active[QUERIES], part[QUERIES];
    size_t n = 0;

    for (size_t k = 0; k + 1 < n_changes; k++) {
        int64_t t0 = changes[k].t_ns, t1 = changes[k + 1].t_ns;

        if (changes[k].part == 0) active[n++] = changes[k].query;
        part[changes[k].query] = changes[k].part;
        for (size_t i = 0; i < n; i++) {
            if (part[active[i]] == CUTS) active[i--] = active[--n];
        }
        for (int d = 0; d < DEVICES && t1 > t0; d++) {
            double cell = (double)(straight(c, d, t1) - straight(c, d, t0)) / 1e6;

            for (size_t i = 0; i < n; i++)
                c->queries[active[i]].due[d] +=
                    c->rule == IPW_SHARE_PHASE ? (double)NAN : cell / (double)n;
        }
    }
}

static void run(struct crowd *c, enum ipw_share rule)
{
    uint64_t seed = 15;
    size_t n = 0, told = 0;

    make(c, rule, &seed);
    for (int i = 0; i < QUERIES; i++) {
        for (int k = 0; k < CUTS; k++)
            changes[n++] = (struct change){c->queries[i].parts[k].t0_ns, i, k};
        changes[n++] = (struct change){c->queries[i].t1_ns, i, CUTS};
    }
    qsort(changes, n, sizeof *changes, by_time);
    assert_true(changes[n - 1].t_ns < row_ns(ROWS));
    share(c, n);
    for (int i = 0; i <= ROWS; i++) {
        int64_t covered;

        while (told < n && changes[told].t_ns <= row_ns(i)) tell(c, &changes[told++]);
        for (size_t d = 0; d < DEVICES; d++) ipw_ledger_row(c->l, d, 1, row_ns(i), &c->uj[d][i]);
        covered = ipw_ledger_covered_ns(c->l);
        for (int q = 0; i % 100 == 0 && q < QUERIES; q++) {
            if (!c->queries[q].asked && c->queries[q].t1_ns <= row_ns(i) &&
                c->queries[q].t1_ns <= covered)
                book(c, q);
        }
    }
    for (int q = 0; q < QUERIES; q++) {
        if (!c->queries[q].asked) book(c, q);
    }
}

static void check(enum ipw_share rule)
{
    struct crowd *c = &crowd;

    run(c, rule);
    for (size_t d = 0; d < DEVICES; d++) {
        int64_t total =
            uj_of(ipw_ledger_figure(c->l, ask_device(d, ask_total(GPU, row_ns(0), row_ns(ROWS)))));
        int64_t idle =
            uj_of(ipw_ledger_figure(c->l, ask_device(d, ask_idle(GPU, row_ns(0), row_ns(ROWS)))));

        assert_int_equal(total, c->uj[d][ROWS]);
        assert_int_equal(c->given[d] + idle, total);
    }
    ipw_ledger_free(c->l);
}

static void test_equal(void **state)
{
    (void)state;
    check(IPW_SHARE_EQUAL);
}

static void test_phase(void **state)
{
    (void)state;
    check(IPW_SHARE_PHASE);
}

UNIT(ledger_crowd)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_phase),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
