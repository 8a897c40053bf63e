/* run/sinks.h: each event of a query passes here, on its way to all who want to know.
 *
 * struct ipw_sinks are the run's parts that take events, struct ipw_query_sinks is what they keep of
 * one query.  ipw_sinks_take() hands an event to them one by one; the order, and why it is that one,
 * is written in sinks.c. */
#ifndef IPW_RUN_SINKS_H
#define IPW_RUN_SINKS_H

#include "run/limit_actions.h"
#include "run/origin.h"
#include "run/progress.h"
#include "run/run_pricing.h"
#include "run/sensors.h"
#include "run/server_watch.h"
#include "trace/turn.h"

struct ipw_sinks {
    const struct ipw_pricing *pricing;
    struct ipw_sensors *sensors;
    struct ipw_rundir *dir;
    struct ipw_progress *progress;
    struct ipw_server_watch *servers;
    struct ipw_origin *origin;
};

struct ipw_query_sinks {
    int32_t query;                  /* its number in the run */
    struct ipw_turn_builder *turns; /* NULL once they are written */
    struct ipw_server_query server;
    struct ipw_query_limits limits;
    struct ipw_seat seat;
    int n_malformed; /* replies that could not be read */
};

void ipw_sinks_take(const struct ipw_sinks *sinks, struct ipw_query_sinks *query,
                    struct ipw_event *event);

#endif
