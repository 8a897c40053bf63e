/* A device's probable power where its counter is silent: see ledger/series.h. */
#include "base/clock.h"
#include "ledger/series.h"

/* Mean power over the part of [t0, t1] that chains cover; false if there is none. */
static bool drawn(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns, double *watts)
{
    double peak;

    return ipw_series_power(s, t0_ns, t1_ns, watts, &peak);
}

bool ipw_series_guess(const struct ipw_series *s, const struct ipw_series *gauge, int64_t t0_ns,
                      int64_t t1_ns, double *watts, const char **by)
{
    int64_t end_ns = s->n ? s->last.t_ns : INT64_MIN;

    if (s->doubt || t1_ns <= t0_ns) return false;
    if (gauge && ipw_series_between(gauge, t0_ns, t1_ns, IPW_NS_PER_S).known &&
        drawn(gauge, t0_ns, t1_ns, watts)) {
        *by = "gauge";
        return true;
    }
    *by = "last_power";
    if (!s->n) return false;
    if (drawn(s, t0_ns, t1_ns, watts)) return true;
    for (size_t i = s->n_gaps; i-- > 0;) { /* the window lies in a break */
        if (s->gaps[i].from_ns <= t0_ns && t1_ns <= s->gaps[i].to_ns) end_ns = s->gaps[i].from_ns;
    }
    return end_ns <= t0_ns && drawn(s, end_ns - IPW_NS_PER_S, end_ns, watts);
}
