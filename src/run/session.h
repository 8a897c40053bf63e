/* run/session.h: one session of a run, as its parts are told of it.
 *
 * A run that is resumed has several sessions.  run.c owns this one and writes it; the parts that
 * need the clock or the limits of the session are handed a pointer and only read. */
#ifndef IPW_RUN_SESSION_H
#define IPW_RUN_SESSION_H

#include "base/clock.h"

struct ipw_session {
    int number; /* from 0; the files call it the segment */
    struct ipw_anchor anchor;
    int64_t start_ns, end_ns; /* 0: it has not begun, is not over */
    int64_t cpu_start_ns;     /* this process's CPU time at the start */
};

#endif
