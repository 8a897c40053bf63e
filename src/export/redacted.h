/* export/redacted.h: copies a run's folder without its texts (trace/redact.h).
 *
 * The new folder is a run: it can be shown, compared, exported, and replayed as a workload.  It
 * cannot be replayed hermetically, because its agent would send other requests.  Lines are read and
 * written one at a time. */
#ifndef IPW_EXPORT_REDACTED_H
#define IPW_EXPORT_REDACTED_H

#include "trace/redact.h"

/* `to` must not exist, or be empty. */
int ipw_export_redacted(const char *run, const char *to, enum ipw_redact what, struct ipw_err *err);

#endif
