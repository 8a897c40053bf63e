/* Queries that could use different devices: each device has the books of a ledger that knows only
 * this device and its own queries, and the total that the counter shows. */
#include <stdlib.h>

#include "ledger/ledger.h"
#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define CPU IPW_DOMAIN_CPU
#define GPU IPW_DOMAIN_GPU

enum { SHARDS = 5, QUERIES = 40, STEPS = 3000, CHANNELS = 3 };

#define STEP_NS S(0.01)

/* Shards 0 and 1 have gpu0 one after the other, with a pause of ten seconds; 2 and 3 have gpu1, and
 * overlap.  All have the processor, and so has 4, which has no GPU. */
static const struct {
    int64_t start_ns, end_ns;
    bool sees[CHANNELS];
} shards[SHARDS] = {{S(0), S(8), {true, true, false}},
                    {S(18), S(28), {true, true, false}},
                    {S(2), S(12), {true, false, true}},
                    {S(11), S(30), {true, false, true}},
                    {S(0), S(30), {true, false, false}}};

static struct {
    size_t shard;
    int64_t t0, t1, ordinal, alone[CHANNELS + 1];
} queries[QUERIES];

/* A ledger for one device in one time: gpu0 has two. */
struct only {
    struct ipw_ledger *l;
    size_t channel;
    int64_t start_ns, end_ns;
    int64_t uj; /* what its counter rises by in that time */
} only[CHANNELS + 1] = {{.channel = 0, .start_ns = S(0), .end_ns = S(30)},
                        {.channel = 1, .start_ns = S(0), .end_ns = S(8)},
                        {.channel = 1, .start_ns = S(18), .end_ns = S(28)},
                        {.channel = 2, .start_ns = S(2), .end_ns = S(30)}};

static struct ipw_channel channels[CHANNELS];

static int64_t whole_uj(struct ipw_figure f)
{
    if (!f.known) fail_msg("not known: %s", f.reason);
    return (int64_t)(f.j * 1e6 + 0.5);
}

static uint64_t seed;

static int64_t random_below(int64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int64_t)(seed >> 33) % n;
}

static struct ipw_ledger *open_scoped(enum ipw_share share, int64_t clock_error_ns)
{
    struct ipw_ledger *l = ipw_ledger_new(channels, CHANNELS);
    struct ipw_ledger_scope scopes[SHARDS];

    for (size_t i = 0; i < SHARDS; i++)
        scopes[i] =
            (struct ipw_ledger_scope){.channels = (bool *)(uintptr_t)shards[i].sees,
                                      .start_ns = S(1) + shards[i].start_ns,
                                      .end_ns = S(1) + shards[i].end_ns,
                                      .clock = i == 1 || i == 3 ? "far" : "here",
                                      .clock_error_ns = i == 1 || i == 3 ? clock_error_ns : 0};
    ipw_ledger_set_share(l, share);
    ipw_ledger_set_baseline(l, CPU, 10);
    ipw_ledger_set_scopes(l, scopes, SHARDS);
    return l;
}

static void draw_queries(void)
{
    for (int i = 0; i < QUERIES; i++) {
        size_t s = (size_t)random_below(SHARDS);
        int64_t length = shards[s].end_ns - shards[s].start_ns, t0 = random_below(length - S(1));

        queries[i].shard = s;
        queries[i].t0 = S(1) + shards[s].start_ns + t0;
        queries[i].t1 = queries[i].t0 + S(0.2) + random_below(length - t0 - S(0.2));
        queries[i].t0 -= queries[i].t0 % S(0.001);
        queries[i].t1 -= queries[i].t1 % S(0.001);
    }
}

/* Tells what happens from one reading to the next, in the order of time. */
static void tell_queries(struct ipw_ledger *l, int64_t from, int64_t to)
{
    for (int64_t t = from; t < to; t += S(0.001)) {
        for (int i = 0; i < QUERIES; i++) {
            bool begins = queries[i].t0 >= t && queries[i].t0 < t + S(0.001);
            bool ends = queries[i].t1 >= t && queries[i].t1 < t + S(0.001);

            if (begins) queries[i].ordinal = ipw_ledger_query_begin_in(l, queries[i].shard, t);
            if (begins) tell_phase(l, queries[i].ordinal, IPW_PHASE_DECODE, t, INT64_MAX);
            if (ends) ipw_ledger_query_end(l, queries[i].ordinal, t);
            for (size_t k = 0; k <= CHANNELS; k++) {
                if (!shards[queries[i].shard].sees[only[k].channel] ||
                    queries[i].t0 < S(1) + only[k].start_ns ||
                    queries[i].t0 > S(1) + only[k].end_ns)
                    continue;
                if (begins) {
                    queries[i].alone[k] = ipw_ledger_query_begin(only[k].l, t);
                    tell_phase(only[k].l, queries[i].alone[k], IPW_PHASE_DECODE, t, INT64_MAX);
                }
                if (ends) ipw_ledger_query_end(only[k].l, queries[i].alone[k], t);
            }
        }
    }
}

/* A device is read while one of its shards goes on, and a little before and after. */
static bool is_read(size_t channel, int64_t t_ns)
{
    for (size_t i = 0; i < SHARDS; i++)
        if (shards[i].sees[channel] && t_ns >= S(0.9) + shards[i].start_ns &&
            t_ns <= S(1.1) + shards[i].end_ns)
            return true;
    return false;
}

static void tell_row(struct ipw_ledger *l, size_t channel, int64_t t_ns, int64_t uj)
{
    if (!is_read(channel, t_ns)) return;
    ipw_ledger_row(l, channel, 1, t_ns, &uj);
    for (size_t k = 0; k <= CHANNELS; k++) {
        if (only[k].channel != channel || t_ns < S(0.9) + only[k].start_ns ||
            t_ns > S(1.1) + only[k].end_ns)
            continue;
        ipw_ledger_row(only[k].l, 0, 1, t_ns, &uj);
        if (t_ns == S(1) + only[k].start_ns) only[k].uj = -uj;
        if (t_ns == S(1) + only[k].end_ns) only[k].uj += uj;
    }
}

static void check_books(const struct ipw_ledger *l)
{
    int64_t sum[CHANNELS] = {0}, total[CHANNELS] = {0}, idle[CHANNELS] = {0};

    for (int i = 0; i < QUERIES; i++) {
        int64_t own[CHANNELS] = {0};

        for (size_t k = 0; k <= CHANNELS; k++)
            if (queries[i].alone[k] >= 0)
                own[only[k].channel] += whole_uj(ipw_ledger_figure(
                    only[k].l, ask_query(queries[i].alone[k], channels[only[k].channel].domain,
                                         queries[i].t0, queries[i].t1)));
        for (size_t c = 0; c < CHANNELS; c++) {
            size_t device = c == 2;
            bool sees = shards[queries[i].shard].sees[c];

            assert_int_equal(
                ipw_ledger_query_sees(l, queries[i].ordinal, channels[c].domain, device), sees);
            if (!sees) continue;
            sum[c] += own[c];
            assert_int_equal(
                whole_uj(ipw_ledger_figure(
                    l, ask_device(device, ask_query(queries[i].ordinal, channels[c].domain,
                                                    queries[i].t0, queries[i].t1)))),
                own[c]);
        }
        if (!shards[queries[i].shard].sees[1] && !shards[queries[i].shard].sees[2])
            assert_string_equal(ipw_ledger_figure(l, ask_query(queries[i].ordinal, GPU,
                                                               queries[i].t0, queries[i].t1))
                                    .reason,
                                "no_sensor");
        else
            assert_int_equal(
                whole_uj(ipw_ledger_figure(
                    l, ask_query(queries[i].ordinal, GPU, queries[i].t0, queries[i].t1))),
                own[1] + own[2]);
    }
    for (size_t k = 0; k <= CHANNELS; k++) {
        total[only[k].channel] += only[k].uj;
        idle[only[k].channel] += whole_uj(
            ipw_ledger_figure(only[k].l, ask_idle(channels[only[k].channel].domain,
                                                  S(1) + only[k].start_ns, S(1) + only[k].end_ns)));
    }
    for (size_t c = 0; c < CHANNELS; c++) {
        enum ipw_domain d = channels[c].domain;
        int64_t booked =
            whole_uj(ipw_ledger_figure(l, ask_device(c == 2, ask_idle(d, S(1), S(31)))));

        assert_int_equal(
            whole_uj(ipw_ledger_figure(l, ask_device(c == 2, ask_total(d, S(1), S(31))))),
            total[c]);
        assert_int_equal(booked, idle[c]);
        assert_int_equal(booked + sum[c], total[c]);
    }
    assert_int_equal(whole_uj(ipw_ledger_figure(l, ask_total(GPU, S(1), S(31)))),
                     total[1] + total[2]);
}

static void test_each_device_by_itself(void **state)
{
    (void)state;
    channels[0] = test_counter("package-0", CPU, 0, 900);
    channels[1] = test_counter("gpu0", GPU, 0, 900);
    channels[2] = test_counter("gpu1", GPU, 0, 900);
    for (int run = 0; run < 9; run++) {
        struct ipw_ledger *l = open_scoped((enum ipw_share)(run % 2), 0);
        int64_t uj[CHANNELS] = {J(5), J(7000), J(90)};

        seed = (uint64_t)run + 1;
        draw_queries();
        for (size_t k = 0; k <= CHANNELS; k++) {
            only[k].l = ipw_ledger_new(&channels[only[k].channel], 1);
            ipw_ledger_set_share(only[k].l, (enum ipw_share)(run % 2));
            if (!k) ipw_ledger_set_baseline(only[k].l, CPU, 10);
            for (int i = 0; i < QUERIES; i++) queries[i].alone[k] = -1;
        }
        for (int64_t t = S(0.5); t <= S(32); t += STEP_NS) {
            for (size_t c = 0; c < CHANNELS; c++) {
                uj[c] += 100000 + random_below(4000000);
                tell_row(l, c, t, uj[c]);
            }
            tell_queries(l, t, t + STEP_NS);
        }
        check_books(l);
        ipw_ledger_free(l);
        for (size_t k = 0; k <= CHANNELS; k++) ipw_ledger_free(only[k].l);
    }
}

/* Two machines' queries on one device: the clocks may differ by 50 ms, at 100 W. */
static void test_clock_error_widens_bounds(void **state)
{
    static const int64_t errors[] = {0, S(0.05)};
    struct ipw_figure f[2], all[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct ipw_ledger *l = open_scoped(IPW_SHARE_EQUAL, errors[k]);
        int64_t q = 0;

        for (int i = 0; i < 1200; i++) {
            int64_t t = S(2.5) + i * STEP_NS, uj = i * J(1);

            if (i == 300) q = ipw_ledger_query_begin_in(l, 2, t - S(0.005));
            if (i == 500) ipw_ledger_query_end(l, q, t - S(0.005));
            ipw_ledger_row(l, 2, 1, t, &uj);
        }
        f[k] = ipw_ledger_figure(l, ask_device(1, ask_query(q, GPU, S(5.495), S(7.495))));
        all[k] = ipw_ledger_figure(l, (struct ipw_ledger_question){IPW_LEDGER_ANY, GPU, 1, S(2.5),
                                                                   S(14), IPW_LEDGER_QUERIES});
        ipw_ledger_free(l);
    }
    assert_near(f[0].j, 200, 1e-6);
    assert_near(f[1].j, 200, 1e-6);
    assert_near(f[1].lo_j, f[0].lo_j - 10, 1e-6);
    assert_near(f[1].hi_j, f[0].hi_j + 10, 1e-6);
    /* Of all queries together: both ends, by the most that the device can draw. */
    assert_near(all[0].j, 200, 1e-6);
    assert_near(all[1].j, 200, 1e-6);
    assert_true(all[1].lo_j < all[0].lo_j - 9 && all[1].hi_j > all[0].hi_j + 9);
    assert_true(all[1].u_j > all[0].u_j + 1);
}

UNIT(ledger_scopes)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_device_by_itself),
                                       cmocka_unit_test(test_clock_error_widens_bounds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
