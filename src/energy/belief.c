#include "energy/belief.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define KEPT_NS    (10 * IPW_NS_PER_MS) /* a longer period is the driver's own */
#define UNKNOWN_NS (1200 * IPW_NS_PER_MS)
#define LEAST_NS   (250 * IPW_NS_PER_MS)
#define MOST_NS    (5 * IPW_NS_PER_S)

int64_t ipw_belief_watch_ns(const struct ipw_channel *c)
{
    int64_t need = 6 * c->period_ns; /* five whole periods, and the rest of the current one */

    if (c->kind != IPW_CHANNEL_COUNTER) return 0;
    if (c->period_ns < KEPT_NS) return UNKNOWN_NS;
    return need < LEAST_NS ? LEAST_NS : need > MOST_NS ? MOST_NS : need;
}

static void doubt(struct ipw_belief *b, enum ipw_doubt doubt, const char *reason)
{
    b->believed = false;
    b->doubt = doubt;
    b->reason = reason;
}

struct ipw_belief ipw_belief_of(const struct ipw_selftest *t, size_t channel)
{
    struct ipw_selftest_verdict v = ipw_selftest_verdict(t, channel);
    struct ipw_belief b = {.believed = true};

    if (v.state == IPW_SELFTEST_UNREAD) {
        doubt(&b, IPW_DOUBT_UNREAD, "no_samples");
        snprintf(b.words, sizeof b.words, "cannot be read");
    } else if (v.frozen && v.gauge) {
        doubt(&b, IPW_DOUBT_STUCK_GAUGE, "stuck");
        snprintf(b.words, sizeof b.words, "stuck: its counter says otherwise");
    } else if (v.frozen) {
        doubt(&b, IPW_DOUBT_FROZEN, "stuck");
        snprintf(b.words, sizeof b.words, "does not move while power is drawn: not believed");
    } else if (v.asleep) {
        snprintf(b.words, sizeof b.words, "asleep");
    } else if (v.state == IPW_SELFTEST_STUCK) {
        doubt(&b, IPW_DOUBT_STUCK, "stuck");
        snprintf(b.words, sizeof b.words, "does not move: not believed");
    } else if (v.disagrees) {
        snprintf(b.words, sizeof b.words, "counter %+.0f %% against its gauge",
                 (v.ratio - 1) * 100);
    } else if (v.failed > 0) {
        snprintf(b.words, sizeof b.words, "%lld of %lld reads failed", (long long)v.failed,
                 (long long)(v.failed + v.reads));
    } else if (v.state != IPW_SELFTEST_SHORT) {
        snprintf(b.words, sizeof b.words, "ok");
    }
    return b;
}

enum ipw_doubt ipw_belief_saved(const char *state, bool frozen)
{
    if (frozen) return IPW_DOUBT_FROZEN;
    if (!strcmp(state, ipw_selftest_state_name(IPW_SELFTEST_STUCK))) return IPW_DOUBT_STUCK;
    if (!strcmp(state, ipw_selftest_state_name(IPW_SELFTEST_UNREAD))) return IPW_DOUBT_UNREAD;
    return IPW_DOUBT_NONE;
}

const char *ipw_belief_doubtful(struct ipw_belief *out, const struct ipw_selftest *t,
                                const struct ipw_source_set *set, enum ipw_domain domain)
{
    for (size_t i = 0; i < set->n_channels; i++) {
        if (!set->channels[i].in_sum || set->channels[i].domain != domain) continue;
        *out = ipw_belief_of(t, i);
        if (!out->believed) return set->channels[i].name;
    }
    return NULL;
}

const char *ipw_belief_reason_words(const char *reason)
{
    static const struct {
        const char *reason, *words;
    } rows[] = {
        {"stuck", "the counter does not move"},
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
