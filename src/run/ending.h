/* run/ending.h: why a run stops before its last query.
 *
 * run.c owns it.  A part that finds a reason reports it to its owner; the parts that need the
 * reason get a pointer and only read.  A limit of the run is kept with the limits
 * (run/limit_actions.h).  This header also says how a query in flight is ended: an enum, which
 * becomes text only where it is written. */
#ifndef IPW_RUN_ENDING_H
#define IPW_RUN_ENDING_H

#include <stdbool.h>

#include "base/err.h"

struct ipw_ending {
    struct ipw_err err;  /* the run failed; code 0: it did not */
    int stop_signal;     /* the signal that interrupted it; 0: none did */
    bool server_lost;    /* no server came back in time */
    char lost_note[700]; /* the whole sentence, for a person */
    char *screen_note;   /* remarks for the screen of the summary; NULL: there is no summary */
};

static inline bool ipw_ending_begun(const struct ipw_ending *e)
{
    return e->err.code || e->stop_signal || e->server_lost;
}

enum ipw_query_stop { /* who ended a query before its own end */
                      IPW_STOP_NONE,
                      IPW_STOP_INTERRUPT,
                      IPW_STOP_SERVER_LOST,
                      IPW_STOP_LIMIT,     /* of the query */
                      IPW_STOP_RUN_LIMIT, /* of the run */
};

#endif
