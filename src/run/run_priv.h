/* run/run_priv.h: the whole run, internal to run.c and run_prepare.c.
 *
 * The parts that run.c joins.  No part includes this header: each gets what it uses. */
#ifndef IPW_RUN_RUN_PRIV_H
#define IPW_RUN_RUN_PRIV_H

#include "run/finish.h"
#include "run/follower.h"
#include "run/grading.h"
#include "run/manifest.h"
#include "run/run.h"
#include "run/schedule.h"
#include "script/kept_servers.h"
#include "trace/redact.h"

struct run_reach {       /* of scripts, outside of their Lua states */
    struct ipw_web *web; /* NULL: web requests are not allowed */
    struct ipw_kept_servers *kept;
    char *kept_folder; /* NULL: there is none yet */
};

struct run_again { /* of a run that goes on */
    enum ipw_retry retry;
    bool nothing_left; /* every query was done before */
};

struct run {
    const struct ipw_run_options *o;
    const char *agent_name; /* as on the command line */
    char *command;
    struct ipw_origin *origin;
    struct ipw_follower *follower; /* or NULL */
    struct ipw_loop *loop;
    struct ipw_agent_info agent;
    struct ipw_agent_config config;
    char *tools_text; /* --tools, split at its commas */
    const char **tools;
    struct ipw_dataset *cases;
    char selection_sha256[65];

    struct ipw_connection connection;
    struct ipw_server_watch servers;
    struct run_reach reach;
    struct ipw_pricing pricing;
    struct ipw_sensors sensors;
    struct ipw_baseline baseline;
    struct ipw_run_limits limits;
    struct ipw_workspaces workspaces; /* of the queries; created when needed */

    struct ipw_rundir *dir;
    struct ipw_redactor redactor; /* of --no-content */
    struct ipw_session session;
    struct ipw_history history;
    struct ipw_differences differences;
    struct ipw_scripts scripts;
    struct run_again again;

    struct ipw_plan plan;
    struct ipw_query_ground ground;
    struct ipw_schedule schedule;
    struct ipw_finished_queries finished;
    struct ipw_durable durable;
    struct ipw_grading grading;
    struct ipw_results results;
    struct ipw_run_ended ended;
    struct ipw_ending ending;
    struct ipw_progress *progress;
    bool shows_rows; /* it shows each query that ends */
};

/* run_prepare.c: everything up to the run's folder.  Returns the exit code and the error of the
 * stage that failed. */
int ipw_run_prepare(struct run *run, struct ipw_err *err);
/* The values for the manifest at this moment. */
struct ipw_manifest ipw_run_manifest(const struct run *run);
/* What the scripts of its queries may do. */
void ipw_run_all_grants(struct ipw_host_grants *out, const struct run *run);
/* The parts report; ud is the run. */
void ipw_run_sampled(void *ud);
void ipw_run_step_soon(void *ud);

#endif
