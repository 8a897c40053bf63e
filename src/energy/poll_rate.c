#include "energy/poll_rate.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LEARN_POLL_NS (5 * IPW_NS_PER_MS)
#define LEARN_NS      IPW_NS_PER_S
#define SLOWEST_NS    (500 * IPW_NS_PER_MS)
#define CLOSE_NS      (2 * IPW_NS_PER_MS) /* distance of readings around a publication */
#define LEAD_NS       (4 * IPW_NS_PER_MS) /* they begin at least so long before it */
#define NEED_STEPS    5                   /* needed before a period is believed */
/* Readings that all moved: the channel is faster than we read. */
#define NEED_MOVES 8
/* Unchanged readings that show that a channel is not fast. */
#define NEED_REPEATS 4
#define MOST_MISSES  6                  /* the prediction is useless */
#define ALLOWED      40                 /* readings that may be saved up */
#define SEEK_NS      (2 * IPW_NS_PER_S) /* search for a channel that moved so recently */

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

/* Counters tell more than gauges, which may also stand still because the power does. */
static void choose_channels(struct ipw_poll_rate *p, const struct ipw_source *s)
{
    static const enum ipw_channel_kind kinds[] = {IPW_CHANNEL_COUNTER, IPW_CHANNEL_GAUGE};

    for (int k = 0; k < 2 && p->n == 0; k++) {
        for (size_t i = 0; i < s->n_channels && p->n < IPW_POLL_RATE_CHANNELS; i++) {
            const struct ipw_channel *c = &s->channels[i];

            if (c->kind != kinds[k]) continue;
            if (c->remote || (c->period_ns > 0 && c->period_ns <= LEARN_POLL_NS)) {
                p->n = 0;
                return;
            }
            p->channels[p->n].at = i;
            if (c->kind == IPW_CHANNEL_GAUGE)
                p->channels[p->n].most_step_ns = c->period_ns + c->period_ns / 2;
            p->n++;
        }
    }
}

void ipw_poll_rate_init(struct ipw_poll_rate *p, const struct ipw_source *source,
                        int64_t interval_ns, bool adapt, int64_t now_ns)
{
    int64_t least = source->period_ns;

    *p = (struct ipw_poll_rate){.base_ns = interval_ns > least ? interval_ns : least,
                                .least_ns = least,
                                .start_ns = now_ns,
                                .read_ns = INT64_MIN};
    p->poll_ns = p->base_ns;
    if (!adapt || least >= 200 * IPW_NS_PER_MS) return;
    choose_channels(p, source);
    if (p->n == 0) return;
    p->learn_ns = LEARN_POLL_NS;
    p->learn_until_ns = now_ns + LEARN_NS;
    p->poll_ns = p->learn_ns;
}

/* The mean of the steps near the median, which leaves out steps with a missed or a doubled
 * publication. */
static int64_t usual_step(const int64_t *steps, unsigned n)
{
    int64_t sorted[IPW_POLL_RATE_STEPS], middle, sum = 0;
    unsigned like = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned k = i;
        for (; k > 0 && sorted[k - 1] > steps[i]; k--) sorted[k] = sorted[k - 1];
        sorted[k] = steps[i];
    }
    middle = sorted[n / 2];
    for (unsigned i = 0; i < n; i++) {
        if (sorted[i] < middle - middle / 3 || sorted[i] > middle + middle / 3) continue;
        sum += sorted[i];
        like++;
    }
    return sum / like;
}

static void forget_prediction(struct ipw_poll_rate_channel *c)
{
    c->due_ns = 0;
    c->n_early = c->misses = 0;
}

static void forget_steps(struct ipw_poll_rate_channel *c)
{
    c->n_steps = 0;
    c->moved = c->still = 0;
    c->change_ns = 0;
    c->period_ns = 0;
    forget_prediction(c);
}

static void add_step(struct ipw_poll_rate_channel *c, int64_t step_ns)
{
    /* A gauge repeats its value while the power is steady; that does not make its period longer. */
    if (c->most_step_ns && step_ns > c->most_step_ns) return;
    if (c->n_steps == IPW_POLL_RATE_STEPS) {
        memmove(c->steps, c->steps + 1, (IPW_POLL_RATE_STEPS - 1) * sizeof *c->steps);
        c->n_steps--;
    }
    c->steps[c->n_steps++] = step_ns;
    if (c->n_steps >= NEED_STEPS) c->period_ns = usual_step(c->steps, c->n_steps);
}

static void add_early(struct ipw_poll_rate_channel *c, int64_t early_ns)
{
    if (c->n_early == IPW_POLL_RATE_ERRORS) {
        memmove(c->early_ns, c->early_ns + 1, (IPW_POLL_RATE_ERRORS - 1) * sizeof *c->early_ns);
        c->n_early--;
    }
    c->early_ns[c->n_early++] = early_ns;
}

/* A publication lay in (from, to].  Returns its best known instant, and predicts the next one.  0:
 * the interval was too long to tell. */
static int64_t place(struct ipw_poll_rate_channel *c, int64_t from_ns, int64_t to_ns)
{
    int64_t width = to_ns - from_ns, edge = from_ns + width / 2, off;
    bool sharp = width <= c->period_ns / 3, precise = width <= 2 * c->blur_ns;

    if (!c->due_ns) { /* the first publication: the next one is located more closely */
        c->blur_ns = width;
        c->due_ns = width < c->period_ns / 2 ? edge + c->period_ns : 0;
        return edge;
    }
    if (!precise) edge = clamp(c->due_ns, from_ns, to_ns); /* less precise than the prediction */
    off = edge - c->due_ns;
    if (!sharp && off == 0) { /* the readings came late, which does not contradict the prediction */
        c->due_ns += c->period_ns;
        return 0;
    }
    if (!sharp || off < -c->period_ns / 3 || off > c->period_ns / 3) {
        /* The publication came an unknown time before the readings began, or far off its
         * prediction. */
        c->misses += 2;
        if (c->due_ns > to_ns) add_early(c, (c->due_ns - to_ns) * 3 / 2);
        c->due_ns = (sharp ? edge : to_ns) + c->period_ns;
        if (c->misses >= MOST_MISSES) forget_steps(c);
        return sharp ? edge : 0;
    }
    if (c->misses) c->misses--;
    if (c->blur_ns > 2 * width) { /* more precise than the observations behind the prediction */
        c->due_ns = edge;
    } else {
        add_early(c, precise ? -off : c->due_ns - to_ns);
        c->due_ns += off / 2; /* a single displaced publication says little of the next */
    }
    if (precise || off) c->blur_ns = width;
    c->due_ns += c->period_ns;
    return edge;
}

static void push_value(struct ipw_poll_rate_channel *c, int64_t t_ns, int64_t value)
{
    int64_t from = c->read_ns, edge;

    if (value == IPW_NO_VALUE) return;
    c->read_ns = t_ns;
    if (!c->seen || value == c->value) {
        if (c->seen) c->still++;
        if (c->still >= 1) c->moved = 0;
        c->value = value;
        c->seen = true;
        if (c->due_ns && t_ns > c->due_ns + c->period_ns) forget_prediction(c);
        return;
    }
    c->value = value;
    c->moved_ns = t_ns;
    c->still = 0;
    c->moved++;
    edge = c->period_ns ? place(c, from, t_ns) : from + (t_ns - from) / 2;
    if (edge && c->change_ns) add_step(c, edge - c->change_ns);
    c->change_ns = edge;
    if (edge && c->due_ns && llabs(c->due_ns - edge - c->period_ns) > c->period_ns / 2)
        c->due_ns = edge + c->period_ns; /* a new period was just learned */
}

static int64_t longest(const struct ipw_poll_rate *p)
{
    return p->base_ns > SLOWEST_NS ? p->base_ns : SLOWEST_NS;
}

/* The fastest channel decides: readings near its publications suit the others, too. */
static void judge(struct ipw_poll_rate *p, int64_t t_ns)
{
    int64_t period = 0, floor = t_ns < p->learn_until_ns ? p->learn_ns : p->least_ns;
    unsigned moved = 0, still = UINT32_MAX;
    bool predicted = false;

    if (floor < p->learn_ns) floor = p->learn_ns;
    for (size_t i = 0; i < p->n; i++) {
        const struct ipw_poll_rate_channel *c = &p->channels[i];

        if (c->moved > moved) moved = c->moved;
        if (c->seen && c->still < still) still = c->still;
        if (c->period_ns && (!period || c->period_ns < period)) period = c->period_ns;
        predicted |= c->due_ns != 0;
    }
    if (p->fast) {
        if (still < NEED_REPEATS || still == UINT32_MAX) return;
        p->fast = false; /* it has become slow: learn again */
        p->period_ns = 0;
        p->poll_ns = floor;
        for (size_t i = 0; i < p->n; i++) forget_steps(&p->channels[i]);
        return;
    }
    if (moved >= NEED_MOVES && !predicted) { /* at least as fast as we read */
        p->period_ns = p->poll_ns;
        if (p->poll_ns > floor) {
            p->poll_ns = clamp(p->poll_ns / 2, floor, p->poll_ns);
        } else if (t_ns >= p->learn_until_ns || floor == p->learn_ns) {
            p->fast = true;
            p->poll_ns = p->base_ns;
        }
        for (size_t i = 0; i < p->n; i++) forget_steps(&p->channels[i]);
        return;
    }
    if (period) p->period_ns = period;
    if (t_ns < p->learn_until_ns) return;
    if (p->period_ns)
        p->poll_ns = clamp(p->period_ns / 5, floor, longest(p));
    else
        p->poll_ns = p->base_ns; /* no usable change: stuck, or a steady gauge */
}

/* A busy machine wakes the reader late, so open the windows that much earlier. */
static void learn_lateness(struct ipw_poll_rate *p, int64_t late_ns)
{
    p->late_ns -= p->late_ns / 16;
    if (late_ns > p->late_ns) p->late_ns = late_ns;
    if (p->late_ns > p->period_ns / 5) p->late_ns = p->period_ns / 5;
}

void ipw_poll_rate_push(struct ipw_poll_rate *p, int64_t t_ns, const int64_t *values)
{
    if (p->read_ns != INT64_MIN && t_ns > p->read_ns)
        p->allowance_ns = clamp(p->allowance_ns + (t_ns - p->read_ns) - p->poll_ns,
                                -ALLOWED * p->poll_ns, ALLOWED * p->poll_ns);
    if (p->planned_ns) learn_lateness(p, t_ns - p->planned_ns);
    p->planned_ns = 0;
    p->read_ns = t_ns;
    for (size_t i = 0; i < p->n; i++) push_value(&p->channels[i], t_ns, values[p->channels[i].at]);
    if (p->n) judge(p, t_ns);
}

/* ---- when to read again ---- */

/* The distance is not a divisor of the period: otherwise readings would meet each publication at
 * the same phase. */
static int64_t even(const struct ipw_poll_rate *p)
{
    return p->period_ns > p->poll_ns ? p->poll_ns + p->poll_ns / 20 : p->poll_ns;
}

static int64_t lead(const struct ipw_poll_rate *p, const struct ipw_poll_rate_channel *c)
{
    int64_t most = c->blur_ns / 2;

    for (unsigned i = 0; i < c->n_early; i++)
        if (c->early_ns[i] > most) most = c->early_ns[i];
    most += most / 8 + CLOSE_NS / 2;
    return (most > LEAD_NS ? most : LEAD_NS) + p->late_ns;
}

/* Channels that publish together (the zones of one driver) share a window. */
static bool shares_window(const struct ipw_poll_rate *p, size_t i)
{
    const struct ipw_poll_rate_channel *c = &p->channels[i];

    for (size_t k = 0; k < i; k++) {
        const struct ipw_poll_rate_channel *other = &p->channels[k];
        int64_t apart;

        if (!other->due_ns) continue;
        apart = (c->due_ns - other->due_ns) % other->period_ns;
        if (apart < 0) apart += other->period_ns;
        if (apart > other->period_ns / 2) apart = other->period_ns - apart;
        if (apart <= LEAD_NS && c->period_ns > other->period_ns / 2) return true;
    }
    return false;
}

/* The distance of readings in the windows that the allowance can pay for. */
static int64_t spacing(const struct ipw_poll_rate *p)
{
    double open_ns = 0, readings = 0.95 / (double)p->poll_ns, room; /* per nanosecond */
    int64_t least = CLOSE_NS > 2 * p->took_ns ? CLOSE_NS : 2 * p->took_ns;

    for (size_t i = 0; i < p->n; i++) {
        const struct ipw_poll_rate_channel *c = &p->channels[i];

        if (!c->due_ns || shares_window(p, i)) continue;
        open_ns += (double)lead(p, c) / (double)c->period_ns;
        /* The first reading, and the one that shows the change. */
        readings -= 1.5 / (double)c->period_ns;
    }
    room = open_ns / (readings > 0 ? readings : 1e-12);
    if (p->allowance_ns < 0) room *= 1.5; /* pay back */
    return room < (double)least ? least : room > 1e12 ? (int64_t)1e12 : (int64_t)room;
}

/* The channel moves but has no prediction.  Windows around the other channels' publications would
 * never show when it publishes. */
static bool is_sought(const struct ipw_poll_rate_channel *c, int64_t t_ns)
{
    return c->moved_ns && !c->due_ns && t_ns - c->moved_ns < SEEK_NS;
}

/* A window opens before the predicted instant; after that instant readings become rarer. */
static int64_t wanted(const struct ipw_poll_rate *p, const struct ipw_poll_rate_channel *c,
                      int64_t close_ns, int64_t even_ns)
{
    int64_t t_ns = p->read_ns, opens = c->due_ns - lead(p, c), late = t_ns - c->due_ns;

    if (opens > t_ns + close_ns) return opens;
    if (late / 2 > close_ns) close_ns = late / 2 < even_ns ? late / 2 : even_ns;
    return t_ns + close_ns;
}

static int64_t next_by_prediction(const struct ipw_poll_rate *p)
{
    int64_t t = p->read_ns, close = spacing(p), e = even(p), next = INT64_MAX;
    bool sought = false;

    for (size_t i = 0; i < p->n; i++) {
        const struct ipw_poll_rate_channel *c = &p->channels[i];

        sought |= is_sought(c, t);
        if (c->due_ns) {
            int64_t w = wanted(p, c, close, e);
            if (w < next) next = w;
        }
    }
    if (sought && p->allowance_ns > 0) return t + (p->learn_ns < e ? p->learn_ns : e);
    if (p->allowance_ns <= -ALLOWED * p->poll_ns / 2) return t + e + e / 4;
    if (sought || next == INT64_MAX || close > e * 3 / 4) return t + e;
    return next - t > longest(p) ? t + longest(p) : next;
}

/* The recent minimum.  It creeps up, so that it follows a driver that became slower. */
static void learn_duration(struct ipw_poll_rate *p, int64_t took_ns)
{
    int64_t creep = p->took_ns + p->took_ns / 16 + 1;

    p->took_ns = !p->took_ns || took_ns < creep ? took_ns + 1 : creep;
}

int64_t ipw_poll_rate_next(struct ipw_poll_rate *p, int64_t now_ns)
{
    int64_t next;

    if (p->n == 0 || p->read_ns == INT64_MIN) /* missed ticks are not made up for */
        return p->start_ns + ((now_ns - p->start_ns) / p->poll_ns + 1) * p->poll_ns;
    learn_duration(p, now_ns > p->read_ns ? 2 * (now_ns - p->read_ns) : 0);
    if (p->fast || !p->period_ns || p->read_ns < p->learn_until_ns)
        next = p->read_ns + p->poll_ns;
    else
        next = next_by_prediction(p);
    p->planned_ns = next - now_ns > p->took_ns ? next : now_ns + p->took_ns;
    return p->planned_ns;
}
