/* Gauges as cumulative energy: see ledger/series.h. */
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

/* The mean age of the power that a gauge's value shows: half a period, and half of its window. */
static int64_t gauge_lag_ns(const struct ipw_series *s)
{
    return (s->channel.period_ns >= IPW_SERIES_SLOW_NS ? s->channel.period_ns / 2 : 0) +
           s->channel.window_ns / 2;
}

int64_t ipw_series_gauge_step_ns(const struct ipw_series *s)
{
    int64_t step = s->channel.period_ns;

    if (step <= 0 && s->pace.moves_ns < MOST_GAUGE_STEP_NS) step = s->pace.moves_ns;
    return step > s->pace.spacing_ns ? step : s->pace.spacing_ns;
}

int64_t ipw_series_resolution_ns(const struct ipw_series *s)
{
    int64_t step = ipw_series_gauge_step_ns(s);

    if (s->channel.kind != IPW_CHANNEL_GAUGE) return 0;
    return 3 * (s->channel.window_ns > step ? s->channel.window_ns : step);
}

/* A gauge that shows one value for long may be stuck, so keep the time for its bounds.  A value
 * that was delivered anew is a change, whatever it is. */
static void watch_still(struct ipw_series *s, int64_t t_ns, int64_t value)
{
    struct ipw_series_still *last = s->n_stills ? &s->stills[s->n_stills - 1] : NULL;

    if (value != s->last.raw || s->channel.fresh) {
        int64_t step = t_ns - s->pace.last_change_ns;

        s->pace.moves_ns += s->pace.moves_ns ? (step - s->pace.moves_ns) / 4 : step;
        s->pace.last_change_ns = t_ns;
        return;
    }
    if (t_ns - s->pace.last_change_ns < LEAST_STILL_NS) return;
    if (!last || last->from_ns != s->pace.last_change_ns) {
        IPW_GROW(s->stills, s->cap_stills, s->n_stills + 1);
        last = &s->stills[s->n_stills++];
        last->from_ns = s->pace.last_change_ns;
    }
    last->to_ns = t_ns;
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
    int64_t limit = s->pace.spacing_ns ? s->pace.spacing_ns * 5 / 2 : FIRST_GAUGE_GAP_NS;
    __int128 area;

    if (dt > (limit > GAUGE_GAP_NS ? limit : GAUGE_GAP_NS)) {
        ipw_series_break_chain(s, t_ns, value, "gap_too_long");
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
