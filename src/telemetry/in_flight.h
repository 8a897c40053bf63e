/* telemetry/in_flight.h: what the queries of a run do at the moment, and what failed last.
 *
 * Fed with the run's events, in their order; an owner asks for both as JSON.  Memory follows the
 * queries in flight. */
#ifndef IPW_TELEMETRY_IN_FLIGHT_H
#define IPW_TELEMETRY_IN_FLIGHT_H

#include "json/write.h"
#include "trace/event.h"

struct ipw_in_flight;

struct ipw_in_flight *ipw_in_flight_new(void);
void ipw_in_flight_free(struct ipw_in_flight *f); /* NULL is fine */
void ipw_in_flight_event(struct ipw_in_flight *f, const struct ipw_event *e);
/* Members "failed" (the newest first) and "flights" (the longest first, some dozens at most) of
 * the open object; "flying" is how many are in flight.  Seconds are counted until `now_ns`. */
void ipw_in_flight_write(struct ipw_jw *w, const struct ipw_in_flight *f, int64_t now_ns);

#endif
