/* report/repeats.h: 95 % intervals of the means of a run.
 *
 * Queries of one task (one id; --epochs repeats it) are one cluster, so that repeats do not count
 * as new tasks.  A mean is over all queries; its interval is over tasks.  With fewer than three
 * tasks and at least three epochs the clusters are epochs.  base/interval.h says how the
 * intervals are computed. */
#ifndef IPW_REPORT_REPEATS_H
#define IPW_REPORT_REPEATS_H

#include "base/interval.h"
#include "report/summary.h"

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
/* The number of epochs of the rows, without the intervals. */
size_t ipw_repeats_epochs(const struct ipw_summary *s);

#endif
