/* run/run.h: one run of an agent over the queries of an origin, from its options to its exit
 * code.
 *
 * Everything happens in the loop's thread; the sampler has threads of its own behind
 * energy/sampler.h. The parts of a run are structs with a header each (plan, schedule, query,
 * sinks, finished_queries, durable, limit_actions, connect, server_watch, sensors, manifest,
 * finish, and resume/).  Only run.c knows all of them; it gives each what it uses, and answers
 * their reports. */
#ifndef IPW_RUN_RUN_H
#define IPW_RUN_RUN_H

#include "run/follower.h"
#include "run/origin.h"
#include "run/run_options.h"

/* The end of a run, for the command to print. */
struct ipw_run_end {
    struct ipw_err err; /* code 0: there is nothing to print */
    char *go_on;        /* the command line that continues it, or NULL; freed by the caller */
    char *folder;       /* of a run with a summary to show, or NULL; freed by the caller */
    char *note;         /* remarks that were not printed at its start; freed by the caller */
    bool rows;          /* its queries were shown as they ended */
};
/* Runs with complete options.  Frees `command` (a JSON object: the command that began the run) and
 * returns the exit code.  `follower` can be NULL. */
int ipw_run_start(const struct ipw_run_options *options, const char *agent, char *command,
                  struct ipw_origin *origin, struct ipw_follower *follower,
                  struct ipw_run_end *end);

#endif
