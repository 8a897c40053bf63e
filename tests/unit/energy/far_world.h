/* The world of the tests of sources/stream.h: this machine's clock, the far one that drifts, the
 * link, and devices whose energy is known.  All of it is simulated; a test moves `w.now`. */
#ifndef IPW_TESTS_UNIT_FAR_WORLD_H
#define IPW_TESTS_UNIT_FAR_WORLD_H

#include "energy/sources/stream.h"

#include <stdlib.h>

#include "base/buf.h"
#include "ledger/ledger.h"
#include "sim/sim.h"
#include "unit/energy/energy_test.h"

#define MS    INT64_C(1000000)
#define START S(1000)
#define EVERY (50 * MS)
enum {
    SOURCES = 2,
    CHANNELS = 3,
    ROWS = 8000,
    KEPT = 200
}; /* KEPT: readings that the far side keeps */
enum { PACKAGE, METER, BOARD };

struct cut {
    double from, to; /* seconds since START */
};

static struct world {
    int64_t now, far_zero, far_from; /* the far clock shows far_zero at far_from */
    double ppm;
    int64_t delay, jitter; /* of each direction */
    uint64_t dice;
    struct sim_curve curve;
    struct sim_sensor sensors[CHANNELS];
    const char *boot, *instance;
    struct {
        int64_t at, far;
        char line[160];
    } rows[ROWS];
    size_t n_rows, first_kept, seq_zero; /* rows[i] has the number i - seq_zero */
    double meter_zero;                   /* joules at the start of the far process */
    struct cut cuts[4];
    const char *hello; /* sent in place of the true one */
    const char *lie;   /* sent in place of the next reading */
    bool connected, waits;
    size_t cursor, reads, opens;
    struct ipw_buf text;
    size_t sent;
} w;

static inline double chance(void)
{
    w.dice = w.dice * 6364136223846793005u + 1442695040888963407u;
    return (double)(w.dice >> 11) / 0x1p53;
}

static inline int64_t one_way(void) { return w.delay + (int64_t)(chance() * (double)w.jitter); }
static double seconds(int64_t t) { return (double)(t - START) / 1e9; }
static int64_t sim_now(void) { return w.now; }

static int64_t far_clock(int64_t t)
{
    return w.far_zero + (int64_t)((double)(t - w.far_from) * (1 + w.ppm / 1e6));
}

static bool is_cut(void)
{
    for (size_t i = 0; i < 4; i++)
        if (seconds(w.now) >= w.cuts[i].from && seconds(w.now) < w.cuts[i].to) return true;
    return false;
}

static void make_row(int64_t at, int source)
{
    int64_t seq = (int64_t)(w.n_rows - w.seq_zero), far = far_clock(at);
    char *line = w.rows[w.n_rows].line;
    double t = seconds(at);

    assert_true(w.n_rows < ROWS);
    w.rows[w.n_rows].at = at;
    w.rows[w.n_rows].far = far;
    if (source == 0)
        snprintf(line, sizeof w.rows->line,
                 "{\"mono_ns\":%lld,\"seq\":%lld,\"source\":0,\"values\":[%lld,%lld]}\n",
                 (long long)far, (long long)seq, (long long)sim_sensor_read(&w.sensors[PACKAGE], t),
                 (long long)((sim_curve_j(&w.curve, t) - w.meter_zero) * 1e6));
    else
        snprintf(line, sizeof w.rows->line,
                 "{\"mono_ns\":%lld,\"seq\":%lld,\"source\":1,\"values\":[%lld]}\n", (long long)far,
                 (long long)seq, (long long)sim_sensor_read(&w.sensors[BOARD], t));
    w.n_rows++;
    if (w.n_rows - w.first_kept > KEPT) w.first_kept = w.n_rows - KEPT;
}

static void make_rows(void)
{
    static int64_t last; /* of source 0 */

    if (w.n_rows == 0) last = START - EVERY;
    for (; last + EVERY + 20 * MS <= w.now; last += EVERY) {
        make_row(last + EVERY, 0);
        make_row(last + EVERY + 20 * MS, 1);
    }
}

/* ---- the link ---- */

#define CHANNEL(name, kind, domain, more)                                                          \
    "{\"device\":\"" name "\",\"domain\":\"" domain "\",\"in_sum\":true,\"kind\":\"" kind          \
    "\",\"max_w\":400,\"name\":\"" name "\",\"scope\":\"" more "}"
#define POWER                                                                                            \
    "{\"interval_ns\":50000000,\"sources\":[{\"channels\":[" CHANNEL(                                    \
        "package-0", "counter", "cpu",                                                                   \
        "package\",\"period_ns\":1,\"modulus_uj\":262143328850") "," CHANNEL("meter", "counter",         \
                                                                             "machine",                  \
                                                                             "machine\",\"period_"       \
                                                                             "ns\":1,\"own_"             \
                                                                             "zero\":true") "],"         \
                                                                                            "\"na"       \
                                                                                            "me\""       \
                                                                                            ":\"r"       \
                                                                                            "apl"        \
                                                                                            "\","        \
                                                                                            "\"pe"       \
                                                                                            "riod"       \
                                                                                            "_ns"        \
                                                                                            "\":"        \
                                                                                            "1000"       \
                                                                                            "000}"       \
                                                                                            ",{"         \
                                                                                            "\"ch"       \
                                                                                            "anne"       \
                                                                                            "ls\""       \
                                                                                            ":"          \
                                                                                            "[" CHANNEL( \
                                                                                                "board", \
                                                                                                "gauge", \
                                                                                                "gpu",   \
                                                                                                "device\",\"period_ns\":50000000") "],\"name\":\"amdgpu\",\"period_ns\":10000000}]}"

static void *link_open(const char *url)
{
    const char *after = strstr(url, "after="), *instance = strstr(url, "instance=");

    w.connected = !is_cut();
    w.opens++;
    ipw_buf_clear(&w.text);
    w.sent = 0;
    make_rows();
    w.cursor = w.n_rows;
    if (w.hello) ipw_buf_adds(&w.text, w.hello);
    if (w.hello) return &w;
    ipw_buf_addf(&w.text, "{\"boot_id\":\"%s\",\"instance\":\"%s\",\"power\":%s,\"stream\":1}\n",
                 w.boot, w.instance, POWER);
    if (!after || !instance || strcmp(instance + 9, w.instance)) return &w;
    w.cursor = (size_t)atoll(after + 6) + 1 + w.seq_zero;
    if (w.cursor >= w.first_kept) return &w;
    ipw_buf_addf(&w.text, "{\"dropped\":%zu,\"seq\":%zu}\n", w.first_kept - w.cursor,
                 w.first_kept - w.seq_zero);
    w.cursor = w.first_kept;
    return &w;
}

static int link_read(void *link, char *to, size_t size, size_t *n, struct ipw_err *err)
{
    (void)link;
    w.reads++;
    *n = 0;
    if (is_cut()) w.connected = false;
    if (!w.connected) return ipw_fail(err, IPW_ENET, "http://far/stream: the link is cut");
    make_rows();
    while (w.cursor < w.n_rows && w.rows[w.cursor].at + w.delay + w.jitter <= w.now) {
        ipw_buf_adds(&w.text, w.lie ? w.lie : w.rows[w.cursor].line);
        w.lie = NULL;
        w.cursor++;
    }
    *n = w.text.len - w.sent < size ? w.text.len - w.sent : size;
    if (*n > 1000) *n = 1 + (size_t)(chance() * 999); /* lines come in pieces */
    memcpy(to, ipw_buf_str(&w.text) + w.sent, *n);
    w.sent += *n;
    if (!*n && w.waits) w.now += MS;
    return 0;
}

static void link_close(void *link) { (void)link; }

static int clock_get(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns,
                     bool *here, struct ipw_err *err)
{
    (void)kept;
    assert_string_equal(url, "http://far:9440/clock");
    *here = false;
    ipw_buf_clear(body);
    if (is_cut()) {
        w.now += timeout_ns;
        return ipw_fail(err, IPW_ETIMEOUT, "http://far/clock: no answer in time");
    }
    w.now += one_way();
    ipw_buf_addf(body, "{\"mono_ns\":%lld}", (long long)far_clock(w.now));
    w.now += one_way();
    return 0;
}

static void clock_release(void *kept) { assert_null(kept); }

static const struct ipw_stream_link far_link = {link_open, link_read, link_close};
static const struct ipw_page_fetch far_fetch = {clock_get, clock_release};

/* ---- this machine ---- */

static struct here {
    struct ipw_source *sources[SOURCES];
    struct ipw_ledger *ledger;
    struct ipw_channel channels[CHANNELS + SOURCES];
    bool lost[CHANNELS + SOURCES];
    size_t first[SOURCES], rows, marks;
    int64_t last[SOURCES];
    struct ipw_err err;
} me;

static void far_begins(double ppm, int64_t delay, int64_t jitter)
{
    ipw_buf_release(&w.text);
    sim_curve_release(&w.curve);
    w = (struct world){.now = START,
                       .far_zero = S(77),
                       .far_from = START,
                       .ppm = ppm,
                       .delay = delay,
                       .jitter = jitter,
                       .dice = 7,
                       .boot = "boot-1",
                       .instance = "process-1",
                       .text = IPW_BUF(4 * IPW_MIB)};
    for (int i = 0; i < 200; i++) /* queries and pauses of 0.3 to 2 s */
        sim_curve_add(&w.curve, i == 0 ? -10 : 0.6 * i + 0.3 * chance(), i % 2 ? 300 : 60, 0.02);
    for (int i = 0; i < CHANNELS; i++)
        w.sensors[i] = (struct sim_sensor){.curve = &w.curve, .quantum = 1, .seed = 1};
    w.sensors[PACKAGE].channel = test_counter("package-0", IPW_DOMAIN_CPU, RANGE_61, 400);
    w.sensors[BOARD].channel = test_gauge("board", 400);
    me = (struct here){0};
}

static int begin(struct ipw_err *err)
{
    struct ipw_source *s;
    size_t n = 0, at = 0;
    int rc;

    w.waits = true;
    rc = ipw_stream_open(
        &s, &(struct ipw_source_place){.link = &far_link, .fetch = &far_fetch, .now = sim_now},
        "http://far:9440/metrics", err);
    w.waits = false;
    if (rc) return rc;
    for (; s; s = s->also) {
        me.first[n] = at;
        for (size_t i = 0; i < s->n_channels; i++) me.channels[at++] = s->channels[i];
        me.sources[n++] = s;
    }
    assert_int_equal(n, SOURCES);
    assert_int_equal(at, CHANNELS + SOURCES);
    me.ledger = ipw_ledger_new(me.channels, at);
    return 0;
}

/* The true instant of a reading, by its far time: it must lie within what the row claims. */
static void check_time(int64_t t_ns, int64_t half_ns, int64_t value, size_t source)
{
    for (size_t i = w.n_rows; i-- > 0;) {
        int64_t off = t_ns - w.rows[i].at;
        char text[40];

        snprintf(text, sizeof text, "\"values\":[%lld", (long long)value);
        if (!strstr(w.rows[i].line, source ? "\"source\":1" : "\"source\":0") ||
            !strstr(w.rows[i].line, text) || llabs(off) > S(2))
            continue;
        if (llabs(off) <= half_ns + 2000) return;
        if (source) continue; /* a gauge repeats its value */
        fail_msg("a reading is %lld us off, and claims %lld", (long long)off / 1000,
                 (long long)half_ns / 1000);
    }
    if (!source) fail_msg("a reading that was never made: %lld", (long long)value);
}

/* As the sampler and the feed do it. */
static void take(size_t k)
{
    struct ipw_source *s = me.sources[k];
    int64_t values[CHANNELS + 1], t_ns, half_ns;

    while (s->next(s, values, &t_ns, &half_ns) > 0) {
        assert_true(t_ns > me.last[k]);
        me.last[k] = t_ns;
        me.rows++;
        for (size_t i = 0; i < s->n_channels; i++) {
            size_t at = me.first[k] + i;
            bool lost = values[i] == IPW_NO_VALUE && s->lost[i];

            if (lost && !me.lost[at]) ipw_ledger_lose(me.ledger, at, "lost");
            if (lost || values[i] != IPW_NO_VALUE) me.lost[at] = lost;
            me.marks += lost;
        }
        if (values[0] != IPW_NO_VALUE) {
            assert_int_equal(values[s->n_channels - 1], half_ns);
            check_time(t_ns, half_ns, values[0], k);
        }
        ipw_ledger_row(me.ledger, me.first[k], s->n_channels, t_ns, values);
    }
}

static void run_until(double t)
{
    while (seconds(w.now) < t) {
        w.now += 20 * MS;
        for (size_t k = 0; k < SOURCES; k++) take(k);
    }
}

static void end(void)
{
    for (size_t k = 0; k < SOURCES; k++)
        if (me.sources[k]) me.sources[k]->close(me.sources[k]);
    ipw_ledger_free(me.ledger);
    ipw_buf_release(&w.text);
    sim_curve_release(&w.curve);
    w = (struct world){.text = IPW_BUF(16)};
}

static struct ipw_figure joules(enum ipw_domain domain, double t0, double t1)
{
    struct ipw_ledger_question q = {.query = IPW_LEDGER_ANY,
                                    .domain = domain,
                                    .device = IPW_LEDGER_ALL,
                                    .t0_ns = START + S(t0),
                                    .t1_ns = START + S(t1),
                                    .what = IPW_LEDGER_TOTAL};

    return ipw_ledger_figure(me.ledger, q);
}

static void assert_true_within(enum ipw_domain domain, double t0, double t1)
{
    struct ipw_figure f = joules(domain, t0, t1);
    double truth = sim_curve_j(&w.curve, t1) - sim_curve_j(&w.curve, t0);

    if (!f.known) fail_msg("%s from %g to %g: %s", ipw_domain_name(domain), t0, t1, f.reason);
    if (truth < f.lo_j - 1e-3 || truth > f.hi_j + 1e-3)
        fail_msg("%s from %g to %g: %g J is not within %g and %g", ipw_domain_name(domain), t0, t1,
                 truth, f.lo_j, f.hi_j);
}

#endif
