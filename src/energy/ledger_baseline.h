/* energy/ledger_baseline.h: what a device draws when it is left alone, and whether its sensors
 * agree.  Pure: functions over series (reference/energy.md 2e and 2c).
 *
 * The baseline is the median power of the steps of a quiet window, weighted by their length (a
 * minimum drifts with the window, a mean takes in what disturbs it).  It is taken before and after
 * a run; net energy is gross less baseline times time, may be negative, and is withheld when the
 * two baselines differ by more than both 2 W and 10 %. */
#ifndef IPW_ENERGY_LEDGER_BASELINE_H
#define IPW_ENERGY_LEDGER_BASELINE_H

#include "energy/attribution.h"

struct ipw_baseline {
    bool known;
    double w;
    double seconds;     /* inside samples */
    const char *reason; /* static text, when not known */
};

/* Of one series; of the sum of a domain's.  "no_sensor", "no_samples", "not_covered": less than
 * nine tenths of the window are inside unbroken chains, or less than three steps. */
struct ipw_baseline ipw_series_baseline(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns);
struct ipw_baseline ipw_ledger_baseline(const struct ipw_ledger *l, enum ipw_domain domain,
                                        int64_t t0_ns, int64_t t1_ns);

struct ipw_idle_verdict {
    bool usable;
    double w;           /* the mean of both; of the one that is known */
    double drift_w;     /* after - before; NAN when one is not known */
    const char *reason; /* static text, when not usable: "baseline_drift", or why not known */
};
/* `after` may be NULL: none was taken. */
struct ipw_idle_verdict ipw_baseline_judge(const struct ipw_baseline *before,
                                           const struct ipw_baseline *after);

/* Gross less the verdict's watts over `seconds`: not clamped; unknown, with the reason, when gross
 * is or the verdict does not stand.  Bounds move along. */
struct ipw_figure ipw_baseline_net(const struct ipw_figure *gross,
                                   const struct ipw_idle_verdict *verdict, double seconds);

/* Energy of a counter over that of a gauge of the same device in a window; false when it is under
 * 10 s or one of them does not know.  More than 5 % off 1: one of them is wrong (2c). */
bool ipw_series_ratio(const struct ipw_series *counter, const struct ipw_series *gauge,
                      int64_t t0_ns, int64_t t1_ns, double *ratio, bool *suspicious);
/* The same for the counters of a ledger that have a gauge beside them: the ratio that is furthest
 * from 1.  False when there is none. */
bool ipw_ledger_ratio(const struct ipw_ledger *l, enum ipw_domain domain, int64_t t0_ns,
                      int64_t t1_ns, double *ratio, bool *suspicious);

#endif
