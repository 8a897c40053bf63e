/* export/redacted.h: a run's folder once more, without what was said in it (trace/redact.h).
 *
 * The new folder is a run: it can be shown, compared, exported, and replayed as a workload; not
 * hermetically, since its agent would say other things.  Lines are read and written one at a
 * time. */
#ifndef IPW_EXPORT_REDACTED_H
#define IPW_EXPORT_REDACTED_H

#include "trace/redact.h"

/* `to` must not be there yet, or be empty. */
int ipw_export_redacted(const char *run, const char *to, enum ipw_redact what, struct ipw_err *err);

#endif
