/* audit/validate.h: checks a run folder against docs/trace-format.md.
 *
 * Reads every file of the run, and computes its energy again on the way.  Checks each line against
 * the table of its kind, each query in itself, the order of the events, every query once, the
 * summary against the queries, the balance of every session, and every value against the events and
 * samples it follows from.  Stops at the first fault and names it by file, line and field.
 * Changes nothing.  A run in progress is read up to its last whole lines and not computed again. */
#ifndef IPW_AUDIT_VALIDATE_H
#define IPW_AUDIT_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/ledger_check.h"
#include "base/err.h"
#include "energy/source.h"

struct ipw_validation { /* what there was */
    int64_t queries, attempts, turns, events, rows;
    int sessions;
    bool going_on; /* another process is writing it */
    bool finished; /* its last session ended and wrote a summary */
    bool recomputed;
    int torn; /* files with a last line that a crash cut; not a fault */
    /* of the queries, for the summary */
    double joules[IPW_DOMAIN_COUNT];
    int64_t tool_calls, resolved, completed;
};

/* Is summary.json missing, unreadable, or different from the manifest and the queries?  For a run
 * whose last session ended; the lock is not checked.  An error: another file is wrong. */
int ipw_validate_summary(bool *wrong, const char *run, struct ipw_err *err);

/* A line of one of these files, in itself. */
int ipw_validate_line(enum ipw_check_file file, const struct ipw_json *line, struct ipw_err *err);

int ipw_validate_run(struct ipw_validation *v, const char *run, struct ipw_err *err);

#endif
