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
#include "energy/select.h"
#include "run/resume_hint.h"
#include "run/run.h"
#include "run/sensors.h"

/* At commas alone, blanks around a name apart: a tool may be a path, and a path may hold blanks. */
static void cut_tools(struct ipw_run *run)
{
    size_t n = 0, cap = 0;
    char *save = NULL;

    if (!run->o->tools) return;
    run->tools_text = ipw_strdup(run->o->tools);
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
    ipw_run_sync_close(run);
    ipw_history_release(&run->history);
    for (size_t i = 0; i < run->n_forced; i++) free(run->forced[i]);
    free(run->forced);
    ipw_scripts_release(&run->scripts);
    free(run->command);
    free(run->done);
    ipw_sensors_close(run);
    ipw_summary_release(&run->summary);
    ipw_pricing_close(&run->pricing);
    ipw_dataset_free(run->cases);
    ipw_llm_free(run->llm);
    ipw_net_free(run->net);
    if (run->http) ipw_http_free(run->http);
    ipw_web_free(run->web);
    if (run->service) ipw_service_stop(run->service);
    if (run->loop) {
        ipw_loop_run(run->loop); /* children are reaped, handles closed */
        ipw_loop_free(run->loop);
    }
    ipw_workspaces_remove(&run->workspaces);
    free(run->base_url);
    free(run->model);
    free(run->tools_text);
    free(run->tools);
}

static void print_notes(const struct ipw_run *run)
{
    if (run->o->quiet) return;
    if (run->demo_why) ipw_say("%s: the demo model answers", run->demo_why);
    if (ipw_dataset_note(run->cases)) ipw_say("%s", ipw_dataset_note(run->cases));
    if (run->not_quiet[0]) ipw_say("warning: the machine is not quiet: %s", run->not_quiet);
    if (run->sources.n == (run->model_source != NULL) &&
        !ipw_source_select_none((const char *const *)run->o->telemetry.items))
        ipw_say("no energy sensor can be read (`ipw-agent telemetry` says why)");
}

/* A run that was begun before is locked before anything of it is read. */
static int lock_earlier(struct ipw_run *run, struct ipw_err *err)
{
    int rc;

    if (!run->o->resume || !ipw_rundir_holds_run(run->o->output)) return 0;
    rc = ipw_rundir_open(&run->dir, run->o->output, err);
    if (!rc) run->summary.place.folder = ipw_rundir_path(run->dir);
    if (rc || !ipw_rundir_has_manifest(run->dir)) return rc;
    return ipw_history_open(run, err);
}

/* Everything that can be wrong is found before the run's folder is made; *exit_code says which kind
 * of wrong it was. */
static int prepare(struct ipw_run *run, const char *agent, int *exit_code, struct ipw_err *err)
{
    const struct ipw_run_options *o = run->o;
    int rc;

    *exit_code = IPW_EXIT_USAGE;
    rc = run->origin->check(run->origin, o, err);
    if (!rc) rc = ipw_sync_parse(&run->sync, o->sync, err);
    if (!rc) rc = ipw_retry_parse(&run->retry, o->retry, err);
    if (!rc && !o->resume && (o->force || strcmp(o->retry, "cut")))
        rc =
            ipw_fail(err, IPW_EINVAL, "run: --%s goes with --resume", o->force ? "force" : "rerun");
    if (!rc && o->resume && !o->output)
        rc = ipw_fail(err, IPW_EINVAL, "--resume: --output names the run to go on with");
    if (rc) return rc;
    *exit_code = IPW_EXIT_FAILED;
    rc = lock_earlier(run, err);
    if (rc) return rc;
    *exit_code = IPW_EXIT_USAGE;
    run->config = (struct ipw_agent_config){.max_turns = o->max_turns,
                                            .temperature = o->temperature,
                                            .seed = o->seed,
                                            .max_tokens = o->max_tokens,
                                            .memory_bytes = o->lua_memory_bytes,
                                            .slice_cpu_ns = o->lua_cpu_ns,
                                            .untrusted = o->untrusted,
                                            .paths = ipw_script_paths(&o->script)};
    cut_tools(run);
    ipw_script_options_apply(&o->script);
    rc = ipw_run_share(&run->ledger_facts.share, run, err);
    if (!rc) rc = ipw_run_where(&run->ledger_facts.lm_remote, run, err);
    if (rc) return rc;
    rc = ipw_agent_inspect(&run->agent, agent, ipw_script_paths(&o->script), o->untrusted, err);
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
    ipw_anchor_take(&run->anchor);
    rc = ipw_http_global_init(err);
    if (!rc) rc = ipw_loop_new(&run->loop, err);
    if (!rc)
        rc = ipw_http_new(
            &run->http, run->loop,
            &(struct ipw_http_options){.max_connections = (size_t)o->net.max_connections,
                                       .cacert = o->net.cacert},
            err);
    if (!rc) run->web = ipw_script_web(&o->script, run->loop, o->net.cacert);
    if (!rc) rc = ipw_run_connect(run, err);
    if (!rc && run->origin->connected) run->origin->connected(run->origin, run);
    if (rc) {
        if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
        return rc;
    }
    rc = ipw_sensors_open(run, err);
    if (!rc) rc = ipw_enforce_check(run, err);
    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    if (rc) return rc;
    *exit_code = IPW_EXIT_INPUT;
    rc = ipw_history_check(run, true, err);
    if (!rc) rc = ipw_history_mend(run, err);
    return rc ? rc : ipw_history_settle(run, err);
}

static int open_dir(struct ipw_run *run, struct ipw_err *err)
{
    struct ipw_rundir_names names = {.agent = run->agent.name,
                                     .model = run->demo ? "demo" : run->model,
                                     .dataset = ipw_dataset_name(run->cases),
                                     .wall_ns = run->anchor.wall_ns};
    int rc = run->dir ? 0 : ipw_rundir_create(&run->dir, run->o->output, &names, err);

    if (rc) return rc;
    run->summary.place.folder = ipw_rundir_path(run->dir);
    ipw_rundir_set_sync(run->dir, run->sync != IPW_SYNC_OFF);
    if (run->o->no_content) {
        rc = ipw_redactor_init(&run->redactor, IPW_REDACT_ALL, err);
        if (rc) return rc;
        ipw_rundir_set_redactor(run->dir, &run->redactor);
    }
    rc = ipw_run_write_manifest(run, NULL, NULL, NULL, err);
    return rc || run->sync != IPW_SYNC_QUERY ? rc : ipw_syncer_new(&run->syncer, run->loop, err);
}

/* The rules of the ledger, and the manifest, should its file be lost. */
static void put_run_start(struct ipw_buf *out, const struct ipw_run *run)
{
    struct ipw_buf facts = IPW_BUF(64 * IPW_KIB), manifest = IPW_BUF(out->max);
    struct ipw_json *a = NULL, *b = NULL;

    ipw_ledger_rules_write(&facts, &run->ledger_facts);
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
                              .rows = kind == IPW_EV_RUN_END ? run->n_rows : 0,
                              .segment = run->segment};
    struct ipw_buf data = IPW_BUF(256 * IPW_MIB);

    if (kind == IPW_EV_RUN_START) {
        ipw_ledger_rules_take(&run->ledger_facts, run->ledger, &run->sources);
        run->ledger_facts.clock = run->anchor;
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
    ipw_sensors_wait(run);
    ipw_run_baseline_before(run);
    run->progress = ipw_progress_new(run->loop, ipw_run_planned(run), run->o->quiet);
    ipw_progress_measure(run->progress, ipw_enforce_run_joules, run);
    run->n_done = run->history.n_kept;
    ipw_progress_done(run->progress, run->n_done);
    ipw_net_watch(run);
    /* The sensors and their first readings are safe before the session says that it began: its joules
     * can be told from the files whatever a power cut takes later. */
    rc = ipw_rundir_sync(run->dir, err);
    if (rc) return rc;
    run->start_ns = ipw_now_ns();
    run->cpu_start_ns = ipw_cpu_self_ns();
    emit_run_event(run, IPW_EV_RUN_START, run->start_ns);
    ipw_sensors_started(run);
    ipw_enforce_run_start(run);
    ipw_run_queries(run);
    ipw_enforce_run_end(run);
    ipw_run_sampled(run); /* what was read before the end is told before it */
    run->end_ns = ipw_now_ns();
    ipw_run_baseline_after(run);
    if (run->sampler) {
        ipw_sampler_stop(run->sampler); /* takes one more reading, past the end */
        ipw_run_sampled(run);
    }
    /* Last: it says how many samples the session has. */
    emit_run_event(run, IPW_EV_RUN_END, run->end_ns);
    ipw_progress_free(run->progress);
    run->progress = NULL;
    /* What says that the run came to its end follows what it is the end of.  A failure is met again
     * by what is written next. */
    ipw_rundir_sync(run->dir, NULL);
    rc = ipw_run_finish(run, err);
    if (!rc && run->origin->finish) rc = run->origin->finish(run->origin, run, err);
    if (run->err.code) {
        *err = run->err;
        rc = err->code;
    }
    return rc;
}

/* Every exit passes here: the lock is given back. */
static int close_dir(struct ipw_run *run, int rc, struct ipw_err *err, char **path)
{
    int closed;

    ipw_run_sync_close(run);
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
    const struct ipw_summary_shown *first = &run->summary.unanswered;
    bool known = first->error && *first->error;

    if (first->id && (run->o->quiet || !known))
        ipw_say("no query was answered; query %s: %s", first->id,
                known ? first->error : first->outcome);
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

void ipw_run_options_init(struct ipw_run_options *o)
{
    *o = (struct ipw_run_options){.concurrency = 1,
                                  .epochs = 1,
                                  .sync = "query",
                                  .retry = "cut",
                                  .grace_ns = 30 * IPW_NS_PER_S,
                                  .energy = "auto",
                                  .seed = INT64_MIN,
                                  .max_tokens = -1,
                                  .max_retries = 2,
                                  .server_failures = 5,
                                  .server_wait_ns = 40 * IPW_NS_PER_S,
                                  .lua_cpu_ns = 2 * IPW_NS_PER_S,
                                  .lua_memory_bytes = 64 * IPW_MIB,
                                  .temperature = NAN};
    ipw_limits_init(&o->limits);
}

int ipw_run_start(struct ipw_run_options *o, const char *agent, char *command,
                  struct ipw_origin *origin, struct ipw_run_end *end)
{
    struct ipw_run run = {.o = o,
                          .command = command,
                          .origin = origin,
                          .workspaces = IPW_WORKSPACES_NONE,
                          .early_notes = IPW_BUF(16 * IPW_MIB)};
    struct ipw_err err = {0};
    char *dir = NULL;
    int exit_code, rc;
    bool nothing, begun, stopped;

    o->adapt = o->sample_interval_ns == 0;
    if (o->adapt) o->sample_interval_ns = 50 * IPW_NS_PER_MS;
    if (o->net.base_urls.n) o->base_url = o->net.base_urls.items[0];
    if (o->sample_interval_ns < IPW_NS_PER_MS) o->sample_interval_ns = IPW_NS_PER_MS;
    ipw_log_set_level(o->quiet ? IPW_LOG_ERROR : o->verbose ? IPW_LOG_INFO : IPW_LOG_WARN);
    guard_process();
    run.unbooked_tail = &run.unbooked;
    ipw_summary_init(&run.summary);
    rc = prepare(&run, agent, &exit_code, &err);
    nothing = !rc && ipw_history_complete(&run);
    if (!rc) sweep_workspaces();
    if (nothing) {
        if (!o->quiet) ipw_say("%s: every query is done, nothing is left to run", o->output);
    } else if (!rc) {
        exit_code = IPW_EXIT_FAILED;
        rc = run_all(&run, &err);
    }
    if (!rc && run.server_lost) rc = ipw_fail(&err, IPW_ENET, "%s", run.lost_note);
    rc = close_dir(&run, rc, &err, &dir);
    begun = run.start_ns || run.history.manifest;
    stopped = rc || run.interrupted || run.limits.reached;
    if (rc) {
        tell_what_stays(&err, begun && origin->resumes ? dir : NULL);
        end->err = err;
    } else if (run.interrupted)
        exit_code = 128 + run.stop_signal;
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
