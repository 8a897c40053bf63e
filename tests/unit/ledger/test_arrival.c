/* The order in which readings and events arrive.  Whatever is late, each joule is booked once. */
#include <math.h>
#include <stdlib.h>

#include "ledger/feed.h"

#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define RUNS    20
#define QUERIES 12
#define ITEMS   2000

struct item {
    int64_t arrives_ns, t_ns, value;
    int order, query; /* query -1: a reading */
    enum ipw_event_kind kind;
    const char *note;
};

struct tape {
    struct item items[ITEMS];
    int n;
    int64_t start_ns, end_ns; /* of the run: its first and its last reading */
    int64_t t0[QUERIES], t1[QUERIES];
    int64_t late_ns; /* the most that an event arrives late */
};

static int by_arrival(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->arrives_ns != y->arrives_ns) return x->arrives_ns < y->arrives_ns ? -1 : 1;
    return x->order - y->order;
}

/* `*after`: the arrival of the one before it in its own stream. */
static void add(struct tape *tape, struct item item, int64_t late_ns, int64_t *after,
                uint64_t *seed)
{
    item.order = tape->n;
    item.arrives_ns = item.t_ns + (int64_t)test_uniform(seed, 0, (double)late_ns);
    if (item.arrives_ns < *after) item.arrives_ns = *after;
    *after = item.arrives_ns;
    tape->items[tape->n++] = item;
}

static int64_t soon(uint64_t *seed, int64_t t_ns, double most_s)
{
    return t_ns + S(test_uniform(seed, 0, most_s));
}

/* A query of three calls; `after`: its own stream. */
static int64_t add_query(struct tape *tape, int query, int64_t t_ns, int64_t *after, uint64_t *seed)
{
    static const enum ipw_event_kind call[] = {IPW_EV_LM_START, IPW_EV_NOTE, IPW_EV_LM_END,
                                               IPW_EV_TOOL_START, IPW_EV_TOOL_END};
    struct item item = {.t_ns = t_ns, .query = query, .kind = IPW_EV_QUERY_START};

    tape->t0[query] = t_ns;
    add(tape, item, tape->late_ns, after, seed);
    for (size_t i = 0; i < 15; i++) {
        item.t_ns = soon(seed, item.t_ns, 0.03);
        item.kind = call[i % 5];
        item.note = item.kind == IPW_EV_NOTE ? IPW_NOTE_FIRST_TOKEN : NULL;
        add(tape, item, tape->late_ns, after, seed);
    }
    item.t_ns = soon(seed, item.t_ns, 0.01);
    item.kind = IPW_EV_QUERY_END;
    add(tape, item, tape->late_ns, after, seed);
    return tape->t1[query] = item.t_ns;
}

/* `lanes`: queries in flight.  The streams of queries are late each by itself. */
static void make(struct tape *tape, int lanes, int64_t late_ns, uint64_t *seed)
{
    int64_t value = 0, arrived = 0, end_ns = S(100), t_ns;

    *tape = (struct tape){.start_ns = S(100), .late_ns = late_ns};
    for (int lane = 0; lane < lanes; lane++) {
        int64_t after = 0, at = soon(seed, S(100.01), 0.02);

        for (int query = lane; query < QUERIES; query += lanes)
            at = soon(seed, add_query(tape, query, at, &after, seed), 0.002);
        if (at > end_ns) end_ns = at;
    }
    tape->end_ns = end_ns + S(0.2);
    for (t_ns = tape->start_ns; tape->n < ITEMS;) {
        struct item row = {.t_ns = t_ns, .query = -1, .value = value};
        int64_t step = S(test_uniform(seed, 0.0002, 0.02));

        add(tape, row, S(0.01), &arrived, seed);
        if (t_ns == tape->end_ns) break;
        if (t_ns + step > tape->end_ns) step = tape->end_ns - t_ns;
        t_ns += step;
        value += (int64_t)(test_uniform(seed, 20, 200) * (double)step / 1e3);
    }
    qsort(tape->items, (size_t)tape->n, sizeof *tape->items, by_arrival);
}

static int64_t uj_of(struct ipw_figure f)
{
    assert_true(f.known);
    return llround(f.j * 1e6);
}

/* A run whose queries are booked as soon as the readings have passed them. */
struct run {
    struct ipw_ledger *ledger;
    struct ipw_feed *feed;
    bool begun[QUERIES], over[QUERIES];
    int64_t booked_uj;
};

static void book(struct run *run, const struct tape *tape, int query, int64_t until_ns)
{
    struct ipw_query_trace trace = {
        .index = query, .start_ns = tape->t0[query], .end_ns = tape->t1[query]};

    if (trace.start_ns > until_ns) trace.start_ns = until_ns;
    if (trace.end_ns > until_ns || !run->over[query]) trace.end_ns = until_ns;
    ipw_feed_finish(run->feed, &trace);
    run->booked_uj += uj_of(trace.energy[IPW_DOMAIN_CPU]);
    run->begun[query] = run->over[query] = false;
    ipw_query_trace_release(&trace);
}

static void take(struct run *run, const struct item *item)
{
    const struct ipw_event e = {
        .kind = item->kind, .query = item->query, .t_ns = item->t_ns, .tool.name = item->note};

    if (item->query < 0) {
        ipw_feed_row(run->feed, 0, 1, item->t_ns, &item->value);
        return;
    }
    ipw_feed_event(run->feed, &e);
    if (e.kind == IPW_EV_QUERY_START) run->begun[e.query] = true;
    if (e.kind == IPW_EV_QUERY_END) run->over[e.query] = true;
}

/* Plays the first n items.  If there are more, the run was killed: it ends with its readings. */
static void check_books(const struct tape *tape, int n, enum ipw_share share)
{
    struct ipw_channel c = test_counter("package-0", IPW_DOMAIN_CPU, 0, 400);
    struct run run = {.ledger = ipw_ledger_new(&c, 1)};
    int64_t end_ns = tape->end_ns, total;

    run.feed = ipw_feed_new(run.ledger);
    ipw_ledger_set_share(run.ledger, share);
    for (int i = 0; i < n; i++) {
        take(&run, &tape->items[i]);
        for (int q = 0; q < QUERIES; q++)
            if (run.over[q] && tape->t1[q] <= ipw_ledger_query_covered_ns(
                                                  run.ledger, ipw_feed_ordinal(run.feed, q)))
                book(&run, tape, q, INT64_MAX);
    }
    if (n < tape->n) {
        end_ns = ipw_ledger_read_ns(run.ledger);
        ipw_feed_cut(run.feed, end_ns);
        for (int q = 0; q < QUERIES; q++)
            if (run.begun[q]) book(&run, tape, q, end_ns);
    }
    for (int q = 0; q < QUERIES; q++) assert_false(run.begun[q]);
    total = uj_of(ipw_ledger_figure(run.ledger, ask_total(IPW_DOMAIN_CPU, tape->start_ns, end_ns)));
    total -= uj_of(ipw_ledger_figure(run.ledger, ask_idle(IPW_DOMAIN_CPU, tape->start_ns, end_ns)));
    assert_true(llabs(total - run.booked_uj) <= QUERIES); /* whole microjoules */
    ipw_feed_free(run.feed);
    ipw_ledger_free(run.ledger);
}

static void check(int lanes, int64_t late_ns)
{
    uint64_t seed = 20261123;

    for (int i = 0; i < RUNS; i++) {
        struct tape tape;

        make(&tape, lanes, late_ns, &seed);
        for (int share = IPW_SHARE_EQUAL; share <= IPW_SHARE_PHASE; share++) {
            check_books(&tape, tape.n, (enum ipw_share)share);
            check_books(&tape, tape.n / 2 + (int)(test_random(&seed) % 100), (enum ipw_share)share);
        }
    }
}

static void test_one_after_the_other(void **state)
{
    (void)state;
    check(1, 0);
    check(1, S(0.03));
}

static void test_at_the_same_time(void **state)
{
    (void)state;
    check(4, 0);
    check(4, S(0.03));
}

UNIT(arrival)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_at_the_same_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
