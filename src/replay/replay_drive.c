/* Goes through the saved run line by line. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "ledger/rules.h"
#include "replay/replay_job.h"

static void step(void *ud);

void ipw_replay_step_soon(struct ipw_replay_job *job)
{
    if (!job->step && !job->done) job->step = ipw_defer_start(job->loop, step, job);
}

static void finish(struct ipw_replay_job *job)
{
    job->done = true;
    ipw_loop_stop(job->loop);
}

static struct ipw_replay_query *find(const struct ipw_replay_job *job, int32_t index)
{
    struct ipw_replay_query *q = job->active;

    while (q && q->index != index) q = q->next;
    return q;
}

static void pass_over(struct ipw_replay_job *job, int32_t index)
{
    *ipw_table_at(&job->gone, (uint32_t)index, NULL) = 0;
}

static void leave(struct ipw_replay_job *job, struct ipw_replay_query *q)
{
    struct ipw_replay_query **at = &job->active;

    while (*at != q) at = &(*at)->next;
    *at = q->next;
    if (q->diverged) job->tally.diverged++;
    if (q->diverged || !q->written) pass_over(job, q->index);
    ipw_replay_query_free(q);
}

static bool is_gone(const struct ipw_replay_job *job, int32_t index)
{
    return ipw_table_get(&job->gone, (uint32_t)index, NULL) != IPW_TABLE_NONE;
}

/* Frees queries that have ended, outside of their own callbacks. */
static void sweep(struct ipw_replay_job *job)
{
    for (struct ipw_replay_query *q = job->active, *next; q; q = next) {
        next = q->next;
        if (q->free_agent) {
            q->free_agent = false;
            ipw_agent_free(q->agent);
            q->agent = NULL;
        }
        if (q->over) leave(job, q);
    }
}

/* ---- one line ---- */

enum after {
    DROP,   /* the line is done */
    WAIT,   /* for the agent, whose callback continues */
    REPEAT, /* try the line again after a round of the loop */
};

/* A query that diverged: with a server it continues by itself, else it ends. */
static enum after diverged(struct ipw_replay_query *q)
{
    if (q->job->network.llm) {
        ipw_playback_go_live(q->playback);
        if (!q->ended) return WAIT;
        ipw_replay_query_end(q, NULL);
        return DROP;
    }
    if (!q->ended) {
        ipw_agent_cancel(q->agent, "diverged");
        return WAIT;
    }
    ipw_replay_query_give_up(q);
    return DROP;
}

static bool is_cancelled(const struct ipw_event_line *line)
{
    const struct ipw_event *e = &line->event;
    const char *outcome =
        e->kind == IPW_EV_LM_END ? ipw_lm_outcome_name(e->lm.outcome) : e->tool.outcome;

    if (e->kind == IPW_EV_QUERY_END) return true;
    if (e->kind != IPW_EV_LM_END && e->kind != IPW_EV_TOOL_END && e->kind != IPW_EV_SPAN_END)
        return false;
    return outcome && strcmp(outcome, "cancelled") == 0;
}

/* Ended by a limit or a signal, not by its agent. */
static bool ended_from_outside(const struct ipw_event_line *end)
{
    return ipw_json_bool(ipw_json_get(end->data, "stopped"), false);
}

/* The agent waits for something that the saved run does not have: the saved query was cancelled
 * there, or it diverged. */
static enum after stuck(struct ipw_replay_query *q, const struct ipw_event_line *line)
{
    if (line && is_cancelled(line) &&
        (line->event.kind != IPW_EV_QUERY_END || ended_from_outside(line))) {
        q->ended_by_saved_run = true;
        ipw_agent_cancel(q->agent, "cancelled");
        return REPEAT;
    }
    ipw_playback_stalled(q->playback, line);
    return REPEAT;
}

/* Whether the saved query was ended from outside during this wait.  A real tool cannot be given
 * more time to find out its result. */
static bool was_cut_there(const struct ipw_replay_query *q, const struct ipw_event_line *line)
{
    const struct ipw_event_line *next = line;

    for (size_t i = 1; next && is_cancelled(next) && next->event.kind != IPW_EV_QUERY_END; i++)
        next = ipw_event_reader_peek(q->job->saved.events, q->index, i, SIZE_MAX);
    return next && next->event.kind == IPW_EV_QUERY_END && ended_from_outside(next);
}

static bool waits_for_saved_run(const struct ipw_replay_query *q)
{
    return q->agent && ipw_agent_all_recorded(q->agent);
}

static enum after query_line(struct ipw_replay_query *q, const struct ipw_event_line *line)
{
    if (q->over) return DROP;
    if (q->diverged) return diverged(q);
    if (ipw_playback_step(q->playback, line) == IPW_PLAYBACK_TAKEN)
        return q->diverged ? REPEAT : DROP;
    if (q->diverged) return REPEAT;
    if (line->event.kind == IPW_EV_QUERY_END && q->ended) {
        ipw_replay_query_end(q, line);
        if (!q->diverged || q->over) return DROP;
        return REPEAT;
    }
    /* It was cancelled as in the saved run, and its requests and tools have written their ends. */
    if (q->ended_by_saved_run && q->job->decisions && line->event.kind != IPW_EV_QUERY_END)
        return q->ended ? DROP : REPEAT;
    if (q->ended && q->job->decisions && line->event.kind == IPW_EV_TOOL_END) {
        q->job->tally.missing++;
        return DROP;
    }
    if (q->ended) {
        ipw_playback_ended(q->playback, line, q->outcome);
        return REPEAT;
    }
    if (waits_for_saved_run(q) || (q->job->decisions && was_cut_there(q, line)))
        return stuck(q, line);
    /* Its next step is in progress; real tools take their time. */
    return q->job->decisions ? WAIT : REPEAT;
}

/* A session of the saved run begins: queries in flight in the session before were lost. */
static enum after session(struct ipw_replay_job *job)
{
    for (struct ipw_replay_query *q = job->active; q; q = q->next) {
        if (q->over) continue;
        job->tally.unfinished++;
        q->over = true;
    }
    return DROP;
}

/* Every query in flight must end before the run ends. */
static enum after run_over(struct ipw_replay_job *job)
{
    for (struct ipw_replay_query *q = job->active; q; q = q->next) {
        if (q->over) continue;
        if (q->diverged) return diverged(q) == DROP ? REPEAT : WAIT;
        if (q->ended)
            ipw_playback_diverge(q->playback,
                                 "an event is missing from the saved run\n    saved   ends "
                                 "here\n    now     the agent is over (query_end)");
        else if (waits_for_saved_run(q))
            ipw_playback_stalled(q->playback, NULL);
        return REPEAT;
    }
    return DROP;
}

static void write_run_line(struct ipw_replay_job *job, const struct ipw_event_line *line)
{
    struct ipw_ledger_rules facts = IPW_LEDGER_RULES_NONE;
    struct ipw_event event = {.kind = IPW_EV_RUN_START, .query = -1};
    struct ipw_buf data = IPW_BUF(64 * IPW_KIB);

    if (!job->by_query) {
        ipw_replay_job_line(job, line);
        return;
    }
    /* One session replays all sessions; it ends with the last of them. */
    if (line->event.kind != IPW_EV_RUN_START || job->began_ns) return;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        memcpy(facts.reasons[d], "replayed", sizeof "replayed");
    ipw_ledger_rules_write(&data, &facts);
    event.t_ns = job->began_ns = ipw_now_ns();
    event.payload = data.data;
    event.payload_len = data.len;
    ipw_replay_job_event(job, &event);
    ipw_buf_release(&data);
}

static void write_run_end(struct ipw_replay_job *job)
{
    struct ipw_event event = {.kind = IPW_EV_RUN_END, .t_ns = ipw_now_ns(), .query = -1};

    if (job->by_query && job->began_ns && job->run_end && !job->stop_signal && !job->err.code)
        ipw_replay_job_event(job, &event);
}

static enum after run_line(struct ipw_replay_job *job, const struct ipw_event_line *line)
{
    enum after after = DROP;

    if (line->event.kind == IPW_EV_RUN_START) {
        job->run_end = false; /* the end of the session before is not the run's end */
        if (!job->by_query) {
            after = session(job);
            job->segment = (int)ipw_json_int(ipw_json_get(line->doc, "segment"), 0);
        }
    }
    if (line->event.kind == IPW_EV_RUN_END) {
        after = run_over(job);
        job->run_end = after == DROP;
    }
    if (after == DROP) write_run_line(job, line);
    return after;
}

/* No query_start comes before it. */
static void note_lost(struct ipw_replay_job *job, const struct ipw_event_line *line)
{
    char *text = ipw_asprintf("an event is missing from the saved run\n    saved   line %lld: %s\n"
                              "    now     no query_start comes before it",
                              (long long)line->number, ipw_event_name(line->event.kind));

    ipw_divergences_add(&job->divergences, "(unknown)", line->event.query, 0, text);
    free(text);
    job->tally.diverged++;
    pass_over(job, line->event.query);
}

/* The start of a query, or a line of a query that is not in flight. */
static enum after other_line(struct ipw_replay_job *job, const struct ipw_event_line *line)
{
    if (line->event.kind == IPW_EV_QUERY_START) {
        if (!ipw_replayed_run_wants(&job->saved, line)) return DROP;
        if (ipw_replayed_run_begun_again(&job->saved, line)) {
            pass_over(job, line->event.query);
            return DROP;
        }
        ipw_replay_query_start(job, line);
        return DROP;
    }
    if (ipw_playback_is_own(line)) {
        if (!job->by_query) ipw_replay_job_line(job, line);
        return DROP;
    }
    if (!job->o->query && !is_gone(job, line->event.query)) note_lost(job, line);
    return DROP;
}

/* The next line.  0: there is none. */
static int next_line(struct ipw_replay_job *job, const struct ipw_event_line **line,
                     struct ipw_err *err)
{
    if (job->by_query && job->active) {
        *line = ipw_event_reader_peek(job->saved.events, job->active->index, 0, SIZE_MAX);
        if (*line) return 1;
        return 0;
    }
    return ipw_event_reader_head(job->saved.events, line, err);
}

/* The saved run, or the current query in it, has no more lines. */
static enum after at_end(struct ipw_replay_job *job)
{
    struct ipw_replay_query *q = job->active;

    if (!q) return DROP;
    if (q->over) return REPEAT;
    if (q->diverged) return diverged(q) == DROP ? REPEAT : WAIT;
    if (q->ended || waits_for_saved_run(q)) { /* cut inside the query: replayed as far as it goes */
        job->tally.unfinished++;
        job->cut = true;
        q->over = true;
        return REPEAT;
    }
    return job->decisions ? WAIT : REPEAT;
}

static void give_up(struct ipw_replay_job *job)
{
    for (struct ipw_replay_query *q = job->active; q; q = q->next) q->over = true;
    sweep(job);
    finish(job);
}

static void step(void *ud)
{
    struct ipw_replay_job *job = ud;
    enum after after = DROP;

    job->step = NULL;
    while (after == DROP && !job->done) {
        const struct ipw_event_line *line = NULL;
        struct ipw_replay_query *q;
        int rc = 1;

        sweep(job);
        if (job->err.code || job->stop_signal) {
            give_up(job);
            return;
        }
        rc = next_line(job, &line, &job->err);
        if (rc < 0) {
            after = REPEAT;
        } else if (!rc) {
            after = at_end(job);
            if (after == DROP) {
                finish(job);
                return;
            }
        } else {
            q = line->event.query >= 0 ? find(job, line->event.query) : NULL;
            /* A query that begins again was cut short the first time. */
            if (q && line->event.kind == IPW_EV_QUERY_START) {
                if (!q->over) job->tally.unfinished++;
                q->over = true;
                continue;
            }
            after = q                        ? query_line(q, line)
                    : line->event.query >= 0 ? other_line(job, line)
                                             : run_line(job, line);
            if (after == DROP) ipw_event_reader_drop(job->saved.events, line);
        }
    }
    if (after == REPEAT) ipw_replay_step_soon(job);
}

static void stop(struct ipw_replay_job *job, int signum)
{
    job->stop_signal = signum;
    ipw_replay_step_soon(job);
}

static void on_int(void *job) { stop(job, SIGINT); }
static void on_term(void *job) { stop(job, SIGTERM); }

int ipw_replay_job_run(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_watch *interrupt = ipw_signal_start(job->loop, SIGINT, on_int, job);
    struct ipw_watch *terminate = ipw_signal_start(job->loop, SIGTERM, on_term, job);

    ipw_replay_step_soon(job);
    ipw_loop_run(job->loop);
    write_run_end(job);
    ipw_defer_cancel(job->step);
    job->step = NULL;
    ipw_watch_cancel(interrupt);
    ipw_watch_cancel(terminate);
    if (!job->run_end) job->cut = true;
    if (job->err.code) *err = job->err;
    return job->err.code;
}
