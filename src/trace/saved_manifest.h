/* trace/saved_manifest.h: reads the manifest of a saved run, and its clock.
 *
 * The manifest states one instant by three clocks; it dates every stamp of the run.  Owns
 * nothing. */
#ifndef IPW_TRACE_SAVED_MANIFEST_H
#define IPW_TRACE_SAVED_MANIFEST_H

#include "base/clock.h"
#include "json/json.h"
#include "json/write.h"

/* Reads RUN/manifest.json; the caller frees it.  The error names the file. */
int ipw_saved_manifest_read(struct ipw_json **out, const char *run, struct ipw_err *err);
/* Missing members become 0; `clock` may be NULL. */
struct ipw_anchor ipw_saved_clock_read(const struct ipw_json *clock);
/* Writes an object. */
void ipw_saved_clock_write(struct ipw_jw *w, const struct ipw_anchor *anchor);

#endif
