/* A run from its options to its exit code: this file creates the parts, joins them, uses them and
 * frees them. */
#include "run/run.h"

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
#include "json/document.h"
#include "run/energy_so_far.h"
#include "run/finish.h"
#include "run/resume/rebuild.h"
#include "run/resume/sessions.h"
#include "run/resume_hint.h"
#include "run/run_priv.h"

/* ---- the parts report ---- */

void ipw_run_step_soon(void *ud) { ipw_schedule_step_soon(&((struct run *)ud)->schedule); }

static void failed(void *ud, const struct ipw_err *err)
{
    ipw_schedule_fail(&((struct run *)ud)->schedule, err);
}

static void query_over(void *ud, struct ipw_query *q)
{
    ipw_schedule_over(&((struct run *)ud)->schedule, q);
}

void ipw_run_sampled(void *ud)
{
    struct run *run = ud;

    ipw_sensors_drain(&run->sensors);
    if (!run->session.end_ns) ipw_run_limits_samples(&run->limits);
    if (run->dir) ipw_finished_queries_check(&run->finished);
}

static void servers_lost(void *ud, const char *why)
{
    struct run *run = ud;

    run->ending.server_lost = true;
    snprintf(run->ending.lost_note, sizeof run->ending.lost_note, "%s", why);
}

static void line_written(void *ud, const struct ipw_query_trace *trace,
                         const struct ipw_query_details *details)
{
    struct run *run = ud;

    ipw_progress_query(run->progress, trace, details);
    ipw_grading_keep(&run->grading, trace, details);
    ipw_durable_wrote(&run->durable, trace->id);
}

static void queries_left(void *ud)
{
    struct run *run = ud;

    if (!run->ending.err.code) ipw_durable_sync(&run->durable);
    ipw_run_step_soon(run);
}

static bool more_to_come(void *ud)
{
    struct run *run = ud;

    return (run->servers.n_queries || ipw_plan_more(&run->plan)) && !run->ending.stop_signal &&
           !run->ending.err.code;
}

static void synced(void *ud)
{
    struct run *run = ud;

    ipw_progress_done(run->progress, run->durable.n_done);
    ipw_run_step_soon(run);
}

static void before_sleep(void *ud)
{
    struct run *run = ud;
    struct ipw_err err;

    ipw_scripts_note(&run->scripts, run->dir, run->sensors.n_rows);
    if (!run->ending.err.code && ipw_rundir_flush(run->dir, &err)) failed(run, &err);
}

static void energy_so_far(void *ud, double *joules, double *seconds)
{
    const struct run *run = ud;

    ipw_energy_of_model(joules, seconds, run->sensors.ledger, run->sensors.feed,
                        run->session.start_ns);
}

struct ipw_manifest ipw_run_manifest(const struct run *run)
{
    return (struct ipw_manifest){.o = run->o,
                                 .agent = &run->agent,
                                 .tools = run->tools,
                                 .cases = run->cases,
                                 .connection = &run->connection,
                                 .pricing = &run->pricing,
                                 .scripts = &run->scripts,
                                 .sensors = &run->sensors,
                                 .baseline = &run->baseline,
                                 .history = &run->history,
                                 .differences = &run->differences,
                                 .session = &run->session,
                                 .origin = run->origin,
                                 .command = run->command,
                                 .selection_sha256 = run->selection_sha256,
                                 .sync = run->durable.policy};
}

/* ---- the run ---- */

static int open_dir(struct run *run, struct ipw_err *err)
{
    struct ipw_rundir_names names = {.agent = run->agent.name,
                                     .model = run->connection.model,
                                     .dataset = ipw_dataset_name(run->cases),
                                     .wall_ns = run->session.anchor.wall_ns};
    struct ipw_manifest manifest = ipw_run_manifest(run);
    int rc = run->dir ? 0 : ipw_rundir_create(&run->dir, run->o->output.dir, &names, err);

    if (rc) return rc;
    ipw_rundir_set_sync(run->dir, run->durable.policy != IPW_SYNC_OFF);
    if (run->o->output.no_content) {
        rc = ipw_redactor_init(&run->redactor, IPW_REDACT_ALL, err);
        if (rc) return rc;
        ipw_rundir_set_redactor(run->dir, &run->redactor);
    }
    return ipw_manifest_write(&manifest, run->dir, NULL, err);
}

/* Joins the parts that need the folder: each gets what it uses. */
static void join_parts(struct run *run)
{
    const struct ipw_run_options *o = run->o;

    run->servers = (struct ipw_server_watch){.llm = run->connection.llm,
                                             .dir = run->dir,
                                             .adaptive = o->server.net.adaptive,
                                             .concurrency = ipw_run_concurrency(o),
                                             .server_wait_ns = o->server.server_wait_ns,
                                             .changed = ipw_run_step_soon,
                                             .lost = servers_lost,
                                             .ud = run};
    run->ground = (struct ipw_query_ground){
        .loop = run->loop,
        .llm = run->connection.llm,
        .model = run->connection.model,
        .sub = run->connection.sub,
        .sub_model = o->server.sub.model,
        .agent = &o->agent,
        .info = &run->agent,
        .config = &run->config,
        .cases = run->cases,
        .workspaces = &run->workspaces,
        .limits = &run->limits,
        .trace = {.folder = ipw_rundir_path(run->dir),
                  .wall_ns = run->history.n ? run->history.past[0].anchor.wall_ns
                                            : run->session.anchor.wall_ns,
                  .session = run->session.number},
        .sinks = {.pricing = &run->pricing,
                  .sensors = &run->sensors,
                  .dir = run->dir,
                  .servers = &run->servers,
                  .origin = run->origin},
        .over = query_over,
        .ud = run};
    ipw_run_all_grants(&run->ground.grants, run);
    run->finished = (struct ipw_finished_queries){.loop = run->loop,
                                                  .dir = run->dir,
                                                  .sensors = &run->sensors,
                                                  .session = &run->session,
                                                  .ending = &run->ending,
                                                  .results = &run->results,
                                                  .model = run->connection.model,
                                                  .wrote = line_written,
                                                  .left = queries_left,
                                                  .failed = failed,
                                                  .ud = run};
    run->durable = (struct ipw_durable){.policy = run->durable.policy,
                                        .loop = run->loop,
                                        .dir = run->dir,
                                        .n_done = run->history.n_kept,
                                        .more = more_to_come,
                                        .done = synced,
                                        .failed = failed,
                                        .ud = run};
    run->schedule = (struct ipw_schedule){.loop = run->loop,
                                          .ground = &run->ground,
                                          .plan = &run->plan,
                                          .finished = &run->finished,
                                          .durable = &run->durable,
                                          .ending = &run->ending,
                                          .grace_ns = o->grace_ns,
                                          .before_sleep = before_sleep,
                                          .ud = run};
    ipw_server_watch_start(&run->servers);
    ipw_durable_open(&run->durable);
}

static void start_progress(struct run *run)
{
    run->progress = ipw_progress_new(run->loop, ipw_plan_total(&run->plan), run->durable.n_done,
                                     run->o->output.quiet);
    ipw_progress_earlier(run->progress, &run->results.summary);
    ipw_progress_measure(run->progress, energy_so_far, run);
    ipw_progress_standstill(run->progress, ipw_server_watch_standstill, &run->servers);
    run->ground.sinks.progress = run->progress;
    run->shows_rows = ipw_progress_shows_rows(run->progress);
}

static void tell_follower(const struct run *run)
{
    ipw_follower_begin(run->follower,
                       &(struct ipw_followed_run){.folder = ipw_rundir_path(run->dir),
                                                  .agent = run->agent.name,
                                                  .model = run->connection.model,
                                                  .dataset = ipw_dataset_name(run->cases),
                                                  .session = run->session.number,
                                                  .planned = ipw_plan_total(&run->plan)});
}

/* The rules of the ledger, and the manifest, in case its file is lost. */
static void put_run_start(struct ipw_buf *out, const struct run *run)
{
    struct ipw_buf rules = IPW_BUF(64 * IPW_KIB), text = IPW_BUF(out->max);
    struct ipw_manifest manifest = ipw_run_manifest(run);
    struct ipw_json *doc = NULL;

    ipw_ledger_rules_write(&rules, &run->sensors.rules);
    ipw_buf_adds(&text, "{\"manifest\":");
    ipw_manifest_put(&text, &manifest, run->dir);
    ipw_buf_addc(&text, '}');
    if (ipw_json_parse(&doc, ipw_buf_str(&rules), rules.len, NULL, NULL))
        IPW_BUG("the rules of the ledger are not JSON");
    ipw_json_patch(out, doc, ipw_buf_str(&text));
    ipw_json_free(doc);
    ipw_buf_release(&rules);
    ipw_buf_release(&text);
}

static void emit_start(struct run *run)
{
    struct ipw_event event = {.kind = IPW_EV_RUN_START,
                              .t_ns = run->session.start_ns,
                              .query = -1,
                              .segment = run->session.number};
    struct ipw_buf data = IPW_BUF(256 * IPW_MIB);

    ipw_ledger_rules_take(&run->sensors.rules, run->sensors.ledger, &run->sensors.sources);
    run->sensors.rules.clock = run->session.anchor;
    put_run_start(&data, run);
    event.payload = ipw_buf_str(&data);
    event.payload_len = data.len;
    ipw_rundir_event(run->dir, &event);
    ipw_buf_release(&data);
}

static void emit_end(struct run *run)
{
    struct ipw_event event = {.kind = IPW_EV_RUN_END,
                              .t_ns = run->session.end_ns,
                              .query = -1,
                              .rows = run->sensors.n_rows,
                              .segment = run->session.number};

    ipw_rundir_event(run->dir, &event);
}

static void print_notes(const struct run *run)
{
    if (run->o->output.quiet) return;
    if (run->connection.demo_why) ipw_say("%s: the demo model answers", run->connection.demo_why);
    if (ipw_dataset_note(run->cases)) ipw_say("%s", ipw_dataset_note(run->cases));
    if (run->sensors.found.not_quiet[0])
        ipw_say("warning: the machine is not quiet: %s", run->sensors.found.not_quiet);
    if (ipw_sensors_none(&run->sensors) && !ipw_sensors_off(&run->sensors))
        ipw_say("no energy sensor can be read (`ipw-agent telemetry` says why)");
}

static int finish(struct run *run, bool silent, struct ipw_err *err)
{
    struct ipw_manifest manifest = ipw_run_manifest(run);
    const struct ipw_finish finish = {.manifest = &manifest,
                                      .results = &run->results,
                                      .limits = &run->limits,
                                      .ending = &run->ending,
                                      .plan = &run->plan,
                                      .ended = &run->ended,
                                      .dir = run->dir,
                                      .screen_note = &run->ending.screen_note,
                                      .silent = silent};
    int rc = ipw_finish(&finish, err);

    if (silent) return rc;
    if (!rc && run->origin->finish)
        rc = run->origin->finish(run->origin, ipw_rundir_path(run->dir), run->o->output.json, err);
    if (!run->ending.err.code) return rc;
    *err = run->ending.err;
    return err->code;
}

/* ---- answers are graded after the session's end ---- */

static void take_end(struct run *run)
{
    struct ipw_manifest manifest = ipw_run_manifest(run);

    run->sensors.sealed = true;
    ipw_run_ended_take(&run->ended, &manifest, ipw_follower_cpu_ns(run->follower));
}

/* Readings that pass the end make the session's balance final. */
static void read_past_end(struct run *run)
{
    int64_t give_up_ns = run->session.end_ns + 3 * IPW_NS_PER_S;

    while (run->sensors.sampler && ipw_now_ns() < give_up_ns &&
           ipw_ledger_covered_ns(run->sensors.ledger) < run->session.end_ns) {
        ipw_sampler_kick(run->sensors.sampler);
        ipw_sensors_pass(&run->sensors, ipw_now_ns() + 25 * IPW_NS_PER_MS);
        ipw_sensors_drain(&run->sensors);
    }
}

static int add_warmup(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct run *run = ud;

    (void)err;
    if (q->details.segment == run->session.number)
        ipw_uncounted_add(&run->results.warmup, &q->trace);
    return 0;
}

/* A sensor lost its trust: no line may state its energy, also not of those that were written
 * before.  They are written again from events and readings, which are all on disk. */
static int rebook(struct run *run, struct ipw_err *err)
{
    const char *path = ipw_rundir_path(run->dir);
    struct ipw_rebuild rebuild = {0};
    int rc = ipw_rebuild_run(&rebuild, path, err);

    if (!rc) rc = ipw_rundir_reopen(run->dir, err);
    if (rc) return rc;
    ipw_uncounted_release(&run->results.warmup);
    rc = ipw_history_each(path, "warmup.jsonl", add_warmup, run, err);
    return rc ? rc : ipw_results_recount(&run->results, path, err);
}

/* The summary and the session's end are written first: a kill while answers are graded leaves a
 * complete run, whose grading `resume` completes. */
static int grade(struct run *run, struct ipw_err *err)
{
    struct ipw_grading *g = &run->grading;
    int rc;

    read_past_end(run);
    take_end(run);
    rc = finish(run, true, err);
    if (rc) return rc;
    g->loop = run->loop;
    g->dir = run->dir;
    g->sensors = run->sensors.sampler ? &run->sensors : NULL;
    g->server = (struct ipw_grading_server){run->connection.base_url, run->connection.key};
    g->first_number = (int32_t)ipw_plan_total(&run->plan);
    rc = ipw_grading_run(g, err);
    if (g->stop_signal) run->ending.stop_signal = g->stop_signal;
    if (g->n_graded && !rc)
        rc = ipw_results_recount(&run->results, ipw_rundir_path(run->dir),
                                 err); /* with the verdicts */
    return rc;
}

static int run_all(struct run *run, struct ipw_err *err)
{
    struct ipw_err why = {0};
    bool grades;
    int rc = open_dir(run, err);

    if (rc) return rc;
    join_parts(run);
    tell_follower(run);
    if (run->origin->resumes) ipw_resume_hint_ready(ipw_rundir_path(run->dir), &run->results);
    print_notes(run);
    ipw_sensors_wait(&run->sensors, run->dir);
    ipw_baseline_before(&run->baseline, &run->sensors);
    start_progress(run);
    /* Sync the sensors' header and first readings before the session's run_start, so that its
     * joules can be computed from the files after any power cut. */
    rc = ipw_rundir_sync(run->dir, err);
    if (rc) return rc;
    run->session.start_ns = ipw_now_ns();
    run->session.cpu_start_ns = ipw_cpu_self_ns();
    emit_start(run);
    ipw_sensors_started(&run->sensors);
    ipw_run_limits_start(&run->limits);
    ipw_schedule_run(&run->schedule);
    ipw_run_limits_end(&run->limits);
    ipw_run_sampled(run); /* what was read before the end is told before it */
    run->session.end_ns = ipw_now_ns();
    if (!run->ending.stop_signal && !run->ending.err.code)
        ipw_baseline_after(&run->baseline, &run->sensors);
    ipw_progress_free(run->progress);
    run->progress = run->ground.sinks.progress = NULL;
    grades = ipw_grading_wanted(&run->grading) && !run->ending.stop_signal && !run->ending.err.code;
    if (grades && grade(run, &why)) run->ending.err = why;
    ipw_sensors_stop(&run->sensors); /* takes one more reading, past the end */
    emit_end(run);                   /* last, because it has the session's number of readings */
    if (!grades) take_end(run);
    /* Sync before the summary: run_end must not reach the disk before the lines it closes.  The
     * next write returns a failure again. */
    ipw_rundir_sync(run->dir, NULL);
    if (ipw_sensors_doubted(&run->sensors) && !run->ending.err.code && rebook(run, &why))
        run->ending.err = why;
    return finish(run, false, err);
}

/* ---- the end ---- */

/* Every exit passes here, so that the lock is released. */
static int close_dir(struct run *run, int rc, struct ipw_err *err, char **path)
{
    int closed;

    ipw_durable_close(&run->durable);
    if (!run->dir) return rc;
    *path = ipw_strdup(ipw_rundir_path(run->dir));
    closed = ipw_rundir_close(run->dir, rc ? NULL : err);
    run->dir = NULL;
    return rc ? rc : closed;
}

/* The remedy for a disk error.  `path` NULL: there is nothing to continue. */
static void tell_what_stays(struct ipw_err *err, const char *path)
{
    size_t n = strlen(err->text);
    bool full = err->detail == ENOSPC || err->detail == EDQUOT || err->detail == EFBIG;

    if (!path || err->code != IPW_EIO || access(path, F_OK) < 0) return;
    snprintf(err->text + n, sizeof err->text - n, "; what was written before stays%s",
             full ? ": free some space, then resume" : "");
}

/* A run without any answer prints why in one line, also with --quiet: the exit status does not tell
 * it, and the screen can cut it.  Without --quiet the error was printed when it
 * happened. */
static void tell_why_failed(const struct run *run)
{
    const struct ipw_summary *s = &run->results.summary;
    bool known = s->unanswered_error && *s->unanswered_error;
    const char *why = known ? s->unanswered_error : s->unanswered_outcome;

    if (!s->unanswered_id || (known && !run->o->output.quiet)) return;
    if (strcmp(why, "malformed") == 0) why = "the reply did not follow the agent's format";
    ipw_say("no query was answered; query %s: %s", s->unanswered_id, why);
}

/* A write beyond a file size limit becomes an error like a full disk, instead of the end of the
 * program. A run in a debugger, the only run that can write a core file (main.c), writes one
 * without memory, because it contains keys.  The filter of dumped mappings (none) is set for this:
 * RLIMIT_CORE has no effect when cores go to a program. */
static void guard_process(void)
{
    int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (fd < 0) return; /* an old kernel, or closed already */
    if (write(fd, "0", 1) != 1) ipw_log(IPW_LOG_DEBUG, "the core filter cannot be set");
    close(fd);
}

/* Removes workspaces of killed runs, including earlier sessions of this run. */
static void sweep_workspaces(void)
{
    struct ipw_workspaces_left left;

    ipw_workspaces_left(&left, true);
    if (left.n)
        ipw_log(IPW_LOG_INFO, "%s: removed %zu folder%s of workspaces (%.1f MiB) of killed runs",
                ipw_workspaces_root(), left.n, left.n == 1 ? "" : "s",
                (double)left.bytes / IPW_MIB);
}

static void release(struct run *run)
{
    ipw_progress_free(run->progress);
    ipw_history_release(&run->history);
    ipw_differences_release(&run->differences);
    ipw_scripts_release(&run->scripts);
    free(run->command);
    ipw_plan_release(&run->plan);
    ipw_sensors_close(&run->sensors);
    ipw_kept_servers_close(run->reach.kept); /* after the sensors, because the loop runs here */
    free(run->reach.kept_folder);
    ipw_grading_release(&run->grading);
    ipw_run_ended_release(&run->ended);
    ipw_results_release(&run->results);
    ipw_pricing_close(&run->pricing);
    ipw_dataset_free(run->cases);
    ipw_connection_close(&run->connection);
    ipw_web_free(run->reach.web);
    if (run->loop) {
        /* What it opened for a run that did not begin. */
        if (run->origin->over) run->origin->over(run->origin);
        ipw_loop_run(run->loop); /* reaps children and closes handles */
        ipw_loop_free(run->loop);
    }
    ipw_workspaces_remove(&run->workspaces);
    free(run->tools_text);
    free(run->tools);
}

/* The exit code of a run, regardless of how it ended. */
static int exit_code_of(const struct run *run)
{
    if (run->ending.stop_signal) return 128 + run->ending.stop_signal;
    if (run->limits.reached && !run->results.n_failed)
        return IPW_EXIT_OK; /* ended on request, before any error */
    if (run->again.nothing_left || run->results.n_answered) return IPW_EXIT_OK;
    tell_why_failed(run); /* no query has an answer */
    return IPW_EXIT_FAILED;
}

int ipw_run_start(const struct ipw_run_options *o, const char *agent, char *command,
                  struct ipw_origin *origin, struct ipw_follower *follower, struct ipw_run_end *end)
{
    struct run run = {.o = o,
                      .agent_name = agent,
                      .command = command,
                      .origin = origin,
                      .follower = follower,
                      .workspaces = IPW_WORKSPACES_NONE};
    struct ipw_err err = {0};
    char *dir = NULL;
    int exit_code, rc;
    bool begun, stopped;

    ipw_log_set_level(o->output.quiet     ? IPW_LOG_ERROR
                      : o->output.verbose ? IPW_LOG_INFO
                                          : IPW_LOG_WARN);
    guard_process();
    ipw_results_init(&run.results);
    exit_code = ipw_run_prepare(&run, &err);
    rc = exit_code == IPW_EXIT_OK ? 0 : err.code;
    if (!rc) {
        exit_code = IPW_EXIT_FAILED;
        sweep_workspaces();
        if (!run.again.nothing_left)
            rc = run_all(&run, &err);
        else if (!o->output.quiet)
            ipw_say(ipw_dataset_count(run.cases)
                        ? "%s: every query is done, nothing is left to run"
                        : "%s: no task belongs to this shard, nothing is to be run",
                    o->output.dir);
    }
    if (!rc && run.ending.server_lost) rc = ipw_fail(&err, IPW_ENET, "%s", run.ending.lost_note);
    rc = close_dir(&run, rc, &err, &dir);
    begun = run.session.start_ns || run.history.manifest;
    stopped = rc || run.ending.stop_signal || run.limits.reached;
    if (rc) {
        tell_what_stays(&err, begun && origin->resumes ? dir : NULL);
        end->err = err;
    } else {
        exit_code = exit_code_of(&run);
    }
    stopped &= begun && origin->resumes && exit_code != IPW_EXIT_USAGE;
    end->go_on = ipw_resume_hint(stopped ? dir : NULL, &run.results);
    end->folder = run.ending.screen_note ? dir : NULL;
    end->rows = run.shows_rows;
    end->note = run.ending.screen_note;
    if (!end->folder) free(dir);
    release(&run);
    return exit_code;
}
