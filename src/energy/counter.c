#include "energy/counter.h"

#include "base/clock.h"

#define LEAST_STALE_NS (100 * IPW_NS_PER_MS) /* how old a published value may be, at least */
#define STRETCH_NS     (500 * IPW_NS_PER_MS)
#define LOST_PART      0.1 /* of the least power seen elsewhere */

const char *ipw_counter_reason(enum ipw_counter_fault fault)
{
    static const char *const reasons[] = {"", "counter_reset", "implausible_step", "gap_too_long",
                                          "stuck"};

    return reasons[fault];
}

void ipw_counter_begin(struct ipw_counter *c, int64_t t_ns, int64_t value)
{
    *c = (struct ipw_counter){.t_ns = t_ns, .raw = value, .moved_ns = t_ns, .stretch_ns = t_ns};
}

/* The energy of the step from one reading to the next.  Since `moved_ns` the counter has not been
 * seen to move. */
static enum ipw_counter_fault step_of(const struct ipw_channel *channel, int64_t moves_ns,
                                      int64_t from_ns, int64_t from_raw, int64_t moved_ns,
                                      int64_t t_ns, int64_t value, int64_t *step_uj)
{
    int64_t modulus = channel->modulus_uj;
    double max_w = (double)(channel->max_w > 0 ? channel->max_w : IPW_COUNTER_DEFAULT_W);
    int64_t stale = moves_ns > LEAST_STALE_NS ? moves_ns : LEAST_STALE_NS;
    double reach_ns = 1.3 * (double)(t_ns - moved_ns) + 1.5 * (double)stale;
    double limit_uj = max_w * reach_ns / 1e3; /* W * ns = nJ */
    int64_t step = value - from_raw;

    /* Such a long silence may hide a full turn of the register, so any difference is a guess. */
    if (modulus > 0 && max_w * (double)(t_ns - from_ns) / 1e3 > (double)modulus / 2)
        return IPW_COUNTER_TOO_LONG;
    if (step < 0) {
        if (modulus <= 0) return IPW_COUNTER_RESET;
        step += modulus;
        if ((double)step > limit_uj) return IPW_COUNTER_RESET;
    } else if ((double)step > limit_uj) {
        return IPW_COUNTER_JUMPED;
    }
    *step_uj = step;
    return IPW_COUNTER_SOUND;
}

/* After a silence: does the step lack what the device must have used meanwhile?  The time since the
 * last repeat may have been at the most power seen. */
static bool lost_a_silence(const struct ipw_counter *c, int64_t quiet_ns, int64_t t_ns,
                           int64_t step_uj)
{
    double silent_ns = (double)(c->t_ns - c->moved_ns);
    double since_uj = c->most_w * (double)(t_ns - c->t_ns) / 1e3;

    return quiet_ns > 0 && step_uj > 0 && silent_ns > (double)quiet_ns &&
           (double)step_uj - since_uj < LOST_PART * c->least_w * silent_ns / 1e3;
}

static void learn_power(struct ipw_counter *c, int64_t t_ns, int64_t step_uj)
{
    double w;

    c->stretch_uj += step_uj;
    if (step_uj <= 0 || t_ns - c->stretch_ns < STRETCH_NS) return;
    w = (double)c->stretch_uj * 1e3 / (double)(t_ns - c->stretch_ns); /* uJ / ns = kW */
    if (c->most_w <= 0 || w < c->least_w) c->least_w = w;
    if (w > c->most_w) c->most_w = w;
    c->stretch_ns = t_ns;
    c->stretch_uj = 0;
}

static void take_reading(struct ipw_counter *c, int64_t t_ns, int64_t value, int64_t step_uj)
{
    learn_power(c, t_ns, step_uj);
    if (value != c->raw) c->moved_ns = t_ns;
    c->t_ns = t_ns;
    c->raw = value;
    c->suspect = IPW_COUNTER_SOUND;
}

static enum ipw_counter_taken begin_anew(struct ipw_counter *c, enum ipw_counter_fault why,
                                         int64_t begin_ns, int64_t begin_raw)
{
    c->broken = why;
    c->t_ns = c->moved_ns = c->begin_ns = c->stretch_ns = begin_ns;
    c->raw = c->begin_raw = begin_raw;
    c->stretch_uj = 0;
    c->suspect = IPW_COUNTER_SOUND;
    return IPW_COUNTER_ANEW;
}

enum ipw_counter_taken ipw_counter_take(struct ipw_counter *c, const struct ipw_channel *channel,
                                        int64_t moves_ns, int64_t quiet_ns, int64_t t_ns,
                                        int64_t value, int64_t *step_uj)
{
    enum ipw_counter_fault fault;

    *step_uj = 0;
    fault = step_of(channel, moves_ns, c->t_ns, c->raw, c->moved_ns, t_ns, value, step_uj);
    if (!fault && lost_a_silence(c, quiet_ns, t_ns, *step_uj)) {
        *step_uj = 0;
        return begin_anew(c, IPW_COUNTER_LOST, t_ns, value);
    }
    if (!fault) {
        take_reading(c, t_ns, value, *step_uj);
        return IPW_COUNTER_STEP;
    }
    /* Two readings agree with each other but not with earlier ones: the step really happened. */
    if (c->suspect && !step_of(channel, moves_ns, c->suspect_ns, c->suspect_raw, c->suspect_ns,
                               t_ns, value, step_uj)) {
        begin_anew(c, c->suspect, c->suspect_ns, c->suspect_raw);
        take_reading(c, t_ns, value, *step_uj);
        return IPW_COUNTER_ANEW;
    }
    if (fault == IPW_COUNTER_TOO_LONG) return begin_anew(c, fault, t_ns, value);
    c->suspect = fault;
    c->suspect_ns = t_ns;
    c->suspect_raw = value;
    return IPW_COUNTER_SUSPECT;
}
