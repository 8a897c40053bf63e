#include "run/grading.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/keyring.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "json/json.h"
#include "json/write.h"
#include "run/grade_book.h"
#include "run/query_events.h"
#include "run/signals.h"
#include "run/workspace.h"
#include "script/agent.h"

#define TICK_NS    (25 * IPW_NS_PER_MS)
#define GIVE_UP_NS (3 * IPW_NS_PER_S) /* a grade without a reading past its end has no joules */
#define TIMEOUT_NS (120 * IPW_NS_PER_S)
enum { FAILURES_MAX = 3, PATCH_MAX = 1024 * 1024 };

/* ---- what is graded ---- */

/* A query of the run, from its line or from memory.  Borrowed. */
struct answer {
    const char *id, *outcome;
    int64_t index;
    const struct ipw_query_details *record;
    bool completed;
    double gpu_j, cpu_j; /* of the query; NAN: unknown */
};

struct ipw_grading_kept { /* the texts of a query of a run with --no-content */
    struct ipw_grading_kept *next;
    char *id, *outcome;
    int64_t index;
    char *texts[7];
    struct ipw_query_details record;
    bool completed;
    double gpu_j, cpu_j;
};

static double joules(const struct ipw_query_trace *q, enum ipw_domain d)
{
    return q->energy[d].known ? q->energy[d].j : NAN;
}

static struct answer answer_of(const struct ipw_query_trace *q, const struct ipw_query_details *r)
{
    return (struct answer){.id = q->id,
                           .outcome = q->outcome,
                           .index = q->index,
                           .record = r,
                           .completed = q->completed,
                           .gpu_j = joules(q, IPW_DOMAIN_GPU),
                           .cpu_j = joules(q, IPW_DOMAIN_CPU)};
}

bool ipw_grading_wanted(const struct ipw_grading *g)
{
    const char *rule = g->cases ? ipw_dataset_rule(g->cases) : NULL;

    return g->judge->model || (rule && !strcmp(rule, "code"));
}

void ipw_grading_keep(struct ipw_grading *g, const struct ipw_query_trace *q,
                      const struct ipw_query_details *r)
{
    struct ipw_grading_kept *k;
    const char *const texts[] = {r->query_text, r->response_text, r->answer,  r->reference_answer,
                                 r->reference,  r->subject,       r->metadata};

    if (!g->no_content || !ipw_grading_wanted(g)) return;
    k = ipw_calloc(1, sizeof *k);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) k->texts[i] = ipw_strdup(texts[i]);
    k->id = ipw_strdup(q->id);
    k->outcome = ipw_strdup(q->outcome);
    k->index = q->index;
    k->completed = q->completed;
    k->gpu_j = joules(q, IPW_DOMAIN_GPU);
    k->cpu_j = joules(q, IPW_DOMAIN_CPU);
    k->record = (struct ipw_query_details){.query_text = k->texts[0],
                                           .response_text = k->texts[1],
                                           .answer = k->texts[2],
                                           .reference_answer = k->texts[3],
                                           .reference = k->texts[4],
                                           .subject = k->texts[5],
                                           .metadata = k->texts[6],
                                           .is_resolved = r->is_resolved,
                                           .epoch = r->epoch};
    if (!g->kept) g->kept_tail = &g->kept;
    *g->kept_tail = k;
    g->kept_tail = &k->next;
}

void ipw_grading_release(struct ipw_grading *g)
{
    while (g->kept) {
        struct ipw_grading_kept *k = g->kept;

        g->kept = k->next;
        for (size_t i = 0; i < sizeof k->texts / sizeof *k->texts; i++) free(k->texts[i]);
        free(k->id);
        free(k->outcome);
        free(k);
    }
}

/* A verdict by this judge, or a score by the tests, is there already.  A query that was stopped
 * with the run runs again. */
static bool is_graded(const struct ipw_grading *g, enum ipw_grader grader, const struct answer *a)
{
    const struct ipw_judgement *was = a->record->judge;

    if (!a->completed && ipw_outcome_is_stop(a->outcome)) return true;
    if (grader == IPW_GRADER_CODE) return a->record->is_resolved >= 0;
    if (!g->judge->model) return true;
    if (!a->completed) return a->record->is_resolved >= 0 || (was && was->reason);
    return was && was->verdict && was->model && !strcmp(was->model, g->judge->model);
}

/* ---- one grade ---- */

struct work;

struct grade {
    struct work *work;
    struct grade *next;
    enum ipw_grader grader;
    struct answer answer; /* its texts are not used once the agent runs, but for the id */
    char *id;
    int epoch;
    bool official, over, asked_nothing;

    int32_t number;
    int64_t start_ns, end_ns;
    struct ipw_case c;
    struct ipw_host host;
    struct ipw_agent *agent;
    struct ipw_turn_builder *turns;
    struct ipw_query_trace trace; /* once it is over */
    char *workspace, *result, *why;
};

struct work {
    struct ipw_grading *g;
    struct ipw_grade_book book;
    struct ipw_http *http;
    struct ipw_llm *llm;
    struct ipw_agent_info info[IPW_GRADERS];
    struct ipw_agent_config config;
    char *template, *judge_why; /* why no judge can be asked; or NULL */
    struct grade *active;
    size_t n_active, n_failed_in_a_row;
    int32_t n;
    struct ipw_timer *tick;
    struct ipw_err err; /* a verdict could not be written */
};

static void free_grade(struct grade *q)
{
    ipw_agent_free(q->agent);
    ipw_turn_builder_free(q->turns);
    ipw_query_trace_release(&q->trace);
    if (q->workspace) ipw_workspace_remove(q->workspace);
    ipw_host_release(&q->host);
    free(q->workspace);
    free(q->c.prompt);
    free(q->c.metadata);
    free(q->id);
    free(q->result);
    free(q->why);
    free(q);
}

/* What lua/ipw/grade.lua makes keys of. */
static void put_found(struct ipw_buf *out, const struct grade *q, bool missing)
{
    const struct ipw_grading *g = q->work->g;
    const struct ipw_query_trace *t = &q->trace;
    double cpu_j = joules(t, IPW_DOMAIN_CPU), gpu_j = joules(t, IPW_DOMAIN_GPU);
    bool asked = !q->asked_nothing;
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kbool(&w, "asked", asked);
    ipw_jw_knum(&w, "cost_usd", asked ? ipw_query_trace_cost(t) : (double)NAN);
    ipw_jw_kmicro(&w, "cpu_j", cpu_j);
    ipw_jw_kmicro(&w, "cpu_w", isnan(cpu_j) ? cpu_j : t->power_mean_w[IPW_DOMAIN_CPU]);
    ipw_jw_kmicro(&w, "gpu_j", gpu_j);
    ipw_jw_kmicro(&w, "gpu_w", isnan(gpu_j) ? gpu_j : t->power_mean_w[IPW_DOMAIN_GPU]);
    ipw_jw_kstr(&w, "grader", q->grader == IPW_GRADER_CODE ? "code" : "judge");
    if (asked && t->input_tokens >= 0) ipw_jw_kint(&w, "input_tokens", t->input_tokens);
    ipw_jw_kstr(&w, "judge_model", g->judge->model);
    ipw_jw_kbool(&w, "missing", missing);
    ipw_jw_kbool(&w, "no_texts", g->no_content);
    ipw_jw_kbool(&w, "official", q->official);
    if (asked && t->output_tokens >= 0) ipw_jw_kint(&w, "output_tokens", t->output_tokens);
    ipw_jw_kmicro(&w, "query_cpu_j", q->answer.cpu_j);
    ipw_jw_kmicro(&w, "query_gpu_j", q->answer.gpu_j);
    ipw_jw_kstr(&w, "result", q->result);
    ipw_jw_knum(&w, "wall_s", ipw_ns_to_s(q->end_ns - q->start_ns));
    ipw_jw_kstr(&w, "why", q->why);
    ipw_jw_obj_end(&w);
}

static void book(struct grade *q, bool missing)
{
    struct work *work = q->work;
    struct ipw_buf found = IPW_BUF(PATCH_MAX), patch = IPW_BUF(PATCH_MAX);

    put_found(&found, q, missing);
    if (!work->err.code) ipw_dataset_grade_patch(work->g->cases, &found, &patch, &work->err);
    ipw_secret_clean(&patch, 0);
    if (!work->err.code)
        ipw_grade_book_add(&work->book, q->answer.index, q->grader, ipw_buf_str(&patch),
                           &work->err);
    work->g->n_graded += !work->err.code;
    ipw_buf_release(&found);
    ipw_buf_release(&patch);
}

/* ---- events ---- */

static void emit(void *ud, struct ipw_event *event)
{
    struct grade *q = ud;
    const struct ipw_grading *g = q->work->g;

    event->query = q->number;
    if (!event->t_ns) event->t_ns = ipw_now_ns();
    if (g->sensors) {
        event->rows = g->sensors->n_rows;
        ipw_sensors_mark(g->sensors, event);
    }
    if (g->pricing) ipw_pricing_event(g->pricing, event);
    if (g->sensors) ipw_feed_event(g->sensors->feed, event);
    if (q->turns) ipw_turn_builder_add(q->turns, event);
}

static const char *workspace(void *ud)
{
    struct grade *q = ud;
    struct ipw_err err;

    if (ipw_workspaces_make(q->work->g->workspaces, &err)) {
        ipw_log(IPW_LOG_WARN, "%s", err.text);
        return NULL;
    }
    return ipw_workspace_make(&q->workspace, q->work->g->workspaces->path, q->number);
}

static void emit_edge(struct grade *q, bool begins)
{
    struct ipw_buf data = IPW_QUERY_EVENT_BUF;
    struct ipw_query_end_facts facts = {
        .q = {.id = q->id, .outcome = "answered", .completed = true}, .resolved = -1};
    struct ipw_event event;

    if (begins)
        ipw_query_start_event(&event, &data, &q->c, q->epoch, false);
    else
        ipw_query_end_event(&event, &data, &facts);
    event.t_ns = begins ? q->start_ns : q->end_ns;
    emit(q, &event);
    ipw_buf_release(&data);
}

static void agent_done(void *ud, const struct ipw_agent_result *r)
{
    struct grade *q = ud;

    q->end_ns = ipw_now_ns();
    if (r->completed && r->response)
        q->result = ipw_strdup(r->response);
    else
        q->why = ipw_strdup(r->error ? r->error : r->outcome);
    emit_edge(q, false);
    q->over = true;
    ipw_loop_stop(q->work->g->loop);
}

/* ---- the grades in flight ---- */

static bool readings_passed(const struct ipw_grading *g, const struct grade *q)
{
    return !g->sensors || ipw_ledger_covered_ns(g->sensors->ledger) >= q->end_ns ||
           ipw_now_ns() - q->end_ns > GIVE_UP_NS;
}

/* A judge that cannot be reached three times in a row is not asked for the rest. */
static void count_failures(struct work *work, const struct grade *q)
{
    struct ipw_json *doc = NULL;

    if (q->grader != IPW_GRADER_JUDGE) return;
    if (q->result && ipw_json_parse(&doc, q->result, strlen(q->result), NULL, NULL)) doc = NULL;
    if (ipw_json_bool(ipw_json_get(doc, "unreached"), false))
        work->n_failed_in_a_row++;
    else
        work->n_failed_in_a_row = 0;
    if (work->n_failed_in_a_row >= FAILURES_MAX && !work->judge_why) {
        const char *reason = ipw_json_get_str(doc, "reason");

        work->judge_why = ipw_asprintf("not asked: %s", reason ? reason : "it does not answer");
        ipw_log(IPW_LOG_WARN, "the judge is not asked any more: %s", reason ? reason : "");
    }
    ipw_json_free(doc);
}

static void settle_over(struct work *work)
{
    struct ipw_grading *g = work->g;

    for (struct grade **at = &work->active; *at;) {
        struct grade *q = *at;

        if (!q->over || !readings_passed(g, q)) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        work->n_active--;
        ipw_turn_builder_finish(q->turns, &q->trace);
        q->turns = NULL;
        if (g->sensors) ipw_feed_finish(g->sensors->feed, &q->trace);
        count_failures(work, q);
        if (!g->stop_signal || q->result) book(q, false);
        free_grade(q);
    }
}

static void tick(void *ud)
{
    struct work *work = ud;
    struct ipw_grading *g = work->g;
    bool waiting = false;

    for (const struct grade *q = work->active; q; q = q->next) waiting |= q->over;
    if (g->sensors) {
        if (waiting && g->sensors->sampler) ipw_sampler_kick(g->sensors->sampler);
        ipw_sensors_drain(g->sensors);
        if (!work->err.code) ipw_rundir_flush(g->dir, &work->err);
    }
    work->tick = ipw_timer_start(g->loop, TICK_NS, tick, work);
    if (waiting) ipw_loop_stop(g->loop);
}

/* Waits until fewer than `most` grades are in flight. */
static void wait_below(struct work *work, size_t most)
{
    settle_over(work);
    while (work->n_active >= most) {
        ipw_loop_run(work->g->loop);
        settle_over(work);
    }
}

static void stop(void *ud, int signum)
{
    struct work *work = ud;

    work->g->stop_signal = signum;
    for (struct grade *q = work->active; q; q = q->next)
        if (!q->over && q->agent) ipw_agent_cancel(q->agent, "interrupted");
    ipw_loop_stop(work->g->loop);
}

static void start(struct work *work, struct grade *q, const struct ipw_grade_task *task)
{
    struct ipw_grading *g = work->g;
    struct ipw_err err = {0};

    wait_below(work, g->concurrency);
    if (g->stop_signal || work->err.code) {
        free_grade(q);
        return;
    }
    q->number = g->first_number + work->n++;
    q->start_ns = ipw_now_ns();
    q->turns = ipw_turn_builder_new();
    q->c = (struct ipw_case){.id = q->id,
                             .prompt = ipw_strdup(task->prompt),
                             .metadata = ipw_strdup(task->form),
                             .number = q->number};
    q->host = (struct ipw_host){
        .loop = g->loop,
        .name = q->id,
        .start_ns = q->start_ns,
        .model = {.name = g->judge->model, .temperature = NAN, .seed = INT64_MIN, .max_tokens = -1},
        .on = {.workspace = workspace, .emit = emit, .ud = q}};
    if (q->grader == IPW_GRADER_JUDGE) q->host.model.llm = work->llm;
    if (q->grader == IPW_GRADER_CODE) ipw_script_grants(&q->host.grants, g->script);
    emit_edge(q, true);
    q->next = work->active;
    work->active = q;
    work->n_active++;
    if (ipw_agent_start(&q->agent, &work->info[q->grader], &work->config, &q->c, &q->host,
                        agent_done, q, &err))
        agent_done(q, &(struct ipw_agent_result){.error = err.text, .outcome = "error"});
}

/* The answer is not handed to a grader: what that means for its score. */
static void book_without(struct grade *q, const char *why, bool missing)
{
    q->asked_nothing = true;
    q->why = ipw_strdup(why);
    q->trace = (struct ipw_query_trace){.input_tokens = -1, .output_tokens = -1};
    book(q, missing);
    free_grade(q);
}

static void grade(struct work *work, enum ipw_grader grader, const struct answer *a)
{
    const struct ipw_query_details *r = a->record;
    const struct ipw_saved_case saved = {.id = a->id,
                                         .question = r->query_text,
                                         .answer = r->reference_answer,
                                         .subject = r->subject,
                                         .metadata = r->metadata,
                                         .reference = r->reference};
    const struct ipw_grade_given given = {.grader = grader,
                                          .response = a->completed ? r->response_text : NULL,
                                          .answer = a->completed ? r->answer : NULL,
                                          .template = work->template};
    struct ipw_grade_task task;
    struct grade *q;

    if (is_graded(work->g, grader, a) || ipw_grade_book_has(&work->book, a->index, grader)) return;
    ipw_dataset_grade_task(work->g->cases, &saved, &given, &task);
    if (task.wanted && (a->completed || task.official)) {
        q = ipw_calloc(1, sizeof *q);
        *q = (struct grade){.work = work,
                            .grader = grader,
                            .answer = *a,
                            .id = ipw_strdup(a->id),
                            .epoch = r->epoch,
                            .official = task.official};
        if (task.why || (grader == IPW_GRADER_JUDGE && work->judge_why))
            book_without(q, task.why ? task.why : work->judge_why, task.missing);
        else
            start(work, q, &task);
    }
    ipw_grade_task_release(&task);
}

static int grade_answer(struct work *work, const struct answer *a, struct ipw_err *err)
{
    for (int g = 0; g < IPW_GRADERS; g++)
        if (!work->g->stop_signal && !work->err.code) grade(work, (enum ipw_grader)g, a);
    if (!work->err.code) return 0;
    *err = work->err;
    return err->code;
}

static int take_trace(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct answer a = answer_of(&q->trace, &q->details);

    return grade_answer(ud, &a, err);
}

/* With --no-content the texts are in memory only; those of earlier sessions are gone. */
static int grade_all(struct work *work, struct ipw_err *err)
{
    struct ipw_grading *g = work->g;
    int rc = 0;

    if (!g->no_content)
        return ipw_rundir_each_query(ipw_rundir_path(g->dir), take_trace, work, NULL, err);
    for (const struct ipw_grading_kept *k = g->kept; k && !rc; k = k->next) {
        struct answer a = {.id = k->id,
                           .outcome = k->outcome,
                           .index = k->index,
                           .record = &k->record,
                           .completed = k->completed,
                           .gpu_j = k->gpu_j,
                           .cpu_j = k->cpu_j};

        rc = grade_answer(work, &a, err);
    }
    return rc;
}

/* ---- the graders ---- */

static int open_judge(struct work *work, struct ipw_err *err)
{
    const struct ipw_grading *g = work->g;
    const struct ipw_judge_options *o = g->judge;
    const char *key = o->url ? o->key_env ? ipw_keyring_env(o->key_env) : NULL : g->server.key;
    struct ipw_http_options pool = {.cacert = g->net ? g->net->cacert : NULL};
    struct ipw_llm_options options = {.base_url = o->url ? o->url : g->server.url,
                                      .api_key = key,
                                      .max_retries = 1,
                                      .insecure_key = g->net && g->net->insecure_key,
                                      .total_ns = o->timeout_ns ? o->timeout_ns : TIMEOUT_NS};
    int rc = 0;

    if (!o->model) return 0;
    ipw_secret_add(key);
    if (!options.base_url)
        return ipw_fail(err, IPW_EINVAL, "the judge has no server: name it with --judge-url");
    rc = ipw_judge_prompt_read(&work->template, o, err);
    if (!rc) rc = ipw_http_new(&work->http, g->loop, &pool, err);
    if (!rc) rc = ipw_llm_new(&work->llm, g->loop, work->http, &options, err);
    return rc;
}

static int open_work(struct work *work, struct ipw_err *err)
{
    static const char *const agents[IPW_GRADERS] = {
        [IPW_GRADER_JUDGE] = "builtin:lua/ipw/judge_agent.lua",
        [IPW_GRADER_CODE] = "builtin:lua/ipw/code_agent.lua"};
    int rc = open_judge(work, err);

    for (int g = 0; g < IPW_GRADERS && !rc; g++)
        rc = ipw_agent_inspect(&work->info[g], "agents", agents[g], NULL, err);
    work->config =
        (struct ipw_agent_config){.temperature = NAN, .seed = INT64_MIN, .max_tokens = -1};
    return rc ? rc : ipw_grade_book_open(&work->book, work->g->dir, err);
}

static void close_work(struct work *work)
{
    ipw_timer_cancel(work->tick);
    while (work->active) {
        struct grade *q = work->active;

        work->active = q->next;
        free_grade(q);
    }
    ipw_grade_book_release(&work->book);
    ipw_llm_free(work->llm);
    if (work->http) ipw_http_free(work->http);
    free(work->template);
    free(work->judge_why);
}

int ipw_grading_run(struct ipw_grading *g, struct ipw_err *err)
{
    struct work work = {.g = g};
    int rc = open_work(&work, err);

    if (!rc && !g->quiet && g->judge->model)
        ipw_say("the judge %s reads the answers", g->judge->model);
    if (!rc) {
        ipw_signals_start(g->loop, stop, &work);
        tick(&work);
        rc = grade_all(&work, err);
        wait_below(&work, 1);
        ipw_signals_end();
        if (!rc && work.err.code) {
            *err = work.err;
            rc = err->code;
        }
    }
    /* What was found is kept, also when the rest could not be graded. */
    if (work.book.n) {
        int settled = ipw_grade_book_settle(&work.book, rc ? NULL : err);

        if (!rc) rc = settled;
        if (!settled && work.book.n_found && !g->n_graded) g->n_graded = work.book.n_found;
    }
    close_work(&work);
    return rc;
}

/* ---- before a run continues ---- */

struct pending {
    const struct ipw_grading *g;
    bool any;
};

static int look(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct pending *p = ud;
    struct answer a = answer_of(&q->trace, &q->details);
    const char *rule = ipw_dataset_rule(p->g->cases);

    (void)err;
    p->any |= !is_graded(p->g, IPW_GRADER_JUDGE, &a) && a.completed;
    p->any |= rule && !strcmp(rule, "code") && !is_graded(p->g, IPW_GRADER_CODE, &a) && a.completed;
    return 0;
}

int ipw_grading_pending(bool *pending, const struct ipw_grading *g, const char *run,
                        struct ipw_err *err)
{
    struct pending p = {.g = g};
    int rc = 0;

    if (ipw_grading_wanted(g) && !g->no_content)
        rc = ipw_rundir_each_query(run, look, &p, NULL, err);
    *pending = p.any || ipw_grade_book_left(run);
    return rc;
}
