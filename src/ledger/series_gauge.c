/* Gauges as cumulative energy: see ledger/series.h.
 *
 * A gauge's value is the mean power over the window before its publication.  Plain integration
 * turns an edge of the power into a ramp as long as the window.  A plain running mean can be undone
 * (channel.undo_window).  Each value says that
 *     E(t) = E(t - W) + W * value
 * so E at each publication follows from the known E of one window before.  Before the first reading
 * we assume the power of the first value.  An error of one publication comes back in all
 * publications that are whole windows later.  The integral of the readings up to t is the mean of E
 * over the last window; the difference between the two is removed little by little. */
#include "base/clock.h"
#include "base/mem.h"
#include "ledger/series_priv.h"

/* Readings further apart are not joined by a straight line. */
#define GAUGE_GAP_NS       (3 * IPW_NS_PER_S)
#define FIRST_GAUGE_GAP_NS (60 * IPW_NS_PER_S)
/* A gauge that shows one value for so long may be stuck. */
#define LEAST_STILL_NS (5 * IPW_NS_PER_S)
#define MOST_GAUGE_STEP_NS                                                                         \
    (2 * IPW_NS_PER_S) /* assumed step of a gauge whose channel does not say */
#define PULL 0.05      /* the part of the undone mean's error that each publication removes */

/* The mean age of the power that a gauge's value shows: half a period, and half of its window. */
static int64_t gauge_lag_ns(const struct ipw_series *s)
{
    if (s->channel.undo_window) return 0;
    return (s->channel.period_ns >= IPW_SERIES_SLOW_NS ? s->channel.period_ns / 2 : 0) +
           s->channel.window_ns / 2;
}

int64_t ipw_series_gauge_step_ns(const struct ipw_series *s)
{
    int64_t step = s->channel.period_ns;

    if (step <= 0 && s->moves_ns < MOST_GAUGE_STEP_NS) step = s->moves_ns;
    return step > s->spacing_ns ? step : s->spacing_ns;
}

int64_t ipw_series_resolution_ns(const struct ipw_series *s)
{
    int64_t step = ipw_series_gauge_step_ns(s);

    if (s->channel.kind != IPW_CHANNEL_GAUGE) return 0;
    if (s->channel.undo_window) return 3 * step;
    return 3 * (s->channel.window_ns > step ? s->channel.window_ns : step);
}

/* A gauge that shows one value for long may be stuck, so keep the time for its bounds. */
static void watch_still(struct ipw_series *s, int64_t t_ns, int64_t value)
{
    struct ipw_series_still *last = s->n_stills ? &s->stills[s->n_stills - 1] : NULL;

    if (value != s->last.raw) {
        int64_t step = t_ns - s->last_change_ns;

        s->moves_ns += s->moves_ns ? (step - s->moves_ns) / 4 : step;
        s->last_change_ns = t_ns;
        return;
    }
    if (t_ns - s->last_change_ns < LEAST_STILL_NS) return;
    if (!last || last->from_ns != s->last_change_ns) {
        IPW_GROW(s->stills, s->cap_stills, s->n_stills + 1);
        last = &s->stills[s->n_stills++];
        last->from_ns = s->last_change_ns;
    }
    last->to_ns = t_ns;
}

/* Joules since the first sample by the undone mean; earlier instants use the first value's
 * power. */
static double undone_uj(const struct ipw_series *s, int64_t t_ns)
{
    const struct ipw_series_sample *first = s->n_head ? s->head : s->samples + s->first;

    if (t_ns < first->t_ns)
        return (double)first->uj - (double)first->raw * (double)(first->t_ns - t_ns) / 1e6;
    return (double)ipw_series_straight(s, t_ns);
}

/* The mean of undone_uj() over [from, to], by the trapezoid rule over its samples. */
static double mean_undone_uj(const struct ipw_series *s, int64_t from_ns, int64_t to_ns)
{
    enum { PARTS = 16 };
    double sum = 0;

    for (int i = 0; i <= PARTS; i++) {
        double y = undone_uj(s, from_ns + (to_ns - from_ns) * i / PARTS);
        sum += i == 0 || i == PARTS ? y / 2 : y;
    }
    return sum / PARTS;
}

/* Adds the sample of a publication at t, whose value is the mean over the window before. */
static void add_undone(struct ipw_series *s, struct ipw_series_sample reading, int64_t read_ns,
                       int64_t before_mw)
{
    const struct ipw_series_sample *prev = &s->samples[s->n - 1];
    int64_t window = s->channel.window_ns, t = reading.t_ns;
    double uj, off, watts;

    /* The readings' own integral: a running mean moves in straight lines. */
    s->plain_uj += (double)(before_mw + reading.raw) / 2 * (double)(t - prev->t_ns) / 1e6;
    uj = undone_uj(s, t - window) + (double)window * (double)reading.raw / 1e6;
    off = s->plain_uj -
          (mean_undone_uj(s, t - window, prev->t_ns) * (double)(prev->t_ns - t + window) +
           ((double)prev->uj + uj) / 2 * (double)(t - prev->t_ns)) /
              (double)window;
    uj += PULL * (off - s->plain_off_uj);
    if (uj < (double)prev->uj) uj = (double)prev->uj;
    reading.uj = (int64_t)uj;
    watts = (double)(reading.uj - prev->uj) * 1e3 / (double)(t - prev->t_ns);
    ipw_series_add(s, &reading);
    reading.uj += (int64_t)(watts * (double)(read_ns - t) / 1e3);
    reading.t_ns = read_ns;
    s->last = reading;
}

/* A publication shows as a change.  A value that repeats for a period was published again. */
static void push_undone(struct ipw_series *s, int64_t t_ns, int64_t value)
{
    const struct ipw_series_sample *prev = &s->samples[s->n - 1];
    int64_t before_ns = s->last.t_ns, before_mw = s->last.raw, period = s->channel.period_ns;
    struct ipw_series_sample reading = {
        .t_ns = t_ns, .raw = value, .chain = s->last.chain, .reads = s->last.reads + 1};

    if (s->n == 1 || prev->chain != s->samples[s->n - 2].chain) {
        /* The first sample of its chain: assume constant power for one window before it. */
        s->plain_uj = (double)prev->uj;
        s->plain_off_uj = (double)prev->raw * (double)s->channel.window_ns / 2e6;
    }
    watch_still(s, t_ns, value);
    if (value == before_mw && t_ns - prev->t_ns < period) {
        reading.uj = s->last.uj + value * (t_ns - before_ns) / 1000000;
        s->last = reading;
        return;
    }
    if (value != before_mw && t_ns - before_ns < period)
        reading.t_ns = t_ns - (t_ns - before_ns) / 2;
    if (reading.t_ns <= prev->t_ns) reading.t_ns = t_ns;
    add_undone(s, reading, t_ns, before_mw);
}

/* The sample lies half a period before the reading; up to the reading the value is held. */
void ipw_series_push_gauge(struct ipw_series *s, int64_t t_ns, int64_t value)
{
    const struct ipw_series_sample *prev = &s->samples[s->n - 1];
    struct ipw_series_sample reading = {.t_ns = t_ns - gauge_lag_ns(s),
                                        .raw = value,
                                        .chain = s->last.chain,
                                        .reads = s->last.reads + 1};
    int64_t dt = reading.t_ns - prev->t_ns;
    int64_t limit = s->spacing_ns ? s->spacing_ns * 5 / 2 : FIRST_GAUGE_GAP_NS;
    __int128 area;

    if (dt > (limit > GAUGE_GAP_NS ? limit : GAUGE_GAP_NS)) {
        ipw_series_break_chain(s, t_ns, value, "gap_too_long");
        return;
    }
    if (s->channel.undo_window) {
        push_undone(s, t_ns, value);
        return;
    }
    if (dt <= 0) { /* right after the start of a chain, which lies at a reading: hold the value */
        reading.t_ns = t_ns;
        reading.uj = prev->uj + value * (t_ns - prev->t_ns) / 1000000;
        watch_still(s, t_ns, value);
        s->last = reading;
        return;
    }
    /* mW * ns = pJ; the sum of both ends gives half picojoules, two million to the microjoule. */
    area = (__int128)(prev->raw + value) * dt + s->gauge_rest;
    reading.uj = prev->uj + (int64_t)(area / 2000000);
    s->gauge_rest = (int64_t)(area % 2000000);
    ipw_series_add(s, &reading);
    reading.uj += value * (t_ns - reading.t_ns) / 1000000;
    reading.t_ns = t_ns;
    watch_still(s, t_ns, value);
    s->last = reading;
}
