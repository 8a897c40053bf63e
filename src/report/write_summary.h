/* report/write_summary.h: what the table and `ledger --json` say as summary.json does
 * (script/summary_text.h).  Owns nothing. */
#ifndef IPW_REPORT_WRITE_SUMMARY_H
#define IPW_REPORT_WRITE_SUMMARY_H

#include "json/write.h"
#include "report/summary.h"

/* The key "devices" of a domain's balance, if the domain has several; `queries`: sums over the
 * queries that count. */
void ipw_summary_put_devices(struct ipw_jw *w, const struct ipw_device_balances *balances,
                             enum ipw_domain domain, const struct ipw_device_sums *queries,
                             size_t n_queries);

#endif
