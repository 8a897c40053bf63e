/* report/summary_priv.h: the parts of summary.json that stand in summary_accounts.c and
 * summary_counts.c. */
#ifndef IPW_REPORT_SUMMARY_PRIV_H
#define IPW_REPORT_SUMMARY_PRIV_H

#include "json/write.h"
#include "report/summary.h"

/* "accounts": where the joules went, for each domain. */
void ipw_summary_put_accounts(struct ipw_jw *w, const struct ipw_summary *s,
                              const struct ipw_totals *t, const struct ipw_summary_run *run);
/* "baseline": null, or what the idle machine drew and the net joules. */
void ipw_summary_put_baseline(struct ipw_jw *w, const struct ipw_totals *t,
                              const struct ipw_summary_run *run);
/* `key`: how many queries ended without an answer, by outcome; those that were stopped with the run, or
 * the others. */
void ipw_summary_put_outcomes(struct ipw_jw *w, const char *key, const struct ipw_summary *s,
                              bool stopped);
/* "models": null, or queries and turns by the model that answered. */
void ipw_summary_put_models(struct ipw_jw *w, const struct ipw_summary *s);

#endif
