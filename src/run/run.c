/* A run from its options to its exit code: the parts are made, used and given back here. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/resume_hint.h"
#include "run/run.h"

/* At commas alone, blanks around a name apart: a tool may be a path, and a path may hold blanks. */
static void cut_tools(struct ipw_run *run)
{
    size_t n = 0, cap = 0;
    char *save = NULL;

    if (!run->o->agent.tools) return;
    run->tools_text = ipw_strdup(run->o->agent.tools);
    IPW_GROW(run->tools, cap, 1);
    for (char *t = strtok_r(run->tools_text, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
        size_t len;

        t += strspn(t, " \t\n");
        for (len = strlen(t); len && strchr(" \t\n", t[len - 1]);) t[--len] = '\0';
        if (!len) continue;
        IPW_GROW(run->tools, cap, n + 2);
        run->tools[n++] = t;
    }
    run->tools[n] = NULL;
    run->config.tools = run->tools;
}

static void release(struct ipw_run *run)
{
    ipw_progress_free(run->progress);
    ipw_durable_close(&run->durable);
    ipw_history_release(&run->history);
    for (size_t i = 0; i < run->n_forced; i++) free(run->forced[i]);
    free(run->forced);
    ipw_scripts_release(&run->scripts);
    free(run->command);
    ipw_plan_release(&run->plan);
    ipw_sensors_close(&run->sensors);
    ipw_summary_release(&run->summary);
    ipw_pricing_close(&run->pricing);
    ipw_cases_free(run->cases);
    ipw_connection_close(&run->connection);
    ipw_net_free(run->net);
    ipw_web_free(run->web);
    if (run->loop) {
        ipw_loop_run(run->loop); /* children are reaped, handles closed */
        ipw_loop_free(run->loop);
    }
    ipw_workspaces_remove(&run->workspaces);
    free(run->tools_text);
    free(run->tools);
}

static void print_notes(const struct ipw_run *run)
{
    if (run->o->output.quiet) return;
    if (run->connection.demo_why) ipw_say("%s: the demo model answers", run->connection.demo_why);
    if (ipw_cases_note(run->cases)) ipw_say("%s", ipw_cases_note(run->cases));
    if (run->sensors.found.not_quiet[0])
        ipw_say("warning: the machine is not quiet: %s", run->sensors.found.not_quiet);
    if (ipw_sensors_none(&run->sensors) && !ipw_sensors_off(&run->sensors))
        ipw_say("no energy sensor can be read (`ipw-agent telemetry` says why)");
}

/* A run that was begun before is locked before anything of it is read. */
static int lock_earlier(struct ipw_run *run, struct ipw_err *err)
{
    int rc;

    if (!run->o->resume.on || !ipw_rundir_holds_run(run->o->output.dir)) return 0;
    rc = ipw_rundir_open(&run->dir, run->o->output.dir, err);
    if (rc || !ipw_rundir_has_manifest(run->dir)) return rc;
    return ipw_history_open(run, err);
}

/* The sharing rule with which the run was begun; its default otherwise. */
static const char *begun_share(const struct ipw_run *run)
{
    const struct ipw_json *config = ipw_json_get(run->history.manifest, "config");

    return ipw_json_str(ipw_json_get(config, "share"), "phase");
}

static int open_sensors(struct ipw_run *run, struct ipw_err *err)
{
    const char **servers = ipw_connection_urls(&run->connection);
    bool elsewhere = !run->connection.demo && ipw_connection_elsewhere(&run->connection);
    int rc;

    run->sensors.loop = run->loop;
    run->sensors.session = &run->session;
    run->sensors.rows = ipw_run_sampled;
    run->sensors.ud = run;
    rc = ipw_sensors_open(&run->sensors, servers, elsewhere, err);
    free(servers);
    return rc;
}

static int connect_server(struct ipw_run *run, struct ipw_err *err)
{
    int rc;

    run->connection.o = &run->o->server;
    run->connection.loop = run->loop;
    run->connection.quiet = run->o->output.quiet;
    rc = ipw_connect(&run->connection, (uint64_t)run->session.anchor.wall_ns, err);
    if (!rc) run->net = ipw_net_new(run);
    return rc;
}

/* Everything that can be wrong is found before the run's folder is made; *exit_code says which kind
 * of wrong it was. */
static int prepare(struct ipw_run *run, const char *agent, int *exit_code, struct ipw_err *err)
{
    const struct ipw_run_options *o = run->o;
    int rc;

    *exit_code = IPW_EXIT_USAGE;
    rc = run->origin->check(run->origin, o, err);
    if (!rc) rc = ipw_sync_parse(&run->durable.policy, o->output.sync, err);
    if (!rc) rc = ipw_retry_parse(&run->retry, o->resume.retry, err);
    if (!rc && !o->resume.on && (o->resume.force || strcmp(o->resume.retry, "cut")))
        rc = ipw_fail(err, IPW_EINVAL, "run: --%s goes with --resume",
                      o->resume.force ? "force" : "retry");
    if (!rc && o->resume.on && !o->output.dir)
        rc = ipw_fail(err, IPW_EINVAL, "--resume: --output names the run to go on with");
    if (rc) return rc;
    *exit_code = IPW_EXIT_FAILED;
    rc = lock_earlier(run, err);
    if (rc) return rc;
    *exit_code = IPW_EXIT_USAGE;
    run->config = (struct ipw_agent_config){.max_turns = o->agent.max_turns,
                                            .temperature = o->agent.temperature,
                                            .seed = o->agent.seed,
                                            .max_tokens = o->agent.max_tokens,
                                            .memory_bytes = o->agent.lua_memory_bytes,
                                            .slice_cpu_ns = o->agent.lua_cpu_ns,
                                            .untrusted = o->agent.untrusted,
                                            .paths = ipw_script_paths(&o->script)};
    cut_tools(run);
    ipw_script_options_apply(&o->script);
    rc = ipw_sensors_init(&run->sensors, &o->sensors, begun_share(run), err);
    if (rc) return rc;
    rc = ipw_agent_inspect(&run->agent, agent, ipw_script_paths(&o->script), o->agent.untrusted,
                           err);
    if (!rc && run->agent.unknown[0])
        ipw_log(IPW_LOG_WARN, "%s: no agent has a field %s: it does nothing", run->agent.path,
                run->agent.unknown);
    if (rc) {
        if (rc != IPW_ENOTFOUND) *exit_code = IPW_EXIT_INPUT;
        return rc;
    }
    *exit_code = IPW_EXIT_INPUT;
    rc = ipw_pricing_open(&run->pricing, o->limits.prices, o->limits.free, err);
    if (rc) return rc;
    rc = run->origin->open(run->origin, &run->cases, o, err);
    if (rc) return rc;
    ipw_plan_init(&run->plan, ipw_cases_count(run->cases), o->data.warmup, o->data.epochs);
    run->origin->selection(run->origin, run->selection_sha256, run->cases);
    rc = ipw_history_check(run, false, err);
    if (!rc) rc = ipw_scripts_check(run, err);
    if (rc) return rc;

    *exit_code = IPW_EXIT_INPUT;
    if (ipw_history_complete(run)) {
        rc = ipw_history_mend(run, err);
        if (rc || ipw_history_complete(run)) return rc;
    }
    *exit_code = IPW_EXIT_FAILED;
    ipw_anchor_take(&run->session.anchor);
    rc = ipw_http_global_init(err);
    if (!rc) rc = ipw_loop_new(&run->loop, err);
    if (!rc) run->web = ipw_script_web(&o->script, run->loop, o->server.net.cacert);
    if (!rc) rc = connect_server(run, err);
    if (!rc && run->origin->connected) run->origin->connected(run->origin, run);
    if (rc) {
        if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
        return rc;
    }
    rc = open_sensors(run, err);
    if (!rc) rc = ipw_enforce_check(run, err);
    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    if (rc) return rc;
    *exit_code = IPW_EXIT_INPUT;
    rc = ipw_history_check(run, true, err);
    if (!rc) rc = ipw_history_mend(run, err);
    return rc ? rc : ipw_history_settle(run, err);
}

/* ---- the parts report ---- */

static bool more_to_come(void *ud)
{
    struct ipw_run *run = ud;

    return (run->n_active || ipw_plan_more(&run->plan)) && !run->ending.stop_signal &&
           !run->ending.err.code;
}

static void synced(void *ud)
{
    struct ipw_run *run = ud;

    ipw_progress_done(run->progress, run->durable.n_done);
    ipw_run_step_soon(run);
}

static void disk_failed(void *ud, const struct ipw_err *err) { ipw_run_fail(ud, err); }

/* ---- the run ---- */

static int open_dir(struct ipw_run *run, struct ipw_err *err)
{
    struct ipw_rundir_names names = {.agent = run->agent.name,
                                     .model = run->connection.model,
                                     .dataset = ipw_cases_name(run->cases),
                                     .wall_ns = run->session.anchor.wall_ns};
    int rc = run->dir ? 0 : ipw_rundir_create(&run->dir, run->o->output.dir, &names, err);

    if (rc) return rc;
    ipw_rundir_set_sync(run->dir, run->durable.policy != IPW_SYNC_OFF);
    if (run->o->output.no_content) {
        rc = ipw_redactor_init(&run->redactor, IPW_REDACT_ALL, err);
        if (rc) return rc;
        ipw_rundir_set_redactor(run->dir, &run->redactor);
    }
    rc = ipw_run_write_manifest(run, NULL, NULL, NULL, err);
    run->durable.loop = run->loop;
    run->durable.dir = run->dir;
    run->durable.more = more_to_come;
    run->durable.done = synced;
    run->durable.failed = disk_failed;
    run->durable.ud = run;
    return rc ? rc : ipw_durable_open(&run->durable, err);
}

/* The rules of the ledger, and the manifest, should its file be lost. */
static void put_run_start(struct ipw_buf *out, const struct ipw_run *run)
{
    struct ipw_buf facts = IPW_BUF(64 * IPW_KIB), manifest = IPW_BUF(out->max);
    struct ipw_json *a = NULL, *b = NULL;

    ipw_ledger_facts_write(&facts, &run->sensors.rules);
    ipw_buf_adds(&manifest, "{\"manifest\":");
    ipw_run_put_manifest(&manifest, run);
    ipw_buf_addc(&manifest, '}');
    if (ipw_json_parse(&a, ipw_buf_str(&facts), facts.len, NULL, NULL) ||
        ipw_json_parse(&b, ipw_buf_str(&manifest), manifest.len, NULL, NULL))
        IPW_BUG("a session's start is no JSON");
    ipw_json_merge(out, a, b);
    ipw_json_free(a);
    ipw_json_free(b);
    ipw_buf_release(&facts);
    ipw_buf_release(&manifest);
}

static void emit_run_event(struct ipw_run *run, enum ipw_event_kind kind, int64_t t_ns)
{
    struct ipw_event event = {.kind = kind,
                              .t_ns = t_ns,
                              .query = -1,
                              .rows = kind == IPW_EV_RUN_END ? run->sensors.n_rows : 0,
                              .segment = run->session.number};
    struct ipw_buf data = IPW_BUF(256 * IPW_MIB);

    if (kind == IPW_EV_RUN_START) {
        ipw_ledger_facts_take(&run->sensors.rules, run->sensors.ledger, &run->sensors.sources);
        run->sensors.rules.clock = run->session.anchor;
        put_run_start(&data, run);
        event.payload = ipw_buf_str(&data);
        event.payload_len = data.len;
    }
    ipw_rundir_event(run->dir, &event);
    ipw_buf_release(&data);
}

static int run_all(struct ipw_run *run, struct ipw_err *err)
{
    int rc = open_dir(run, err);

    if (rc) return rc;
    ipw_go_on_ready(run);
    print_notes(run);
    ipw_sensors_wait(&run->sensors, run->dir);
    ipw_baseline_before(&run->baseline, &run->sensors);
    run->progress = ipw_progress_new(run->loop, ipw_plan_total(&run->plan), run->o->output.quiet);
    ipw_progress_measure(run->progress, ipw_enforce_run_joules, run);
    run->durable.n_done = run->history.n_kept;
    ipw_progress_done(run->progress, run->durable.n_done);
    ipw_net_watch(run);
    /* The sensors and their first readings are safe before the session says that it began: its joules
     * can be told from the files whatever a power cut takes later. */
    rc = ipw_rundir_sync(run->dir, err);
    if (rc) return rc;
    run->session.start_ns = ipw_now_ns();
    run->session.cpu_start_ns = ipw_cpu_self_ns();
    emit_run_event(run, IPW_EV_RUN_START, run->session.start_ns);
    ipw_sensors_started(&run->sensors);
    ipw_enforce_run_start(run);
    ipw_run_queries(run);
    ipw_enforce_run_end(run);
    ipw_run_sampled(run); /* what was read before the end is told before it */
    run->session.end_ns = ipw_now_ns();
    if (!run->ending.stop_signal && !run->ending.err.code)
        ipw_baseline_after(&run->baseline, &run->sensors);
    ipw_sensors_stop(&run->sensors); /* takes one more reading, past the end */
    /* Last: it says how many samples the session has. */
    emit_run_event(run, IPW_EV_RUN_END, run->session.end_ns);
    ipw_progress_free(run->progress);
    run->progress = NULL;
    /* What says that the run came to its end follows what it is the end of.  A failure is met again
     * by what is written next. */
    ipw_rundir_sync(run->dir, NULL);
    rc = ipw_run_finish(run, err);
    if (!rc && run->origin->finish) rc = run->origin->finish(run->origin, run, err);
    if (run->ending.err.code) {
        *err = run->ending.err;
        rc = err->code;
    }
    return rc;
}

/* Every exit passes here: the lock is given back. */
static int close_dir(struct ipw_run *run, int rc, struct ipw_err *err, char **path)
{
    int closed;

    ipw_durable_close(&run->durable);
    if (!run->dir) return rc;
    *path = ipw_strdup(ipw_rundir_path(run->dir));
    closed = ipw_rundir_close(run->dir, rc ? NULL : err);
    run->dir = NULL;
    return rc ? rc : closed;
}

/* When the disk failed us: what to do about it.  `path` NULL: there is nothing to go on with. */
static void tell_what_stays(struct ipw_err *err, const char *path)
{
    size_t n = strlen(err->text);
    bool full = err->detail == ENOSPC || err->detail == EDQUOT || err->detail == EFBIG;

    if (!path || err->code != IPW_EIO || access(path, F_OK) < 0) return;
    snprintf(err->text + n, sizeof err->text - n, "; what was written before stays%s",
             full ? ": make room before it is gone on with" : "");
}

/* A run without one answer says why in one line, with --quiet too: the exit status says nothing of it,
 * and the table shows the beginning only.  Without --quiet an error was said when it happened. */
static void tell_why_failed(const struct ipw_run *run)
{
    const struct ipw_summary *s = &run->summary;

    for (size_t i = 0; i < s->n; i++) {
        const struct ipw_summary_row *row = &s->rows[i];
        const char *error = row->shown ? row->shown->error : NULL;

        if (row->completed) continue;
        if (run->o->output.quiet || !error || !*error)
            ipw_say("no query was answered; query %s: %s", row->id,
                    error && *error ? error : row->outcome);
        return;
    }
}

/* A write beyond a file size limit is an error like a full disk, not the end of the program.  And a
 * run in a debugger, the only one that may leave an image of its memory (main.c), leaves none that
 * holds keys: RLIMIT_CORE is not looked at when cores go to a program, the filter (which mappings
 * are dumped: none) is. */
static void guard_process(void)
{
    int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (fd < 0) return; /* a kernel without it, or closed already */
    if (write(fd, "0", 1) != 1) ipw_log(IPW_LOG_DEBUG, "the core filter cannot be set");
    close(fd);
}

/* Of runs that were killed, this one's earlier sessions among them. */
static void sweep_workspaces(void)
{
    struct ipw_workspaces_left left;

    ipw_workspaces_left(&left, true);
    if (left.n)
        ipw_log(IPW_LOG_INFO, "%s: removed %zu folder%s of workspaces (%.1f MiB) of killed runs",
                ipw_workspaces_root(), left.n, left.n == 1 ? "" : "s",
                (double)left.bytes / IPW_MIB);
}

int ipw_run_start(const struct ipw_run_options *o, const char *agent, char *command,
                  struct ipw_origin *origin, struct ipw_run_end *end)
{
    struct ipw_run run = {
        .o = o, .command = command, .origin = origin, .workspaces = IPW_WORKSPACES_NONE};
    struct ipw_err err = {0};
    char *dir = NULL;
    int exit_code, rc;
    bool nothing, begun, stopped;

    ipw_log_set_level(o->output.quiet     ? IPW_LOG_ERROR
                      : o->output.verbose ? IPW_LOG_INFO
                                          : IPW_LOG_WARN);
    guard_process();
    run.unbooked_tail = &run.unbooked;
    ipw_summary_init(&run.summary);
    rc = prepare(&run, agent, &exit_code, &err);
    nothing = !rc && ipw_history_complete(&run);
    if (!rc) sweep_workspaces();
    if (nothing) {
        if (!o->output.quiet)
            ipw_say("%s: every query is done, nothing is left to run", o->output.dir);
    } else if (!rc) {
        exit_code = IPW_EXIT_FAILED;
        rc = run_all(&run, &err);
    }
    if (!rc && run.ending.server_lost) rc = ipw_fail(&err, IPW_ENET, "%s", run.ending.lost_note);
    rc = close_dir(&run, rc, &err, &dir);
    begun = run.session.start_ns || run.history.manifest;
    stopped = rc || run.ending.stop_signal || run.limits.reached;
    if (rc) {
        tell_what_stays(&err, begun && origin->resumes ? dir : NULL);
        end->err = err;
    } else if (run.ending.stop_signal)
        exit_code = 128 + run.ending.stop_signal;
    else if (run.limits.reached && !run.n_failed)
        exit_code = IPW_EXIT_OK; /* ended as it was told to, before anything went wrong */
    else if (!nothing && !run.n_answered) {
        tell_why_failed(&run);
        exit_code = IPW_EXIT_FAILED; /* not one query came to an answer */
    } else
        exit_code = IPW_EXIT_OK;
    end->go_on = ipw_go_on(&run, begun ? dir : NULL, stopped && exit_code != IPW_EXIT_USAGE);
    free(dir);
    release(&run);
    return exit_code;
}
