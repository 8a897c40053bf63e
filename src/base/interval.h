/* base/interval.h: 95 % intervals of means, proportions and ratios, over clusters.
 *
 * Observations that are alike (repeats of one task) are one cluster (base/stats.h), so that repeats
 * do not count as new tasks.  Below 3 clusters there is no interval.  Below 20, the interval of a
 * mean is Student's t times the cluster-robust standard error; from 20 on it is the percentile
 * bootstrap over clusters (seeded, 2000 resamples).  A proportion always has Wilson's interval.  A
 * ratio is bootstrapped, or has no interval: where 2.5 % of the resamples have nothing to divide
 * by, as with few correct answers, it has no upper limit.
 *
 * Clusters are rows of two columns, which the caller fills and releases. */
#ifndef IPW_BASE_INTERVAL_H
#define IPW_BASE_INTERVAL_H

#include <stdint.h>

#include "base/columns.h"
#include "base/stats.h"

#define IPW_INTERVAL_SEED 20
enum { IPW_INTERVAL_RESAMPLES = 2000 };

struct ipw_interval {
    double mean, min, max; /* min, max: of the clusters' means; NAN: no value */
    double lo, hi;         /* NAN: no interval */
    size_t n;
    const char *method; /* "t", "bootstrap", "wilson", "none" */
};

enum ipw_interval_kind {
    IPW_INTERVAL_MEAN,
    IPW_INTERVAL_SHARE, /* observations are 0 or 1 */
    IPW_INTERVAL_RATIO, /* the clusters' sum / their n, of any two quantities */
};

extern const char *const ipw_interval_kinds[]; /* "mean", "share", "ratio", NULL */

struct ipw_interval_sample {
    enum ipw_interval_kind kind;
    struct ipw_columns clusters; /* of struct ipw_stats_cluster */
    struct ipw_interval out;
};
/* Fills `out` of all samples.  Samples with equally many clusters use the same draws. */
void ipw_interval_make(struct ipw_interval_sample *samples, size_t count, uint64_t seed);

/* The next of a sequence of numbers from 0 to n - 1 (n > 0), which is the same on every machine.
 * *state starts as a seed that is not 0. */
uint32_t ipw_interval_draw(uint64_t *state, size_t n);

#endif
