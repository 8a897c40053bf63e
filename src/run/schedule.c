/* Admission and the end: queries in flight as far as there is room, signals, failures of the run. */
#include <stdlib.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/log.h"
#include "json/write.h"
#include "run/query_state.h"
#include "script/stuck_watch.h"

static void step(void *ud);

void ipw_run_step_soon(struct ipw_run *run)
{
    if (!run->step) run->step = ipw_defer_start(run->loop, step, run);
}

static void cancel_all(struct ipw_run *run, const char *reason)
{
    /* A cancelled query may end at once and leave the list. */
    for (struct ipw_query *q = run->active, *next; q; q = next) {
        next = q->next;
        ipw_query_cancel(q, reason);
    }
}

void ipw_run_fail(struct ipw_run *run, const struct ipw_err *err)
{
    if (run->err.code) return;
    run->err = *err;
    cancel_all(run, "interrupted");
    ipw_run_step_soon(run);
}

static bool is_ending(const struct ipw_run *run)
{
    return run->limits.reached || run->interrupted || run->server_lost || run->err.code;
}

static bool is_due(struct ipw_run *run)
{
    return !run->origin->due || run->origin->due(run->origin);
}

static void step(void *ud)
{
    struct ipw_run *run = ud;

    run->step = NULL;
    while (run->over) {
        struct ipw_query *q = run->over;
        run->over = q->next_over;
        ipw_agent_free(q->agent);
        q->agent = NULL;
        q->agent_over = false;
    }
    if (run->server_lost) cancel_all(run, "server_lost");
    if (run->limits.reached) cancel_all(run, ipw_limit_outcome(run->limits.reached, true));
    ipw_run_book(run);
    while (!is_ending(run) && ipw_net_room(run) && ipw_run_more(run) && is_due(run))
        ipw_query_start(run, run->next++);
    if (run->n_active == 0 && !run->over && !run->unbooked && !run->syncing && !run->step &&
        (is_ending(run) || !ipw_run_more(run)))
        ipw_loop_stop(run->loop);
}

static void grace_over(void *ud)
{
    struct ipw_run *run = ud;

    run->grace = NULL;
    cancel_all(run, "interrupted");
}

static void stop(void *ud, int signum)
{
    struct ipw_run *run = ud;

    run->interrupted = true;
    run->stop_signal = signum;
    ipw_progress_clear(run->progress);
    if (run->n_active && run->o->grace_ns > 0 && ipw_llm_away_s(run->llm) <= 0) {
        ipw_log(IPW_LOG_WARN,
                "interrupted: %zu turn%s may end, for %.3g s at most (again to stop at once)",
                run->n_active, run->n_active == 1 ? "" : "s", ipw_ns_to_s(run->o->grace_ns));
        run->grace = ipw_timer_start(run->loop, run->o->grace_ns, grace_over, run);
    } else {
        ipw_log(IPW_LOG_WARN, "interrupted: writing what there is (again to stop at once)");
        cancel_all(run, "interrupted");
    }
    ipw_run_step_soon(run);
}

/* ---- scripts that are stuck in C: these two run in the watch's thread ---- */

static void script_slow(void *ud, const struct ipw_stuck_watch_stall *stall)
{
    (void)ud;
    ipw_log(IPW_LOG_WARN, "query %s has been in one Lua call for %.0f s%s%s", stall->who,
            stall->seconds, stall->where[0] ? ", at " : "", stall->where);
}

/* No other query gets its turn any more.  What is done is on disk, and stays. */
static void script_stuck(void *ud, const struct ipw_stuck_watch_stall *stall)
{
    struct ipw_run *run = ud;
    struct ipw_event event = {.kind = IPW_EV_NOTE, .t_ns = ipw_now_ns(), .query = -1};
    struct ipw_buf data = IPW_BUF(64 * IPW_KIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "query_id", stall->who);
    ipw_jw_knum(&w, "seconds", stall->seconds);
    ipw_jw_kstr(&w, "where", stall->where);
    ipw_jw_obj_end(&w);
    event.tool.name = "stalled";
    event.payload = ipw_buf_str(&data);
    event.payload_len = data.len;
    ipw_rundir_event(run->dir, &event);
    ipw_rundir_flush(run->dir, NULL);
    ipw_say("query %s is stuck in one Lua call for %.0f s%s%s: the run is given up", stall->who,
            stall->seconds, stall->where[0] ? ", at " : "", stall->where);
    _exit(IPW_EXIT_FAILED);
}

static void before_sleep(void *ud)
{
    struct ipw_run *run = ud;
    struct ipw_err err;

    ipw_scripts_note(run);
    if (!run->err.code && ipw_rundir_flush(run->dir, &err)) ipw_run_fail(run, &err);
}

int ipw_run_queries(struct ipw_run *run)
{
    struct ipw_stuck_watch *watch = NULL;
    struct ipw_err err;

    if (ipw_stuck_watch_start(&watch,
                              &(struct ipw_stuck_watch_options){.warn_ns = 30 * IPW_NS_PER_S,
                                                                .give_up_ns = 60 * IPW_NS_PER_S,
                                                                .on_warn = script_slow,
                                                                .on_give_up = script_stuck,
                                                                .ud = run},
                              &err))
        ipw_log(IPW_LOG_WARN, "%s", err.text);
    ipw_signals_start(run->loop, stop, run);
    ipw_loop_before_sleep(run->loop, before_sleep, run);
    ipw_run_step_soon(run);
    ipw_loop_run(run->loop);
    ipw_loop_before_sleep(run->loop, NULL, NULL);
    ipw_stuck_watch_stop(watch);
    ipw_signals_end();
    ipw_defer_cancel(run->step);
    ipw_timer_cancel(run->sample_wait);
    ipw_timer_cancel(run->grace);
    if (run->origin->over) run->origin->over(run->origin);
    run->step = NULL;
    run->sample_wait = NULL;
    run->grace = NULL;
    return run->err.code;
}
