/* run/manifest.h: writes manifest.json: what is run, on which machine, in which sessions.
 *
 * Reads the parts of a run; owns nothing.  The configuration is also written before the server is
 * known, because `resume` compares it; model and sensors can be missing then. */
#ifndef IPW_RUN_MANIFEST_H
#define IPW_RUN_MANIFEST_H

#include "run/baseline.h"
#include "run/connect.h"
#include "run/durable.h"
#include "run/origin.h"
#include "run/resume/same_run.h"
#include "run/resume/script_hashes.h"
#include "run/resume/sessions.h"
#include "run/run_options.h"
#include "run/run_pricing.h"
#include "script/agent.h"

struct ipw_manifest { /* all borrowed */
    const struct ipw_run_options *o;
    const struct ipw_agent_info *agent;
    const char *const *tools; /* NULL-terminated; NULL: the agent's own */
    const struct ipw_dataset *cases;
    const struct ipw_connection *connection;
    const struct ipw_pricing *pricing;
    const struct ipw_scripts *scripts;
    const struct ipw_sensors *sensors;
    const struct ipw_baseline *baseline;
    const struct ipw_history *history;
    const struct ipw_differences *differences;
    const struct ipw_session *session;
    const struct ipw_origin *origin;
    const char
        *command; /* JSON object: the command that began the run, unless the history has it */
    const char *selection_sha256;
    enum ipw_sync sync;
};

/* How a session ended. */
struct ipw_session_end {
    const char *end;                                /* "complete", "interrupted", "limit" */
    const char *note;                               /* of the summary, or NULL */
    double runner_cpu_s, sampler_cpu_s, own_joules; /* of the program itself */
    const struct ipw_balance *balances;
    const struct ipw_device_list *devices;
};

/* The configuration as it was resolved, under upstream's names where they exist. */
void ipw_manifest_config(struct ipw_jw *w, const struct ipw_manifest *m);
struct ipw_json *ipw_manifest_config_doc(const struct ipw_manifest *m);
/* Appends the object `hardware`, which a script makes (lua/ipw/hardware.lua); null, with a warning,
 * if that fails.  trust NULL: no self-test was made. */
void ipw_manifest_hardware(struct ipw_buf *out, const struct ipw_source_set *set,
                           const struct ipw_trust *trust);
/* Writes the file with this session in it; `end` NULL: the session continues. */
int ipw_manifest_write(const struct ipw_manifest *m, struct ipw_rundir *dir,
                       const struct ipw_session_end *end, struct ipw_err *err);
/* The manifest of this moment, with this session alone, for the session's run_start. */
void ipw_manifest_put(struct ipw_buf *out, const struct ipw_manifest *m,
                      const struct ipw_rundir *dir);

#endif
