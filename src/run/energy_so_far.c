#include "run/energy_so_far.h"

#include <math.h>

#include "base/clock.h"

static double add_known(double sum, double x) { return isnan(x) ? sum : isnan(sum) ? x : sum + x; }

/* Whether a domain is a large enough part of the sum to decide its provenance.  Memory with a few
 * watts and a coarse sensor is not. */
static bool matters(double j, double all) { return !isnan(j) && j >= 0.05 * all; }

static void add_up(struct ipw_energy_so_far *e)
{
    double j[IPW_DOMAIN_COUNT];

    e->joules = NAN;
    e->weakest = IPW_PROV_NONE;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        j[d] = e->domain[d].known ? e->domain[d].j : NAN;
        if (d != IPW_DOMAIN_MACHINE) e->joules = add_known(e->joules, j[d]);
    }
    if (!isnan(j[IPW_DOMAIN_MACHINE])) e->joules = j[IPW_DOMAIN_MACHINE];
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (matters(j[d], e->joules) && e->domain[d].provenance > e->weakest)
            e->weakest = e->domain[d].provenance;
    }
}

static struct ipw_ledger_question whole_from(int64_t start_ns)
{
    return (struct ipw_ledger_question){.query = IPW_LEDGER_ANY,
                                        .device = IPW_LEDGER_ALL,
                                        .t0_ns = start_ns,
                                        .what = IPW_LEDGER_TOTAL};
}

/* The same question for each of the domains (bits), up to the last reading. */
static void ask(struct ipw_energy_so_far *out, const struct ipw_ledger *ledger,
                struct ipw_ledger_question q, unsigned domains)
{
    q.t1_ns = out->until_ns;
    for (int d = 0; d < IPW_DOMAIN_COUNT && q.t1_ns > q.t0_ns; d++) {
        q.domain = (enum ipw_domain)d;
        if (domains >> d & 1) out->domain[d] = ipw_ledger_figure(ledger, q);
    }
    add_up(out);
}

void ipw_energy_of_query(struct ipw_energy_so_far *out, const struct ipw_ledger *ledger,
                         const struct ipw_feed *feed, int32_t query, int64_t start_ns)
{
    int64_t now_ns = ipw_now_ns();
    struct ipw_ledger_question q = {
        .query = ipw_feed_ordinal(feed, query), .device = IPW_LEDGER_ALL, .t0_ns = start_ns};

    *out = (struct ipw_energy_so_far){.until_ns = ipw_ledger_covered_ns(ledger)};
    if (out->until_ns > now_ns) out->until_ns = now_ns;
    ask(out, ledger, q, q.query >= 0 ? ~0u : 0);
}

void ipw_energy_of_run(struct ipw_energy_so_far *out, const struct ipw_ledger *ledger,
                       int64_t start_ns)
{
    *out = (struct ipw_energy_so_far){.until_ns = ipw_ledger_covered_ns(ledger)};
    ask(out, ledger, whole_from(start_ns), ~0u);
}

void ipw_energy_of_model(double *joules, double *seconds, const struct ipw_ledger *ledger,
                         const struct ipw_feed *feed, int64_t start_ns)
{
    struct ipw_energy_so_far e = {.until_ns = ledger ? ipw_ledger_covered_ns(ledger) : INT64_MIN};

    if (!start_ns || e.until_ns <= start_ns || e.until_ns == INT64_MAX) return;
    ask(&e, ledger, whole_from(start_ns), feed ? ipw_feed_lm_domains(feed) : 0);
    if (isnan(e.joules)) return;
    *joules = e.joules;
    *seconds = ipw_ns_to_s(e.until_ns - start_ns);
}

static bool is_blind(const struct ipw_energy_so_far *e, const struct ipw_ledger *ledger,
                     const char **reason)
{
    if (e->domain[IPW_DOMAIN_MACHINE].known) return false;
    for (int d = 0; d < IPW_DOMAIN_MACHINE; d++) {
        if (e->domain[d].known || !ipw_ledger_devices(ledger, (enum ipw_domain)d)) continue;
        if (e->domain[d].reason) *reason = e->domain[d].reason;
        return true;
    }
    return false;
}

bool ipw_energy_is_blind(const struct ipw_energy_so_far *e, const struct ipw_ledger *ledger,
                         int64_t start_ns, int64_t patience_ns, const char **reason)
{
    int64_t now_ns = ipw_now_ns(), until_ns = e->until_ns > start_ns ? e->until_ns : start_ns;

    *reason = "no_samples";
    if (now_ns - until_ns > patience_ns) return true;
    /* Before the first reading the energy is unknown, but the sensors are not blind yet. */
    return e->until_ns > start_ns && is_blind(e, ledger, reason);
}

static struct ipw_host_joules for_script(const struct ipw_figure *f)
{
    struct ipw_host_joules none = {NAN, NAN, NAN}, out;

    if (!f->known) return none;
    out = (struct ipw_host_joules){f->j, f->lo_j, f->hi_j};
    if (f->hi_j == 0 && f->j > 0) out.lo_j = out.hi_j = NAN; /* no bounds are known */
    return out;
}

void ipw_energy_for_script(struct ipw_host_energy *out, const struct ipw_energy_so_far *e,
                           int64_t start_ns)
{
    bool known = !isnan(e->joules);

    *out = (struct ipw_host_energy){
        .gpu = for_script(&e->domain[IPW_DOMAIN_GPU]),
        .cpu = for_script(&e->domain[IPW_DOMAIN_CPU]),
        .dram = for_script(&e->domain[IPW_DOMAIN_DRAM]),
        .machine = for_script(&e->domain[IPW_DOMAIN_MACHINE]),
        .until_s = known ? ipw_ns_to_s(e->until_ns - start_ns) : NAN,
        .provenance = known ? ipw_provenance_name(e->weakest) : NULL,
    };
}
