#include "ledger/lag.h"

#include "base/clock.h"

#define FIRST_LOOK 24 /* steps before the first estimate */
/* The best fit must explain this many times the noise of one step more than no delay does. */
#define CLEARLY 6.0

static const int delays_ms[IPW_LAG_DELAYS] = {0, 3, 6, 9, 12, 16, 20, 25, 30, 36, 43, 50};

void ipw_lag_init(struct ipw_lag *lag, double most_w)
{
    *lag = (struct ipw_lag){.judge_at = FIRST_LOOK};
    for (size_t i = 0; i < IPW_LAG_DELAYS; i++) lag->fits[i].most_w = most_w;
}

void ipw_lag_add(struct ipw_lag *lag, const struct ipw_phase_line *line, int64_t t0_ns,
                 int64_t t1_ns, int64_t uj)
{
    for (size_t i = 0; i < (lag->learns ? IPW_LAG_DELAYS : 1); i++) {
        int64_t delay_ns = delays_ms[i] * IPW_NS_PER_MS;

        ipw_phase_fit_add(&lag->fits[i], line, t0_ns - delay_ns, t1_ns - delay_ns, uj);
    }
}

/* The minimum of the parabola through three points, limited to their range. */
static double least_of(const double *x, const double *y)
{
    double d1 = (y[1] - y[0]) / (x[1] - x[0]), d2 = (y[2] - y[1]) / (x[2] - x[1]);
    double bend = (d2 - d1) / (x[2] - x[0]), at;

    if (!(bend > 0)) return x[1];
    at = (x[0] + x[1]) / 2 - d1 / (2 * bend);
    return at < x[0] ? x[0] : at > x[2] ? x[2] : at;
}

static void judge(struct ipw_lag *lag)
{
    double rest[IPW_LAG_DELAYS], x[3], y[3], noise;
    size_t best = 0, from;

    for (size_t i = 0; i < IPW_LAG_DELAYS; i++) {
        ipw_phase_fit_solve(&lag->fits[i]);
        rest[i] = ipw_phase_fit_rest(&lag->fits[i]);
        if (rest[i] < rest[best]) best = i;
    }
    noise = rest[best] / (double)lag->fits[0].steps;
    lag->best = 0;
    lag->lag_ns = lag->doubt_ns = 0;
    if (best == 0 || !(rest[0] - rest[best] > CLEARLY * noise)) return;
    from = best + 1 < IPW_LAG_DELAYS ? best - 1 : best - 2;
    for (size_t i = 0; i < 3; i++) {
        x[i] = delays_ms[from + i];
        y[i] = rest[from + i];
    }
    lag->lag_ns = (int64_t)(least_of(x, y) * IPW_NS_PER_MS);
    if (lag->lag_ns > IPW_LAG_MOST_NS) {
        lag->doubt_ns = lag->lag_ns * 5 / 4;
        lag->lag_ns = 0;
    } else {
        lag->best = best;
    }
}

void ipw_lag_solve(struct ipw_lag *lag)
{
    if (lag->learns && lag->fits[0].steps >= lag->judge_at) {
        judge(lag);
        lag->judge_at = lag->fits[0].steps + lag->fits[0].steps / 4;
    }
    ipw_phase_fit_solve(&lag->fits[lag->best]);
}

const struct ipw_phase_fit *ipw_lag_fit(const struct ipw_lag *lag) { return &lag->fits[lag->best]; }
