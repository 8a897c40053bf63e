/* report/tool_sums.h: the tool calls of a run by name: how many, how they ended, how long, and what
 * they took.
 *
 * Gathered from the spans of the queries.  Spans may overlap, so that these seconds and joules are
 * no part of a sum.  The idle tax of a tool is: the energy of its part of the queries (struct
 * ipw_summary_part), in which the model did nothing for the query.  A value that is unknown for one
 * call leaves its total unknown. */
#ifndef IPW_REPORT_TOOL_SUMS_H
#define IPW_REPORT_TOOL_SUMS_H

#include "trace/turn.h"

struct ipw_tool_outcome {
    char *name;
    int64_t calls;
};

struct ipw_tool_sum {
    char *name;
    int64_t calls, failed; /* failed: the outcome is not "ok" */
    double seconds;
    double j[IPW_DOMAIN_COUNT]; /* NAN: unknown */
    struct ipw_bounds bounds[IPW_DOMAIN_COUNT];
    int64_t argument_bytes, result_bytes, cut_bytes; /* -1: unknown, as in an older run */
    int64_t child_calls, child_peak_bytes;           /* calls with child processes */
    double child_cpu_s;                              /* NAN: unknown */
    struct ipw_tool_outcome *outcomes;
    size_t n_outcomes, cap_outcomes;
};

struct ipw_tool_sums {
    struct ipw_tool_sum *list; /* in the order of their first calls */
    size_t n, cap;
};
void ipw_tool_sums_add(struct ipw_tool_sums *s, const struct ipw_query_trace *q);
void ipw_tool_sums_release(struct ipw_tool_sums *s);

#endif
