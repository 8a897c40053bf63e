/* Before a run: each stage detects its errors before the run's folder is created. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/exit.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/grade_book.h"
#include "run/limit_check.h"
#include "run/run_priv.h"
#include "script/file_hashes.h"

static int check_options(struct run *run, struct ipw_err *err)
{
    const struct ipw_run_options *o = run->o;
    int rc = run->origin->check(run->origin, o, err);

    if (!rc) rc = ipw_sync_parse(&run->durable.policy, o->output.sync, err);
    if (!rc) rc = ipw_judge_options_check(&o->judge, err);
    if (!rc) rc = ipw_retry_parse(&run->again.retry, o->resume.retry, err);
    if (!rc && !o->resume.on && (o->resume.force || strcmp(o->resume.retry, "cut")))
        rc = ipw_fail(err, IPW_EINVAL, "run: --%s goes with --resume",
                      o->resume.force ? "force" : "rerun");
    if (!rc && o->resume.on && !o->output.dir)
        rc = ipw_fail(err, IPW_EINVAL, "--resume: name the run to continue with --output");
    return rc;
}

/* A run that is resumed is locked before any of its files is read. */
static int lock_earlier(struct run *run, struct ipw_err *err)
{
    int rc;

    if (!run->o->resume.on || !ipw_rundir_holds_run(run->o->output.dir)) return 0;
    rc = ipw_rundir_open(&run->dir, run->o->output.dir, err);
    if (rc || !ipw_rundir_has_manifest(run->dir)) return rc;
    run->differences.path = ipw_rundir_path(run->dir);
    run->differences.force = run->o->resume.force;
    return ipw_history_read(&run->history, ipw_rundir_path(run->dir), err);
}

static int choose_rules(struct run *run, struct ipw_err *err)
{
    const struct ipw_json *config = ipw_json_get(run->history.manifest, "config");
    const char *begun = ipw_json_str(ipw_json_get(config, "share"), "phase");

    return ipw_sensors_init(&run->sensors, &run->o->sensors, begun, err);
}

static int load_agent(struct run *run, struct ipw_err *err)
{
    const struct ipw_agent_options *o = &run->o->agent;
    const char *const *paths = ipw_script_paths(&run->o->script);
    int rc;

    run->tools = ipw_tools_with_servers(ipw_tools_cut(&run->tools_text, o->tools),
                                        run->o->script.servers ? run->o->script.servers->n : 0);
    run->config = (struct ipw_agent_config){.max_turns = o->max_turns,
                                            .temperature = o->temperature,
                                            .seed = o->seed,
                                            .max_tokens = o->max_tokens,
                                            .tools = run->tools,
                                            .paths = paths,
                                            .memory_bytes = o->lua_memory_bytes,
                                            .slice_cpu_ns = o->lua_cpu_ns};
    ipw_script_options_apply(&run->o->script);
    rc = ipw_agent_inspect(&run->agent, o->kind, run->agent_name, paths, err);
    if (!rc && run->agent.unknown[0])
        ipw_log(IPW_LOG_WARN, "%s: no agent has a field %s: it does nothing", run->agent.path,
                run->agent.unknown);
    return rc;
}

/* Compares the run with the one that is resumed.  `connected`: the server is known as well. */
static int check_same(struct run *run, bool connected, struct ipw_err *err)
{
    struct ipw_manifest manifest = ipw_run_manifest(run);
    struct ipw_json *now;
    int rc;

    if (!run->history.manifest) return 0;
    now = ipw_manifest_config_doc(&manifest);
    rc = ipw_same_run_check(&run->differences, ipw_json_get(run->history.manifest, "config"), now,
                            connected, err);
    ipw_json_free(now);
    return rc;
}

/* A run that ended, whose files are as they were since, is asked for by the same command, and the
 * dataset is one file with the same bytes and no attachments: its tasks and their choice are the
 * same.  (A file of ids may have changed.) */
static bool is_settled(const struct run *run)
{
    const struct ipw_run_options *o = run->o;
    const struct ipw_history *h = &run->history;
    const struct ipw_json *config = ipw_json_get(h->manifest, "config");
    const char *sha256 = ipw_json_get_str(config, "dataset_sha256");
    int64_t tasks = ipw_json_int(ipw_json_get(config, "max_queries"), 0);
    char now[65];

    if (!h->command || !run->command || strcmp(h->command, run->command) != 0) return false;
    if (tasks < 1 || tasks > INT32_MAX || o->data.epochs > INT32_MAX || o->judge.model ||
        o->data.ids)
        return false;
    return ipw_json_int(ipw_json_get(config, "dataset_files"), -1) == 0 && sha256 &&
           o->data.dataset && ipw_file_hashes_now(now, o->data.dataset) && !strcmp(now, sha256) &&
           ipw_history_complete(h, run->differences.path, run->again.retry,
                                (size_t)tasks * (size_t)o->data.epochs) &&
           ipw_history_untouched(h, run->differences.path) &&
           !ipw_grade_book_left(run->differences.path);
}

/* Takes what the manifest says of the tasks for them: reading them is most of the work. */
static void take_saved_tasks(struct run *run)
{
    const struct ipw_json *config = ipw_json_get(run->history.manifest, "config");

    run->cases = ipw_dataset_given(ipw_json_get_str(config, "dataset"),
                                   ipw_json_get_str(config, "dataset_source"),
                                   ipw_json_get_str(config, "dataset_sha256"), NULL,
                                   (size_t)ipw_json_int(ipw_json_get(config, "max_queries"), 0));
    snprintf(run->selection_sha256, sizeof run->selection_sha256, "%s",
             ipw_json_str(ipw_json_get(config, "selection_sha256"), ""));
}

static int open_tasks(struct run *run, struct ipw_err *err)
{
    int rc = run->origin->open(run->origin, &run->cases, run->o, err);

    if (!rc && ipw_dataset_count(run->cases))
        run->origin->selection(run->origin, run->selection_sha256, run->cases);
    return rc;
}

static int open_data(struct run *run, struct ipw_err *err)
{
    const struct ipw_run_options *o = run->o;
    int rc = ipw_pricing_open(&run->pricing, o->limits.prices, o->limits.free, err);
    bool settled = !rc && is_settled(run);

    if (settled)
        take_saved_tasks(run);
    else if (!rc)
        rc = open_tasks(run, err);
    if (rc) return rc;
    if (!ipw_dataset_count(run->cases)) {
        run->again.nothing_left = true; /* a small dataset can leave a shard without a task */
        return 0;
    }
    ipw_plan_init(&run->plan, ipw_dataset_count(run->cases), o->data.warmup, o->data.epochs);
    run->plan.endless = run->origin->endless;
    run->grading = (struct ipw_grading){.judge = &o->judge,
                                        .script = &o->script,
                                        .net = &o->server.net,
                                        .cases = run->cases,
                                        .workspaces = &run->workspaces,
                                        .pricing = &run->pricing,
                                        .concurrency = o->concurrency ? (size_t)o->concurrency : 1,
                                        .no_content = o->output.no_content,
                                        .quiet = o->output.quiet};
    rc = check_same(run, false, err);
    if (!rc)
        rc = ipw_scripts_check(&run->scripts, &run->history, run->differences.path, run->agent.path,
                               &run->differences, err);
    run->again.nothing_left = !rc && settled;
    return rc;
}

static bool is_complete(const struct run *run)
{
    return ipw_history_complete(&run->history, run->differences.path, run->again.retry,
                                ipw_plan_counted(&run->plan));
}

/* Nothing is left if every query is done and every answer is graded. */
static int decide(struct run *run, bool complete, struct ipw_err *err)
{
    bool pending = false;
    int rc = 0;

    run->again.nothing_left = complete;
    if (run->again.nothing_left)
        rc = ipw_grading_pending(&pending, &run->grading, ipw_rundir_path(run->dir), err);
    run->again.nothing_left &= !pending;
    return rc;
}

static int look_for_work(struct run *run, struct ipw_err *err)
{
    bool complete = is_complete(run);

    if (complete && !ipw_history_untouched(&run->history, run->differences.path)) {
        int rc = ipw_history_mend(&run->history, run->dir, err);

        if (rc) return rc;
        complete = is_complete(run);
    }
    return decide(run, complete, err);
}

static int connect_server(struct run *run, struct ipw_err *err)
{
    const struct ipw_run_options *o = run->o;
    struct ipw_origin_run view;
    int rc;

    ipw_anchor_take(&run->session.anchor);
    rc = ipw_http_global_init(err);
    if (!rc) rc = ipw_loop_new(&run->loop, err);
    if (rc) return rc;
    run->reach.web = ipw_script_web(&o->script, run->loop, o->server.net.cacert);
    run->connection =
        (struct ipw_connection){.o = &o->server, .loop = run->loop, .quiet = o->output.quiet};
    rc = ipw_connect(&run->connection, (uint64_t)run->session.anchor.wall_ns, err);
    if (rc || !run->origin->connected) return rc;
    view = (struct ipw_origin_run){.loop = run->loop,
                                   .llm = run->connection.llm,
                                   .base_url = run->connection.base_url,
                                   .key = run->connection.key,
                                   .model = run->connection.model,
                                   .session = &run->session,
                                   .plan = &run->plan,
                                   .quiet = o->output.quiet,
                                   .wake = ipw_run_step_soon,
                                   .ud = run};
    return run->origin->connected(run->origin, &view, err);
}

static int open_sensors(struct run *run, struct ipw_err *err)
{
    const char **servers = ipw_connection_urls(&run->connection);
    bool elsewhere = !run->connection.demo && ipw_connection_elsewhere(&run->connection);
    int rc;

    run->sensors.loop = run->loop;
    run->sensors.session = &run->session;
    run->sensors.rows = ipw_run_sampled;
    run->sensors.ud = run;
    rc = ipw_sensors_open(&run->sensors, servers, elsewhere,
                          ipw_connection_sub_elsewhere(&run->connection), err);
    free(servers);
    run->limits = (struct ipw_run_limits){.o = &run->o->limits,
                                          .loop = run->loop,
                                          .session = &run->session,
                                          .ending = &run->ending,
                                          .ledger = run->sensors.ledger,
                                          .feed = run->sensors.feed,
                                          .run_reached = ipw_run_step_soon,
                                          .ud = run};
    return rc ? rc
              : ipw_limits_kept(&run->o->limits, &run->sensors, &run->connection, &run->pricing,
                                err);
}

static int settle(struct run *run, struct ipw_err *err)
{
    const struct ipw_settle settle = {.history = &run->history,
                                      .dir = run->dir,
                                      .cases = run->cases,
                                      .plan = &run->plan,
                                      .results = &run->results,
                                      .session = &run->session,
                                      .retry = run->again.retry,
                                      .quiet = run->o->output.quiet};
    int rc = check_same(run, true, err);

    if (!rc) rc = ipw_history_mend(&run->history, run->dir, err);
    if (!rc) rc = ipw_history_settle(&settle, err);
    return rc ? rc : decide(run, is_complete(run), err);
}

void ipw_run_all_grants(struct ipw_host_grants *out, const struct run *run)
{
    ipw_run_grants(out, run->o);
    out->web = run->reach.web;
    out->may_fetch = run->reach.web != NULL;
    if (run->reach.kept) out->kept = ipw_kept_servers_host(run->reach.kept);
}

/* The folder that MCP servers have as their workspace, if the queries share them. */
static const char *kept_folder(void *ud)
{
    struct run *run = ud;
    struct ipw_err err;

    if (run->reach.kept_folder) return run->reach.kept_folder;
    if (ipw_workspaces_make(&run->workspaces, &err)) {
        ipw_log(IPW_LOG_WARN, "%s", err.text);
        return NULL;
    }
    run->reach.kept_folder = ipw_asprintf("%s/servers", run->workspaces.path);
    if (mkdir(run->reach.kept_folder, 0700))
        ipw_log(IPW_LOG_WARN, "%s: %s", run->reach.kept_folder, strerror(errno));
    return run->reach.kept_folder;
}

/* Before the sensors are read: no query pays for the start of the MCP servers. */
static int open_tools(struct run *run, struct ipw_err *err)
{
    struct ipw_host_grants grants;
    const struct ipw_kept_options options = {.loop = run->loop,
                                             .agent = &run->agent,
                                             .config = &run->config,
                                             .grants = &grants,
                                             .workspace = kept_folder,
                                             .ud = run,
                                             .per_query = run->o->script.mcp.per_query};

    ipw_run_all_grants(&grants, run);
    return ipw_kept_servers_open(&run->reach.kept, &options, err);
}

/* The stages, in this order; the exit code of a stage's failure, and one error with another exit
 * code. */
static const struct {
    int (*prepare)(struct run *run, struct ipw_err *err);
    int exit_code, special, special_exit_code;
} stages[] = {
    {check_options, IPW_EXIT_USAGE, 0, 0},
    {lock_earlier, IPW_EXIT_FAILED, 0, 0},
    {choose_rules, IPW_EXIT_USAGE, 0, 0},
    {load_agent, IPW_EXIT_INPUT, IPW_ENOTFOUND, IPW_EXIT_USAGE},
    {open_data, IPW_EXIT_INPUT, 0, 0},
    {look_for_work, IPW_EXIT_INPUT, 0, 0},
    {connect_server, IPW_EXIT_FAILED, IPW_EINVAL, IPW_EXIT_USAGE},
    {open_tools, IPW_EXIT_FAILED, 0, 0},
    {open_sensors, IPW_EXIT_FAILED, IPW_EINVAL, IPW_EXIT_USAGE},
    {settle, IPW_EXIT_INPUT, 0, 0},
};

int ipw_run_prepare(struct run *run, struct ipw_err *err)
{
    for (size_t i = 0; i < sizeof stages / sizeof *stages && !run->again.nothing_left; i++) {
        int rc = stages[i].prepare(run, err);

        if (rc) return rc == stages[i].special ? stages[i].special_exit_code : stages[i].exit_code;
    }
    return IPW_EXIT_OK;
}
