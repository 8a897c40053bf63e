#include "run/limit_actions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "energy/belief.h"
#include "io/url.h"
#include "run/query_state.h"
#include "run/run_pricing.h"

/* For so long, energy that is not known does not end what has a limit of energy: a counter that stops
 * for a moment goes on, and one that died is handed over to its device's gauge within that time. */
#define BLIND_NS (4 * IPW_NS_PER_S)

/* ---- before the run ---- */

/* A server that is not on this machine, or NULL. */
static const char *elsewhere(const struct ipw_run *run)
{
    if (!run->base_url) return "?";
    if (!ipw_url_is_local(run->base_url)) return run->base_url;
    for (size_t i = 0; run->llm && i < ipw_llm_n_urls(run->llm); i++)
        if (!ipw_url_is_local(ipw_llm_url_at(run->llm, i))) return ipw_llm_url_at(run->llm, i);
    return NULL;
}

/* Does what counts against a limit (add_up(): the machine's own meter, else the sum of its parts) rest
 * on a sensor that was not believed? */
static bool is_doubted(const struct ipw_run *run)
{
    bool meter = run->sources.basis[IPW_DOMAIN_MACHINE][0] && !run->doubted[IPW_DOMAIN_MACHINE];
    bool any = false, doubted = false;

    for (int d = 0; d < IPW_DOMAIN_MACHINE; d++) {
        any |= run->sources.basis[d][0] && !run->doubted[d];
        doubted |= run->doubted[d] != NULL;
    }
    return !meter && (doubted || !any);
}

static int check_energy(const struct ipw_run *run, const char *option, struct ipw_err *err)
{
    const struct ipw_channel *remote = NULL;
    const char *other = elsewhere(run);
    size_t n = 0;

    for (size_t i = 0; i < run->sources.n; i++) {
        const struct ipw_source *s = run->sources.sources[i];

        for (size_t k = 0; k < s->n_channels; k++) {
            if (!s->channels[k].in_sum) continue;
            n++;
            if (s->channels[k].remote) remote = &s->channels[k];
        }
    }
    if (n == 0)
        return ipw_fail(err, IPW_EINVAL, "cannot use --%s: no energy sensor (%.300s)", option,
                        run->energy_note[0] ? run->energy_note : "none was found");
    if (remote)
        return ipw_fail(err, IPW_EINVAL,
                        "cannot use --%s: '%s' is read from another machine, too late to stop "
                        "a query",
                        option, remote->name);
    if (is_doubted(run))
        return ipw_fail(err, IPW_EINVAL,
                        "cannot use --%s: %s. Choose other sensors with --telemetry, or drop "
                        "the limit",
                        option, run->doubts);
    if (other)
        return ipw_fail(err, IPW_EINVAL,
                        "cannot use --%s: the model runs on another machine (%.200s), whose "
                        "energy is not measured here",
                        option, other);
    return 0;
}

static int check_cost(const struct ipw_run *run, const char *option, struct ipw_err *err)
{
    if (ipw_pricing_knows(&run->pricing, run->model)) return 0;
    return ipw_fail(err, IPW_EINVAL,
                    "cannot use --%s: no price for model '%s'; add it with --prices FILE, or use "
                    "--prices free",
                    option, run->model ? run->model : "?");
}

int ipw_enforce_check(const struct ipw_run *run, struct ipw_err *err)
{
    const struct ipw_limits *limits[] = {&run->o->limits.query, &run->o->limits.run};

    for (int of_run = 0; of_run < 2; of_run++) {
        int rc = 0;

        if (limits[of_run]->energy_j > 0)
            rc = check_energy(run, ipw_limit_option(IPW_LIMIT_ENERGY, of_run), err);
        if (!rc && limits[of_run]->cost_usd > 0)
            rc = check_cost(run, ipw_limit_option(IPW_LIMIT_COST, of_run), err);
        if (rc) return rc;
    }
    return 0;
}

/* ---- ending what went too far ---- */

static void cut_now(void *ud)
{
    struct ipw_query *q = ud;

    q->limits.cut = NULL;
    ipw_query_cancel(q, q->limits.reached ? ipw_limit_outcome(q->limits.reached, false)
                                          : "interrupted");
}

/* We may be inside the query's own Lua here: it is cut on the loop's next round. */
static void cut_soon(struct ipw_query *q)
{
    if (!q->limits.cut) q->limits.cut = ipw_defer_start(q->run->loop, cut_now, q);
}

static void reach(struct ipw_query *q, enum ipw_limit limit, int64_t now_ns)
{
    if (q->limits.reached || limit == IPW_LIMIT_NONE) return;
    q->limits.reached = limit;
    ipw_meter_tell(q->limits.why, sizeof q->limits.why, &q->limits.meter, &q->run->o->limits.query,
                   limit, false, now_ns);
}

static void reach_run(struct ipw_run *run, enum ipw_limit limit, int64_t now_ns)
{
    if (run->limits.reached || limit == IPW_LIMIT_NONE) return;
    run->limits.reached = limit;
    ipw_meter_tell(run->limits.why, sizeof run->limits.why, &run->limits.meter, &run->o->limits.run,
                   limit, true, now_ns);
    ipw_log(IPW_LOG_INFO, "%s: the run ends", run->limits.why);
    ipw_run_step_soon(run); /* cuts what is in flight */
}

/* ---- time ---- */

static void query_late(void *ud)
{
    struct ipw_query *q = ud;

    q->limits.clock = NULL;
    reach(q, IPW_LIMIT_TIME, ipw_now_ns());
    cut_now(q);
}

static void query_worked(void *ud)
{
    struct ipw_query *q = ud;
    int64_t now_ns = ipw_now_ns();
    int64_t left_ns =
        q->run->o->limits.query.working_ns - ipw_meter_working_ns(&q->limits.meter, now_ns);

    q->limits.working = NULL;
    if (left_ns > 0) { /* there were waits */
        q->limits.working = ipw_timer_start(q->run->loop, left_ns, query_worked, q);
        return;
    }
    reach(q, IPW_LIMIT_WORKING, now_ns);
    cut_now(q);
}

static void run_late(void *ud)
{
    struct ipw_run *run = ud;

    run->limits.clock = NULL;
    reach_run(run, IPW_LIMIT_TIME, ipw_now_ns());
}

static void run_worked(void *ud)
{
    struct ipw_run *run = ud;
    int64_t now_ns = ipw_now_ns();
    int64_t left_ns =
        run->o->limits.run.working_ns - ipw_meter_working_ns(&run->limits.meter, now_ns);

    run->limits.working = NULL;
    if (left_ns > 0)
        run->limits.working = ipw_timer_start(run->loop, left_ns, run_worked, run);
    else
        reach_run(run, IPW_LIMIT_WORKING, now_ns);
}

/* A run waits while all that is in flight does: until the first of them goes on. */
static void run_waits(struct ipw_run *run, int64_t t_ns, const struct ipw_query *but)
{
    bool any = false;

    for (const struct ipw_query *q = run->active; q; q = q->next) {
        if (q == but) continue;
        if (q->limits.meter.wait_end_ns <= t_ns) return;
        any = true;
    }
    if (any) ipw_meter_wait(&run->limits.meter, t_ns, INT64_MAX);
}

void ipw_enforce_rest(void *ud, int64_t t_ns, bool rest)
{
    struct ipw_query *q = ud;

    if (rest) {
        ipw_meter_wait(&q->limits.meter, t_ns, INT64_MAX);
        run_waits(q->run, t_ns, NULL);
    } else {
        ipw_meter_wait_over(&q->limits.meter, t_ns);
        ipw_meter_wait_over(&q->run->limits.meter, t_ns);
    }
}

void ipw_enforce_run_start(struct ipw_run *run)
{
    const struct ipw_limits *l = &run->o->limits.run;

    ipw_meter_start(&run->limits.meter, run->start_ns);
    if (l->wall_ns) run->limits.clock = ipw_timer_start(run->loop, l->wall_ns, run_late, run);
    if (l->working_ns)
        run->limits.working = ipw_timer_start(run->loop, l->working_ns, run_worked, run);
}

void ipw_enforce_run_end(struct ipw_run *run)
{
    ipw_timer_cancel(run->limits.clock);
    ipw_timer_cancel(run->limits.working);
    run->limits.clock = run->limits.working = NULL;
}

void ipw_enforce_query_start(struct ipw_query *q)
{
    const struct ipw_limits *l = &q->run->o->limits.query;

    ipw_meter_start(&q->limits.meter, q->start_ns);
    ipw_meter_wait_over(&q->run->limits.meter, q->start_ns);
    if (l->wall_ns) q->limits.clock = ipw_timer_start(q->run->loop, l->wall_ns, query_late, q);
    if (l->working_ns)
        q->limits.working = ipw_timer_start(q->run->loop, l->working_ns, query_worked, q);
}

void ipw_enforce_query_end(struct ipw_query *q)
{
    run_waits(q->run, ipw_now_ns(), q);
    ipw_timer_cancel(q->limits.clock);
    ipw_timer_cancel(q->limits.working);
    ipw_defer_cancel(q->limits.cut);
    q->limits.clock = q->limits.working = NULL;
    q->limits.cut = NULL;
}

/* ---- events ---- */

static void warn_guess(struct ipw_run *run)
{
    if (run->limits.told_guess || (!run->o->limits.query.tokens && !run->o->limits.run.tokens))
        return;
    run->limits.told_guess = true;
    ipw_log(IPW_LOG_WARN,
            "the server does not tell token counts: limits count its streamed events, "
            "which are fewer");
}

void ipw_enforce_event(struct ipw_query *q, const struct ipw_event *event, double usd)
{
    struct ipw_run *run = q->run;
    const struct ipw_run_options *o = run->o;

    if (event->kind == IPW_EV_LM_START) q->asked = true;
    ipw_meter_event(&q->limits.meter, event, usd);
    ipw_meter_event(&run->limits.meter, event, usd);
    if (event->kind == IPW_EV_LM_END || event->kind == IPW_EV_TOOL_END) {
        if (q->limits.meter.guessed) warn_guess(run);
        reach(q, ipw_meter_passed(&q->limits.meter, &o->limits.query, event->t_ns), event->t_ns);
        reach_run(run, ipw_meter_passed(&run->limits.meter, &o->limits.run, event->t_ns),
                  event->t_ns);
    } else if (event->kind == IPW_EV_TOOL_START && q->limits.reached) {
        cut_soon(q);
    }
}

bool ipw_enforce_admit(void *ud)
{
    struct ipw_query *q = ud;
    struct ipw_run *run = q->run;
    int64_t now_ns = ipw_now_ns();

    reach(q, ipw_meter_used_up(&q->limits.meter, &run->o->limits.query, now_ns), now_ns);
    reach_run(run, ipw_meter_used_up(&run->limits.meter, &run->o->limits.run, now_ns), now_ns);
    /* After a signal, what was asked for is still answered, and nothing new is begun. */
    if (q->limits.reached || run->interrupted) cut_soon(q);
    return !q->limits.reached && !run->limits.reached && !run->interrupted;
}

void ipw_enforce_held(void *ud, int64_t t_ns)
{
    struct ipw_query *q = ud;

    (void)t_ns;
    q->asked = true;
}

/* ---- energy ---- */

struct joules {
    double domain[IPW_DOMAIN_COUNT]; /* NAN: not known */
    double all;                      /* the machine's own meter, else the sum of what is known */
    enum ipw_provenance weakest;
};

static double add_known(double sum, double x) { return isnan(x) ? sum : isnan(sum) ? x : sum + x; }

/* Is it enough of the sum to say how well that is known?  The memory's few watts, whose sensor is
 * coarse beside them, are not. */
static bool matters(double j, double all) { return !isnan(j) && j >= 0.05 * all; }

static struct joules add_up(const struct ipw_figure *figures)
{
    struct joules j = {.all = NAN, .weakest = IPW_PROV_NONE};

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        j.domain[d] = figures[d].known ? figures[d].j : NAN;
        if (d != IPW_DOMAIN_MACHINE) j.all = add_known(j.all, j.domain[d]);
    }
    if (!isnan(j.domain[IPW_DOMAIN_MACHINE])) j.all = j.domain[IPW_DOMAIN_MACHINE];
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (matters(j.domain[d], j.all) && figures[d].provenance > j.weakest)
            j.weakest = figures[d].provenance;
    }
    return j;
}

/* Can it no longer be said what was used?  Without the machine's own meter every domain that has a
 * sensor counts (add_up()); readings that have not come for so long are not known either. */
static bool is_blind(const struct ipw_run *run, const struct ipw_figure *figures, int64_t until_ns,
                     const char **reason)
{
    *reason = "no_samples";
    if (ipw_now_ns() - until_ns > BLIND_NS) return true;
    if (figures[IPW_DOMAIN_MACHINE].known) return false;
    for (int d = 0; d < IPW_DOMAIN_MACHINE; d++) {
        if (figures[d].known || !ipw_ledger_devices(run->ledger, (enum ipw_domain)d)) continue;
        if (figures[d].reason) *reason = figures[d].reason;
        return true;
    }
    return false;
}

/* Since when that has been so: a stall of a moment ends nothing. */
static bool has_been_blind(int64_t *since_ns, bool blind, int64_t now_ns)
{
    if (!blind) *since_ns = 0;
    if (blind && !*since_ns) *since_ns = now_ns;
    return blind && now_ns - *since_ns > BLIND_NS;
}

static void tell_blind(char *out, size_t size, double joules, bool of_run, const char *reason)
{
    snprintf(out, size, "--%s %.12g J can no longer be kept: the energy is not known (%s)",
             ipw_limit_option(IPW_LIMIT_ENERGY, of_run), joules, ipw_belief_reason_words(reason));
}

/* Up to what has been read: a little in the past. */
static struct joules of_query(const struct ipw_query *q, struct ipw_figure *figures,
                              int64_t *until_ns)
{
    int64_t now_ns = ipw_now_ns(), ordinal = ipw_feed_ordinal(q->run->feed, (int32_t)q->index);
    bool begun;

    *until_ns = ipw_ledger_measured_ns(q->run->ledger);
    if (*until_ns > now_ns) *until_ns = now_ns;
    begun = *until_ns > q->start_ns;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_ledger_question ask = {ordinal,     (enum ipw_domain)d, IPW_LEDGER_ALL,
                                          q->start_ns, *until_ns,          IPW_LEDGER_SO_FAR};

        figures[d] = (struct ipw_figure){0};
        if (begun) figures[d] = ipw_ledger_figure(q->run->ledger, ask);
    }
    return add_up(figures);
}

static void check_blind_query(struct ipw_query *q, const struct ipw_figure *figures,
                              int64_t until_ns, int64_t now_ns)
{
    const char *reason;
    bool blind =
        is_blind(q->run, figures, until_ns > q->start_ns ? until_ns : q->start_ns, &reason);

    if (until_ns <= q->start_ns) blind &= now_ns - q->start_ns > BLIND_NS;
    if (!has_been_blind(&q->limits.blind_ns, blind, now_ns) || q->limits.reached) return;
    q->limits.reached = IPW_LIMIT_ENERGY;
    tell_blind(q->limits.why, sizeof q->limits.why, q->run->o->limits.query.energy_j, false,
               reason);
    cut_soon(q);
}

static double joules_of_query(const struct ipw_query *q)
{
    struct ipw_figure figures[IPW_DOMAIN_COUNT];
    int64_t until_ns;

    return of_query(q, figures, &until_ns).all;
}

static struct ipw_figure domain_of_run(const struct ipw_run *run, int d, int64_t until_ns)
{
    struct ipw_ledger_question q = {IPW_LEDGER_ANY, (enum ipw_domain)d, IPW_LEDGER_ALL,
                                    run->start_ns,  until_ns,           IPW_LEDGER_TOTAL};

    return ipw_ledger_figure(run->ledger, q);
}

static struct joules of_run_until(const struct ipw_run *run, struct ipw_figure *figures,
                                  int64_t *until_ns)
{
    *until_ns = ipw_ledger_measured_ns(run->ledger);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        figures[d] = (struct ipw_figure){0};
        if (*until_ns > run->start_ns) figures[d] = domain_of_run(run, d, *until_ns);
    }
    return add_up(figures);
}

static struct joules of_run(const struct ipw_run *run)
{
    struct ipw_figure figures[IPW_DOMAIN_COUNT];
    int64_t until_ns;

    return of_run_until(run, figures, &until_ns);
}

static void check_run(struct ipw_run *run, int64_t now_ns)
{
    struct ipw_figure figures[IPW_DOMAIN_COUNT];
    const char *reason;
    int64_t until_ns;
    bool blind;

    run->limits.meter.energy_j = of_run_until(run, figures, &until_ns).all;
    reach_run(run, ipw_meter_passed(&run->limits.meter, &run->o->limits.run, now_ns), now_ns);
    blind = is_blind(run, figures, until_ns > run->start_ns ? until_ns : run->start_ns, &reason);
    if (until_ns <= run->start_ns) blind &= now_ns - run->start_ns > BLIND_NS;
    if (!has_been_blind(&run->limits.blind_ns, blind, now_ns) || run->limits.reached) return;
    run->limits.reached = IPW_LIMIT_ENERGY;
    tell_blind(run->limits.why, sizeof run->limits.why, run->o->limits.run.energy_j, true, reason);
    ipw_log(IPW_LOG_INFO, "%s: the run ends", run->limits.why);
    ipw_run_step_soon(run);
}

void ipw_enforce_run_joules(void *ud, double *joules, double *seconds)
{
    const struct ipw_run *run = ud;
    int64_t until_ns = run->ledger ? ipw_ledger_measured_ns(run->ledger) : INT64_MIN;
    struct ipw_figure figures[IPW_DOMAIN_COUNT] = {0};
    unsigned domains = run->feed ? ipw_feed_lm_domains(run->feed) : 0;
    double j;

    if (!run->start_ns || until_ns <= run->start_ns || until_ns == INT64_MAX) return;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (domains >> d & 1) figures[d] = domain_of_run(run, d, until_ns);
    }
    j = add_up(figures).all;
    if (isnan(j)) return;
    *joules = j;
    *seconds = ipw_ns_to_s(until_ns - run->start_ns);
}

void ipw_enforce_samples(struct ipw_run *run)
{
    int64_t now_ns = ipw_now_ns();

    if (!run->start_ns) return;
    if (run->o->limits.run.energy_j > 0) check_run(run, now_ns);
    if (!(run->o->limits.query.energy_j > 0)) return;
    for (struct ipw_query *q = run->active, *next; q; q = next) {
        struct ipw_figure figures[IPW_DOMAIN_COUNT];
        int64_t until_ns;

        next = q->next; /* a query that is cut may leave the list */
        q->limits.meter.energy_j = of_query(q, figures, &until_ns).all;
        check_blind_query(q, figures, until_ns, now_ns);
        if (ipw_meter_passed(&q->limits.meter, &run->o->limits.query, now_ns) != IPW_LIMIT_ENERGY)
            continue;
        reach(q, IPW_LIMIT_ENERGY, now_ns);
        cut_soon(q);
    }
}

/* ---- for scripts ---- */

static struct ipw_host_joules for_script(const struct ipw_figure *f)
{
    struct ipw_host_joules none = {NAN, NAN, NAN}, out;

    if (!f->known) return none;
    out = (struct ipw_host_joules){f->j, f->lo_j, f->hi_j};
    if (f->hi_j == 0 && f->j > 0) out.lo_j = out.hi_j = NAN; /* nothing is known of it */
    return out;
}

void ipw_enforce_energy(void *ud, struct ipw_host_energy *out)
{
    const struct ipw_query *q = ud;
    struct ipw_figure figures[IPW_DOMAIN_COUNT];
    int64_t until_ns;
    struct joules j = of_query(q, figures, &until_ns);

    *out = (struct ipw_host_energy){
        .gpu = for_script(&figures[IPW_DOMAIN_GPU]),
        .cpu = for_script(&figures[IPW_DOMAIN_CPU]),
        .dram = for_script(&figures[IPW_DOMAIN_DRAM]),
        .machine = for_script(&figures[IPW_DOMAIN_MACHINE]),
        .until_s = isnan(j.all) ? NAN : ipw_ns_to_s(until_ns - q->start_ns),
        .provenance = isnan(j.all) ? NULL : ipw_provenance_name(j.weakest),
    };
}

static double smaller(double a, double b) { return isnan(a) || b < a ? b : a; }

/* The smaller of two limits' rests, of which either may not be there (a limit of 0). */
static double rest(double limit, double used, double limit2, double used2)
{
    double left = smaller(limit > 0 ? limit - used : NAN, limit2 > 0 ? limit2 - used2 : NAN);

    return left < 0 ? 0 : left;
}

void ipw_enforce_budget(void *ud, struct ipw_host_budget *out)
{
    const struct ipw_query *q = ud;
    const struct ipw_limits *l = &q->run->o->limits.query, *r = &q->run->o->limits.run;
    const struct ipw_meter *m = &q->limits.meter, *n = &q->run->limits.meter;
    int64_t now_ns = ipw_now_ns();
    double wall_s = ipw_ns_to_s(now_ns - m->start_ns), joules = 0, run_joules = 0;
    double working_s = ipw_ns_to_s(ipw_meter_working_ns(m, now_ns));
    double run_working_s = ipw_ns_to_s(ipw_meter_working_ns(n, now_ns));

    if (l->energy_j > 0) joules = add_known(0, joules_of_query(q));
    if (r->energy_j > 0) run_joules = add_known(0, of_run(q->run).all);
    *out = (struct ipw_host_budget){
        .tokens = rest((double)l->tokens, (double)m->tokens, (double)r->tokens, (double)n->tokens),
        .turns = rest((double)l->turns, (double)m->turns, (double)r->turns, (double)n->turns),
        .seconds = rest(ipw_ns_to_s(l->wall_ns), wall_s, ipw_ns_to_s(r->wall_ns),
                        ipw_ns_to_s(now_ns - n->start_ns)),
        .joules = rest(l->energy_j, joules, r->energy_j, run_joules),
        .usd = rest(l->cost_usd, m->cost_usd, r->cost_usd, n->cost_usd),
    };
    out->seconds = smaller(out->seconds, rest(ipw_ns_to_s(l->working_ns), working_s,
                                              ipw_ns_to_s(r->working_ns), run_working_s));
}
