/* run/pacing.h: the moments at which queries of a run are due, whatever the server does (--rate).
 *
 * With a rate the load is open: a query begins when it is due, not when another has ended, so that
 * a slow server meets the same requests as a fast one.  The first query is due at the start; each
 * gap after it is 1 / rate (constant), or drawn from the exponential distribution with this mean
 * (Poisson, as of many users who do not know of each other).  The gaps follow from the seed.  With
 * `recorded` tasks that were recorded are due as they were then (datasets/requests.lua).  Pure: has
 * no clock. */
#ifndef IPW_RUN_PACING_H
#define IPW_RUN_PACING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "json/write.h"

struct ipw_pacing_options {
    double rate;         /* queries per second; 0: none is due by time */
    const char *pattern; /* --arrivals; NULL: Poisson */
    double speed;        /* of recorded gaps, where no pattern says it; 0: 1 */
    bool no_force;       /* recorded lengths of replies are limits only */
};

struct ipw_pacing {
    double rate; /* 0: no schedule */
    bool poisson, recorded;
    double speed; /* recorded times and gaps are divided by it */
    int64_t seed;
    uint64_t random;
};

/* --rate and --arrivals: "poisson", "poisson:SEED", "constant"; "recorded", "recorded:SPEED". */
int ipw_pacing_parse(struct ipw_pacing *out, const struct ipw_pacing_options *o,
                     struct ipw_err *err);
/* Are queries due at recorded times? */
bool ipw_pacing_is_recorded(const struct ipw_pacing_options *o);
/* The time from a query to the next one; only with a rate. */
int64_t ipw_pacing_gap_ns(struct ipw_pacing *p);
/* Writes the value of the manifest's "rate": null or an object. */
void ipw_pacing_write(struct ipw_jw *w, const struct ipw_pacing_options *o);

#endif
