#include "llm/adaptive.h"

#include <stddef.h>

enum { FIRST_PATIENCE = 8, MOST_PATIENCE = 256 };

static const double BUSY_FACTOR = 0.7, SLOW_FACTOR = 0.85;
static const double RISEN = 2.0;              /* times the best round's */
static const double RISEN_AT_LEAST_NS = 20e6; /* ignores the noise of fast servers */
static const double EASED = 0.95; /* a back-off has helped if the time falls below this share */

static int whole(double limit) { return (int)(limit + 1e-9); }

void ipw_adaptive_init(struct ipw_adaptive *a, int start, int most)
{
    if (most < 1) most = 1;
    if (start < 1) start = 1;
    *a = (struct ipw_adaptive){.limit = start < most ? start : most,
                               .most = most,
                               .slow_start = true,
                               .patience = FIRST_PATIENCE};
    a->round_left = whole(a->limit);
}

int ipw_adaptive_limit(const struct ipw_adaptive *a) { return whole(a->limit); }

static void begin_round(struct ipw_adaptive *a)
{
    a->round_left = whole(a->limit);
    a->round_ttft_ns = 0;
    a->round_n = 0;
}

/* Lowers the limit.  Requests already in flight do not show the effect, so they are ignored. */
static void back_off(struct ipw_adaptive *a, double to, int64_t t_ns)
{
    a->limit = to < 1 ? 1 : to;
    a->slow_start = false;
    a->ignore_before_ns = t_ns;
    a->rounds = 0;
    begin_round(a);
}

static void busy(struct ipw_adaptive *a, const struct ipw_adaptive_sample *s)
{
    int limit = whole(a->limit), at = s->in_flight < limit ? s->in_flight : limit;

    if (at < 1) at = 1;
    if (a->ceiling && a->patience < MOST_PATIENCE) a->patience *= 2; /* the ceiling still holds */
    a->ceiling = at;
    back_off(a, (double)whole((double)at * BUSY_FACTOR), s->t_ns);
}

/* The highest limit that growth can reach now. */
static double bound(const struct ipw_adaptive *a)
{
    double most = a->most;

    if (a->ceiling && a->ceiling - 1 < most) most = a->ceiling - 1;
    return most < 1 ? 1 : most;
}

static bool has_risen(const struct ipw_adaptive *a)
{
    return a->best_ttft_ns > 0 && a->round_ttft_ns > RISEN * a->best_ttft_ns &&
           a->round_ttft_ns > a->best_ttft_ns + RISEN_AT_LEAST_NS;
}

/* Ends a full round of good answers: judges its times, then begins the next round. */
static const char *end_round(struct ipw_adaptive *a, int64_t t_ns)
{
    const char *reason = NULL;

    if (a->eased_from_ns > 0 && a->round_n > 0) {
        /* Fewer in flight but hardly faster: the requests changed, our load is not the cause. */
        if (a->round_ttft_ns > EASED * a->eased_from_ns) a->best_ttft_ns = a->round_ttft_ns;
        a->eased_from_ns = 0;
    }
    if (a->round_n > 0 && has_risen(a)) {
        a->eased_from_ns = a->round_ttft_ns;
        back_off(a, a->limit * SLOW_FACTOR, t_ns);
        return "ttft";
    }
    if (a->round_n > 0 && (a->best_ttft_ns <= 0 || a->round_ttft_ns < a->best_ttft_ns))
        a->best_ttft_ns = a->round_ttft_ns;
    if (a->ceiling && whole(a->limit) >= whole(bound(a)) && ++a->rounds >= a->patience) {
        a->ceiling++; /* try the number that was refused */
        a->rounds = 0;
        reason = "probe";
    }
    begin_round(a);
    return reason;
}

static const char *good(struct ipw_adaptive *a, const struct ipw_adaptive_sample *s)
{
    const char *reason = a->slow_start ? "slow_start" : "growth", *said = NULL;
    double step = a->slow_start ? 1 : 1 / a->limit;

    if (s->ttft_ns > 0) {
        a->round_n++;
        a->round_ttft_ns += ((double)s->ttft_ns - a->round_ttft_ns) / a->round_n;
    }
    /* Slow start doubles the limit each round, so one answer far too late ends it at once. */
    if (a->slow_start && a->best_ttft_ns > 0 && (double)s->ttft_ns > RISEN * a->best_ttft_ns &&
        (double)s->ttft_ns > a->best_ttft_ns + RISEN_AT_LEAST_NS) {
        a->round_left = 0;
        a->round_ttft_ns = (double)s->ttft_ns;
    }
    if (--a->round_left <= 0) said = end_round(a, s->t_ns);
    if (said && said[0] == 't') return said;
    /* A limit that was not reached has proved nothing. */
    if (s->in_flight < whole(a->limit)) return reason;
    if (a->limit + step > bound(a)) step = bound(a) > a->limit ? bound(a) - a->limit : 0;
    a->limit += step;
    return said ? said : reason;
}

bool ipw_adaptive_sample(struct ipw_adaptive *a, const struct ipw_adaptive_sample *s,
                         struct ipw_adaptive_change *change)
{
    int from = whole(a->limit);
    const char *reason = "429";

    if (s->seen == IPW_ADAPTIVE_OTHER || s->sent_ns < a->ignore_before_ns) return false;
    if (s->seen == IPW_ADAPTIVE_BUSY)
        busy(a, s);
    else
        reason = good(a, s);
    if (whole(a->limit) == from) return false;
    *change = (struct ipw_adaptive_change){from, whole(a->limit), reason};
    return true;
}
