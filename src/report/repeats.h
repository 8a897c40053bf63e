/* report/repeats.h: how sure a run's means are.
 *
 * Queries of one task (one id; --epochs repeats it) are one cluster, so that repeats do not pass for
 * new tasks.  A mean is over all queries; its interval is over tasks.  With fewer than three tasks and
 * at least three epochs the clusters are epochs.  95 %: Student's t times the cluster-robust standard
 * error (report/stats.h) below 20 clusters, the percentile bootstrap over clusters from 20 on (seeded,
 * 2000 resamples), none below 3.  The accuracy is a proportion and has Wilson's interval throughout.
 * Ratios (accuracy per joule, per watt) are bootstrapped over clusters, or have no interval.
 *
 * Clusters lie in spills.  A resample of more of them than one block holds (8192) is drawn in two steps,
 * which gives the same distribution: how often each block's turn comes, then which clusters of it. */
#ifndef IPW_REPORT_REPEATS_H
#define IPW_REPORT_REPEATS_H

#include "json/write.h"
#include "report/summary.h"

#define IPW_REPEATS_SEED 20

struct ipw_interval {
    double mean, min, max; /* min, max: of the clusters' means; NAN: no value */
    double lo, hi;         /* NAN: no interval */
    size_t n;
    const char *method; /* "t", "bootstrap", "wilson", "none" */
};

/* Of independent values, none of them NAN. */
struct ipw_interval ipw_interval_of(const double *values, size_t n);

enum ipw_repeat_metric {
    IPW_REPEAT_ACCURACY,
    IPW_REPEAT_CPU_J,
    IPW_REPEAT_GPU_J,
    IPW_REPEAT_IPJ,
    IPW_REPEAT_IPW,
    IPW_REPEAT_JOULES, /* over the summary's basis */
    IPW_REPEAT_OUTPUT_TOKENS,
    IPW_REPEAT_TURNS,
    IPW_REPEAT_WALL_S,
    IPW_REPEAT_METRICS,
};

struct ipw_repeats {
    size_t tasks, epochs;
    const char *by; /* "task" or "epoch" */
    struct ipw_interval metrics[IPW_REPEAT_METRICS];
};
void ipw_repeats_of(struct ipw_repeats *out, const struct ipw_summary *s);
/* How many epochs the rows are of, without the rest. */
size_t ipw_repeats_epochs(const struct ipw_summary *s);
/* The value of summary.json's key "repeats". */
void ipw_repeats_write(struct ipw_jw *w, const struct ipw_summary *s);

#endif
