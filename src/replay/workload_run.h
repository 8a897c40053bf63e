/* replay/workload_run.h: replay --mode workload: saved requests are sent to another server and
 * measured.
 *
 * It is a run (run/run.h) of the agent agents/workload.lua over the data set datasets/requests.lua,
 * which reads a saved run or a file of requests.  There are two schedules.  `closed` keeps the gap
 * between a reply and the request after it, and the number of queries in flight.  `open` keeps the
 * times at which requests were sent, regardless of the server, except that within a query a request
 * waits for the reply before it.  events.jsonl says when each request was due and sent;
 * lua/ipw/cli/lags.lua makes replay.json of it. */
#ifndef IPW_REPLAY_WORKLOAD_RUN_H
#define IPW_REPLAY_WORKLOAD_RUN_H

#include "replay/replay_options.h"
#include "run/run.h"

/* Runs `replay` with --mode workload.  Frees `command`; returns the exit code.  *folder: of the
 * run, if it came to its summary, else NULL; freed by the caller. */
int ipw_workload_run(const char *path, const struct ipw_replay_options *o, char *command,
                     struct ipw_run_end *end, char **folder);

#endif
