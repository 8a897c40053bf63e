/* trace/saved_clock.h: reads and writes the clock of a manifest.
 *
 * The manifest states one instant by three clocks; it dates every stamp of the run.  Owns
 * nothing. */
#ifndef IPW_TRACE_SAVED_CLOCK_H
#define IPW_TRACE_SAVED_CLOCK_H

#include "base/clock.h"
#include "json/json.h"
#include "json/write.h"

/* Missing members become 0; `clock` may be NULL. */
struct ipw_anchor ipw_saved_clock_read(const struct ipw_json *clock);
/* Writes an object. */
void ipw_saved_clock_write(struct ipw_jw *w, const struct ipw_anchor *anchor);

#endif
