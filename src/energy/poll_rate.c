#include "energy/poll_rate.h"

#include <stdlib.h>

#include "base/clock.h"

#define LEARN_POLL_NS (5 * IPW_NS_PER_MS)
#define SLOWEST_NS    (500 * IPW_NS_PER_MS)
#define CLOSE_NS      (2 * IPW_NS_PER_MS) /* distance of readings around a publication */
#define LEAD_NS       (4 * IPW_NS_PER_MS) /* they begin at least so long before it */
#define SEEK_NS       (2 * IPW_NS_PER_S)  /* search for a channel that moved so recently */

enum {
    NEED_STEPS = 4,   /* steps that agree, before a period is believed */
    LIKE_STEPS = 8,   /* the mean is of about so many */
    NEED_MOVES = 8,   /* readings that all moved: the channel is faster than we read */
    NEED_REPEATS = 4, /* unchanged readings that show that it is not */
    MOST_ODD = 2,     /* odd steps in a row: the period is another one */
    ALLOWED = 40,     /* readings that may be saved up */
    PLENTY = 20,      /* with so many saved up, windows are read as closely as is useful */
};

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

/* The larger of a recent maximum, which fades, and a new value. */
static int64_t fading(int64_t most, int64_t v)
{
    return v > most - most / 64 ? v : most - most / 64;
}

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
                                .least_ns = least > LEARN_POLL_NS ? least : LEARN_POLL_NS,
                                .start_ns = now_ns,
                                .read_ns = INT64_MIN};
    p->poll_ns = p->base_ns;
    if (!adapt || least >= 200 * IPW_NS_PER_MS) return;
    choose_channels(p, source);
    if (p->n == 0) return;
    p->learn_until_ns = now_ns + IPW_NS_PER_S;
    p->poll_ns = LEARN_POLL_NS;
}

/* The distance of two changes: the period is their running mean.  A step with a missed or a doubled
 * publication says nothing of it, unless several such steps follow each other. */
static void learn_step(struct ipw_poll_rate_channel *c, int64_t step_ns)
{
    int64_t off = step_ns - c->step_ns;

    /* A gauge repeats its value while the power is steady; that does not make its period longer. */
    if (c->most_step_ns && step_ns > c->most_step_ns) return;
    if (llabs(off) <= c->step_ns / 3) {
        c->odd = 0;
        c->steps++;
        c->step_ns += off / (c->steps < LIKE_STEPS ? c->steps : LIKE_STEPS);
        if (c->steps >= NEED_STEPS) c->period_ns = c->step_ns;
    } else if (!c->steps || ++c->odd >= MOST_ODD) {
        c->step_ns = step_ns;
        c->steps = 1;
        c->odd = 0;
    }
}

/* A publication lay in (from, to]: predicts the next one.  A single displaced publication says
 * little of the next, so the prediction follows by half; one that was placed more precisely than
 * the last is followed at once. */
static void predict(struct ipw_poll_rate_channel *c, int64_t from_ns, int64_t to_ns)
{
    int64_t blur_ns = (to_ns - from_ns) / 2, middle = from_ns + blur_ns;
    int64_t off = clamp(c->due_ns, from_ns, to_ns) - c->due_ns;
    int64_t early = c->due_ns - (blur_ns <= CLOSE_NS ? middle : to_ns);
    bool wide = 2 * blur_ns > c->period_ns / 3;

    if (c->due_ns && llabs(off) <= c->period_ns / 3 && c->blur_ns <= 2 * blur_ns) {
        c->early_ns = clamp(fading(c->early_ns, wide ? early * 3 / 2 : early), 0, c->period_ns / 3);
        c->due_ns += off / 2;
    } else {
        c->due_ns = middle;
    }
    c->due_ns += c->period_ns;
    c->blur_ns = blur_ns;
}

static void push_value(struct ipw_poll_rate_channel *c, int64_t t_ns, int64_t value)
{
    int64_t from = c->read_ns, edge = from + (t_ns - from) / 2;
    bool moved = from && value != c->value;

    if (value == IPW_NO_VALUE) return;
    c->read_ns = t_ns;
    c->value = value;
    c->moved = moved ? c->moved + 1 : 0;
    c->still = moved ? 0 : c->still + (from != 0);
    if (!moved) {
        if (t_ns > c->due_ns + c->period_ns) c->due_ns = 0; /* it stands still */
        return;
    }
    c->moved_ns = t_ns;
    if (c->due_ns && t_ns - from > c->period_ns / 3) {
        c->change_ns = 0; /* it came in an interval too long to tell when */
        if ((c->due_ns <= from || t_ns < c->due_ns) && ++c->odd >= MOST_ODD)
            c->steps = c->odd = 0; /* no prediction before the period is known again */
    } else {
        if (c->change_ns) learn_step(c, edge - c->change_ns);
        c->change_ns = edge;
    }
    if (c->steps >= NEED_STEPS)
        predict(c, from, t_ns);
    else
        c->due_ns = c->early_ns = 0;
}

static int64_t longest(const struct ipw_poll_rate *p)
{
    return p->base_ns > SLOWEST_NS ? p->base_ns : SLOWEST_NS;
}

/* The fastest channel decides: readings near its publications suit the others, too. */
static void judge(struct ipw_poll_rate *p, int64_t t_ns)
{
    int64_t period = 0;
    unsigned moved = 0, still = UINT32_MAX;

    for (size_t i = 0; i < p->n; i++) {
        const struct ipw_poll_rate_channel *c = &p->channels[i];

        if (c->moved > moved) moved = c->moved;
        if (c->read_ns && c->still < still) still = c->still;
        if (c->period_ns && (!period || c->period_ns < period)) period = c->period_ns;
    }
    if (t_ns >= p->learn_until_ns && (p->fast ? still >= NEED_REPEATS && still != UINT32_MAX
                                              : moved >= NEED_MOVES && p->poll_ns <= p->least_ns)) {
        p->fast = !p->fast; /* at least as fast as we read; or it has become slow: learn again */
        for (size_t i = 0; i < p->n; i++)
            p->channels[i] = (struct ipw_poll_rate_channel){
                .at = p->channels[i].at, .most_step_ns = p->channels[i].most_step_ns};
        period = 0;
    }
    p->period_ns = period;
    if (t_ns < p->learn_until_ns) return;
    p->poll_ns = p->base_ns; /* no usable change: fast, stuck, or a steady gauge */
    if (period && !p->fast) p->poll_ns = clamp(period / 5, p->least_ns, longest(p));
}

/* The distance of even polls.  It is not a divisor of the period: otherwise readings would meet
 * each publication at the same phase. */
static int64_t even(const struct ipw_poll_rate *p)
{
    return p->period_ns > p->poll_ns ? p->poll_ns + p->poll_ns / 20 : p->poll_ns;
}

void ipw_poll_rate_push(struct ipw_poll_rate *p, int64_t t_ns, const int64_t *values)
{
    if (p->read_ns != INT64_MIN && t_ns > p->read_ns)
        p->allowance_ns = clamp(p->allowance_ns + (t_ns - p->read_ns) - even(p),
                                -ALLOWED * p->poll_ns, ALLOWED * p->poll_ns);
    /* A busy machine wakes the reader late, so open the windows that much earlier. */
    if (p->planned_ns)
        p->late_ns = clamp(fading(p->late_ns, t_ns - p->planned_ns), 0, p->period_ns / 5);
    p->planned_ns = 0;
    p->read_ns = t_ns;
    for (size_t i = 0; i < p->n; i++) push_value(&p->channels[i], t_ns, values[p->channels[i].at]);
    if (p->n) judge(p, t_ns);
}

int64_t ipw_poll_rate_rest(const struct ipw_poll_rate *p)
{
    return p->period_ns && !p->fast && p->allowance_ns < 0 ? even(p) + even(p) / 4 : 0;
}

/* The distance of readings in a window, by what is left of the allowance. */
static int64_t spacing(const struct ipw_poll_rate *p, int64_t even_ns)
{
    int64_t close = CLOSE_NS > 2 * p->took_ns ? CLOSE_NS : 2 * p->took_ns;
    int64_t plenty = PLENTY * p->poll_ns, lacks = plenty - p->allowance_ns;

    if (p->allowance_ns < 0) return even_ns + even_ns / 4; /* pay back */
    if (close >= even_ns || lacks <= 0) return close;
    return close + (int64_t)((double)(even_ns - close) * (double)lacks / (double)plenty);
}

static int64_t next_by_prediction(const struct ipw_poll_rate *p)
{
    int64_t t = p->read_ns, next = t + longest(p), even_ns = even(p), close = spacing(p, even_ns);
    bool predicted = false;

    for (size_t i = 0; i < p->n; i++) {
        const struct ipw_poll_rate_channel *c = &p->channels[i];
        int64_t lead = c->early_ns > c->blur_ns ? c->early_ns : c->blur_ns, w;

        if (!c->due_ns && c->moved_ns && t - c->moved_ns < SEEK_NS) return t + even_ns;
        if (!c->due_ns) continue;
        predicted = true;
        lead += lead / 8 + CLOSE_NS / 2;
        w = c->due_ns - (lead > LEAD_NS ? lead : LEAD_NS) - p->late_ns;
        /* After the predicted instant readings become rarer. */
        if (w < t + close)
            w = t + clamp((t - c->due_ns) / 2, close, close > even_ns ? close : even_ns);
        if (w < next) next = w;
    }
    return predicted ? next : t + even_ns;
}

int64_t ipw_poll_rate_next(struct ipw_poll_rate *p, int64_t now_ns)
{
    int64_t next, took;

    if (p->n == 0 || p->read_ns == INT64_MIN) /* missed ticks are not made up for */
        return p->start_ns + ((now_ns - p->start_ns) / p->poll_ns + 1) * p->poll_ns;
    took = now_ns > p->read_ns ? 2 * (now_ns - p->read_ns) : 0;
    /* The recent minimum.  It creeps up, so that it follows a driver that became slower. */
    if (p->took_ns && took > p->took_ns + p->took_ns / 16) took = p->took_ns + p->took_ns / 16;
    p->took_ns = took + 1;
    if (p->fast || !p->period_ns || p->read_ns < p->learn_until_ns)
        next = p->read_ns + p->poll_ns;
    else
        next = next_by_prediction(p);
    p->planned_ns = next - now_ns > p->took_ns ? next : now_ns + p->took_ns;
    return p->planned_ns;
}
