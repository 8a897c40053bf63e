#include "run/schedule.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/log.h"
#include "json/write.h"
#include "run/signals.h"
#include "script/stuck_watch.h"

static void step(void *ud);

void ipw_schedule_step_soon(struct ipw_schedule *s)
{
    if (!s->step) s->step = ipw_defer_start(s->loop, step, s);
}

static void cancel_all(struct ipw_schedule *s, enum ipw_query_stop how)
{
    /* A cancelled query can end at once and leave the list. */
    for (struct ipw_query *q = s->active, *next; q; q = next) {
        next = q->next;
        ipw_query_cancel(q, how);
    }
}

void ipw_schedule_fail(struct ipw_schedule *s, const struct ipw_err *err)
{
    if (s->ending->err.code) return;
    s->ending->err = *err;
    cancel_all(s, IPW_STOP_INTERRUPT);
    ipw_schedule_step_soon(s);
}

void ipw_schedule_over(struct ipw_schedule *s, struct ipw_query *q)
{
    if (q->prev)
        q->prev->next = q->next;
    else
        s->active = q->next;
    if (q->next) q->next->prev = q->prev;
    q->agent_over = true;
    q->next_over = s->over;
    s->over = q;
    ipw_finished_queries_add(s->finished, q);
    ipw_schedule_step_soon(s);
}

static bool is_ending(const struct ipw_schedule *s)
{
    return s->ground->limits->reached || ipw_ending_begun(s->ending);
}

static bool is_due(const struct ipw_schedule *s)
{
    struct ipw_origin *origin = s->ground->sinks.origin;

    return !origin->due || origin->due(origin);
}

/* Counted queries wait for the end of the warm-up: what still runs of it would take a part of the
 * server and of the joules of their time.  The newest query stands first in the list. */
static bool is_warming_up(const struct ipw_schedule *s)
{
    return s->active && s->active->place.warmup && !ipw_plan_place(s->plan, s->plan->next).warmup;
}

static void begin_next(struct ipw_schedule *s)
{
    size_t index = s->plan->next++;
    struct ipw_query *q = ipw_query_new(s->ground, index, ipw_plan_place(s->plan, index));

    q->next = s->active;
    if (s->active) s->active->prev = q;
    s->active = q;
    ipw_query_start(q);
}

static void step(void *ud)
{
    struct ipw_schedule *s = ud;

    s->step = NULL;
    while (s->over) {
        struct ipw_query *q = s->over;

        s->over = q->next_over;
        ipw_query_free_agent(q);
    }
    if (s->ending->server_lost) cancel_all(s, IPW_STOP_SERVER_LOST);
    if (s->ground->limits->reached) cancel_all(s, IPW_STOP_RUN_LIMIT);
    ipw_finished_queries_check(s->finished);
    while (!is_ending(s) && ipw_server_watch_room(s->ground->sinks.servers) &&
           ipw_plan_more(s->plan) && !is_warming_up(s) && is_due(s))
        begin_next(s);
    if (!s->active && !s->over && !s->finished->first && !s->durable->syncing && !s->step &&
        (is_ending(s) || !ipw_plan_more(s->plan)))
        ipw_loop_stop(s->loop);
}

/* ---- signals ---- */

static void grace_over(void *ud)
{
    struct ipw_schedule *s = ud;

    s->grace = NULL;
    cancel_all(s, IPW_STOP_INTERRUPT);
}

static void stop(void *ud, int signum)
{
    struct ipw_schedule *s = ud;
    struct ipw_origin *origin = s->ground->sinks.origin;
    size_t n = s->ground->sinks.servers->n_queries;

    if (!s->asked && origin->close && origin->close(origin, signum)) {
        s->asked = true;
        s->plan->endless = false; /* no more come: those that there are count */
        s->plan->n_cases = s->plan->next;
        ipw_schedule_step_soon(s);
        return;
    }
    s->ending->stop_signal = signum;
    ipw_progress_clear(s->ground->sinks.progress);
    if (n && s->grace_ns > 0 && ipw_llm_away_s(s->ground->llm) <= 0) {
        ipw_log(IPW_LOG_WARN,
                "interrupted: %zu turn%s may end, for %.3g s at most (again to stop at once)", n,
                n == 1 ? "" : "s", ipw_ns_to_s(s->grace_ns));
        s->grace = ipw_timer_start(s->loop, s->grace_ns, grace_over, s);
    } else {
        ipw_log(IPW_LOG_WARN, "interrupted: writing what there is (again to stop at once)");
        cancel_all(s, IPW_STOP_INTERRUPT);
    }
    ipw_schedule_step_soon(s);
}

/* ---- scripts that are stuck in C: these two run in the watch's thread ---- */

static void script_slow(void *ud, const struct ipw_stuck_watch_stall *stall)
{
    (void)ud;
    ipw_log(IPW_LOG_WARN, "query %s has been in one Lua call for %.0f s%s%s", stall->who,
            stall->seconds, stall->where[0] ? ", at " : "", stall->where);
}

/* No other query can continue.  Finished queries are on disk. */
static void script_stuck(void *ud, const struct ipw_stuck_watch_stall *stall)
{
    const struct ipw_schedule *s = ud;
    struct ipw_rundir *dir = s->ground->sinks.dir;
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
    ipw_rundir_event(dir, &event);
    ipw_rundir_flush(dir, NULL);
    ipw_say(
        "query %s: one Lua call has run for %.0f s%s%s; aborting the run. Use resume to continue.",
        stall->who, stall->seconds, stall->where[0] ? ", at " : "", stall->where);
    _exit(IPW_EXIT_FAILED);
}

/* ---- running the queries ---- */

int ipw_schedule_run(struct ipw_schedule *s)
{
    struct ipw_origin *origin = s->ground->sinks.origin;
    struct ipw_stuck_watch *watch = NULL;
    struct ipw_err err;

    if (ipw_stuck_watch_start(&watch,
                              &(struct ipw_stuck_watch_options){.warn_ns = 30 * IPW_NS_PER_S,
                                                                .give_up_ns = 60 * IPW_NS_PER_S,
                                                                .on_warn = script_slow,
                                                                .on_give_up = script_stuck,
                                                                .ud = s},
                              &err))
        ipw_log(IPW_LOG_WARN, "%s", err.text);
    ipw_signals_start(s->loop, stop, s);
    ipw_loop_before_sleep(s->loop, s->before_sleep, s->ud);
    ipw_schedule_step_soon(s);
    ipw_loop_run(s->loop);
    ipw_loop_before_sleep(s->loop, NULL, NULL);
    ipw_stuck_watch_stop(watch);
    ipw_signals_end();
    ipw_defer_cancel(s->step);
    ipw_timer_cancel(s->grace);
    ipw_finished_queries_close(s->finished);
    if (origin->over) origin->over(origin);
    s->step = NULL;
    s->grace = NULL;
    return s->ending->err.code;
}
