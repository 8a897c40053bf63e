/* run/ending.h: why a run stops before its last query.
 *
 * run.c owns it; a part that learns of a reason tells its owner, and the parts that have to know of
 * one are handed a pointer and only read.  A limit of the run is kept with the limits
 * (run/limit_actions.h).  Here is also how a query that is in flight then is ended: text only where
 * it is written, an enum everywhere else. */
#ifndef IPW_RUN_ENDING_H
#define IPW_RUN_ENDING_H

#include <stdbool.h>

#include "base/err.h"

struct ipw_ending {
    struct ipw_err err;  /* the run failed; code 0: it did not */
    int stop_signal;     /* the signal that interrupted it; 0: none did */
    bool server_lost;    /* no server came back */
    char lost_note[700]; /* the whole sentence, for a person */
};

static inline bool ipw_ending_begun(const struct ipw_ending *e)
{
    return e->err.code || e->stop_signal || e->server_lost;
}

enum ipw_query_stop { /* who ended a query from outside */
                      IPW_STOP_NONE,
                      IPW_STOP_INTERRUPT,
                      IPW_STOP_SERVER_LOST,
                      IPW_STOP_LIMIT,     /* of the query */
                      IPW_STOP_RUN_LIMIT, /* of the run */
};

#endif
