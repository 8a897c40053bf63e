/* report/write_summary.h: summary.json of a run.
 *
 * Writes the numbers of report/summary.h and the intervals of report/repeats.h under upstream's
 * keys and ours; docs/trace-format.md specifies them.  Owns nothing. */
#ifndef IPW_REPORT_WRITE_SUMMARY_H
#define IPW_REPORT_WRITE_SUMMARY_H

#include "base/stats.h"
#include "json/write.h"
#include "report/summary.h"

/* Appends summary.json. */
int ipw_summary_write(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, struct ipw_err *err);
/* The key "devices" of a domain's balance, if the domain has several; `queries`: sums over the
 * queries that count. */
void ipw_summary_put_devices(struct ipw_jw *w, const struct ipw_device_balances *balances,
                             enum ipw_domain domain, const struct ipw_device_sums *queries,
                             size_t n_queries);
/* A metric of the model calls, by its key in "latency". */
struct ipw_stats_result ipw_summary_latency(const struct ipw_summary *s, const char *key);

#endif
