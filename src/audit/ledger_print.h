/* audit/ledger_print.h: the output of `ledger RUN`: the balance of each domain, and each query.
 *
 * Gathered query by query, printed at the end as a table or as one JSON object.  Owns its rows. */
#ifndef IPW_AUDIT_LEDGER_PRINT_H
#define IPW_AUDIT_LEDGER_PRINT_H

#include "ledger/balance.h"
#include "ledger/recompute.h"
#include "report/summary.h"

struct ipw_ledger_row { /* one query */
    char *id;
    int32_t index;
    struct ipw_figure energy[IPW_DOMAIN_COUNT];
    bool compared, differs;       /* with, from the run's own line */
    double was[IPW_DOMAIN_COUNT]; /* in that line; NAN: unknown */
    int segment;
    bool warmup, earlier; /* earlier: another segment has a later attempt */
};

struct ipw_ledger_report {
    struct ipw_summary summary; /* of the recomputed queries */
    struct ipw_ledger_row *rows;
    size_t n, cap;
    bool compared; /* the run has traces to compare with */
    size_t n_differs, n_missing, n_left, n_earlier;
    struct ipw_run_balance balances;
    int64_t wall_ns;
    size_t n_segments, n_cut;       /* sessions, and how many of them were killed */
    const char *path, *share;       /* share: another rule than the run's, by name; or NULL */
    double was_j[IPW_DOMAIN_COUNT]; /* what the run wrote for the queries that count */
};

void ipw_ledger_report_init(struct ipw_ledger_report *r, const char *path);
/* `was`: the run's own line; NULL: it has none. */
void ipw_ledger_report_add(struct ipw_ledger_report *r, const struct ipw_recompute_query *query,
                           const struct ipw_query_details *details,
                           const struct ipw_query_loaded *was, bool differs);
/* The whole run, after its last query. */
void ipw_ledger_report_close(struct ipw_ledger_report *r, const struct ipw_recompute *redone);
void ipw_ledger_report_release(struct ipw_ledger_report *r);

void ipw_ledger_print_table(struct ipw_buf *out, const struct ipw_ledger_report *r);
void ipw_ledger_print_json(struct ipw_buf *out, const struct ipw_ledger_report *r);

/* One cell of a table: microjoules, right-aligned in 16 columns. */
void ipw_joules_cell(struct ipw_buf *out, double j);
/* A member with the joules of each domain (by enum ipw_domain); NULL: null. */
struct ipw_jw;
void ipw_joules_write(struct ipw_jw *w, const char *key, const double *joules);

#endif
