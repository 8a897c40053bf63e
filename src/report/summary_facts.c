#include "report/summary_facts.h"

#include "json/write.h"
#include "script/summary_text.h"

enum { FACTS_BYTES = 64 * IPW_MIB };

static void put_bounds(struct ipw_jw *w, const char *key, struct ipw_bounds b)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    ipw_jw_knum(w, "hi", b.hi);
    ipw_jw_knum(w, "lo", b.lo);
    ipw_jw_knum(w, "u", b.u);
    ipw_jw_obj_end(w);
}

static void put_joules(struct ipw_jw *w, const char *key, const double *j)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++)
        ipw_jw_knum(w, ipw_domain_name(ipw_domains_by_name[i]), j[ipw_domains_by_name[i]]);
    ipw_jw_obj_end(w);
}

static void put_energy(struct ipw_jw *w, const struct ipw_summary_group *g)
{
    ipw_jw_knum(w, "argument_bytes", g->argument_bytes);
    ipw_jw_key(w, "bounds");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++)
        put_bounds(w, ipw_domain_name(ipw_domains_by_name[i]), g->bounds[ipw_domains_by_name[i]]);
    ipw_jw_obj_end(w);
}

static void put_group(struct ipw_jw *w, const struct ipw_summary_group *g)
{
    bool energy = g->kind == IPW_SUMMARY_PART || g->kind == IPW_SUMMARY_TOOL;

    ipw_jw_obj(w);
    if (energy) put_energy(w, g);
    ipw_jw_kint(w, "calls", g->calls);
    ipw_jw_knum(w, "child_calls", g->child_calls);
    ipw_jw_knum(w, "child_cpu_s", g->child_cpu_s);
    ipw_jw_knum(w, "child_peak_bytes", g->child_peak_bytes);
    ipw_jw_knum(w, "cut_bytes", g->cut_bytes);
    if (energy) put_joules(w, "joules", g->j);
    ipw_jw_kstr(w, "kind", ipw_summary_kinds[g->kind]);
    ipw_jw_kstr(w, "name", g->name);
    ipw_jw_kstr(w, "of", g->of);
    ipw_jw_kint(w, "queries", g->queries);
    ipw_jw_knum(w, "result_bytes", g->result_bytes);
    ipw_jw_knum(w, "seconds", g->seconds);
    if (energy) put_joules(w, "waste_joules", g->waste_j);
    ipw_jw_obj_end(w);
}

static void put_account(struct ipw_jw *w, const struct ipw_query_account *a)
{
    ipw_jw_knum(w, "exclusive_j", a->exclusive_j);
    ipw_jw_knum(w, "idle_tax_j", a->idle_tax_j);
}

static void put_accounts(struct ipw_jw *w, const struct ipw_summary_rows *s)
{
    ipw_jw_key(w, "accounts");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        const struct ipw_query_account *a = &s->accounts[ipw_domains_by_name[i]];

        ipw_jw_key(w, ipw_domain_name(ipw_domains_by_name[i]));
        ipw_jw_obj(w);
        put_account(w, a);
        ipw_jw_knum(w, "marginal_j", a->marginal_j);
        ipw_jw_knum(w, "waste_j", a->waste_j);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

static void put_devices(struct ipw_jw *w, const struct ipw_device_sums *sums)
{
    ipw_jw_key(w, "devices");
    ipw_jw_arr(w);
    for (size_t i = 0; i < sums->n; i++) {
        ipw_jw_obj(w);
        ipw_jw_kstr(w, "domain", ipw_domain_name(sums->all[i].domain));
        put_account(w, &sums->all[i].account);
        ipw_jw_knum(w, "j", sums->all[i].j);
        ipw_jw_knum(w, "marginal_j", sums->all[i].account.marginal_j);
        ipw_jw_kstr(w, "name", sums->all[i].name);
        ipw_jw_knum(w, "waste_j", sums->all[i].account.waste_j);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void put_provenance(struct ipw_jw *w, const struct ipw_summary_rows *s)
{
    ipw_jw_key(w, "provenance");
    ipw_jw_arr(w); /* by domain, and within it as the enum has them */
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        for (int p = 0; p < IPW_PROV_COUNT; p++) {
            ipw_jw_obj(w);
            ipw_jw_kstr(w, "domain", ipw_domain_name((enum ipw_domain)d));
            ipw_jw_knum(w, "j", s->provenance_j[d][p]);
            ipw_jw_kstr(w, "name", ipw_provenance_name((enum ipw_provenance)p));
            ipw_jw_obj_end(w);
        }
    ipw_jw_arr_end(w);
}

/* ---- the balance ---- */

static void put_figure(struct ipw_jw *w, const char *key, const struct ipw_figure *f)
{
    struct ipw_bounds b = ipw_figure_bounds(f);

    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    ipw_jw_knum(w, "coverage", f->coverage);
    ipw_jw_knum(w, "hi", b.hi);
    ipw_jw_knum(w, "j", f->known ? f->j : (double)NAN);
    ipw_jw_knum(w, "lo", b.lo);
    ipw_jw_knum(w, "partial_j", f->partial_j);
    ipw_jw_kstr(w, "reason", f->reason);
    ipw_jw_knum(w, "u", b.u);
    ipw_jw_obj_end(w);
}

static void put_balance(struct ipw_jw *w, const struct ipw_balance *b)
{
    put_figure(w, "idle", &b->idle);
    put_figure(w, "queries", &b->queries);
    put_figure(w, "total", &b->total);
    put_bounds(w, "warmup", b->warmup);
    ipw_jw_knum(w, "warmup_j", b->warmup_j);
    put_bounds(w, "wasted", b->wasted);
    ipw_jw_knum(w, "wasted_j", b->wasted_j);
}

static void put_balances(struct ipw_jw *w, const struct ipw_summary_run *run)
{
    ipw_jw_key(w, "balance");
    if (!run->have_balance) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        ipw_jw_key(w, ipw_domain_name(ipw_domains_by_name[i]));
        ipw_jw_obj(w);
        put_balance(w, &run->balance[ipw_domains_by_name[i]]);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

static void put_device_balances(struct ipw_jw *w, const struct ipw_device_balances *balances)
{
    ipw_jw_key(w, "device_balances");
    ipw_jw_arr(w);
    for (size_t i = 0; balances && i < balances->n; i++) {
        ipw_jw_obj(w);
        ipw_jw_key(w, "balance");
        ipw_jw_obj(w);
        put_balance(w, &balances->all[i].balance);
        ipw_jw_obj_end(w);
        ipw_jw_kstr(w, "domain", ipw_domain_name(balances->all[i].domain));
        ipw_jw_kstr(w, "name", balances->all[i].name);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void put_baseline(struct ipw_jw *w, const struct ipw_summary_run *run)
{
    double before_w[IPW_DOMAIN_COUNT], after_w[IPW_DOMAIN_COUNT];

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        before_w[d] = run->baseline[d].before_w;
        after_w[d] = run->baseline[d].after_w;
    }
    ipw_jw_key(w, "baseline");
    ipw_jw_obj(w);
    put_joules(w, "after_w", after_w);
    put_joules(w, "before_w", before_w);
    ipw_jw_knum(w, "seconds", run->baseline_s);
    ipw_jw_obj_end(w);
}

void ipw_summary_facts_write(struct ipw_buf *out, const struct ipw_summary_rows *s,
                             const struct ipw_summary_run *run)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    put_accounts(&w, s);
    ipw_jw_kstr(&w, "agent", run->agent);
    ipw_jw_kint(&w, "attempts", run->attempts);
    put_balances(&w, run);
    put_baseline(&w, run);
    ipw_jw_kstr(&w, "config", run->config);
    ipw_jw_kstr(&w, "dataset", run->dataset);
    put_device_balances(&w, run->devices);
    put_devices(&w, &s->devices);
    ipw_jw_kstr(&w, "energy_note", run->energy_note);
    ipw_jw_key(&w, "groups");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < s->n_groups; i++) put_group(&w, s->groups[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "hardware", run->hardware);
    ipw_jw_kstr(&w, "model", run->model);
    ipw_jw_kstr(&w, "note", run->note);
    ipw_jw_knum(&w, "own_joules", run->own_joules);
    ipw_jw_kcount(&w, "planned", run->planned);
    put_provenance(&w, s);
    ipw_jw_knum(&w, "runner_cpu_s", run->runner_cpu_s);
    ipw_jw_knum(&w, "sampler_cpu_s", run->sampler_cpu_s);
    ipw_jw_kint(&w, "schema_version", IPW_SCHEMA_VERSION);
    ipw_jw_kcount(&w, "sessions", run->sessions ? run->sessions : -1);
    ipw_jw_kstr(&w, "status", run->status);
    ipw_jw_kint(&w, "wall_ns", run->wall_ns);
    ipw_jw_knum(&w, "wall_s", run->wall_s);
    ipw_jw_obj_end(&w);
}

int ipw_summary_write(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, struct ipw_err *err)
{
    struct ipw_buf facts = IPW_BUF(FACTS_BYTES);
    const struct ipw_summary_source source = {.queries = &s->kept.queries,
                                              .calls = &s->kept.calls,
                                              .query_columns = ipw_summary_query_columns,
                                              .call_columns = ipw_summary_call_columns,
                                              .ids = s->kept.ids,
                                              .facts = &facts};
    int rc;

    ipw_summary_facts_write(&facts, &s->kept, run);
    rc = facts.failed ? ipw_fail(err, IPW_ELIMIT, "summary.json: its facts exceed 64 MiB")
                      : ipw_summary_text(out, &source, err);
    ipw_buf_release(&facts);
    return rc;
}
