/* A ledger that keeps what was told of its queries (ipw_ledger_keep_told()), where one query is
 * open for the whole run while thousands of others come and go beside it. */
#include <malloc.h>
#include <stdlib.h>

#include "ledger/ledger.h"

#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU     IPW_DOMAIN_GPU
#define MS      INT64_C(1000000)
#define STEP_NS (20 * MS)
enum { STEPS = 3000, PHASE_STEPS = 40, MOST_TOLD = 200, AT_ONCE = 8, MOST_PASSING = 1000 };

struct told { /* a query, and the instants that were told of it, in order */
    int64_t query, t[MOST_TOLD];
    size_t n;
};

/* The same run in a ledger that keeps all, if wanted, and in one that keeps what was told. */
struct run {
    struct ipw_ledger *all, *kept;
    struct told open, passing[MOST_PASSING];
    size_t n_passing;
    int64_t late_ns, uj[2];
    int asked;
    size_t bytes[2]; /* held halfway and at the end, the open query being in the same phase */
    uint64_t seed;
};

#define BOTH(run, call)                                                                            \
    do {                                                                                           \
        struct ipw_ledger *l = (run)->all;                                                         \
        if (l) call;                                                                               \
        l = (run)->kept;                                                                           \
        call;                                                                                      \
    } while (0)

static void same(struct ipw_figure a, struct ipw_figure b)
{
    if (!a.known || !b.known) fail_msg("not known: %s", a.known ? b.reason : a.reason);
    assert_true(a.j == b.j && a.lo_j == b.lo_j && a.hi_j == b.hi_j);
    assert_true(a.split_fraction == b.split_fraction && a.samples == b.samples);
    assert_int_equal(a.provenance, b.provenance);
}

/* All windows between what was told of the query, the whole query, its account, and its power. */
static void compare(struct run *r, const struct told *q)
{
    struct ipw_figure all[MOST_TOLD], kept[MOST_TOLD];
    int64_t from = q->t[0], to = q->t[q->n - 1], uj = 0;

    r->asked++;
    if (!r->all) return;
    for (size_t d = 0; d < 2; d++) {
        struct ipw_ledger_question ask = ask_device(d, ask_windows(q->query, GPU));
        struct ipw_account x, y;
        double mean[2], peak[2];

        ipw_ledger_figures(r->all, ask, q->t, q->n - 1, all);
        ipw_ledger_figures(r->kept, ask, q->t, q->n - 1, kept);
        for (size_t i = 0; i + 1 < q->n; i++) {
            same(all[i], kept[i]);
            uj += llround(kept[i].j * 1e6);
        }
        ask = ask_device(d, ask_query(q->query, GPU, from, to));
        x = ipw_ledger_account(r->all, ask);
        y = ipw_ledger_account(r->kept, ask);
        same(x.attributed, y.attributed);
        assert_true(x.exclusive_j == y.exclusive_j && x.marginal_j == y.marginal_j);
        uj -= llround(y.attributed.j * 1e6);
        ask.t0_ns = q->t[q->n / 2 - 1];
        ask.t1_ns = q->t[q->n / 2];
        assert_true(ipw_ledger_mean_power(r->all, ask, &mean[0], &peak[0]));
        assert_true(ipw_ledger_mean_power(r->kept, ask, &mean[1], &peak[1]));
        assert_true(mean[0] == mean[1] && peak[0] == peak[1]);
    }
    assert_int_equal(uj, 0);
}

static void begin(struct run *r, struct told *q, int64_t t)
{
    *q = (struct told){.t = {t}, .n = 1};
    BOTH(r, q->query = ipw_ledger_query_begin(l, t));
}

static void phase(struct run *r, struct told *q, enum ipw_phase phase, int64_t t)
{
    q->t[q->n++] = t;
    BOTH(r, ipw_ledger_phase(l, q->query, phase, t, INT64_MAX));
}

static void end(struct run *r, struct told *q, int64_t t)
{
    q->t[q->n++] = t;
    BOTH(r, ipw_ledger_query_end(l, q->query, t));
}

/* The open query's next phase; the end of a decode tells an instant of before. */
static void next_phase(struct run *r, int step, int64_t t)
{
    static const enum ipw_phase phases[] = {IPW_PHASE_PREFILL, IPW_PHASE_DECODE, IPW_PHASE_TOOL};
    struct told *q = &r->open;
    enum ipw_phase next = phases[step / PHASE_STEPS % 3];

    if (next == IPW_PHASE_TOOL) {
        q->t[q->n++] = r->late_ns;
        BOTH(r, ipw_ledger_instant(l, q->query, r->late_ns));
    }
    phase(r, q, next, t);
    r->late_ns = t + 333 * MS;
}

/* The queries that came and went: asked, and forgotten. */
static void book(struct run *r)
{
    int64_t covered_ns = ipw_ledger_covered_ns(r->kept);
    size_t kept = 0;

    for (size_t i = 0; i < r->n_passing; i++) {
        const struct told *q = &r->passing[i];

        if (q->t[q->n - 1] > covered_ns) {
            r->passing[kept++] = *q;
            continue;
        }
        compare(r, q);
        ipw_ledger_forget(r->kept, q->query);
    }
    r->n_passing = kept;
    ipw_ledger_trim(r->kept, r->open.t[0]);
}

/* `n` queries come and go within a step, a few microseconds after each other. */
static void come_and_go(struct run *r, int n, int64_t t)
{
    int64_t gap = 1000 + (int64_t)(test_random(&r->seed) % 700000);
    struct told *q = r->passing + r->n_passing;

    for (int i = 0; i < n; i++) begin(r, &q[i], t + i * gap);
    for (int i = 0; i < n; i++) phase(r, &q[i], IPW_PHASE_PREFILL, t + 6 * MS + i * gap);
    for (int i = 0; i < n; i++) phase(r, &q[i], IPW_PHASE_DECODE, t + 12 * MS + i * gap);
    for (int i = 0; i < n; i++) {
        end(r, &q[i], t + 18 * MS + i * gap / 8);
    }
    r->n_passing += (size_t)n;
}

static void open_run(struct run *r, enum ipw_share share, bool compared)
{
    struct ipw_channel c[2] = {test_counter("gpu0", GPU, 0, 700),
                               test_counter("gpu1", GPU, 0, 700)};

    *r = (struct run){
        .all = compared ? ipw_ledger_new(c, 2) : NULL, .kept = ipw_ledger_new(c, 2), .seed = 25};
    BOTH(r, ipw_ledger_set_share(l, share));
    BOTH(r, ipw_ledger_set_baseline(l, GPU, 60));
    ipw_ledger_keep_told(r->kept);
}

static size_t bytes_held(void) { return mallinfo2().uordblks + mallinfo2().hblkhd; }

static void play(struct run *r)
{
    for (int i = 0; i < STEPS; i++) {
        int64_t t = S(1) + i * STEP_NS;

        for (size_t d = 0; d < 2; d++) {
            BOTH(r, ipw_ledger_row(l, d, 1, t, &r->uj[d]));
            r->uj[d] += (int64_t)test_random(&r->seed) % J(12);
        }
        if (i > 12) book(r);
        if (i == 10) begin(r, &r->open, t);
        if (i > 10 && i % PHASE_STEPS == 0) next_phase(r, i, t + MS);
        if (i > 12 && i + 10 < STEPS && i % 2 == 0) come_and_go(r, AT_ONCE, t + 2 * MS / 3);
        if (i == 1440 || i == 2880) r->bytes[i / 2880] = bytes_held();
        if (i + 5 == STEPS) end(r, &r->open, t);
    }
}

static void close_run(struct run *r)
{
    ipw_ledger_free(r->all);
    ipw_ledger_free(r->kept);
}

static void test_25_told_books_are_the_same(void **state)
{
    (void)state;
    for (int share = IPW_SHARE_EQUAL; share <= IPW_SHARE_PHASE; share++) {
        static struct run r;

        open_run(&r, (enum ipw_share)share, true);
        play(&r);
        compare(&r, &r.open);
        assert_true(r.asked > 8000);
        close_run(&r);
    }
}

static void test_25_queries_that_passed_take_no_bytes(void **state)
{
    (void)state;
    if (!bytes_held()) {
        print_message("skipped: this allocator does not say how many bytes are held\n");
        skip();
    }
    for (int share = IPW_SHARE_EQUAL; share <= IPW_SHARE_PHASE; share++) {
        static struct run r;

        open_run(&r, (enum ipw_share)share, false);
        play(&r);
        assert_true(r.asked > 11000);
        /* Readings stay, for the open query's power: 64 bytes each.  Of the 5,700 queries that
         * passed in this time nothing does; all their sums would take 13 MB. */
        if (r.bytes[1] > r.bytes[0] + 400000)
            fail_msg("%s: %zu bytes halfway, %zu at the end", ipw_share_name((enum ipw_share)share),
                     r.bytes[0], r.bytes[1]);
        close_run(&r);
    }
}

UNIT(ledger_told)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_25_told_books_are_the_same),
        cmocka_unit_test(test_25_queries_that_passed_take_no_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
