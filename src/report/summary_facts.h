/* report/summary_facts.h: summary.json of a run.
 *
 * lua/ipw/summary.lua computes it (script/summary_text.h) from the rows of report/summary_rows.h
 * and from the facts: the sums by name, and what only the running program knows (struct
 * ipw_summary_run), as JSON with exact numbers and null for the unknown.  docs/trace-format.md
 * specifies the file.  Owns nothing. */
#ifndef IPW_REPORT_SUMMARY_FACTS_H
#define IPW_REPORT_SUMMARY_FACTS_H

#include "base/buf.h"
#include "report/summary.h"
#include "report/summary_rows.h"

/* Appends summary.json. */
int ipw_summary_write(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, struct ipw_err *err);
/* Appends the facts. */
void ipw_summary_facts_write(struct ipw_buf *out, const struct ipw_summary_rows *rows,
                             const struct ipw_summary_run *run);

#endif
