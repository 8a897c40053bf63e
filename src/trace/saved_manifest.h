/* trace/saved_manifest.h: the manifest of a saved run, read, and the clock that it names.
 *
 * The clock is one instant by three clocks; it dates every stamp of the run.  Owns nothing. */
#ifndef IPW_TRACE_SAVED_MANIFEST_H
#define IPW_TRACE_SAVED_MANIFEST_H

#include "base/clock.h"
#include "json/json.h"
#include "json/write.h"

/* RUN/manifest.json; freed by the caller.  The error names the file. */
int ipw_saved_manifest_read(struct ipw_json **out, const char *run, struct ipw_err *err);
/* Zero where a member is missing; `clock` may be NULL. */
struct ipw_anchor ipw_saved_clock_read(const struct ipw_json *clock);
/* An object. */
void ipw_saved_clock_write(struct ipw_jw *w, const struct ipw_anchor *anchor);

#endif
