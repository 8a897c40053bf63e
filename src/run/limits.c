#include "run/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* clang-format off */
static const struct ipw_opt_key stops[] = {
    {"cost", "run-cost-limit"}, {"energy", "run-energy-limit"}, {"time", "run-timeout"}, {"tokens", "run-token-limit"},
    {"turns", "run-turn-limit"}, {"working", "run-working-limit"}, {"query-cost", "cost-limit"}, {"query-energy", "energy-limit"},
    {"query-time", "query-timeout"}, {"query-tokens", "token-limit"}, {"query-turns", "turn-limit"},
    {"query-working", "working-limit"}, {NULL, NULL},
};
#define AT(field) offsetof(struct ipw_limit_options, field)
const struct ipw_opt ipw_limit_option_rows[] = {
    {"stop-at", 0, IPW_OPT_KEYS, 0, "LIMITS", "end the run at cost=1,energy=2kJ,time=10m,...", .keys = stops},
    {"token-limit", 0, IPW_OPT_INT, AT(query.tokens), "N", "input and output tokens of a query", 1, INT64_MAX},
    {"turn-limit", 0, IPW_OPT_INT, AT(query.turns), "N", "model calls of a query, regardless of --max-turns", 1, INT64_MAX},
    {"query-timeout", 0, IPW_OPT_DURATION, AT(query.wall_ns), "TIME", "wall time of a query", 1, INT64_MAX},
    {"working-limit", 0, IPW_OPT_DURATION, AT(query.working_ns), "TIME", "wall time of a query without its waits for retries", 1, INT64_MAX},
    {"cost-limit", 0, IPW_OPT_NUM, AT(query.cost_usd), "USD", "cost of a query; needs a price", 1, INT64_MAX},
    {"energy-limit", 0, IPW_OPT_JOULES, AT(query.energy_j), "ENERGY", "energy of a query, such as 2kJ; needs a sensor", 1, INT64_MAX},
    {"run-token-limit", 0, IPW_OPT_INT, AT(run.tokens), "N", "input and output tokens of the run", 1, INT64_MAX},
    {"run-turn-limit", 0, IPW_OPT_INT, AT(run.turns), "N", "model calls of the run", 1, INT64_MAX},
    {"run-timeout", 0, IPW_OPT_DURATION, AT(run.wall_ns), "TIME", "wall time of the run", 1, INT64_MAX},
    {"run-working-limit", 0, IPW_OPT_DURATION, AT(run.working_ns), "TIME", "wall time of the run without its waits for retries", 1, INT64_MAX},
    {"run-cost-limit", 0, IPW_OPT_NUM, AT(run.cost_usd), "USD", "cost of the run; needs a price", 1, INT64_MAX},
    {"run-energy-limit", 0, IPW_OPT_JOULES, AT(run.energy_j), "ENERGY", "energy of the run with idle, such as 0.1kWh", 1, INT64_MAX},
    {"prices", 0, IPW_OPT_STR, AT(prices), "FILE|free", "JSON table that overrides the built-in; free: $0"},
    {"kwh-price", 0, IPW_OPT_NUM, AT(kwh_price), "USD", "price of electricity: print what the joules cost", 1, INT64_MAX},
    {"gco2-per-kwh", 0, IPW_OPT_NUM, AT(gco2_per_kwh), "GRAMS", "carbon of electricity: print the grams of CO2e", 1, INT64_MAX},
    IPW_OPT_END,
};
/* clang-format on */

static const struct {
    const char *outcome, *run_outcome, *option, *run_option;
} names[IPW_LIMITS] = {
    [IPW_LIMIT_NONE] = {"", "", "", ""},
    [IPW_LIMIT_TOKENS] = {"token_limit", "run_token_limit", "token-limit", "run-token-limit"},
    [IPW_LIMIT_TURNS] = {"turn_limit", "run_turn_limit", "turn-limit", "run-turn-limit"},
    [IPW_LIMIT_TIME] = {"timeout", "run_timeout", "query-timeout", "run-timeout"},
    [IPW_LIMIT_WORKING] = {"working_limit", "run_working_limit", "working-limit",
                           "run-working-limit"},
    [IPW_LIMIT_COST] = {"cost_limit", "run_cost_limit", "cost-limit", "run-cost-limit"},
    [IPW_LIMIT_ENERGY] = {"energy_limit", "run_energy_limit", "energy-limit", "run-energy-limit"},
};

const char *ipw_limit_outcome(enum ipw_limit limit, bool run)
{
    return run ? names[limit].run_outcome : names[limit].outcome;
}

const char *ipw_limit_option(enum ipw_limit limit, bool run)
{
    return run ? names[limit].run_option : names[limit].option;
}

void ipw_limits_init(struct ipw_limit_options *o)
{
    *o = (struct ipw_limit_options){.query = {.cost_usd = NAN, .energy_j = NAN},
                                    .run = {.cost_usd = NAN, .energy_j = NAN},
                                    .kwh_price = NAN,
                                    .gco2_per_kwh = NAN};
}

/* From now on 0 means that there is no limit. */
static int check_number(double *x, enum ipw_limit limit, bool run, const char *what,
                        struct ipw_err *err)
{
    if (isnan(*x)) {
        *x = 0;
        return 0;
    }
    if (*x > 0 && isfinite(*x)) return 0;
    return ipw_fail(err, IPW_EINVAL, "--%s: expected %s, more than zero",
                    ipw_limit_option(limit, run), what);
}

int ipw_limits_check(struct ipw_limit_options *o, struct ipw_err *err)
{
    int rc = 0;

    o->free = o->prices && strcmp(o->prices, "free") == 0;
    if (o->free) o->prices = NULL;
    for (int run = 0; run < 2 && !rc; run++) {
        struct ipw_limits *l = run ? &o->run : &o->query;

        rc = check_number(&l->cost_usd, IPW_LIMIT_COST, run, "USD", err);
        if (!rc) rc = check_number(&l->energy_j, IPW_LIMIT_ENERGY, run, "an energy", err);
    }
    return rc;
}

static void put_count(struct ipw_jw *w, const char *key, int64_t n)
{
    if (n)
        ipw_jw_kint(w, key, n);
    else
        ipw_jw_knull(w, key);
}

static void put_number(struct ipw_jw *w, const char *key, double x)
{
    ipw_jw_knum(w, key, x > 0 ? x : NAN); /* NAN is written as null */
}

static void put_limits(struct ipw_jw *w, const char *key, const struct ipw_limits *l)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    put_number(w, "cost_usd", l->cost_usd);
    put_number(w, "energy_joules", l->energy_j);
    put_count(w, "tokens", l->tokens);
    put_count(w, "turns", l->turns);
    put_number(w, "wall_s", ipw_ns_to_s(l->wall_ns));
    put_number(w, "working_s", ipw_ns_to_s(l->working_ns));
    ipw_jw_obj_end(w);
}

void ipw_limits_write(struct ipw_jw *w, const struct ipw_limit_options *o)
{
    ipw_jw_obj(w);
    put_limits(w, "query", &o->query);
    put_limits(w, "run", &o->run);
    ipw_jw_obj_end(w);
}

/* ---- spending ---- */

void ipw_spending_start(struct ipw_spending *m, int64_t t_ns)
{
    *m = (struct ipw_spending){.start_ns = t_ns, .wait_end_ns = t_ns, .energy_j = NAN};
}

static void take_end(struct ipw_spending *m, const struct ipw_event *e, double usd)
{
    const struct ipw_lm_facts *f = &e->lm;
    bool answered = f->outcome == IPW_LM_OK;

    if (f->input_tokens > 0) m->tokens += f->input_tokens;
    if (f->output_tokens > 0) m->tokens += f->output_tokens;
    if (f->output_tokens < 0 && f->chunks > 0) m->tokens += f->chunks;
    if (answered && (f->input_tokens < 0 || f->output_tokens < 0)) m->guessed = true;
    if (!isnan(usd))
        m->cost_usd += usd;
    else if (answered)
        m->cost_unknown = true;
}

void ipw_spending_wait(struct ipw_spending *m, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < m->wait_end_ns) from_ns = m->wait_end_ns;
    if (to_ns <= from_ns) return;
    m->waited_ns += to_ns - from_ns;
    m->wait_end_ns = to_ns;
}

void ipw_spending_wait_over(struct ipw_spending *m, int64_t t_ns)
{
    if (m->wait_end_ns <= t_ns) return;
    m->waited_ns -= m->wait_end_ns - t_ns;
    m->wait_end_ns = t_ns;
}

void ipw_spending_event(struct ipw_spending *m, const struct ipw_event *e, double usd)
{
    if (e->kind == IPW_EV_LM_START && e->lm.attempt <= 1) m->turns++;
    if (e->kind == IPW_EV_LM_END) take_end(m, e, usd);
}

int64_t ipw_spending_working_ns(const struct ipw_spending *m, int64_t now_ns)
{
    int64_t waiting = m->wait_end_ns > now_ns ? m->wait_end_ns - now_ns : 0;

    return now_ns - m->start_ns - (m->waited_ns - waiting);
}

/* How far the spending is past a limit: negative: below it; 0: all of it is used; positive: past
 * it. */
static double beyond(const struct ipw_spending *m, const struct ipw_limits *l, enum ipw_limit limit,
                     int64_t now_ns)
{
    switch (limit) {
    case IPW_LIMIT_TOKENS: return l->tokens ? (double)(m->tokens - l->tokens) : -1;
    case IPW_LIMIT_TURNS: return l->turns ? (double)(m->turns - l->turns) : -1;
    case IPW_LIMIT_TIME: return l->wall_ns ? (double)(now_ns - m->start_ns - l->wall_ns) : -1;
    case IPW_LIMIT_WORKING:
        return l->working_ns ? (double)(ipw_spending_working_ns(m, now_ns) - l->working_ns) : -1;
    case IPW_LIMIT_COST:
        if (l->cost_usd <= 0) return -1;
        return m->cost_unknown ? 1 : m->cost_usd - l->cost_usd;
    case IPW_LIMIT_ENERGY:
        return l->energy_j > 0 && !isnan(m->energy_j) ? m->energy_j - l->energy_j : -1;
    case IPW_LIMIT_NONE:
    case IPW_LIMITS: break;
    }
    return -1;
}

enum ipw_limit ipw_spending_passed(const struct ipw_spending *m, const struct ipw_limits *l,
                                   int64_t now_ns)
{
    for (enum ipw_limit k = IPW_LIMIT_TOKENS; k < IPW_LIMITS; k++)
        if (beyond(m, l, k, now_ns) > 0) return k;
    return IPW_LIMIT_NONE;
}

enum ipw_limit ipw_spending_used_up(const struct ipw_spending *m, const struct ipw_limits *l,
                                    int64_t now_ns)
{
    for (enum ipw_limit k = IPW_LIMIT_TOKENS; k < IPW_LIMITS; k++)
        if (beyond(m, l, k, now_ns) >= 0) return k;
    return IPW_LIMIT_NONE;
}

void ipw_spending_describe(char *out, size_t size, const struct ipw_spending *m,
                           const struct ipw_limits *l, enum ipw_limit limit, bool run,
                           int64_t now_ns)
{
    const char *option = ipw_limit_option(limit, run);

    switch (limit) {
    case IPW_LIMIT_TOKENS:
        snprintf(out, size, "--%s %lld: %lld used%s", option, (long long)l->tokens,
                 (long long)m->tokens, m->guessed ? " (at least)" : "");
        break;
    case IPW_LIMIT_TURNS:
        snprintf(out, size, "--%s %lld: %lld used", option, (long long)l->turns,
                 (long long)m->turns);
        break;
    case IPW_LIMIT_TIME:
        snprintf(out, size, "--%s %.12g s: %.3f s used", option, ipw_ns_to_s(l->wall_ns),
                 ipw_ns_to_s(now_ns - m->start_ns));
        break;
    case IPW_LIMIT_WORKING:
        snprintf(out, size, "--%s %.12g s: %.3f s used", option, ipw_ns_to_s(l->working_ns),
                 ipw_ns_to_s(ipw_spending_working_ns(m, now_ns)));
        break;
    case IPW_LIMIT_COST:
        if (m->cost_unknown)
            snprintf(out, size, "--%s $%.12g: a model without a known price was asked", option,
                     l->cost_usd);
        else
            snprintf(out, size, "--%s $%.12g: $%.6g used", option, l->cost_usd, m->cost_usd);
        break;
    case IPW_LIMIT_ENERGY:
        snprintf(out, size, "--%s %.12g J: %.6g J used", option, l->energy_j, m->energy_j);
        break;
    case IPW_LIMIT_NONE:
    case IPW_LIMITS: snprintf(out, size, "no limit"); break;
    }
}
