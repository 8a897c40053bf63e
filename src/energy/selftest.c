#include "energy/selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/overlap.h"
#include "json/write.h"

enum { MAX_STEPS = 64 };
#define STUCK_NS       IPW_NS_PER_S
#define STUCK_GAUGE_NS (5 * IPW_NS_PER_S)
#define KEPT_PERIOD_NS (10 * IPW_NS_PER_MS)
#define LEAST_STUCK_NS (200 * IPW_NS_PER_MS)

struct seen {
    struct ipw_channel channel;
    const char *source;
    size_t source_index;
    int64_t reads, failed, changes;
    int64_t value, first_t, last_t, change_t, first_change_t;
    int64_t sum;      /* counter: microjoules since the first change */
    double area_mw_s; /* gauge: milliwatt seconds, holding each value */
    /* counter: its power over intervals of about a second, and the start of the current one */
    double least_w, most_w;
    int64_t stretch_t, stretch_sum;
    int64_t steps[MAX_STEPS]; /* the first distances of changes, when readings are closest */
};

struct ipw_selftest {
    struct seen *channels;
    size_t n;
    int64_t first_t, last_t;
};

const char *ipw_selftest_state_name(enum ipw_selftest_state state)
{
    static const char *const names[] = {"unread", "stuck", "steady", "moves", "short"};

    return names[state];
}

struct ipw_selftest *ipw_selftest_new(const struct ipw_source_set *set)
{
    struct ipw_selftest *t = ipw_calloc(1, sizeof *t);
    size_t at = 0;

    t->n = ipw_source_set_first(set, set->n);
    t->channels = ipw_calloc(t->n + 1, sizeof *t->channels);
    for (size_t i = 0; i < set->n; i++) {
        for (size_t k = 0; k < set->sources[i]->n_channels; k++, at++) {
            t->channels[at].channel = set->sources[i]->channels[k];
            t->channels[at].source = set->sources[i]->name;
            t->channels[at].source_index = i;
        }
    }
    return t;
}

void ipw_selftest_free(struct ipw_selftest *t)
{
    if (!t) return;
    free(t->channels);
    free(t);
}

/* A wrap is undone; any other backward step is a reset, which gives no energy. */
static int64_t step_of(const struct seen *s, int64_t value)
{
    int64_t d = value - s->value;

    if (d < 0 && s->channel.modulus_uj) d += s->channel.modulus_uj;
    return d < 0 ? 0 : d;
}

static void end_stretch(struct seen *s, int64_t t_ns)
{
    double w;

    if (s->stretch_t && t_ns - s->stretch_t < STUCK_NS) return;
    if (s->stretch_t) {
        w = (double)(s->sum - s->stretch_sum) * 1e3 / (double)(t_ns - s->stretch_t);
        if (s->most_w <= 0 || w < s->least_w) s->least_w = w;
        if (w > s->most_w) s->most_w = w;
    }
    s->stretch_t = t_ns;
    s->stretch_sum = s->sum;
}

static void push(struct seen *s, int64_t t_ns, int64_t value)
{
    if (value == IPW_NO_VALUE) {
        s->failed++;
        return;
    }
    if (s->reads++ == 0) {
        s->first_t = t_ns;
    } else {
        s->area_mw_s += (double)s->value * (double)(t_ns - s->last_t) / 1e9;
        if (value != s->value) {
            if (s->change_t) {
                if (s->changes < MAX_STEPS) s->steps[s->changes] = t_ns - s->change_t;
                s->sum += step_of(s, value);
                s->changes++;
            } else {
                s->first_change_t = t_ns;
            }
            s->change_t = t_ns;
            if (s->channel.kind == IPW_CHANNEL_COUNTER) end_stretch(s, t_ns);
        }
    }
    s->value = value;
    s->last_t = t_ns;
}

void ipw_selftest_row(struct ipw_selftest *t, const struct ipw_sampler_row *row)
{
    if (!t->first_t) t->first_t = row->t_ns;
    if (row->t_ns > t->last_t) t->last_t = row->t_ns;
    for (size_t i = 0; i < row->n && row->first_channel + i < t->n; i++)
        push(&t->channels[row->first_channel + i], row->t_ns, row->values[i]);
}

int64_t ipw_selftest_span_ns(const struct ipw_selftest *t) { return t->last_t - t->first_t; }

static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int64_t period_of(const struct seen *s)
{
    int64_t sorted[MAX_STEPS];
    size_t n = s->changes < MAX_STEPS ? (size_t)s->changes : MAX_STEPS;

    if (n < 3) return 0;
    memcpy(sorted, s->steps, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_steps);
    return sorted[n / 2];
}

/* From change to change, because a slow counter is exact only there. */
static double watts_of(const struct seen *s)
{
    if (s->reads == 0 || s->channel.kind >= IPW_CHANNEL_METRIC) return NAN;
    if (s->channel.kind == IPW_CHANNEL_GAUGE)
        return s->last_t > s->first_t
                   ? s->area_mw_s / ((double)(s->last_t - s->first_t) / 1e9) / 1e3
                   : (double)s->value / 1e3;
    if (s->changes == 0) return NAN; /* a counter that does not move does not report 0 W */
    return (double)s->sum / 1e6 / ((double)(s->change_t - s->first_change_t) / 1e9);
}

static bool same_device(const struct seen *a, const struct seen *b)
{
    return a->source_index == b->source_index && a->channel.domain == b->channel.domain &&
           a->channel.scope == b->channel.scope && a->channel.device[0] &&
           !strcmp(a->channel.device, b->channel.device);
}

static double gauge_beside(const struct ipw_selftest *t, const struct seen *s)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->channels[i].channel.kind == IPW_CHANNEL_GAUGE && same_device(s, &t->channels[i]))
            return watts_of(&t->channels[i]);
    return NAN;
}

/* Case 11: the gauge shows one value for 5 s, but the counter of the same device contradicts it. */
static bool gauge_is_stuck(const struct ipw_selftest *t, const struct seen *gauge)
{
    if (gauge->change_t || gauge->reads < 5 || gauge->last_t - gauge->first_t < STUCK_GAUGE_NS)
        return false;
    for (size_t i = 0; i < t->n; i++) {
        const struct seen *s = &t->channels[i];

        if (s->channel.kind != IPW_CHANNEL_COUNTER || !same_device(s, gauge) || s->most_w <= 0)
            continue;
        if (s->least_w < 0.95 * s->most_w ||
            fabs(watts_of(s) - watts_of(gauge)) > 0.05 * watts_of(s))
            return true;
    }
    return false;
}

/* After this time the counter of a device that draws power has moved: five periods.  It is one
 * second if the channel names no period, or one so short that only a real register keeps to it. */
static int64_t stuck_after_ns(const struct seen *s)
{
    if (s->channel.period_ns < KEPT_PERIOD_NS) return STUCK_NS;
    return 5 * s->channel.period_ns < LEAST_STUCK_NS ? LEAST_STUCK_NS : 5 * s->channel.period_ns;
}

static enum ipw_selftest_state state_of(const struct seen *s, bool frozen)
{
    if (s->reads == 0) return s->failed ? IPW_SELFTEST_UNREAD : IPW_SELFTEST_SHORT;
    if (s->change_t) return IPW_SELFTEST_MOVES;
    if (s->channel.kind != IPW_CHANNEL_COUNTER)
        return frozen ? IPW_SELFTEST_STUCK : IPW_SELFTEST_STEADY;
    return frozen || s->last_t - s->first_t >= stuck_after_ns(s) ? IPW_SELFTEST_STUCK
                                                                 : IPW_SELFTEST_SHORT;
}

struct ipw_selftest_verdict ipw_selftest_verdict(const struct ipw_selftest *t, size_t channel)
{
    const struct seen *s = &t->channels[channel];
    int64_t span = s->last_t - s->first_t;
    /* Enough time for several changes: by the channel's own period, else a second. */
    int64_t patience = s->channel.period_ns > 0 ? 5 * s->channel.period_ns : STUCK_NS;
    struct ipw_selftest_verdict v = {.gauge = s->channel.kind == IPW_CHANNEL_GAUGE,
                                     .moved = s->change_t != 0,
                                     .reads = s->reads,
                                     .failed = s->failed,
                                     .period_ns = period_of(s),
                                     .watts = watts_of(s),
                                     .value = NAN,
                                     .ratio = NAN};

    if (patience < 100 * IPW_NS_PER_MS) patience = 100 * IPW_NS_PER_MS;
    if (s->channel.kind == IPW_CHANNEL_METRIC && s->reads) v.value = (double)s->value / 1e3;
    if (s->channel.kind == IPW_CHANNEL_COUNTER && s->reads) {
        double gauge = gauge_beside(t, s);

        v.frozen = !s->change_t && span >= patience && s->reads >= 5 && gauge > 1;
        if (!v.frozen && gauge > 1 && s->changes >= 3 && span >= STUCK_NS / 2) {
            v.ratio = v.watts / gauge;
            v.disagrees = fabs(v.ratio - 1) > 0.05;
        }
    }
    if (s->channel.kind == IPW_CHANNEL_GAUGE) v.frozen = gauge_is_stuck(t, s);
    v.state = state_of(s, v.frozen);
    /* Only a sleeping device may report 0 W, and its counter stands still. */
    v.asleep = v.state == IPW_SELFTEST_STUCK && !v.gauge && gauge_beside(t, s) <= 0;
    if (v.asleep) v.watts = 0;
    return v;
}

size_t ipw_selftest_gpus(const struct ipw_selftest *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct seen *s = &t->channels[i];
        if (s->channel.domain == IPW_DOMAIN_GPU && s->channel.in_sum && s->reads) n++;
    }
    return n;
}

size_t ipw_selftest_reject(const struct ipw_selftest *t, struct ipw_source_set *set)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n && i < set->n_channels; i++) {
        if (set->rejected[i] || !ipw_selftest_verdict(t, i).frozen) continue;
        set->rejected[i] = true;
        n++;
    }
    if (n) ipw_source_set_cover(set);
    return n;
}

static void number(struct ipw_jw *w, const char *key, double x)
{
    ipw_jw_knum(w, key, isnan(x) ? x : round(x * 1e4) / 1e4); /* NAN writes null */
}

void ipw_selftest_json(struct ipw_buf *out, const struct ipw_selftest *t)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_arr(&w);
    for (size_t i = 0; i < t->n; i++) {
        struct ipw_selftest_verdict v = ipw_selftest_verdict(t, i);

        ipw_jw_obj(&w);
        ipw_jw_kstr(&w, "channel", t->channels[i].channel.name);
        ipw_jw_kbool(&w, "disagrees", v.disagrees);
        ipw_jw_kint(&w, "failed", v.failed);
        ipw_jw_kbool(&w, "frozen", v.frozen);
        if (v.period_ns)
            ipw_jw_kint(&w, "period_ns", v.period_ns);
        else
            ipw_jw_knull(&w, "period_ns");
        number(&w, "ratio", v.ratio);
        ipw_jw_kint(&w, "reads", v.reads);
        ipw_jw_kstr(&w, "source", t->channels[i].source);
        ipw_jw_kstr(&w, "state", ipw_selftest_state_name(v.state));
        number(&w, "watts", v.watts);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
}
