/* audit/ledger_facts.h: a saved run's energy computed again, as JSON for the screens of `ledger`.
 *
 * Computes the run by its own sharing rule or by another (ledger/recompute.h), compares each query
 * with the line that the run wrote (audit/ledger_check.h), and writes the facts with exact numbers,
 * null for the unknown.  lua/ipw/report/ledger.lua and shares.lua compute and print from them.
 * Owns nothing. */
#ifndef IPW_AUDIT_LEDGER_FACTS_H
#define IPW_AUDIT_LEDGER_FACTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends one JSON object: {compared, own, queries, rules, segments, segments_cut, summary,
 * unbooked, wall_s}.  `own`: the sharing rule of the run; `segments_cut`: sessions that were
 * killed; `summary`: see report/summary.h; `unbooked`: lines of the run without events.
 * share: the name of another rule, or NULL; IPW_EINVAL: there is none of this name.
 * compare: with the lines that the run wrote. */
int ipw_ledger_facts(struct ipw_buf *out, const char *run, const char *share, bool compare,
                     struct ipw_err *err);

#endif
