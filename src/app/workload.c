#include "app/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/query_state.h"
#include "base/log.h"
#include "base/mem.h"
#include "json/jsonl.h"
#include "json/write.h"

enum { MAX_REPORT_BYTES = 1024 * 1024 };
/* A query begins a little before its first request is due: its Lua state has to be made. */
#define LEAD_NS (5 * IPW_NS_PER_MS)

/* ---- what the run asks ---- */

struct ipw_cases *ipw_workload_cases(const struct ipw_run *run)
{
    const struct ipw_workload *w = run->workload->workload;
    struct ipw_cases *cases =
        ipw_cases_given("workload", w->path, NULL, "a workload replay: replies are not scored");

    for (size_t i = 0; i < w->n; i++)
        ipw_cases_add(cases, w->queries[i].id, w->queries[i].prompt ? w->queries[i].prompt : "");
    return cases;
}

void ipw_workload_connected(struct ipw_run *run)
{
    struct ipw_workload_run *wr = run->workload;
    struct ipw_err why = {0};

    if (!wr) return;
    wr->forced = !wr->no_force && ipw_llm_can_force(run->llm, &why) == 0;
    if (!wr->forced && !wr->no_force && !run->o->quiet)
        ipw_say("replies are at most, not exactly, as long as recorded: %s", why.text);
}

static void wake(void *ud)
{
    struct ipw_run *run = ud;

    run->workload->next = NULL;
    ipw_run_step_soon(run);
}

static int64_t scheduled(const struct ipw_run *run, int64_t at_ns)
{
    return run->start_ns + (int64_t)((double)at_ns / run->workload->speed);
}

bool ipw_workload_due(struct ipw_run *run)
{
    struct ipw_workload_run *wr = run->workload;
    const struct ipw_workload_query *q;
    int64_t due, now;

    if (!wr || !wr->open) return true;
    q = &wr->workload->queries[ipw_run_place(run, run->next).index];
    due = scheduled(run, q->turns[0].at_ns) - LEAD_NS;
    now = ipw_now_ns();
    if (due <= now) return true;
    if (!wr->next) wr->next = ipw_timer_start(run->loop, due - now, wake, run);
    return false;
}

void ipw_workload_over(struct ipw_run *run)
{
    if (!run->workload) return;
    ipw_timer_cancel(run->workload->next);
    run->workload->next = NULL;
}

void ipw_workload_seat(struct ipw_query *q)
{
    const struct ipw_workload_run *wr = q->run->workload;

    if (!wr) return;
    q->seat = (struct ipw_host_workload){.query = &wr->workload->queries[q->place.index],
                                         .open = wr->open,
                                         .force = wr->forced,
                                         .speed = wr->speed,
                                         .zero_ns = q->run->start_ns,
                                         .seed = q->place.index,
                                         .end_ns = q->start_ns};
    q->host.workload = &q->seat;
}

static void sent(struct ipw_query *q, const struct ipw_event *event)
{
    struct ipw_workload_run *wr = q->run->workload;
    const struct ipw_workload_turn *turn = &q->seat.query->turns[q->seat.turn];

    IPW_GROW(wr->lag_ns, wr->cap, wr->n + 1);
    wr->lag_ns[wr->n++] = event->t_ns - q->seat.due_ns;
    if (!q->seat.late) return;
    IPW_GROW(wr->late_ns, wr->cap_late, wr->n_late + 1);
    wr->late_ns[wr->n_late++] = q->seat.due_ns - scheduled(q->run, turn->at_ns);
}

static void answered(struct ipw_query *q, const struct ipw_event *event)
{
    struct ipw_workload_run *wr = q->run->workload;
    const struct ipw_workload_turn *turn = &q->seat.query->turns[q->seat.turn];
    const struct ipw_lm_facts *f = &event->lm;

    q->seat.end_ns = event->t_ns;
    if (f->outcome != IPW_LM_OK) {
        wr->n_failed++;
        return;
    }
    if (turn->output_tokens > 0 && f->output_tokens >= 0 && !f->tokens_estimated) {
        wr->n_length++;
        wr->n_length_kept += f->output_tokens == turn->output_tokens;
    }
    if (turn->input_tokens > 0 && f->input_tokens > 0) {
        wr->input_asked += turn->input_tokens;
        wr->input_counted += f->input_tokens;
    }
}

void ipw_workload_event(struct ipw_query *q, const struct ipw_event *event)
{
    if (!q->run->workload || q->place.warmup) return;
    if (event->kind == IPW_EV_LM_START && event->lm.attempt == 1) sent(q, event);
    if (event->kind == IPW_EV_LM_END && !event->lm.will_retry) answered(q, event);
}

/* ---- what it leaves ---- */

void ipw_workload_write(struct ipw_jw *w, const struct ipw_run *run)
{
    const struct ipw_workload_run *wr = run->workload;

    ipw_jw_obj(w);
    ipw_jw_kbool(w, "forced_length", wr->forced);
    ipw_jw_kstr(w, "mode", "workload");
    ipw_jw_kstr(w, "of", wr->of);
    ipw_jw_kstr(w, "schedule", wr->open ? "open" : "closed");
    ipw_jw_knum(w, "speed", wr->speed);
    ipw_jw_obj_end(w);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Of sorted values, by nearest rank, in seconds. */
static double rank(const int64_t *sorted, size_t n, double share)
{
    size_t k = n ? (size_t)ceil(share * (double)n) : 0;

    return n ? ipw_ns_to_s(sorted[k ? k - 1 : 0]) : NAN;
}

static void write_spread(struct ipw_jw *w, const char *key, const int64_t *sorted, size_t n,
                         int64_t less_ns)
{
    double less = ipw_ns_to_s(less_ns);

    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    ipw_jw_knum(w, "max", rank(sorted, n, 1) - less);
    ipw_jw_knum(w, "p50", rank(sorted, n, 0.5) - less);
    ipw_jw_knum(w, "p90", rank(sorted, n, 0.9) - less);
    ipw_jw_knum(w, "p99", rank(sorted, n, 0.99) - less);
    ipw_jw_obj_end(w);
}

static bool degraded(const struct ipw_workload_run *wr)
{
    return wr->n && rank(wr->lag_ns, wr->n, 0.99) > ipw_ns_to_s(wr->max_lag_ns);
}

static void report(struct ipw_buf *out, const struct ipw_run *run)
{
    const struct ipw_workload_run *wr = run->workload;
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kbool(&w, "degraded", degraded(wr));
    ipw_jw_kint(&w, "failed", (int64_t)wr->n_failed);
    ipw_jw_kbool(&w, "forced_length", wr->forced);
    write_spread(&w, "lag_absolute_s", wr->lag_ns, wr->n, 0);
    write_spread(&w, "lag_anchored_s", wr->lag_ns, wr->n, wr->n ? wr->lag_ns[0] : 0);
    ipw_jw_kint(&w, "late", (int64_t)wr->n_late);
    write_spread(&w, "late_s", wr->late_ns, wr->n_late, 0);
    ipw_jw_knum(&w, "max_lag_s", ipw_ns_to_s(wr->max_lag_ns));
    ipw_jw_kstr(&w, "mode", "workload");
    ipw_jw_kstr(&w, "of", wr->of);
    ipw_jw_kint(&w, "output_length_kept", (int64_t)wr->n_length_kept);
    ipw_jw_kint(&w, "output_length_known", (int64_t)wr->n_length);
    ipw_jw_kstr(&w, "path", ipw_rundir_path(run->dir));
    ipw_jw_knum(&w, "prompt_tokens_ratio",
                wr->input_asked ? (double)wr->input_counted / (double)wr->input_asked
                                : (double)NAN);
    ipw_jw_kint(&w, "queries", (int64_t)wr->workload->n);
    ipw_jw_kstr(&w, "schedule", wr->open ? "open" : "closed");
    ipw_jw_knum(&w, "speed", wr->speed);
    ipw_jw_kint(&w, "turns", (int64_t)wr->n);
    ipw_jw_kint(&w, "turns_recorded", (int64_t)wr->workload->n_turns);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
}

static void say(const struct ipw_workload_run *wr)
{
    double least = wr->n ? ipw_ns_to_s(wr->lag_ns[0]) : 0;

    printf("workload of %s, %s loop", wr->of, wr->open ? "open" : "closed");
    if (wr->speed != 1) printf(", speed %g", wr->speed);
    printf(": %zu of %zu requests sent", wr->n, wr->workload->n_turns);
    if (wr->n_failed) printf(", %zu failed", wr->n_failed);
    if (wr->n_length && wr->n_length_kept < wr->n_length)
        printf(", %zu of %zu replies as long as recorded", wr->n_length_kept, wr->n_length);
    putchar('\n');
    if (wr->n)
        printf("send lag p50 %.2f p90 %.2f p99 %.2f ms (anchored %.2f %.2f %.2f)\n",
               1e3 * rank(wr->lag_ns, wr->n, 0.5), 1e3 * rank(wr->lag_ns, wr->n, 0.9),
               1e3 * rank(wr->lag_ns, wr->n, 0.99), 1e3 * (rank(wr->lag_ns, wr->n, 0.5) - least),
               1e3 * (rank(wr->lag_ns, wr->n, 0.9) - least),
               1e3 * (rank(wr->lag_ns, wr->n, 0.99) - least));
    if (wr->n_late)
        printf("%zu requests waited for the reply before them, past their time (p50 %.3g s)\n",
               wr->n_late, rank(wr->late_ns, wr->n_late, 0.5));
    if (degraded(wr))
        printf("DEGRADED: requests were sent too late for this to be the workload (p99 over "
               "%.3g s)\n",
               ipw_ns_to_s(wr->max_lag_ns));
}

int ipw_workload_finish(struct ipw_run *run, struct ipw_err *err)
{
    struct ipw_workload_run *wr = run->workload;
    struct ipw_buf out = IPW_BUF(MAX_REPORT_BYTES);
    char *path;
    int rc;

    if (!wr) return 0;
    if (wr->n) qsort(wr->lag_ns, wr->n, sizeof *wr->lag_ns, by_size);
    if (wr->n_late) qsort(wr->late_ns, wr->n_late, sizeof *wr->late_ns, by_size);
    report(&out, run);
    path = ipw_asprintf("%s/replay.json", ipw_rundir_path(run->dir));
    rc = ipw_file_write_atomic(path, out.data, out.len, err);
    free(path);
    ipw_buf_release(&out);
    if (!rc && !run->o->json) say(wr);
    return rc;
}

/* ---- the command ---- */

static int check(struct ipw_workload_run *wr, const struct ipw_replay_cli *o, struct ipw_err *err)
{
    if (o->schedule && strcmp(o->schedule, "open") && strcmp(o->schedule, "closed"))
        return ipw_fail(err, IPW_EINVAL, "--schedule %.40s: expected open or closed", o->schedule);
    if (!(o->speed > 0 && o->speed <= 1e6))
        return ipw_fail(err, IPW_EINVAL, "--speed: expected a number above zero");
    if (!o->net.base_urls.n && !(o->model && strcmp(o->model, "demo") == 0))
        return ipw_fail(err, IPW_EINVAL,
                        "--mode workload: name the server to send it to with --base-url (a record "
                        "does not say)");
    wr->speed = o->speed;
    wr->max_lag_ns = o->max_lag_ns;
    wr->no_force = o->no_force;
    return 0;
}

/* How many queries went on at once in the record. */
static int64_t recorded_concurrency(const char *run)
{
    struct ipw_buf bytes = IPW_BUF(64 * IPW_MIB);
    char *path = ipw_asprintf("%s/manifest.json", run);
    struct ipw_json *doc = NULL;
    int64_t n = 1;

    if (ipw_file_read(&bytes, path, NULL) == 0 &&
        ipw_json_parse(&doc, ipw_buf_str(&bytes), bytes.len, NULL, NULL) == 0)
        n = ipw_json_int(ipw_json_get(ipw_json_get(doc, "config"), "concurrency"), 1);
    ipw_json_free(doc);
    ipw_buf_release(&bytes);
    free(path);
    return n < 1 || n > 100000 ? 1 : n;
}

int ipw_workload_replay(const char *path, const struct ipw_replay_cli *o, char *command)
{
    struct ipw_workload_run wr = {.of = path};
    struct ipw_run_options run;
    struct ipw_err err = {0};
    int code = IPW_EXIT_USAGE, rc = check(&wr, o, &err);

    if (!rc) {
        code = IPW_EXIT_INPUT;
        rc = ipw_workload_open(&wr.workload, path, &err);
    }
    if (!rc && (o->query || o->limit))
        rc = ipw_workload_keep(wr.workload, o->query, (size_t)o->limit, &err);
    if (!rc) {
        /* Lines have times and no gaps. */
        wr.open = o->schedule ? strcmp(o->schedule, "open") == 0 : wr.workload->lines;
        ipw_run_options_init(&run);
        run.net = o->net;
        run.script = o->script;
        run.output = o->output;
        run.model = o->model;
        run.api_key_env = o->api_key_env;
        run.telemetry = o->telemetry;
        run.gpu = o->gpu;
        run.share = o->share ? o->share : run.share;
        run.energy = o->energy ? o->energy : run.energy;
        run.baseline_ns = o->baseline_ns;
        run.sample_interval_ns = o->sample_interval_ns;
        run.json = o->json;
        run.quiet = o->quiet;
        run.verbose = o->verbose;
        run.concurrency = wr.open              ? 100000
                          : o->concurrency     ? o->concurrency
                          : wr.workload->lines ? 1
                                               : recorded_concurrency(path);
        ipw_limits_check(&run.limits, NULL); /* there are none */
        code = ipw_run_start(&run, IPW_WORKLOAD_AGENT, command, &wr);
    } else {
        ipw_exit_with(&err, code);
        free(command);
    }
    ipw_workload_free(wr.workload);
    free(wr.lag_ns);
    free(wr.late_ns);
    return code;
}
