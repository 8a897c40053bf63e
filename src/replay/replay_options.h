/* replay/replay_options.h: what the command line says about a replay.
 *
 * Plain values, borrowed from the command line.  What a replay shares with a run (server, scripts,
 * sensors, output) are a run's options; the rows are in app/cmd_replay.c. */
#ifndef IPW_REPLAY_REPLAY_OPTIONS_H
#define IPW_REPLAY_REPLAY_OPTIONS_H

#include "run/run_options.h"

struct ipw_replay_options {
    const char *mode, *query, *agent;
    const char *from_divergence; /* fail or live; NULL: fail */
    struct ipw_run_options run;
    int64_t limit;
    /* of --mode show */
    bool follow;
    const char *sort;
    /* of --mode workload */
    const char *schedule;
    double speed;
    int64_t max_lag_ns;
    bool no_force;
};

#endif
