/* run/merge/join_clock.h: the times of an event, moved to another clock.
 *
 * A session of another machine has another monotonic clock.  Its instants are moved by one number.
 * An instant of 0 is unknown and
 * stays.  Durations stay.  A session that was killed ends with its newest reading: later instants
 * become that one.  Also says how long readings wait for events.  Owns nothing. */
#ifndef IPW_RUN_MERGE_JOIN_CLOCK_H
#define IPW_RUN_MERGE_JOIN_CLOCK_H

#include "base/clock.h"
#include "json/json.h"
#include "json/write.h"
#include "trace/event.h"

/* Events tell of instants before their own: of a first token, for example, when it has been read.
 * A run gets its readings some milliseconds late.  The readings of several sessions, and those of a
 * meter, wait here as long: else steps would be closed before all of their phases are known, or
 * when too much is.  One session's own readings have the place that its record gives them. */
#define IPW_JOIN_ROWS_WAIT_NS (5 * IPW_NS_PER_MS)

struct ipw_join_clock {
    int64_t ahead_ns; /* is added to each instant */
    int64_t end_ns;   /* an instant that is then later becomes this one */
};

void ipw_join_move_event(struct ipw_event *e, const struct ipw_join_clock *c);
/* The moved instants of a note's data, as members; false: there is none. */
bool ipw_join_put_note_times(struct ipw_jw *w, const struct ipw_json *data, int64_t ahead_ns);

#endif
