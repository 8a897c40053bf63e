/* run/resume/mend_events.h: events.jsonl after a line in its middle was lost.
 *
 * An event that cannot stand without the lost one is taken out too: the end of a span that did not
 * start, or everything of a query that did not start.  A query whose end is lost ends with its last
 * event, with outcome "unfinished".  So each query of a session that ended has an end again, and
 * the session's joules are in the books once (run/resume/rebuild.h decides what becomes of the
 * query's line).  A file without such damage is not written. */
#ifndef IPW_RUN_RESUME_MEND_EVENTS_H
#define IPW_RUN_RESUME_MEND_EVENTS_H

#include <stddef.h>

#include "base/err.h"

struct ipw_mended_events {
    size_t out;   /* events that were taken out, kept in events.jsonl.damaged */
    size_t ended; /* queries that were ended */
};

/* Each line can be read. */
int ipw_mend_events(struct ipw_mended_events *m, const char *path, struct ipw_err *err);

#endif
