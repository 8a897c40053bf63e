/* report/summary_rows.h: what summary.json is computed from.
 *
 * Keeps a row of numbers for each query and for each model call of a run, live or read back, and
 * sums by name where the rows would be too many: parts of queries, tools, models, outcomes.  It
 * computes nothing else: lua/ipw/summary.lua does (report/summary_facts.h).  Unknown is NAN, never
 * 0.  Owns its rows and texts. */
#ifndef IPW_REPORT_SUMMARY_ROWS_H
#define IPW_REPORT_SUMMARY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/columns.h"
#include "ledger/balance.h"
#include "trace/schema.h"

enum ipw_summary_kind {
    IPW_SUMMARY_FAILED,       /* queries that failed, by outcome */
    IPW_SUMMARY_INTERRUPTED,  /* queries that were stopped with the run, by outcome */
    IPW_SUMMARY_MODEL,        /* turns, by the model that answered */
    IPW_SUMMARY_JUDGE,        /* queries, by the judge's model */
    IPW_SUMMARY_PART,         /* parts of queries: `of` is the kind of part; tools have a name */
    IPW_SUMMARY_TOOL,         /* calls of a tool */
    IPW_SUMMARY_TOOL_OUTCOME, /* of the calls of a tool, `of` */
};
/* "failed", ...; by kind */
extern const char *const ipw_summary_kinds[];

/* All queries, turns or calls of one name. */
struct ipw_summary_group {
    enum ipw_summary_kind kind;
    char *of, *name;
    size_t last; /* number of the latest query that was counted, from 1 */
    int64_t queries, calls;
    /* Of parts and tools; NAN: the value of one is unknown. */
    double seconds, j[IPW_DOMAIN_COUNT], waste_j[IPW_DOMAIN_COUNT];
    struct ipw_bounds bounds[IPW_DOMAIN_COUNT];        /* of j */
    double argument_bytes, result_bytes, cut_bytes;    /* of tools */
    double child_calls, child_cpu_s, child_peak_bytes; /* of calls with child processes */
};

enum { IPW_PROV_COUNT = IPW_PROV_ESTIMATED + 1 };

struct ipw_summary_rows {
    struct ipw_columns queries, calls; /* columns: ipw_summary_query_columns, ..._call_columns */
    /* The ids of the queries, one after the other, each with a NUL; a long one is its beginning and
     * a hash. */
    char *ids;
    size_t id_bytes, id_cap;
    struct ipw_summary_group **groups; /* in the order of their first queries */
    size_t n_groups, cap_groups;
    void *by_name;                                         /* the groups, for tsearch() */
    struct ipw_query_account accounts[IPW_DOMAIN_COUNT];   /* sums over all queries */
    double provenance_j[IPW_DOMAIN_COUNT][IPW_PROV_COUNT]; /* joules of turns and before them */
    struct ipw_device_sums devices;
    char reason[IPW_DOMAIN_COUNT][48]; /* of the first query without an energy value, or "" */
    /* The first query without an answer; NULL: there is none.  Its error may be NULL. */
    char *unanswered_id, *unanswered_outcome, *unanswered_error;
};
/* Names of the columns; NULL-terminated. */
extern const char *const ipw_summary_query_columns[], *const ipw_summary_call_columns[];

void ipw_summary_rows_init(struct ipw_summary_rows *s);
void ipw_summary_rows_release(struct ipw_summary_rows *s);
void ipw_summary_rows_add(struct ipw_summary_rows *s, const struct ipw_query_trace *trace,
                          const struct ipw_query_details *details);
/* The number of a column of `queries`; aborts if there is none of that name. */
size_t ipw_summary_query_column(const char *name);

#endif
