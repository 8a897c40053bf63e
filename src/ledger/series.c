#include "ledger/series_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/upto.h"

#define ABSURD_MW      INT64_C(1000000000) /* 1 MW: no device's gauge reads as much */
#define GIVE_UP_NS     (3 * IPW_NS_PER_S)  /* how long it is waited for, at least */
#define GIVE_UP_NEW_NS (15 * IPW_NS_PER_S) /* ... while its period is still unknown */
#define FEW_CHANGES    8
#define FEW_READS      5
#define SPIKE          10

void ipw_series_init(struct ipw_series *s, const struct ipw_channel *channel)
{
    *s = (struct ipw_series){.channel = *channel,
                             .head.keep_ns = INT64_MIN,
                             .failing_since_ns = INT64_MIN,
                             .last_failed_ns = INT64_MIN};
    if (channel->kind == IPW_CHANNEL_COUNTER && channel->period_ns >= IPW_SERIES_SLOW_NS) {
        s->pace.repeat_bits = 0xf;
        s->pace.moves_ns = channel->period_ns;
    }
    s->most_w =
        (uint32_t)(channel->max_w > 0 && channel->max_w < UINT32_MAX / 4 ? channel->max_w
                                                                         : IPW_COUNTER_DEFAULT_W);
}

void ipw_series_release(struct ipw_series *s)
{
    free(s->samples);
    free(s->gaps);
    free(s->stills);
    free(s->head.samples);
    free(s->knots);
    free(s->head.knots);
}

static uint32_t narrow(int64_t x) { return x > UINT32_MAX ? UINT32_MAX : (uint32_t)x; }

/* The publication period: the channel's own, or the learned one if that is longer. */
static int64_t period_ns(const struct ipw_series *s)
{
    return s->pace.moves_ns > s->channel.period_ns ? s->pace.moves_ns : s->channel.period_ns;
}

/* How old a value can be when it is read: 1.25 periods, because publication jitters, or the longest
 * time that the counter was seen to stand still. */
static int64_t age_ns(const struct ipw_series *s)
{
    int64_t age = period_ns(s) * 5 / 4;

    return age > s->pace.longest_ns ? age : s->pace.longest_ns;
}

int64_t ipw_series_quiet_ns(const struct ipw_series *s)
{
    int64_t quiet = 3 * period_ns(s);

    return quiet > IPW_COUNTER_QUIET_NS ? quiet : IPW_COUNTER_QUIET_NS;
}

int64_t ipw_series_silence_ns(const struct ipw_series *s)
{
    int64_t silence;

    if (s->channel.kind != IPW_CHANNEL_COUNTER || !s->n || s->asleep) return 0;
    silence = s->last.t_ns - s->pace.last_change_ns;
    return silence > ipw_series_quiet_ns(s) ? silence : 0;
}

bool ipw_series_is_stuck(const struct ipw_series *s)
{
    int64_t limit = 2 * ipw_series_quiet_ns(s);
    bool is_new = s->pace.changes < 3 && s->channel.period_ns <= 0;

    if (limit < GIVE_UP_NS) limit = GIVE_UP_NS;
    if (is_new && limit < GIVE_UP_NEW_NS) limit = GIVE_UP_NEW_NS;
    return ipw_series_silence_ns(s) > limit;
}

/* The usual distance of samples: one gap must not make the next gaps look usual. */
static void learn_spacing(struct ipw_series_pace *p, int64_t dt_ns)
{
    if (!p->spacing_ns) {
        p->spacing_ns = dt_ns;
        return;
    }
    if (dt_ns > 4 * p->spacing_ns) dt_ns = 4 * p->spacing_ns;
    p->spacing_ns += (dt_ns - p->spacing_ns) / 8;
    if (p->spacing_ns < 1) p->spacing_ns = 1;
}

void ipw_series_add(struct ipw_series *s, const struct ipw_series_sample *sample)
{
    if (s->n > s->first && s->samples[s->n - 1].chain == sample->chain)
        learn_spacing(&s->pace, sample->t_ns - s->samples[s->n - 1].t_ns);
    IPW_GROW(s->samples, s->cap, s->n + 1);
    s->samples[s->n] = *sample;
    s->samples[s->n].most_w = (uint32_t)ipw_series_most_w(s) & 0x7fffffff;
    s->samples[s->n++].usual_us = narrow(s->pace.spacing_ns / 1000);
}

/* A repeat is as old as its sample: the value held when the sample was published. */
static void as_old_as_its_sample(const struct ipw_series *s, struct ipw_series_sample *reading)
{
    const struct ipw_series_sample *x = &s->samples[s->n - 1];

    reading->early_ns = narrow(reading->t_ns - (x->t_ns - x->early_ns));
}

static bool is_slow(const struct ipw_series *s)
{
    return __builtin_popcount(s->pace.repeat_bits) >= 2;
}

/* The newest reading becomes the first of a new chain. */
void ipw_series_break_chain(struct ipw_series *s, int64_t t_ns, int64_t value, const char *reason)
{
    struct ipw_series_sample fresh = {.t_ns = t_ns,
                                      .uj = s->last.uj,
                                      .raw = value,
                                      .chain = s->last.chain + 1,
                                      .reads = s->last.reads + 1,
                                      .early_ns = narrow(age_ns(s) + s->clock_ns),
                                      .late_ns = narrow(s->clock_ns)};
    int64_t from_ns;

    /* A counter that fell silent, or that publishes from time to time, is known up to its last
     * change. */
    if (!ipw_series_silence_ns(s) && s->samples[s->n - 1].t_ns < s->last.t_ns &&
        !(s->channel.kind == IPW_CHANNEL_COUNTER && is_slow(s) && s->pace.repeated))
        ipw_series_add(s, &s->last);
    from_ns = s->samples[s->n - 1].t_ns;
    IPW_GROW(s->gaps, s->cap_gaps, s->n_gaps + 1);
    s->gaps[s->n_gaps++] = (struct ipw_series_break){from_ns, t_ns, reason};
    s->breaks++;
    s->break_reason = reason;
    ipw_series_add(s, &fresh);
    s->last = fresh;
    s->pace.last_change_ns = t_ns;
    s->pace.before_change_ns = t_ns;
    s->pace.repeated = false;
    s->gauge_rest = 0;
    s->counter.suspect = IPW_COUNTER_SOUND;
    s->counter.stretch_ns = t_ns; /* the least and most power stay known */
    s->counter.stretch_uj = 0;
}

/* A repeat is not a sample: it does not say when the energy was used. */
static void push_repeat(struct ipw_series *s, struct ipw_series_sample *reading)
{
    /* A fast channel that is read again within two periods could not publish in between.  Its
     * repeat does not show that the counter is slow. */
    if (s->channel.period_ns <= 0 || s->channel.period_ns >= IPW_SERIES_SLOW_NS ||
        reading->t_ns - s->pace.last_change_ns > 2 * s->channel.period_ns)
        s->pace.repeated = true;
    as_old_as_its_sample(s, reading);
    reading->late_ns = narrow(s->clock_ns);
    s->last = *reading;
}

/* Finds when the new value of a reading held: after the reading before it, and at most one period
 * ago. */
static void publish(const struct ipw_series *s, struct ipw_series_sample *sample, int64_t before_ns,
                    bool after_silence)
{
    int64_t read_ns = sample->t_ns, u = period_ns(s);
    int64_t window = read_ns - before_ns, sure = window;

    if (u > 0 && window > u) window = u;
    if (u > 0 && sure > age_ns(s)) sure = age_ns(s);
    sample->early_ns = narrow(sure);
    if (is_slow(s) || period_ns(s) >= IPW_SERIES_SLOW_NS) {
        sample->t_ns = read_ns - window + window / 2;
        /* The midpoint of neighbouring nanoseconds is the older one, which may be a sample
         * already. */
        if (sample->t_ns <= s->samples[s->n - 1].t_ns) sample->t_ns = read_ns;
        sample->late_ns = narrow(read_ns - sample->t_ns);
        sample->early_ns = narrow(sure - (read_ns - sample->t_ns));
    }
    /* The first new value after a silence may have been published a period ago. */
    if (after_silence && sample->early_ns < age_ns(s)) sample->early_ns = narrow(age_ns(s));
    sample->early_ns = narrow(sample->early_ns + s->clock_ns);
    sample->late_ns = narrow(sample->late_ns + s->clock_ns);
}

/* Learns the period from a change; true if the counter had stood still for longer than that. */
static bool learn_period(struct ipw_series_pace *p, int64_t own_ns, int64_t t_ns)
{
    int64_t silence = t_ns - p->last_change_ns;
    int64_t period_ns = p->moves_ns > own_ns ? p->moves_ns : own_ns;
    int64_t capped = silence < 4 * p->moves_ns ? silence : 4 * p->moves_ns;

    if (!p->repeated) { /* it moves at least as often as it is read */
        if (p->moves_ns > silence && p->moves_ns > own_ns)
            p->moves_ns += (silence - p->moves_ns) / 4;
        return false;
    }
    /* From the reading before its last change to this one: no silence was longer. */
    if (t_ns - p->before_change_ns > p->longest_ns) p->longest_ns = t_ns - p->before_change_ns;
    if (p->moves_ns)
        p->moves_ns += (capped - p->moves_ns) / 4;
    else if (p->changes < FEW_CHANGES || silence <= IPW_COUNTER_QUIET_NS)
        p->moves_ns = silence;
    return p->changes && silence > period_ns * 3 / 2;
}

/* If a device drew more than its known highest power, the bounds follow. */
static void learn_most(struct ipw_series *s, const struct ipw_series_sample *sample)
{
    const struct ipw_series_sample *x = &s->samples[s->n - 1];
    double ns = (double)(sample->t_ns + sample->late_ns - x->t_ns + x->early_ns);
    double uj = (double)(sample->uj - x->uj), w = uj * 1e3 / ns; /* uJ / ns = kW */

    if (s->pace.changes && w * 1.25 > s->most_w && w < 1e9) s->most_w = (uint32_t)(w * 1.25);
    s->largest_mw = fmax(s->largest_mw, uj * 1e6 / (double)(sample->t_ns - x->t_ns));
}

/* The age of the first value is known once the period is. */
static void correct_first(struct ipw_series *s)
{
    struct ipw_series_sample *x = s->head.n ? s->head.samples : s->samples + s->first;

    if (s->pace.changes != 1 || x->chain != s->last.chain) return;
    if (x->early_ns < age_ns(s) + s->clock_ns) x->early_ns = narrow(age_ns(s) + s->clock_ns);
}

static void push_change(struct ipw_series *s, const struct ipw_series_sample *reading)
{
    struct ipw_series_sample sample = *reading;
    bool after_silence = learn_period(&s->pace, s->channel.period_ns, reading->t_ns);

    s->pace.repeat_bits = (s->pace.repeat_bits << 1 | (s->pace.repeated ? 1u : 0u)) & 0xfu;
    publish(s, &sample, s->last.t_ns, after_silence);
    learn_most(s, &sample);
    correct_first(s);
    ipw_series_add(s, &sample);
    s->pace.before_change_ns = s->last.t_ns;
    s->last = *reading;
    as_old_as_its_sample(s, &s->last);
    s->last.late_ns = narrow(s->clock_ns);
    s->pace.last_change_ns = reading->t_ns;
    s->pace.changes++;
    s->pace.repeated = s->asleep = false;
}

void ipw_series_sleep(struct ipw_series *s)
{
    if (s->channel.kind != IPW_CHANNEL_COUNTER || !s->n) return;
    s->asleep = true;
    if (s->last.t_ns <= s->samples[s->n - 1].t_ns) return;
    s->last.early_ns = narrow(s->clock_ns);
    s->last.slept = true;
    ipw_series_add(s, &s->last);
    s->pace.last_change_ns = s->pace.before_change_ns = s->last.t_ns;
}

static void push_step(struct ipw_series *s, int64_t t_ns, int64_t value, int64_t step)
{
    struct ipw_series_sample reading = {.t_ns = t_ns,
                                        .uj = s->last.uj + step,
                                        .raw = value,
                                        .chain = s->last.chain,
                                        .reads = s->last.reads + 1};

    if (value == s->last.raw) {
        push_repeat(s, &reading);
    } else {
        push_change(s, &reading);
    }
}

static void push_counter(struct ipw_series *s, int64_t t_ns, int64_t value)
{
    struct ipw_counter *c = &s->counter;
    bool suspected = c->suspect;
    int64_t quiet = s->asleep ? 0 : ipw_series_quiet_ns(s), step;

    c->t_ns = s->last.t_ns;
    c->raw = s->last.raw;
    c->moved_ns = s->pace.last_change_ns;
    switch (ipw_counter_take(c, &s->channel, s->pace.moves_ns, quiet, t_ns, value, &step)) {
    case IPW_COUNTER_STEP:
        if (suspected) s->rejected++;
        push_step(s, t_ns, value, step);
        break;
    case IPW_COUNTER_SUSPECT:
        if (suspected) s->rejected++;
        break;
    case IPW_COUNTER_ANEW:
        if (suspected && c->begin_ns == t_ns) s->rejected++;
        ipw_series_break_chain(s, c->begin_ns, c->begin_raw, ipw_counter_reason(c->broken));
        if (c->begin_ns < t_ns) push_step(s, t_ns, value, step);
        break;
    }
}

/* A meter at the wall has no limit that is known, so it may read anything.  A reading that is many
 * times the most that came before waits for the next value: if that is as high, it was right; else
 * it was wrong, and nothing is known of the time between its neighbours.  A value that is read
 * again is not the next one, unless it stays. */
static bool is_spike(const struct ipw_series *s, int64_t value)
{
    return s->channel.max_w >= IPW_SERIES_UNLIMITED_W && s->last.reads >= FEW_READS &&
           (double)value > SPIKE * s->largest_mw;
}

static void push_gauge(struct ipw_series *s, int64_t t_ns, int64_t value)
{
    struct ipw_counter *c = &s->counter;
    int64_t before_ns = s->last.t_ns;

    if (c->suspect && value == c->suspect_raw && t_ns - c->suspect_ns < ipw_series_quiet_ns(s))
        return;
    if (c->suspect && value < c->suspect_raw / 2) {
        s->rejected++;
        IPW_GROW(s->stills, s->cap_stills, s->n_stills + 1);
        s->stills[s->n_stills++] = (struct ipw_series_still){before_ns, t_ns};
    } else if (c->suspect) {
        ipw_series_push_gauge(s, c->suspect_ns, c->suspect_raw);
    } else if (is_spike(s, value)) {
        c->suspect = IPW_COUNTER_JUMPED;
        c->suspect_ns = t_ns;
        c->suspect_raw = value;
        return;
    }
    c->suspect = IPW_COUNTER_SOUND;
    if ((double)value > s->largest_mw) s->largest_mw = (double)value;
    ipw_series_push_gauge(s, t_ns, value);
}

static bool plausible(const struct ipw_channel *channel, int64_t value)
{
    if (value < 0) return false;
    if (channel->kind == IPW_CHANNEL_COUNTER) {
        return channel->modulus_uj <= 0 || value < channel->modulus_uj;
    }
    return value <= (channel->max_w > 0 && channel->max_w < ABSURD_MW / 3000 ? channel->max_w * 3000
                                                                             : ABSURD_MW);
}

void ipw_series_push(struct ipw_series *s, int64_t t_ns, int64_t value)
{
    if (s->n > 0 && t_ns <= s->last.t_ns) {
        s->rejected++;
        return;
    }
    if (!plausible(&s->channel, value)) { /* IPW_NO_VALUE is below 0 */
        s->rejected++;
        if (s->failing_since_ns == INT64_MIN) s->failing_since_ns = t_ns;
        if (t_ns > s->last_failed_ns) s->last_failed_ns = t_ns;
        return;
    }
    s->failing_since_ns = INT64_MIN;
    s->lost = false;
    if (s->n == 0) {
        struct ipw_series_sample zero = {.t_ns = t_ns,
                                         .raw = value,
                                         .reads = 1,
                                         .early_ns = narrow(age_ns(s) + s->clock_ns),
                                         .late_ns = narrow(s->clock_ns)};
        ipw_series_add(s, &zero);
        s->last = zero;
        ipw_counter_begin(&s->counter, t_ns, value);
        s->pace.last_change_ns = s->pace.before_change_ns = t_ns;
        s->cut_reason = NULL;
    } else if (s->cut_reason) {
        ipw_series_break_chain(s, t_ns, value, s->cut_reason);
        s->cut_reason = NULL;
    } else if (s->channel.kind == IPW_CHANNEL_COUNTER) {
        push_counter(s, t_ns, value);
    } else {
        push_gauge(s, t_ns, value);
    }
}

void ipw_series_clock(struct ipw_series *s, int64_t half_ns)
{
    s->clock_ns = half_ns;
    if (half_ns > s->most_clock_ns) s->most_clock_ns = half_ns;
}

void ipw_series_cut(struct ipw_series *s, const char *reason)
{
    if (s->n > 0 && !s->lost) s->cut_reason = reason;
}

void ipw_series_hand_over(struct ipw_series *s, const struct ipw_channel *gauge, const char *reason)
{
    if (s->n) s->last = s->samples[s->n - 1]; /* it is known up to its last change */
    s->channel.kind = IPW_CHANNEL_GAUGE;
    s->channel.period_ns = gauge->period_ns;
    s->channel.window_ns = gauge->window_ns;
    s->gauge_chain = s->last.chain + 1;
    s->pace.moves_ns = s->pace.longest_ns = s->pace.spacing_ns = 0;
    s->cut_reason = reason;
}

bool ipw_series_is_gauge(const struct ipw_series *s, uint32_t chain)
{
    return s->channel.kind == IPW_CHANNEL_GAUGE && chain >= s->gauge_chain;
}

void ipw_series_lose(struct ipw_series *s, const char *reason)
{
    s->cut_reason = reason;
    s->lost = true;
}

void ipw_series_bend(struct ipw_series *s, int64_t t_ns, int64_t uj)
{
    IPW_GROW(s->knots, s->cap_knots, s->n_knots + 1);
    s->knots[s->n_knots++] = (struct ipw_series_knot){t_ns, uj};
}

void ipw_series_keep(struct ipw_series *s, int64_t until_ns)
{
    if (s->head.keep_ns == INT64_MIN) s->head.keep_ns = until_ns;
}

/* Copies the samples that ipw_series_keep() asked for out of the part that is about to be trimmed.
 * False: there is nothing between them and the new first sample, so trimming gains nothing. */
static bool save_head(struct ipw_series *s, size_t new_first)
{
    size_t h = s->first, k = 0;

    if (s->head.keep_ns == INT64_MIN || s->head.n) return true;
    while (h < s->n && s->samples[h].t_ns < s->head.keep_ns) h++;
    if (h + 1 >= new_first) return false;
    s->head.n = h - s->first + 1;
    s->head.samples = (struct ipw_series_sample *)(void *)ipw_memdup(
        s->samples + s->first, s->head.n * sizeof *s->head.samples);
    while (k < s->n_knots && s->knots[k].t_ns < s->head.samples[s->head.n - 1].t_ns) k++;
    s->head.n_knots = k;
    s->head.knots = (struct ipw_series_knot *)(void *)ipw_memdup(s->knots, k * sizeof *s->knots);
    return true;
}

static void trim_knots(struct ipw_series *s)
{
    size_t gone = 0;

    while (gone < s->n_knots && s->knots[gone].t_ns <= s->samples[s->first].t_ns) gone++;
    if (!gone) return;
    s->n_knots -= gone;
    memmove(s->knots, s->knots + gone, s->n_knots * sizeof *s->knots);
}

/* The two newest samples stay: the slope between them extends the series beyond its newest
 * reading. */
void ipw_series_trim(struct ipw_series *s, int64_t before_ns)
{
    size_t n = s->n > s->first ? s->n - 1 - s->first : 0, gone = 0;

    if (n) n = ipw_upto(&s->samples[s->first].t_ns, n, sizeof *s->samples, before_ns);
    if (n <= 1 || !save_head(s, s->first + n - 1)) return;
    s->first += n - 1;
    trim_knots(s);
    while (gone < s->n_gaps && s->gaps[gone].to_ns <= s->samples[s->first].t_ns) {
        s->trimmed_gap_ns += s->gaps[gone].to_ns - s->gaps[gone].from_ns;
        gone++;
    }
    s->n_gaps -= gone;
    if (gone) memmove(s->gaps, s->gaps + gone, s->n_gaps * sizeof *s->gaps);
    if (s->first > s->n / 2) {
        s->n -= s->first;
        memmove(s->samples, s->samples + s->first, s->n * sizeof *s->samples);
        s->first = 0;
    }
}

bool ipw_series_has_moved(const struct ipw_series *s)
{
    return s->channel.kind != IPW_CHANNEL_COUNTER || s->pace.changes > 0 || s->asleep;
}

int64_t ipw_series_settled_ns(const struct ipw_series *s)
{
    return s->n && ipw_series_has_moved(s) ? s->samples[s->n - 1].t_ns : INT64_MIN;
}
