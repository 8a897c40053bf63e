#include "run/booking.h"

#include <math.h>

#include "base/clock.h"
#include "run/query_events.h"
#include "run/resume_hint.h"

#define LOOK_AGAIN_NS (25 * IPW_NS_PER_MS)
/* A query without a reading after its end for this time, and after so many checks, is booked
 * without energy.  The time alone is not enough: the loop may have stood still (SIGSTOP, a script
 * that computes), and then readings wait in the rings. */
#define GIVE_UP_NS    (3 * IPW_NS_PER_S)
#define GIVE_UP_LOOKS 60

/* Notes the number of rows at this moment, so that the ledger can be asked again
 * (ledger/recompute.h). */
static void note_booking(const struct ipw_booking *b, const struct ipw_query *q)
{
    struct ipw_event note = {.kind = IPW_EV_NOTE,
                             .t_ns = ipw_now_ns(),
                             .query = q->sinks.query,
                             .rows = b->sensors->n_rows,
                             .tool.name = IPW_NOTE_BOOKED};

    ipw_rundir_event(b->dir, &note);
}

static void count(struct ipw_booking *b, const struct ipw_query *q,
                  const struct ipw_query_trace *trace, const struct ipw_query_details *details)
{
    struct ipw_results *r = b->results;

    if (q->completed) r->n_answered++;
    if (!q->completed && !q->stop) {
        r->n_failed++;
        if (!q->place.warmup) ipw_resume_hint_failed();
    }
    if (!q->place.warmup) ipw_summary_add(&r->summary, trace, details);
    b->wrote(b->ud, trace, details);
}

static void write_query(struct ipw_booking *b, struct ipw_query *q)
{
    const struct ipw_case *c = q->sinks.seat.c;
    struct ipw_query_trace trace;
    struct ipw_query_details details = {
        .workload_type = "agentic",
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
        .model = b->model,
        .cost_usd = NAN,
        .n_malformed = q->sinks.n_malformed,
        .lua_peak_bytes = q->lua_peak_bytes,
        .lua_cpu_ns = q->lua_cpu_ns,
        .epoch = q->place.epoch,
        .segment = b->session->number,
    };
    struct ipw_err err;
    int rc;

    ipw_turn_builder_finish(q->sinks.turns, &trace);
    q->sinks.turns = NULL;
    note_booking(b, q);
    ipw_feed_finish(b->sensors->feed, &trace);
    details.cost_usd = ipw_query_trace_cost(&trace);
    rc = ipw_query_write_line(b->dir, &trace, &details, &b->session->anchor, q->place.warmup, &err);
    if (q->place.warmup) ipw_uncounted_add(&b->results->warmup, &trace);
    if (rc)
        b->failed(b->ud, &err);
    else
        count(b, q, &trace, &details);
    ipw_query_trace_release(&trace);
}

static void look_again(void *ud)
{
    struct ipw_booking *b = ud;

    b->wait = NULL;
    b->looks++;
    b->sensors->rows(b->sensors->ud); /* takes rows, and calls this function again */
}

/* Requests a reading now, and checks again soon even without one: a sensor may have died. */
static void wait_for_samples(struct ipw_booking *b)
{
    if (b->sensors->sampler) ipw_sampler_kick(b->sensors->sampler);
    if (!b->wait) b->wait = ipw_timer_start(b->loop, LOOK_AGAIN_NS, look_again, b);
}

static bool given_up(const struct ipw_booking *b, const struct ipw_query *q)
{
    return q->end_ns < ipw_now_ns() - GIVE_UP_NS && b->looks - q->looks_at_end >= GIVE_UP_LOOKS;
}

void ipw_booking_add(struct ipw_booking *b, struct ipw_query *q)
{
    q->looks_at_end = b->looks;
    if (!b->first) b->tail = &b->first;
    *b->tail = q;
    b->tail = &q->next_unbooked;
}

void ipw_booking_look(struct ipw_booking *b)
{
    int64_t covered_ns = ipw_ledger_covered_ns(b->sensors->ledger);
    bool booked = false;

    /* A query is freed only after its agent, which the schedule frees first. */
    while (b->first && !b->first->agent_over &&
           (b->first->end_ns <= covered_ns || given_up(b, b->first))) {
        struct ipw_query *q = b->first;

        b->first = q->next_unbooked;
        if (!b->ending->err.code) write_query(b, q);
        ipw_query_free(q);
        booked = true;
    }
    if (b->first && b->first->end_ns > covered_ns) wait_for_samples(b);
    if (booked) b->booked(b->ud);
}

void ipw_booking_close(struct ipw_booking *b)
{
    ipw_timer_cancel(b->wait);
    b->wait = NULL;
}
