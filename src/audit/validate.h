/* audit/validate.h: is a run's folder what docs/trace-format.md says?
 *
 * Reads every file of the run once, and then computes its joules again: each line against the table
 * of its kind, each query within itself, the order of the events, every query once, the summary
 * against the queries, the books of every session, and every figure against the events and samples
 * it came from.  Stops at the first fault, which the error names by file, line and field.  Changes
 * nothing.  A run that is going on is read up to its last whole lines and not computed again. */
#ifndef IPW_AUDIT_VALIDATE_H
#define IPW_AUDIT_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "energy/source.h"

struct ipw_validation { /* what there was */
    int64_t queries, attempts, turns, events, rows;
    int sessions;
    bool going_on; /* another process is writing it */
    bool finished; /* its last session came to its end and wrote a summary */
    bool recomputed;
    int torn; /* files whose last line a crash cut; no fault */
    /* of the queries, for the summary */
    double joules[IPW_DOMAIN_COUNT];
    int64_t tool_calls, resolved, completed;
};

/* Is summary.json missing, unreadable, or not what the manifest and the queries say?  Of a run whose last
 * session came to its end; the lock is not looked at.  An error: another file is wrong. */
int ipw_validate_summary(bool *wrong, const char *run, struct ipw_err *err);

int ipw_validate_run(struct ipw_validation *v, const char *run, struct ipw_err *err);

#endif
