/* trace/saved_clock.h: the clock that a manifest names.
 *
 * One instant by three clocks; it dates every stamp of the run.  Owns nothing. */
#ifndef IPW_TRACE_SAVED_CLOCK_H
#define IPW_TRACE_SAVED_CLOCK_H

#include "base/clock.h"
#include "json/json.h"
#include "json/write.h"

/* Zero where a member is missing; `clock` may be NULL. */
struct ipw_anchor ipw_saved_clock_read(const struct ipw_json *clock);
/* An object. */
void ipw_saved_clock_write(struct ipw_jw *w, const struct ipw_anchor *anchor);

#endif
