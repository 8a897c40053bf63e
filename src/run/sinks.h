/* run/sinks.h: passes each event of a query to all parts that take events.
 *
 * struct ipw_sinks has the run's parts that take events; struct ipw_query_sinks has their state for
 * one query.  ipw_sinks_take() passes an event to them one by one; sinks.c has the order and its
 * reasons. */
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
    struct ipw_pricing *pricing;
    struct ipw_sensors *sensors;
    struct ipw_rundir *dir;
    struct ipw_progress *progress;
    struct ipw_server_watch *servers;
    struct ipw_origin *origin;
};

struct ipw_query_sinks {
    int32_t query;                  /* its number in the run */
    struct ipw_turn_builder *turns; /* NULL after its line was written */
    struct ipw_server_query server;
    struct ipw_query_limits limits;
    struct ipw_seat seat;
    int n_malformed; /* replies that could not be read */
};

void ipw_sinks_take(const struct ipw_sinks *sinks, struct ipw_query_sinks *query,
                    struct ipw_event *event);

#endif
