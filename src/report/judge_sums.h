/* report/judge_sums.h: a judge model's verdicts over a run, and what they took.
 *
 * Kept apart from the run's own totals: a judge's opinion is no score, and its tokens, cost and
 * joules are no query's.  A value that is unknown for one verdict leaves its total unknown. */
#ifndef IPW_REPORT_JUDGE_SUMS_H
#define IPW_REPORT_JUDGE_SUMS_H

#include "base/buf.h"
#include "trace/schema.h"

struct ipw_judge_sums {
    size_t correct, incorrect, not_attempted, none; /* none: no verdict */
    size_t asked;                                   /* queries whose judge was asked */
    char model[96];                                 /* "" before the first */
    bool several_models;
    char reason[160]; /* why the first of those without a verdict has none */
    double input_tokens, output_tokens, cost_usd, wall_s, gpu_j, cpu_j;
};
void ipw_judge_sums_add(struct ipw_judge_sums *s, const struct ipw_judgement *judge);
bool ipw_judge_sums_any(const struct ipw_judge_sums *s);
/* Appends the sums as one line for people. */
void ipw_judge_sums_say(struct ipw_buf *out, const struct ipw_judge_sums *s);

#endif
