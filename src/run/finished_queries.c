#include "run/finished_queries.h"

#include <math.h>

#include "base/clock.h"
#include "run/query_events.h"
#include "run/resume_hint.h"

#define CHECK_AGAIN_NS (25 * IPW_NS_PER_MS)
/* A query without a reading after its end for this time, and after so many checks, is written
 * without energy.  The time alone is not enough: the loop may have stood still (SIGSTOP, a script
 * that computes), and then readings wait in the rings. */
#define GIVE_UP_NS     (3 * IPW_NS_PER_S)
#define GIVE_UP_CHECKS 60

/* Notes the number of rows at this moment, so that the ledger can be asked again
 * (ledger/recompute.h). */
static void note_written(const struct ipw_finished_queries *f, const struct ipw_query *q)
{
    struct ipw_event note = {.kind = IPW_EV_NOTE,
                             .t_ns = ipw_now_ns(),
                             .query = q->sinks.query,
                             .rows = f->sensors->n_rows,
                             .tool.name = IPW_NOTE_BOOKED};

    ipw_rundir_event(f->dir, &note);
}

static void count(struct ipw_finished_queries *f, const struct ipw_query *q,
                  const struct ipw_query_trace *trace, const struct ipw_query_details *details)
{
    struct ipw_results *r = f->results;

    if (q->completed) r->n_answered++;
    if (!q->completed && !q->stop) {
        r->n_failed++;
        if (!q->place.warmup) ipw_resume_hint_failed();
    }
    if (!q->place.warmup) ipw_summary_add(&r->summary, trace, details);
    f->wrote(f->ud, trace, details);
}

static void write_query(struct ipw_finished_queries *f, struct ipw_query *q)
{
    const struct ipw_case *c = q->sinks.seat.c;
    struct ipw_query_trace trace;
    struct ipw_query_details details = {
        .query_text = c->prompt,
        .response_text = q->response ? q->response : q->error,
        .answer = q->scored && q->score.answer.len ? ipw_buf_str(&q->score.answer) : NULL,
        .answer_source = q->scored ? q->score.source : NULL,
        .is_resolved = q->scored ? q->score.resolved : -1,
        .unscorable_reason = q->scored ? (q->score.reason[0] ? q->score.reason : NULL) : q->outcome,
        .score_metadata = q->scored && q->score.metadata.len ? q->score.metadata.data : NULL,
        .metadata = c->metadata,
        .reference_answer = c->answer,
        .reference = c->reference,
        .subject = c->subject,
        .model = f->model,
        .cost_usd = NAN,
        .n_malformed = q->sinks.n_malformed,
        .lua_peak_bytes = q->lua_peak_bytes,
        .lua_cpu_ns = q->lua_cpu_ns,
        .epoch = q->place.epoch,
        .segment = f->session->number,
    };
    struct ipw_err err;
    int rc;

    ipw_turn_builder_finish(q->sinks.turns, &trace);
    q->sinks.turns = NULL;
    note_written(f, q);
    ipw_feed_finish(f->sensors->feed, &trace);
    details.cost_usd = ipw_query_trace_cost(&trace);
    rc = ipw_query_write_line(f->dir, &trace, &details, &f->session->anchor, q->place.warmup, &err);
    if (q->place.warmup) ipw_uncounted_add(&f->results->warmup, &trace);
    if (rc)
        f->failed(f->ud, &err);
    else
        count(f, q, &trace, &details);
    ipw_query_trace_release(&trace);
}

static void check_again(void *ud)
{
    struct ipw_finished_queries *f = ud;

    f->wait = NULL;
    f->checks++;
    f->sensors->rows(f->sensors->ud); /* takes rows, and calls this function again */
}

/* Requests a reading now, and checks again soon even without one: a sensor may have died. */
static void wait_for_samples(struct ipw_finished_queries *f)
{
    if (f->sensors->sampler) ipw_sampler_kick(f->sensors->sampler);
    if (!f->wait) f->wait = ipw_timer_start(f->loop, CHECK_AGAIN_NS, check_again, f);
}

static bool given_up(const struct ipw_finished_queries *f, const struct ipw_query *q)
{
    return q->end_ns < ipw_now_ns() - GIVE_UP_NS && f->checks - q->checks_at_end >= GIVE_UP_CHECKS;
}

void ipw_finished_queries_add(struct ipw_finished_queries *f, struct ipw_query *q)
{
    q->checks_at_end = f->checks;
    if (!f->first) f->tail = &f->first;
    *f->tail = q;
    f->tail = &q->next_finished;
}

void ipw_finished_queries_check(struct ipw_finished_queries *f)
{
    int64_t covered_ns = ipw_ledger_covered_ns(f->sensors->ledger);
    bool left = false;

    /* A query is freed only after its agent, which the schedule frees first. */
    while (f->first && !f->first->agent_over &&
           (f->first->end_ns <= covered_ns || given_up(f, f->first))) {
        struct ipw_query *q = f->first;

        f->first = q->next_finished;
        if (!f->ending->err.code) write_query(f, q);
        ipw_query_free(q);
        left = true;
    }
    if (f->first && f->first->end_ns > covered_ns) wait_for_samples(f);
    if (left) f->left(f->ud);
}

void ipw_finished_queries_close(struct ipw_finished_queries *f)
{
    ipw_timer_cancel(f->wait);
    f->wait = NULL;
}
