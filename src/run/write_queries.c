/* From finished queries to lines on disk: when the sensors have been read past a query's end, the
 * ledger says what its parts cost, the line is written, and once it is synced the query counts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "json/jsonl.h"
#include "run/query_state.h"
#include "run/resume_hint.h"
#include "run/sensors.h"
#include "trace/schema.h"

#define LOOK_AGAIN_NS (25 * IPW_NS_PER_MS)
/* A query that no sample follows for so long, and as many looks, is booked without energy.  Time alone
 * says nothing: the loop may have stood still meanwhile (SIGSTOP, a script that computes), and what was
 * read then waits in the rings. */
#define GIVE_UP_NS    (3 * IPW_NS_PER_S)
#define GIVE_UP_LOOKS 60

static void take_row(void *ud, const struct ipw_sampler_row *row)
{
    struct ipw_run *run = ud;

    ipw_sensors_row(run, row);
    ipw_rundir_power_row(run->dir, row);
    run->n_rows++;
    ipw_feed_row(run->feed, row->first_channel, row->n, row->t_ns, row->values);
    ipw_sensors_watch(run, row);
}

void ipw_run_sampled(void *ud)
{
    struct ipw_run *run = ud;

    if (run->sampler) ipw_sampler_drain(run->sampler, take_row, run);
    ipw_enforce_samples(run);
    if (run->dir) ipw_run_book(run);
}

/* ---- booking ---- */

/* What the ledger knew when it was asked: for those who ask again (ledger/recompute.h). */
static void note_booking(struct ipw_run *run, const struct ipw_query *q)
{
    struct ipw_event note = {.kind = IPW_EV_NOTE,
                             .t_ns = ipw_now_ns(),
                             .query = (int32_t)q->index,
                             .rows = run->n_rows,
                             .tool.name = IPW_NOTE_BOOKED};

    ipw_rundir_event(run->dir, &note);
}

double ipw_run_known_cost(const struct ipw_query_trace *trace)
{
    double sum = NAN;

    for (size_t i = 0; i < trace->n_turns; i++) {
        double usd = trace->turns[i].cost_usd;
        if (!isnan(usd)) sum = isnan(sum) ? usd : sum + usd;
    }
    return sum;
}

static void write_query(struct ipw_run *run, struct ipw_query *q)
{
    const struct ipw_case *c = q->c;
    struct ipw_query_trace trace;
    struct ipw_buf line = IPW_BUF(IPW_LINE_MAX);
    struct ipw_query_record record = {
        .workload_type = "agentic",
        .query_text = c->prompt,
        .response_text = q->response ? q->response : q->error,
        .answer = q->scored && q->score.answer.len ? ipw_buf_str(&q->score.answer) : NULL,
        .answer_source = q->scored ? q->score.source : NULL,
        .is_resolved = q->scored ? q->score.resolved : -1,
        .unscorable_reason = q->scored ? (q->score.reason[0] ? q->score.reason : NULL) : q->outcome,
        .score_metadata = q->scored && q->score.metadata.len ? q->score.metadata.data : NULL,
        .metadata = c->metadata,
        .model = run->demo ? "demo" : run->model,
        .cost_usd = NAN,
        .n_malformed = q->n_malformed,
        .lua_peak_bytes = q->lua_peak_bytes,
        .lua_cpu_ns = q->lua_cpu_ns,
        .epoch = q->place.epoch,
        .segment = run->segment,
    };
    struct ipw_err err;
    int rc;

    ipw_turn_builder_finish(q->builder, &trace);
    q->builder = NULL;
    note_booking(run, q);
    ipw_feed_book(run->feed, &trace);
    record.cost_usd = ipw_run_known_cost(&trace);
    ipw_schema_write_query(&line, &trace, &record, &run->anchor);
    if (line.failed)
        rc = ipw_fail(&err, IPW_ELIMIT, "query %s: its trace is larger than %zu bytes", c->id,
                      IPW_LINE_MAX);
    else
        rc = q->place.warmup ? ipw_run_warmed(run, &trace, line.data, line.len, &err)
                             : ipw_rundir_trace(run->dir, line.data, line.len, &err);
    if (rc) {
        ipw_run_fail(run, &err);
    } else {
        if (q->completed) run->n_answered++;
        if (!q->completed && !q->cancel_reason) {
            run->n_failed++;
            if (!q->place.warmup) ipw_go_on_failed();
        }
        if (!q->place.warmup) ipw_summary_add(&run->summary, &trace, &record);
        ipw_progress_query(run->progress, &trace, &record);
        ipw_run_wrote(run, c->id);
    }
    ipw_query_trace_release(&trace);
    ipw_buf_release(&line);
}

static void look_again(void *ud)
{
    struct ipw_run *run = ud;

    run->sample_wait = NULL;
    run->sample_looks++;
    ipw_run_sampled(run);
}

/* Asks for a reading now, and looks again soon whether or not one comes: a sensor may have died. */
static void wait_for_samples(struct ipw_run *run)
{
    if (run->sampler) ipw_sampler_kick(run->sampler);
    if (!run->sample_wait)
        run->sample_wait = ipw_timer_start(run->loop, LOOK_AGAIN_NS, look_again, run);
}

static bool given_up(const struct ipw_run *run, const struct ipw_query *q)
{
    return q->end_ns < ipw_now_ns() - GIVE_UP_NS &&
           run->sample_looks - q->looks_at_end >= GIVE_UP_LOOKS;
}

void ipw_run_book(struct ipw_run *run)
{
    int64_t covered_ns = ipw_ledger_covered_ns(run->ledger);
    bool booked = false;

    /* A query is freed only when its agent is: the runner's step does that first. */
    while (run->unbooked && !run->unbooked->agent_over &&
           (run->unbooked->end_ns <= covered_ns || given_up(run, run->unbooked))) {
        struct ipw_query *q = run->unbooked;

        run->unbooked = q->next_unbooked;
        if (!run->unbooked) run->unbooked_tail = &run->unbooked;
        if (!run->err.code) write_query(run, q);
        ipw_query_free(q);
        booked = true;
    }
    if (run->unbooked && run->unbooked->end_ns > covered_ns) wait_for_samples(run);
    if (booked) ipw_run_sync(run);
    if (booked) ipw_run_step_soon(run);
}
