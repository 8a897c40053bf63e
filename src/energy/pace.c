#include "energy/pace.h"

#include <string.h>

#include "base/clock.h"

#define LEARN_POLL_NS (5 * IPW_NS_PER_MS)
#define LEARN_NS      IPW_NS_PER_S
#define SLOWEST_NS    (500 * IPW_NS_PER_MS)
#define NEED_STEPS    5 /* before a median is believed */
#define NEED_MOVES    8 /* readings that all moved: it is faster than we look */
#define NEED_REPEATS  4 /* out of place in something fast */

/* Counters tell more than gauges, which may stand still because the power does. */
static void choose_channels(struct ipw_pace *p, const struct ipw_source *s)
{
    static const enum ipw_channel_kind kinds[] = {IPW_CHANNEL_COUNTER, IPW_CHANNEL_GAUGE};

    for (int k = 0; k < 2 && p->n == 0; k++) {
        for (size_t i = 0; i < s->n_channels && p->n < IPW_PACE_CHANNELS; i++) {
            const struct ipw_channel *c = &s->channels[i];

            if (c->kind != kinds[k]) continue;
            if (c->remote || (c->period_ns > 0 && c->period_ns <= LEARN_POLL_NS)) {
                p->n = 0;
                return;
            }
            p->channels[p->n++].at = i;
        }
    }
}

void ipw_pace_init(struct ipw_pace *p, const struct ipw_source *source, int64_t interval_ns,
                   bool adapt, int64_t now_ns)
{
    int64_t least = source->period_ns;

    *p = (struct ipw_pace){.base_ns = interval_ns > least ? interval_ns : least, .least_ns = least};
    p->poll_ns = p->base_ns;
    if (!adapt || least >= 200 * IPW_NS_PER_MS) return;
    choose_channels(p, source);
    if (p->n == 0) return;
    p->learn_ns = LEARN_POLL_NS;
    p->learn_until_ns = now_ns + LEARN_NS;
    p->poll_ns = p->learn_ns;
}

static int64_t median(const int64_t *steps, unsigned n)
{
    int64_t sorted[IPW_PACE_STEPS];

    for (unsigned i = 0; i < n; i++) {
        unsigned k = i;
        for (; k > 0 && sorted[k - 1] > steps[i]; k--) sorted[k] = sorted[k - 1];
        sorted[k] = steps[i];
    }
    return sorted[n / 2];
}

static void forget_steps(struct ipw_pace *p)
{
    for (size_t i = 0; i < p->n; i++) {
        p->channels[i].n_steps = 0;
        p->channels[i].moved = p->channels[i].still = 0;
        p->channels[i].change_ns = 0;
    }
}

static void push_channel(struct ipw_pace_channel *c, int64_t t_ns, int64_t value)
{
    if (value == IPW_NO_VALUE) return;
    if (!c->seen || value == c->value) {
        if (c->seen) c->still++;
        if (c->still >= 1) c->moved = 0;
        c->value = value;
        c->seen = true;
        return;
    }
    if (c->change_ns) {
        if (c->n_steps == IPW_PACE_STEPS) {
            memmove(c->steps, c->steps + 1, (IPW_PACE_STEPS - 1) * sizeof *c->steps);
            c->n_steps--;
        }
        c->steps[c->n_steps++] = t_ns - c->change_ns;
    }
    c->value = value;
    c->change_ns = t_ns;
    c->still = 0;
    c->moved++;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

/* Of all channels the quickest counts: what is between its edges is between the others' too. */
static void judge(struct ipw_pace *p, int64_t t_ns)
{
    int64_t period = 0, floor = t_ns < p->learn_until_ns ? p->learn_ns : p->least_ns;
    unsigned moved = 0, still = UINT32_MAX;

    if (floor < p->learn_ns) floor = p->learn_ns;
    for (size_t i = 0; i < p->n; i++) {
        const struct ipw_pace_channel *c = &p->channels[i];

        if (c->moved > moved) moved = c->moved;
        if (c->seen && c->still < still) still = c->still;
        if (c->n_steps >= NEED_STEPS) {
            int64_t m = median(c->steps, c->n_steps);
            if (!period || m < period) period = m;
        }
    }
    if (p->fast) {
        if (still < NEED_REPEATS || still == UINT32_MAX) return;
        p->fast = false; /* it has become slow: learn anew */
        p->period_ns = 0;
        p->poll_ns = floor;
        forget_steps(p);
        return;
    }
    if (moved >= NEED_MOVES) { /* at least as fast as we look */
        p->period_ns = p->poll_ns;
        if (p->poll_ns > floor) {
            p->poll_ns = clamp(p->poll_ns / 2, floor, p->poll_ns);
        } else if (t_ns >= p->learn_until_ns || floor == p->learn_ns) {
            p->fast = true;
            p->poll_ns = p->base_ns;
        }
        forget_steps(p);
        return;
    }
    if (period) p->period_ns = period;
    if (t_ns < p->learn_until_ns) return;
    if (p->period_ns)
        p->poll_ns =
            clamp(p->period_ns / 5, floor, p->base_ns > SLOWEST_NS ? p->base_ns : SLOWEST_NS);
    else
        p->poll_ns = p->base_ns; /* not one change worth a word: stuck, or a steady gauge */
}

void ipw_pace_push(struct ipw_pace *p, int64_t t_ns, const int64_t *values)
{
    if (p->n == 0) return;
    for (size_t i = 0; i < p->n; i++)
        push_channel(&p->channels[i], t_ns, values[p->channels[i].at]);
    judge(p, t_ns);
}
