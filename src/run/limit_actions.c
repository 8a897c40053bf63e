#include "run/limit_actions.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "energy/trust.h"
#include "run/energy_so_far.h"

/* For this time unknown energy does not end a query or run with a limit of energy: a counter that
 * stops for a moment continues, and a dead one is replaced by its device's gauge within that
 * time. */
#define BLIND_NS (4 * IPW_NS_PER_S)

/* ---- ending a query or the run ---- */

static void cut_now(void *ud)
{
    struct ipw_query_limits *q = ud;

    q->cut_soon = NULL;
    q->cut(q->ud, q->reached ? IPW_STOP_LIMIT : IPW_STOP_INTERRUPT);
}

static void cut_at_once(struct ipw_query_limits *q)
{
    ipw_defer_cancel(q->cut_soon);
    cut_now(q);
}

/* We may be inside the query's own Lua here, so the loop ends the query in its next round. */
static void cut_soon(struct ipw_query_limits *q)
{
    if (!q->cut_soon) q->cut_soon = ipw_defer_start(q->of->loop, cut_now, q);
}

static void reach(struct ipw_query_limits *q, enum ipw_limit limit, int64_t now_ns)
{
    if (q->reached || limit == IPW_LIMIT_NONE) return;
    q->reached = limit;
    ipw_spending_describe(q->why, sizeof q->why, &q->spent, &q->of->o->query, limit, false, now_ns);
}

static void end_run(struct ipw_run_limits *l, enum ipw_limit limit)
{
    l->reached = limit;
    ipw_log(IPW_LOG_INFO, "%s: the run ends", l->why);
    l->run_reached(l->ud);
}

static void reach_run(struct ipw_run_limits *l, enum ipw_limit limit, int64_t now_ns)
{
    if (l->reached || limit == IPW_LIMIT_NONE) return;
    ipw_spending_describe(l->why, sizeof l->why, &l->spent, &l->o->run, limit, true, now_ns);
    end_run(l, limit);
}

/* ---- time ---- */

static void query_late(void *ud)
{
    struct ipw_query_limits *q = ud;

    q->clock = NULL;
    reach(q, IPW_LIMIT_TIME, ipw_now_ns());
    cut_at_once(q);
}

static void query_worked(void *ud)
{
    struct ipw_query_limits *q = ud;
    int64_t now_ns = ipw_now_ns();
    int64_t left_ns = q->of->o->query.working_ns - ipw_spending_working_ns(&q->spent, now_ns);

    q->working = NULL;
    if (left_ns > 0) { /* there were waits */
        q->working = ipw_timer_start(q->of->loop, left_ns, query_worked, q);
        return;
    }
    reach(q, IPW_LIMIT_WORKING, now_ns);
    cut_at_once(q);
}

static void run_late(void *ud)
{
    struct ipw_run_limits *l = ud;

    l->clock = NULL;
    reach_run(l, IPW_LIMIT_TIME, ipw_now_ns());
}

static void run_worked(void *ud)
{
    struct ipw_run_limits *l = ud;
    int64_t now_ns = ipw_now_ns();
    int64_t left_ns = l->o->run.working_ns - ipw_spending_working_ns(&l->spent, now_ns);

    l->working = NULL;
    if (left_ns > 0)
        l->working = ipw_timer_start(l->loop, left_ns, run_worked, l);
    else
        reach_run(l, IPW_LIMIT_WORKING, now_ns);
}

/* A run waits while all queries in flight wait, until the first of them continues. */
static void run_waits(struct ipw_run_limits *l, int64_t t_ns)
{
    for (const struct ipw_query_limits *q = l->queries; q; q = q->next)
        if (q->spent.wait_end_ns <= t_ns) return;
    if (l->queries) ipw_spending_wait(&l->spent, t_ns, INT64_MAX);
}

void ipw_query_limits_rest(struct ipw_query_limits *q, int64_t t_ns, bool rest)
{
    if (rest) {
        ipw_spending_wait(&q->spent, t_ns, INT64_MAX);
        run_waits(q->of, t_ns);
    } else {
        ipw_spending_wait_over(&q->spent, t_ns);
        ipw_spending_wait_over(&q->of->spent, t_ns);
    }
}

void ipw_run_limits_start(struct ipw_run_limits *l)
{
    const struct ipw_limits *o = &l->o->run;

    ipw_spending_start(&l->spent, l->session->start_ns);
    if (o->wall_ns) l->clock = ipw_timer_start(l->loop, o->wall_ns, run_late, l);
    if (o->working_ns) l->working = ipw_timer_start(l->loop, o->working_ns, run_worked, l);
}

void ipw_run_limits_end(struct ipw_run_limits *l)
{
    ipw_timer_cancel(l->clock);
    ipw_timer_cancel(l->working);
    l->clock = l->working = NULL;
}

void ipw_query_limits_begin(struct ipw_query_limits *q, struct ipw_run_limits *of)
{
    q->of = of;
    q->next = of->queries;
    if (q->next) q->next->prev = q;
    of->queries = q;
}

void ipw_query_limits_start(struct ipw_query_limits *q)
{
    const struct ipw_limits *o = &q->of->o->query;

    ipw_spending_start(&q->spent, q->start_ns);
    ipw_spending_wait_over(&q->of->spent, q->start_ns);
    if (o->wall_ns) q->clock = ipw_timer_start(q->of->loop, o->wall_ns, query_late, q);
    if (o->working_ns) q->working = ipw_timer_start(q->of->loop, o->working_ns, query_worked, q);
}

void ipw_query_limits_end(struct ipw_query_limits *q)
{
    struct ipw_query_limits **at = q->prev ? &q->prev->next : &q->of->queries;

    *at = q->next;
    if (q->next) q->next->prev = q->prev;
    q->prev = q->next = NULL;
    run_waits(q->of, ipw_now_ns());
    ipw_timer_cancel(q->clock);
    ipw_timer_cancel(q->working);
    ipw_defer_cancel(q->cut_soon);
    q->clock = q->working = NULL;
    q->cut_soon = NULL;
}

/* ---- events ---- */

static void warn_guess(struct ipw_run_limits *l)
{
    if (l->told_guess || (!l->o->query.tokens && !l->o->run.tokens)) return;
    l->told_guess = true;
    ipw_log(IPW_LOG_WARN,
            "the server does not tell token counts: limits count its streamed events, "
            "which are fewer");
}

void ipw_query_limits_event(struct ipw_query_limits *q, const struct ipw_event *event, double usd)
{
    struct ipw_run_limits *l = q->of;

    ipw_spending_event(&q->spent, event, usd);
    ipw_spending_event(&l->spent, event, usd);
    if (event->kind == IPW_EV_LM_END || event->kind == IPW_EV_TOOL_END) {
        if (q->spent.guessed) warn_guess(l);
        reach(q, ipw_spending_passed(&q->spent, &l->o->query, event->t_ns), event->t_ns);
        reach_run(l, ipw_spending_passed(&l->spent, &l->o->run, event->t_ns), event->t_ns);
    } else if (event->kind == IPW_EV_TOOL_START && q->reached) {
        cut_soon(q);
    }
}

bool ipw_query_limits_admit(struct ipw_query_limits *q)
{
    struct ipw_run_limits *l = q->of;
    int64_t now_ns = ipw_now_ns();
    bool interrupted = l->ending->stop_signal != 0;

    reach(q, ipw_spending_used_up(&q->spent, &l->o->query, now_ns), now_ns);
    reach_run(l, ipw_spending_used_up(&l->spent, &l->o->run, now_ns), now_ns);
    /* After a signal, requests in flight are still answered, but nothing new begins. */
    if (q->reached || interrupted) cut_soon(q);
    return !q->reached && !l->reached && !interrupted;
}

/* ---- energy ---- */

/* The time since when the energy is unknown: a short stall ends nothing. */
static bool has_been_blind(int64_t *since_ns, bool blind, int64_t now_ns)
{
    if (!blind) *since_ns = 0;
    if (blind && !*since_ns) *since_ns = now_ns;
    return blind && now_ns - *since_ns > BLIND_NS;
}

static void tell_blind(char *out, size_t size, double joules, bool of_run, const char *reason)
{
    snprintf(out, size, "--%s %.12g J can no longer be kept: the energy is not known (%s)",
             ipw_limit_option(IPW_LIMIT_ENERGY, of_run), joules, ipw_trust_reason_words(reason));
}

static void of_query(struct ipw_energy_so_far *out, const struct ipw_query_limits *q)
{
    ipw_energy_of_query(out, q->of->ledger, q->of->feed, q->query, q->start_ns);
}

static void check_query(struct ipw_query_limits *q, int64_t now_ns)
{
    const struct ipw_run_limits *l = q->of;
    struct ipw_energy_so_far e;
    const char *reason;
    bool blind;

    of_query(&e, q);
    q->spent.energy_j = e.joules;
    blind = ipw_energy_is_blind(&e, l->ledger, q->start_ns, BLIND_NS, &reason);
    if (has_been_blind(&q->blind_ns, blind, now_ns) && !q->reached) {
        q->reached = IPW_LIMIT_ENERGY;
        tell_blind(q->why, sizeof q->why, l->o->query.energy_j, false, reason);
        cut_soon(q);
    }
    if (ipw_spending_passed(&q->spent, &l->o->query, now_ns) != IPW_LIMIT_ENERGY) return;
    reach(q, IPW_LIMIT_ENERGY, now_ns);
    cut_soon(q);
}

static void check_run(struct ipw_run_limits *l, int64_t now_ns)
{
    struct ipw_energy_so_far e;
    const char *reason;
    bool blind;

    ipw_energy_of_run(&e, l->ledger, l->session->start_ns);
    l->spent.energy_j = e.joules;
    reach_run(l, ipw_spending_passed(&l->spent, &l->o->run, now_ns), now_ns);
    blind = ipw_energy_is_blind(&e, l->ledger, l->session->start_ns, BLIND_NS, &reason);
    if (!has_been_blind(&l->blind_ns, blind, now_ns) || l->reached) return;
    tell_blind(l->why, sizeof l->why, l->o->run.energy_j, true, reason);
    end_run(l, IPW_LIMIT_ENERGY);
}

void ipw_run_limits_samples(struct ipw_run_limits *l)
{
    int64_t now_ns = ipw_now_ns();

    if (!l->session->start_ns) return;
    if (l->o->run.energy_j > 0) check_run(l, now_ns);
    if (!(l->o->query.energy_j > 0)) return;
    for (struct ipw_query_limits *q = l->queries, *next; q; q = next) {
        next = q->next; /* a query that is ended can leave the list */
        check_query(q, now_ns);
    }
}

/* ---- for scripts ---- */

static double smaller(double a, double b) { return isnan(a) || b < a ? b : a; }

/* The smaller rest of two limits; a limit of 0 is no limit. */
static double rest_of(double limit, double used, double limit2, double used2)
{
    double left = smaller(limit > 0 ? limit - used : NAN, limit2 > 0 ? limit2 - used2 : NAN);

    return left < 0 ? 0 : left;
}

void ipw_query_limits_budget(const struct ipw_query_limits *q, struct ipw_host_budget *out)
{
    const struct ipw_run_limits *run = q->of;
    const struct ipw_limits *l = &run->o->query, *r = &run->o->run;
    const struct ipw_spending *m = &q->spent, *n = &run->spent;
    int64_t now_ns = ipw_now_ns();
    double wall_s = ipw_ns_to_s(now_ns - m->start_ns);
    double working_s = ipw_ns_to_s(ipw_spending_working_ns(m, now_ns));
    double run_working_s = ipw_ns_to_s(ipw_spending_working_ns(n, now_ns));
    struct ipw_energy_so_far used = {0}, run_used = {0};

    if (l->energy_j > 0) of_query(&used, q);
    if (r->energy_j > 0) ipw_energy_of_run(&run_used, run->ledger, run->session->start_ns);
    if (isnan(used.joules)) used.joules = 0;
    if (isnan(run_used.joules)) run_used.joules = 0;
    *out = (struct ipw_host_budget){
        .tokens =
            rest_of((double)l->tokens, (double)m->tokens, (double)r->tokens, (double)n->tokens),
        .turns = rest_of((double)l->turns, (double)m->turns, (double)r->turns, (double)n->turns),
        .seconds = rest_of(ipw_ns_to_s(l->wall_ns), wall_s, ipw_ns_to_s(r->wall_ns),
                           ipw_ns_to_s(now_ns - n->start_ns)),
        .joules = rest_of(l->energy_j, used.joules, r->energy_j, run_used.joules),
        .usd = rest_of(l->cost_usd, m->cost_usd, r->cost_usd, n->cost_usd),
    };
    out->seconds = smaller(out->seconds, rest_of(ipw_ns_to_s(l->working_ns), working_s,
                                                 ipw_ns_to_s(r->working_ns), run_working_s));
}
