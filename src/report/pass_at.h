/* report/pass_at.h: pass@k of a run with several epochs.
 *
 * The chance that at least one of k answers passes, if k of a task's n scored answers are drawn
 * without replacement: 1 - C(n - c, k) / C(n, k) with c correct ones (the unbiased estimator of
 * Chen et al. 2021, "Evaluating Large Language Models Trained on Code"), averaged over the tasks.
 * It is given for k = 1, 2, 5, 10, 20, 50, 100, ... as far as every scored task has k answers. */
#ifndef IPW_REPORT_PASS_AT_H
#define IPW_REPORT_PASS_AT_H

#include "report/summary.h"

enum { IPW_PASS_AT_MAX = 16 };

struct ipw_pass_at {
    size_t n; /* of the lists; 0: no task was scored twice */
    size_t k[IPW_PASS_AT_MAX];
    double share[IPW_PASS_AT_MAX];
};
/* Of one task: n answers, c of them correct; n >= k >= 1. */
double ipw_pass_at_of(size_t n, size_t c, size_t k);
void ipw_pass_at_fill(struct ipw_pass_at *out, const struct ipw_summary *s);

#endif
