/* report/write_summary_priv.h: the parts of summary.json in write_summary_accounts.c and
 * write_summary_counts.c. */
#ifndef IPW_REPORT_WRITE_SUMMARY_PRIV_H
#define IPW_REPORT_WRITE_SUMMARY_PRIV_H

#include "report/write_summary.h"

/* "accounts": the energy accounts of each domain. */
void ipw_summary_put_accounts(struct ipw_jw *w, const struct ipw_summary *s,
                              const struct ipw_totals *t, const struct ipw_summary_run *run);
/* "baseline": null, or the idle power and the net energy. */
void ipw_summary_put_baseline(struct ipw_jw *w, const struct ipw_totals *t,
                              const struct ipw_summary_run *run);
/* `key`: the number of queries without an answer, by outcome.  `stopped`: of queries that were
 * stopped with the run; else of the others. */
void ipw_summary_put_outcomes(struct ipw_jw *w, const char *key, const struct ipw_summary *s,
                              bool stopped);
/* "models": null for one model, else the queries and turns that each model answered. */
void ipw_summary_put_models(struct ipw_jw *w, const struct ipw_summary *s);
/* A metric's statistics: of a spill of doubles. */
void ipw_summary_put_statistic(struct ipw_jw *w, const char *key, const struct ipw_spill *values);
/* "latency": the statistics of the model calls' latencies; the definitions are an object too. */
void ipw_summary_put_latency(struct ipw_jw *w, const struct ipw_summary *s);
void ipw_summary_put_latency_definitions(struct ipw_jw *w);
/* "parts": what the queries did, in time and joules. */
void ipw_summary_put_parts(struct ipw_jw *w, const struct ipw_summary *s);
/* "tools": their calls by name. */
void ipw_summary_put_tools(struct ipw_jw *w, const struct ipw_summary *s);

#endif
