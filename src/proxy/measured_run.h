/* proxy/measured_run.h: `measure`: a run whose queries are the model calls of other programs.
 *
 * It is a run (run/run.h).  Its queries are either one program, started once an epoch, whose calls
 * carry the query's own word; or the sessions of clients that somebody else starts, until the run
 * is told to end.  Its agent is a file of lua/ipw/programs.  Owns the proxy. */
#ifndef IPW_PROXY_MEASURED_RUN_H
#define IPW_PROXY_MEASURED_RUN_H

#include "proxy/proxy.h"
#include "run/run.h"

struct ipw_measure_options {
    struct ipw_run_options run;
    struct ipw_opt_list upstreams; /* URL or MATCH=URL */
    struct ipw_opt_list keys;      /* MATCH=VAR; VAR alone is run.server.api_key_env */
    const char *const *argv;       /* the program's words; NULL: clients come by themselves */
    bool named;                    /* argv has only the words for the agent's own program */
    bool exit_scores;              /* the program's exit status says whether the task is solved */
    const char *host;
    int64_t port, idle_ns;
};

struct ipw_measured_run {
    struct ipw_origin origin;
    const struct ipw_measure_options *o;
    struct ipw_origin_run run;
    struct ipw_proxy proxy;
    struct ipw_timer *waiting; /* for clients: it keeps the loop from ending */
    int exit_code;             /* of the program; 0: none ended in another way */
};

/* Frees `command`; returns the exit code: the run's, or the program's if the run has none. */
int ipw_measure(struct ipw_measure_options *o, const char *agent, char *command,
                struct ipw_follower *follower, struct ipw_run_end *end);

#endif
