/* run/session.h: one session of a run, as its parts see it.
 *
 * A resumed run has several sessions.  run.c owns this one and writes it.  Parts that need the
 * clock or the limits of the session get a pointer and only read. */
#ifndef IPW_RUN_SESSION_H
#define IPW_RUN_SESSION_H

#include "base/clock.h"

struct ipw_session {
    int number; /* from 0; the files call it segment */
    struct ipw_anchor anchor;
    int64_t start_ns, end_ns; /* 0: it has not begun, has not ended */
    int64_t cpu_start_ns;     /* this process's CPU time at the start */
};

#endif
