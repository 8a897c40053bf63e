/* run/run.h: one run of an agent over the queries of an origin, from its options to its exit code.
 *
 * All that happens is in the loop's thread; the sampler has threads of its own behind
 * energy/sampler.h.  The parts of a run are structs of their own, each with a header (plan, schedule,
 * query, sinks, booking, durable, limit_actions, connect, server_watch, sensors, manifest, finish,
 * and resume/); run.c alone knows them all, hands each what it uses, and answers their reports. */
#ifndef IPW_RUN_RUN_H
#define IPW_RUN_RUN_H

#include "run/origin.h"
#include "run/run_options.h"

/* How a run ended, for the command to say. */
struct ipw_run_end {
    struct ipw_err err; /* code 0: nothing is to be said */
    char *go_on;        /* the command line that goes on with it, or NULL; freed by the caller */
};
/* A run from options that are whole.  Frees `command` (a JSON object: how it was begun) and returns
 * the exit code. */
int ipw_run_start(const struct ipw_run_options *options, const char *agent, char *command,
                  struct ipw_origin *origin, struct ipw_run_end *end);

#endif
