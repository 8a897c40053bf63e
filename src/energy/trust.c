#include "energy/trust.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/counter.h"
#include "energy/overlap.h"
#include "json/write.h"

/* The rules with a verdict; docs/method.md lists them.  `stays`: once it was broken, the channel is
 * never believed again. */
/* clang-format off */
static const struct rule {
    enum ipw_doubt doubt;
    double limit; /* seconds, a part, or watts */
    const char *reason;
    bool stays;
    const char *words;
} rules[] = {
    {IPW_DOUBT_UNREAD, 0,   "no_samples",   false, "cannot be read"},
    {IPW_DOUBT_FROZEN, 1,   "stuck",        false, "does not move although power is above 0: not believed"},
    {IPW_DOUBT_HELD,   5,   "stuck",        false, "does not change, although its counter does"},
    {IPW_DOUBT_STUCK,  1,   "stuck",        false, "does not move: not believed"},
    {IPW_DOUBT_LEAST,  1,   "stuck",        true,  "less than its device draws"},
    {IPW_DOUBT_GAUGE,  0.2, "contradicted", true,  "its gauge"},
    {IPW_DOUBT_PARTS,  0.1, "contradicted", true,  "its parts"},
};
/* clang-format on */
#define LEAST_OF_LIMIT 0.002 /* a package shows at least this part of its power limit */
#define MOST_OF_LIMIT  2     /* max_w of a package is twice its limit (sources/rapl.h) */

enum { MAX_STEPS = 64, HEAD = 16, TAIL = 64, FEW_READS = 5, FEW_CHANGES = 3 };
#define STUCK_NS       IPW_NS_PER_S
#define KEPT_PERIOD_NS (10 * IPW_NS_PER_MS) /* a longer period is the driver's own */
#define LEAST_STUCK_NS (200 * IPW_NS_PER_MS)
#define POINT_NS       (100 * IPW_NS_PER_MS)
#define WINDOW_NS      (5 * IPW_NS_PER_S)    /* the newest readings are compared over this time */
#define COMPARED_NS    (250 * IPW_NS_PER_MS) /* the least that is compared */
#define UNKNOWN_LAG_NS (2 * IPW_NS_PER_S)
#define LAGS           3 /* what is compared lasts so many times the lag that blurs it */
#define LEAST_MEAN_NS  IPW_NS_PER_S
#define FLAT_PART      0.05 /* a gauge that varies no more than this blurs nothing */

/* Microjoules up to an instant. */
struct point {
    int64_t t_ns, uj;
};

struct seen {
    struct ipw_channel channel;
    size_t source; /* of its rows */
    int64_t reads, failed, changes;
    int64_t value, first_t, last_t, change_t, first_change_t;
    int64_t uj; /* since the first change (a counter) or reading (a gauge) */
    double rest_uj;
    struct ipw_counter counter;
    struct point head[HEAD], tail[TAIL]; /* the first ones, and a ring of the newest */
    size_t n_points;
    double least_w, most_w; /* a counter: of stretches of about a second */
    int64_t least, most;    /* values, of a gauge */
    int64_t stretch_t, stretch_uj;
    int64_t steps[MAX_STEPS]; /* the first distances of changes, when readings are closest */
    enum ipw_doubt doubt;     /* of a rule that stays */
    double own_w, other_w;    /* as it was found */
};

struct ipw_trust {
    struct seen *channels;
    size_t n;
    int64_t first_t, last_t, judged_t;
};

const char *ipw_trust_state_name(enum ipw_trust_state state)
{
    static const char *const names[] = {"unread", "stuck", "steady", "moves", "short"};

    return names[state];
}

static const struct rule *rule_of(enum ipw_doubt doubt)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].doubt == doubt) return &rules[i];
    return NULL;
}

struct ipw_trust *ipw_trust_new(const struct ipw_channel *channels, size_t n)
{
    struct ipw_trust *t = ipw_calloc(1, sizeof *t);

    t->n = n;
    t->channels = ipw_calloc(n + 1, sizeof *t->channels);
    for (size_t i = 0; i < n; i++) {
        t->channels[i].channel = channels[i];
        t->channels[i].source = SIZE_MAX;
    }
    return t;
}

void ipw_trust_free(struct ipw_trust *t)
{
    if (!t) return;
    free(t->channels);
    free(t);
}

int64_t ipw_trust_span_ns(const struct ipw_trust *t) { return t->last_t - t->first_t; }

/* ---- readings ---- */

static const struct point *newest(const struct seen *s)
{
    if (!s->n_points) return NULL;
    return s->n_points <= HEAD ? &s->head[s->n_points - 1] : &s->tail[(s->n_points - 1) % TAIL];
}

static void add_point(struct seen *s, int64_t t_ns)
{
    struct point p = {t_ns, s->uj};

    if (s->n_points && t_ns - newest(s)->t_ns < POINT_NS) return;
    if (s->n_points < HEAD) s->head[s->n_points] = p;
    s->tail[s->n_points++ % TAIL] = p;
}

static void end_stretch(struct seen *s, int64_t t_ns)
{
    double w;

    if (s->stretch_t && t_ns - s->stretch_t < STUCK_NS) return;
    if (s->stretch_t) {
        w = (double)(s->uj - s->stretch_uj) * 1e3 / (double)(t_ns - s->stretch_t);
        if (s->most_w <= 0 || w < s->least_w) s->least_w = w;
        if (w > s->most_w) s->most_w = w;
    }
    s->stretch_t = t_ns;
    s->stretch_uj = s->uj;
}

/* A counter is exact only where it changes, so it counts from change to change. */
static void push_counter(struct seen *s, int64_t t_ns, int64_t value)
{
    int64_t step;

    if (s->reads == 1) {
        ipw_counter_begin(&s->counter, t_ns, value);
        return;
    }
    if (ipw_counter_take(&s->counter, &s->channel, s->channel.period_ns, 0, t_ns, value, &step) ==
            IPW_COUNTER_SUSPECT ||
        value == s->value)
        return;
    if (s->change_t) {
        if (s->changes < MAX_STEPS) s->steps[s->changes] = t_ns - s->change_t;
        s->uj += step;
        s->changes++;
    } else {
        s->first_change_t = t_ns;
    }
    s->change_t = t_ns;
    end_stretch(s, t_ns);
    add_point(s, t_ns);
}

static void push_other(struct seen *s, int64_t t_ns, int64_t value)
{
    double uj = (double)s->value * (double)(t_ns - s->last_t) / 1e6 + s->rest_uj; /* mW * ns = pJ */

    if (s->reads > 1 && s->channel.kind == IPW_CHANNEL_GAUGE) {
        s->uj += (int64_t)uj;
        s->rest_uj = uj - (double)(int64_t)uj;
    }
    if (s->reads > 1 && value != s->value) {
        if (s->change_t && s->changes < MAX_STEPS) s->steps[s->changes++] = t_ns - s->change_t;
        if (!s->change_t) s->first_change_t = t_ns;
        s->change_t = t_ns;
    }
    if (s->channel.kind == IPW_CHANNEL_GAUGE) add_point(s, t_ns);
}

static void push(struct seen *s, int64_t t_ns, int64_t value)
{
    if (value == IPW_NO_VALUE) {
        s->failed++;
        return;
    }
    if (s->reads++ == 0) s->first_t = t_ns;
    if (s->channel.kind == IPW_CHANNEL_COUNTER)
        push_counter(s, t_ns, value);
    else
        push_other(s, t_ns, value);
    if (s->reads == 1 || value < s->least) s->least = value;
    if (s->reads == 1 || value > s->most) s->most = value;
    s->value = value;
    s->last_t = t_ns;
}

/* ---- energy between two instants ---- */

static const struct point *at(const struct seen *s, size_t i)
{
    return i < HEAD ? &s->head[i] : &s->tail[i % TAIL];
}

/* The points that are kept: all, or the first ones and the newest. */
static size_t first_of_tail(const struct seen *s)
{
    return s->n_points > TAIL ? s->n_points - TAIL : 0;
}

/* The microjoules up to t by a straight line between points; NAN outside of them. */
static double uj_at(const struct seen *s, int64_t t_ns)
{
    const struct point *before = NULL;

    for (size_t i = 0; i < s->n_points; i++) {
        const struct point *p = at(s, i);

        if (t_ns == p->t_ns) return (double)p->uj;
        if (t_ns < p->t_ns)
            return before ? (double)before->uj + (double)(p->uj - before->uj) *
                                                     (double)(t_ns - before->t_ns) /
                                                     (double)(p->t_ns - before->t_ns)
                          : (double)NAN;
        before = p;
        if (i + 1 == HEAD && first_of_tail(s) > HEAD) i = first_of_tail(s) - 1;
    }
    return NAN;
}

static double uj_between(const struct seen *s, int64_t t0_ns, int64_t t1_ns)
{
    return t1_ns > t0_ns ? uj_at(s, t1_ns) - uj_at(s, t0_ns) : 0;
}

static int64_t period_of(const struct seen *s);

/* How much later than the power its value may come. */
static int64_t lag_of(const struct seen *s)
{
    int64_t period = s->channel.period_ns > 0 ? s->channel.period_ns : period_of(s);

    if (s->channel.kind == IPW_CHANNEL_COUNTER) return period + POINT_NS / 5;
    if (s->channel.window_ns <= 0 && period <= 0) return UNKNOWN_LAG_NS;
    return s->channel.window_ns + period * 3 / 2;
}

/* By how much that moves energy from one time to another. */
static int64_t blur_of(const struct seen *s)
{
    bool flat = (double)s->most <= (1 + FLAT_PART) * (double)s->least;

    return s->channel.kind == IPW_CHANNEL_GAUGE && flat ? 0 : lag_of(s);
}

/* ---- rules ---- */

static bool is_known_sum(const struct seen *s)
{
    return s->channel.in_sum && s->channel.kind < IPW_CHANNEL_METRIC;
}

static bool same_device(const struct seen *a, const struct seen *b)
{
    return a->source == b->source && a->channel.domain == b->channel.domain &&
           a->channel.scope == b->channel.scope && a->channel.device[0] &&
           !strcmp(a->channel.device, b->channel.device);
}

static const struct seen *gauge_beside(const struct ipw_trust *t, const struct seen *s)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->channels[i].channel.kind == IPW_CHANNEL_GAUGE && same_device(s, &t->channels[i]))
            return &t->channels[i];
    return NULL;
}

/* From change to change, because a slow counter is exact only there. */
static double watts_of(const struct seen *s)
{
    if (s->reads == 0 || s->channel.kind >= IPW_CHANNEL_METRIC) return NAN;
    if (s->channel.kind == IPW_CHANNEL_GAUGE)
        return s->last_t > s->first_t ? (double)s->uj * 1e3 / (double)(s->last_t - s->first_t)
                                      : (double)s->value / 1e3;
    if (s->changes == 0) return NAN; /* a counter that does not move does not report 0 W */
    return (double)s->uj * 1e3 / (double)(s->change_t - s->first_change_t);
}

/* The counter of its device shows that the power is another, or has changed. */
static bool is_held(const struct ipw_trust *t, const struct seen *gauge)
{
    double held_s = ipw_ns_to_s(gauge->last_t - gauge->first_t);

    if (gauge->change_t || gauge->reads < FEW_READS || held_s < rule_of(IPW_DOUBT_HELD)->limit)
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
    if (s->channel.period_ns < KEPT_PERIOD_NS)
        return (int64_t)(rule_of(IPW_DOUBT_STUCK)->limit * IPW_NS_PER_S);
    return 5 * s->channel.period_ns < LEAST_STUCK_NS ? LEAST_STUCK_NS : 5 * s->channel.period_ns;
}

static bool is_frozen(const struct ipw_trust *t, const struct seen *s)
{
    const struct seen *gauge = gauge_beside(t, s);
    int64_t patience = s->channel.period_ns > 0 ? 5 * s->channel.period_ns : STUCK_NS;

    if (patience < POINT_NS) patience = POINT_NS;
    return gauge && !s->change_t && s->reads >= FEW_READS && s->last_t - s->first_t >= patience &&
           watts_of(gauge) > 1;
}

/* Does the device sleep?  Only then may its gauge say 0 W. */
static bool is_asleep(const struct ipw_trust *t, const struct seen *s)
{
    const struct seen *gauge = gauge_beside(t, s);

    return gauge && gauge->reads && watts_of(gauge) <= 0;
}

static double least_w(const struct seen *s)
{
    if (s->channel.domain == IPW_DOMAIN_GPU && s->channel.scope == IPW_SCOPE_DEVICE)
        return rule_of(IPW_DOUBT_LEAST)->limit;
    if (s->channel.domain == IPW_DOMAIN_CPU && s->channel.scope == IPW_SCOPE_PACKAGE)
        return fmin(LEAST_OF_LIMIT * (double)s->channel.max_w / MOST_OF_LIMIT,
                    rule_of(IPW_DOUBT_LEAST)->limit);
    return 0;
}

static bool doubt(struct seen *s, enum ipw_doubt doubt, double own_w, double other_w)
{
    s->doubt = doubt;
    s->own_w = own_w;
    s->other_w = other_w;
    return true;
}

static double mean_w(double uj, int64_t t0_ns, int64_t t1_ns)
{
    return uj * 1e3 / (double)(t1_ns - t0_ns);
}

static bool is_too_little(const struct ipw_trust *t, struct seen *s, int64_t t0_ns, int64_t t1_ns)
{
    double w = mean_w(uj_between(s, t0_ns, t1_ns), t0_ns, t1_ns);
    const struct seen *gauge = gauge_beside(t, s);

    if (least_w(s) <= 0 || t1_ns - t0_ns < LEAST_MEAN_NS || !(w < least_w(s))) return false;
    /* A sleeping device shows 0 W. */
    if (w <= 0 || (gauge && gauge->reads && gauge->value == 0)) return false;
    return doubt(s, IPW_DOUBT_LEAST, w, NAN);
}

/* The gauge's values show the power of up to a lag ago.  So what it reads from t0 to a lag after t1
 * holds all energy of [t0, t1], and what it reads from a lag after t0 to t1 is part of it. */
static bool is_against_gauge(const struct ipw_trust *t, struct seen *s, int64_t t0_ns,
                             int64_t t1_ns)
{
    const struct seen *gauge = gauge_beside(t, s);
    double part = rule_of(IPW_DOUBT_GAUGE)->limit, own, outer, inner;
    int64_t blur;

    if (s->channel.kind != IPW_CHANNEL_COUNTER || !gauge || s->changes < FEW_CHANGES) return false;
    if (gauge->reads < FEW_READS || is_held(t, gauge)) return false;
    blur = lag_of(s) + blur_of(gauge);
    t1_ns -= blur; /* a mean that is still flat has no change behind it */
    if (t1_ns - t0_ns < LAGS * blur || t1_ns - t0_ns < COMPARED_NS) return false;
    own = uj_between(s, t0_ns, t1_ns);
    outer = uj_between(gauge, t0_ns, t1_ns + blur);
    inner = uj_between(gauge, t0_ns + blur, t1_ns);
    if (!(own > (1 + part) * outer) && !(own < (1 - part) * inner)) return false;
    if (mean_w(outer, t0_ns, t1_ns) <= 1) return false; /* asleep */
    return doubt(s, IPW_DOUBT_GAUGE, mean_w(own, t0_ns, t1_ns), mean_w(outer, t0_ns, t1_ns + blur));
}

/* Does a channel of the machine's sum include the other one? */
static bool includes(const struct seen *whole, const struct seen *part)
{
    enum ipw_scope scope = part->channel.scope;

    if (!is_known_sum(part) || part->channel.domain == IPW_DOMAIN_MACHINE) return false;
    if (part->channel.remote != whole->channel.remote) return false;
    if (part->channel.remote && part->source != whole->source) return false; /* another machine */
    switch (whole->channel.scope) {
    case IPW_SCOPE_MACHINE: return true;
    case IPW_SCOPE_PLATFORM: return scope == IPW_SCOPE_PACKAGE; /* perhaps without GPUs */
    case IPW_SCOPE_MODULE:
        return scope == IPW_SCOPE_PACKAGE ||
               (scope == IPW_SCOPE_DEVICE && part->channel.domain == IPW_DOMAIN_GPU);
    default: return false;
    }
}

bool ipw_trust_is_below(double whole, double parts)
{
    return whole < (1 - rule_of(IPW_DOUBT_PARTS)->limit) * parts; /* false for NAN */
}

/* The lag of the whole, which must be over, and of its slowest part. */
static bool is_below_parts(const struct ipw_trust *t, struct seen *s, int64_t t0_ns, int64_t t1_ns)
{
    double inner = 0, outer = 0;
    int64_t lag = 0, blur = 0;

    if (!is_known_sum(s) || s->channel.domain != IPW_DOMAIN_MACHINE) return false;
    for (size_t i = 0; i < t->n; i++) {
        const struct seen *p = &t->channels[i];

        if (p != s && !includes(s, p)) continue;
        if (lag_of(p) > lag) lag = lag_of(p);
        if (blur_of(p) > blur) blur = blur_of(p);
    }
    t1_ns -= lag;
    if (t1_ns - t0_ns < LAGS * blur || t1_ns - t0_ns < COMPARED_NS) return false;
    for (size_t i = 0; i < t->n; i++) {
        const struct seen *p = &t->channels[i];
        double j = includes(s, p) ? uj_between(p, t0_ns + blur_of(p), t1_ns) : 0;

        if (is_known_sum(p) && p->channel.domain == IPW_DOMAIN_MACHINE &&
            p->channel.remote == s->channel.remote)
            outer += uj_between(p, t0_ns, t1_ns + blur);
        if (!isnan(j)) inner += j; /* a part that is not known is not held against the whole */
    }
    if (!ipw_trust_is_below(outer, inner)) return false;
    return doubt(s, IPW_DOUBT_PARTS, mean_w(outer, t0_ns, t1_ns + blur),
                 mean_w(inner, t0_ns, t1_ns));
}

/* The time in which all channels that may be compared have points. */
static void find_common(const struct ipw_trust *t, const struct seen *s, int64_t *start,
                        int64_t *end)
{
    *start = s->head[0].t_ns;
    *end = newest(s)->t_ns;
    for (size_t i = 0; i < t->n; i++) {
        const struct seen *p = &t->channels[i];
        bool compared =
            includes(s, p) || (p->channel.kind == IPW_CHANNEL_GAUGE && same_device(s, p));

        if (!compared || !p->n_points) continue;
        if (p->head[0].t_ns > *start) *start = p->head[0].t_ns;
        if (newest(p)->t_ns < *end) *end = newest(p)->t_ns;
    }
}

static bool breaks_a_rule(const struct ipw_trust *t, struct seen *s, int64_t t0_ns, int64_t t1_ns)
{
    return t1_ns > t0_ns &&
           (is_too_little(t, s, t0_ns, t1_ns) || is_against_gauge(t, s, t0_ns, t1_ns) ||
            is_below_parts(t, s, t0_ns, t1_ns));
}

/* Over all of the time, and over the newest seconds. */
static void judge(const struct ipw_trust *t, struct seen *s)
{
    int64_t start, end;

    if (s->doubt || !s->n_points || s->channel.kind >= IPW_CHANNEL_METRIC) return;
    find_common(t, s, &start, &end);
    if (breaks_a_rule(t, s, start, end) || end - start < 2 * WINDOW_NS) return;
    breaks_a_rule(t, s, end - WINDOW_NS, end);
}

void ipw_trust_row(struct ipw_trust *t, const struct ipw_sampler_row *row)
{
    if (!t->first_t) t->first_t = t->judged_t = row->t_ns;
    if (row->t_ns > t->last_t) t->last_t = row->t_ns;
    for (size_t i = 0; i < row->n && row->first_channel + i < t->n; i++) {
        t->channels[row->first_channel + i].source = row->source;
        push(&t->channels[row->first_channel + i], row->t_ns, row->values[i]);
    }
    if (t->last_t - t->judged_t < COMPARED_NS) return;
    t->judged_t = t->last_t;
    for (size_t i = 0; i < t->n; i++) judge(t, &t->channels[i]);
}

/* ---- verdicts ---- */

static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int64_t period_of(const struct seen *s)
{
    int64_t sorted[MAX_STEPS];
    size_t n = s->changes < MAX_STEPS ? (size_t)s->changes : MAX_STEPS;

    if (n < FEW_CHANGES) return 0;
    memcpy(sorted, s->steps, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_steps);
    return sorted[n / 2];
}

static enum ipw_trust_state state_of(const struct seen *s, bool frozen)
{
    if (s->reads == 0) return s->failed ? IPW_TRUST_UNREAD : IPW_TRUST_SHORT;
    if (s->change_t) return IPW_TRUST_MOVES;
    if (frozen) return IPW_TRUST_STUCK;
    if (s->channel.kind != IPW_CHANNEL_COUNTER) return IPW_TRUST_STEADY;
    return s->last_t - s->first_t >= stuck_after_ns(s) ? IPW_TRUST_STUCK : IPW_TRUST_SHORT;
}

static void disbelieve(struct ipw_trust_verdict *v, enum ipw_doubt doubt, const struct seen *s)
{
    const struct rule *rule = rule_of(doubt);

    v->believed = false;
    v->doubt = doubt;
    v->reason = rule->reason;
    if (!rule->stays)
        snprintf(v->words, sizeof v->words, "%s", rule->words);
    else if (isnan(s->other_w))
        snprintf(v->words, sizeof v->words, "shows %.3g W, %s: not believed", s->own_w,
                 rule->words);
    else
        snprintf(v->words, sizeof v->words, "shows %.4g W, %s %.4g W: not believed", s->own_w,
                 rule->words, s->other_w);
}

static void compare_with_gauge(struct ipw_trust_verdict *v, const struct ipw_trust *t,
                               const struct seen *s)
{
    const struct seen *gauge = gauge_beside(t, s);

    if (s->channel.kind != IPW_CHANNEL_COUNTER || !gauge || !(watts_of(gauge) > 1)) return;
    if (s->changes < FEW_CHANGES || s->last_t - s->first_t < STUCK_NS / 2) return;
    v->ratio = v->watts / watts_of(gauge);
}

static void remark(struct ipw_trust_verdict *v, bool asleep)
{
    if (asleep)
        snprintf(v->words, sizeof v->words, "asleep");
    else if (fabs(v->ratio - 1) > 0.05) /* false for NAN */
        snprintf(v->words, sizeof v->words, "counter %+.0f %% against its gauge",
                 (v->ratio - 1) * 100);
    else if (v->failed > 0)
        snprintf(v->words, sizeof v->words, "%lld of %lld reads failed", (long long)v->failed,
                 (long long)(v->failed + v->reads));
    else if (v->state != IPW_TRUST_SHORT)
        snprintf(v->words, sizeof v->words, "ok");
}

struct ipw_trust_verdict ipw_trust_verdict(const struct ipw_trust *t, size_t channel)
{
    const struct seen *s = &t->channels[channel];
    bool gauge = s->channel.kind == IPW_CHANNEL_GAUGE;
    bool counter = s->channel.kind == IPW_CHANNEL_COUNTER;
    bool frozen = counter ? is_frozen(t, s) : gauge && is_held(t, s);
    struct ipw_trust_verdict v = {.believed = true,
                                  .state = state_of(s, frozen),
                                  .moved = s->change_t != 0,
                                  .reads = s->reads,
                                  .failed = s->failed,
                                  .period_ns = period_of(s),
                                  .watts = watts_of(s),
                                  .value = NAN,
                                  .ratio = NAN};
    const struct seen *beside = gauge_beside(t, s);
    bool asleep = counter && v.state == IPW_TRUST_STUCK && is_asleep(t, s);

    v.slept = counter && beside && beside->reads && beside->least == 0;
    if (s->channel.kind == IPW_CHANNEL_METRIC && s->reads) v.value = (double)s->value / 1e3;
    if (!frozen) compare_with_gauge(&v, t, s);
    if (asleep) v.watts = 0; /* its counter stands still because it uses nothing */
    if (s->doubt)
        disbelieve(&v, s->doubt, s);
    else if (v.state == IPW_TRUST_UNREAD)
        disbelieve(&v, IPW_DOUBT_UNREAD, s);
    else if (v.state == IPW_TRUST_STUCK && !asleep)
        disbelieve(&v, gauge ? IPW_DOUBT_HELD : frozen ? IPW_DOUBT_FROZEN : IPW_DOUBT_STUCK, s);
    else
        remark(&v, asleep);
    return v;
}

bool ipw_trust_is_broken(const struct ipw_trust *t, size_t channel)
{
    return t && channel < t->n && t->channels[channel].doubt != IPW_DOUBT_NONE;
}

int ipw_trust_doubtful(struct ipw_trust_verdict *out, const struct ipw_trust *t,
                       enum ipw_domain domain)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct ipw_channel *c = &t->channels[i].channel;

        if (!c->in_sum || c->domain != domain) continue;
        *out = ipw_trust_verdict(t, i);
        if (!out->believed) return (int)i;
    }
    return -1;
}

size_t ipw_trust_gpus(const struct ipw_trust *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct seen *s = &t->channels[i];
        if (s->channel.domain == IPW_DOMAIN_GPU && s->channel.in_sum && s->reads) n++;
    }
    return n;
}

size_t ipw_trust_reject(struct ipw_trust *t, struct ipw_source_set *set)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n && i < set->n_channels; i++) {
        enum ipw_doubt doubt = ipw_trust_verdict(t, i).doubt;

        if (set->rejected[i] || (doubt != IPW_DOUBT_FROZEN && doubt != IPW_DOUBT_HELD)) continue;
        set->rejected[i] = true;
        n++;
    }
    if (n) ipw_source_set_cover(set);
    for (size_t i = 0; n && i < t->n; i++) t->channels[i].channel.in_sum = set->channels[i].in_sum;
    return n;
}

static void number(struct ipw_jw *w, const char *key, double x)
{
    ipw_jw_knum(w, key, isnan(x) ? x : round(x * 1e4) / 1e4); /* NAN writes null */
}

void ipw_trust_json(struct ipw_buf *out, const struct ipw_trust *t,
                    const struct ipw_source_set *set)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_arr(&w);
    for (size_t i = 0, source = 0; i < t->n && i < set->n_channels; i++) {
        struct ipw_trust_verdict v = ipw_trust_verdict(t, i);

        while (ipw_source_set_first(set, source + 1) <= i) source++;
        ipw_jw_obj(&w);
        ipw_jw_kbool(&w, "believed", v.believed);
        ipw_jw_kstr(&w, "channel", t->channels[i].channel.name);
        ipw_jw_kint(&w, "failed", v.failed);
        if (v.period_ns)
            ipw_jw_kint(&w, "period_ns", v.period_ns);
        else
            ipw_jw_knull(&w, "period_ns");
        number(&w, "ratio", v.ratio);
        ipw_jw_kint(&w, "reads", v.reads);
        ipw_jw_kstr(&w, "reason", v.reason);
        ipw_jw_kstr(&w, "source", set->sources[source]->name);
        ipw_jw_kstr(&w, "state", ipw_trust_state_name(v.state));
        number(&w, "watts", v.watts);
        ipw_jw_kstr(&w, "words", v.words);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
}

const char *ipw_trust_reason(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(name, rules[i].reason)) return rules[i].reason;
    return NULL;
}

const char *ipw_trust_reason_words(const char *reason)
{
    static const struct {
        const char *reason, *words;
    } rows[] = {
        {"stuck", "the counter does not move"},
        {"contradicted", "another sensor contradicts it"},
        {"no_sensor", "no readable sensor"},
        {"permission", "the sensor may not be read"},
        {"switched_off", "sensors are switched off"},
        {"no_samples", "the sensor gave no reading"},
        {"not_covered", "readings do not reach so far"},
        {"gpu_lost", "the GPU was lost"},
        {"lost", "the sensor was lost"},
        {"remote", "the model runs on another machine"},
        {"counter_reset", "the counter was reset"},
        {"implausible_step", "the counter jumped by more than the device can draw"},
        {"gap_too_long", "too long without a reading"},
        {"suspended", "the machine slept"},
        {"replayed", "a replay measures nothing"},
    };

    for (size_t i = 0; reason && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(reason, rows[i].reason)) return rows[i].words;
    return reason;
}

/* ---- watching before the values are used ---- */

#define READ_NS    (10 * IPW_NS_PER_MS)
#define SLOWEST_NS (50 * IPW_NS_PER_MS) /* a slower source is not read here */
#define UNKNOWN_NS (1200 * IPW_NS_PER_MS)
#define LEAST_NS   (250 * IPW_NS_PER_MS)
#define MOST_NS    (5 * IPW_NS_PER_S)

int64_t ipw_trust_watch_ns(const struct ipw_channel *c)
{
    int64_t need = 6 * c->period_ns; /* five whole periods, and the rest of the current one */

    if (c->kind != IPW_CHANNEL_COUNTER) return 0;
    if (c->period_ns < KEPT_PERIOD_NS) return UNKNOWN_NS;
    return need < LEAST_NS ? LEAST_NS : need > MOST_NS ? MOST_NS : need;
}

static bool is_quick(const struct ipw_source *s) { return s->period_ns <= SLOWEST_NS; }

static void read_quickly(struct ipw_trust *t, struct ipw_source_set *set, int64_t *values)
{
    size_t first = 0;

    for (size_t i = 0; i < set->n; i++) {
        struct ipw_source *s = set->sources[i];
        int64_t before = ipw_now_ns();
        struct ipw_sampler_row row = {
            .source = i, .first_channel = first, .n = s->n_channels, .values = values};

        first += s->n_channels;
        if (!is_quick(s)) continue;
        s->read(s, values);
        row.t_ns = before + (ipw_now_ns() - before) / 2;
        ipw_trust_row(t, &row);
    }
}

/* How long a counter that moves is watched, to compare it with the gauge beside it. */
static int64_t compare_ns(const struct ipw_trust *t, const struct seen *s)
{
    int64_t need = (LAGS + 1) * lag_of(s) + 3 * COMPARED_NS;

    return gauge_beside(t, s) && need <= 2 * UNKNOWN_NS ? need : 0;
}

/* Has every counter of a sum been watched for as long as necessary? */
static bool is_judged(const struct ipw_trust *t, const struct ipw_source_set *set,
                      int64_t watched_ns, bool compare)
{
    size_t at = 0;

    for (size_t i = 0; i < set->n; i++) {
        const struct ipw_source *s = set->sources[i];

        for (size_t k = 0; k < s->n_channels; k++, at++) {
            const struct seen *seen = &t->channels[at];

            if (!is_quick(s) || !s->channels[k].in_sum || seen->doubt) continue;
            if (watched_ns <= (!seen->change_t ? ipw_trust_watch_ns(&s->channels[k])
                               : compare       ? compare_ns(t, seen)
                                               : 0))
                return false;
        }
    }
    return true;
}

void ipw_trust_watch(struct ipw_trust *t, struct ipw_source_set *set, int64_t least_ns)
{
    int64_t *values = ipw_calloc(set->n_channels + 1, sizeof *values);
    int64_t start = ipw_now_ns(), due = start, now = start;

    while (now - start < least_ns || !is_judged(t, set, now - start, least_ns == 0)) {
        struct timespec ts = {(time_t)(due / IPW_NS_PER_S), (long)(due % IPW_NS_PER_S)};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) continue;
        read_quickly(t, set, values);
        now = ipw_now_ns();
        due = start + ((now - start) / READ_NS + 1) * READ_NS;
    }
    free(values);
}
