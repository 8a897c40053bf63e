/* run/grade_patch.h: what a grader found, as keys of the trace.
 *
 * Pure.  A judge's opinion has keys of its own (judge_*).  The dataset's own score changes only if
 * its rule is the grader's: then it is `official`. */
#ifndef IPW_RUN_GRADE_PATCH_H
#define IPW_RUN_GRADE_PATCH_H

#include "script/dataset.h"
#include "trace/schema.h"

struct ipw_grade_found {
    enum ipw_grader grader;
    bool official;
    bool asked;                          /* a grader was started */
    bool no_texts;                       /* of --no-content */
    const char *judge_model;             /* or NULL */
    const char *result;                  /* the grader's answer, JSON text; or NULL */
    const char *why;                     /* without a result: the reason */
    int resolved;                        /* without a result: 0 (there is no answer), or -1 */
    const struct ipw_query_trace *trace; /* of the grade */
    int64_t wall_ns;
    double query_gpu_j, query_cpu_j; /* of the query; NAN: unknown */
};
/* Appends a JSON object with sorted keys. */
void ipw_grade_patch(struct ipw_buf *out, const struct ipw_grade_found *found);

#endif
