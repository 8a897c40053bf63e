/* summary.json: the energy accounts, and the net energy above the idle baseline. */
#include <math.h>
#include <string.h>

#include "report/write_summary_priv.h"

static void put_account(struct ipw_jw *w, const struct ipw_query_account *a, bool withheld)
{
    ipw_jw_kmicro(w, "exclusive_j", a->exclusive_j);
    ipw_jw_kmicro(w, "idle_tax_j", a->idle_tax_j);
    ipw_jw_kmicro(w, "marginal_j", withheld ? NAN : a->marginal_j);
    ipw_jw_kmicro(w, "waste_j", a->waste_j);
}

static void put_devices(struct ipw_jw *w, const struct ipw_device_sums *sums, enum ipw_domain d,
                        bool withheld)
{
    if (!ipw_device_sums_whole(sums, d)) return;
    ipw_jw_key(w, "devices");
    ipw_jw_obj(w);
    for (size_t i = 0; i < sums->n; i++) {
        const struct ipw_device_sum *sum = &sums->all[i];

        if (sum->domain != d) continue;
        ipw_jw_key_any(w, sum->name, strlen(sum->name));
        ipw_jw_obj(w);
        ipw_jw_kmicro(w, "attributed_j", sum->j);
        put_account(w, &sum->account, withheld);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

void ipw_summary_put_accounts(struct ipw_jw *w, const struct ipw_summary *s,
                              const struct ipw_totals *t, const struct ipw_summary_run *run)
{
    ipw_jw_key(w, "accounts");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];
        bool withheld = run->baseline_s > 0 && ipw_summary_baseline_refusal(&run->baseline[d]);
        struct ipw_query_account sum = {.exclusive_j = t->exclusive[d].total,
                                        .marginal_j = t->marginal[d].total,
                                        .waste_j = t->waste[d].total,
                                        .idle_tax_j = t->idle_tax[d].total};

        ipw_jw_key(w, ipw_domain_name(d));
        if (isnan(t->energy[d].known)) {
            ipw_jw_null(w);
            continue;
        }
        ipw_jw_obj(w);
        ipw_jw_kmicro(w, "attributed_j", t->energy[d].total);
        ipw_jw_key(w, "bounds");
        ipw_jw_obj(w);
        if (!isnan(t->energy[d].total)) ipw_bounds_write(w, "attributed_j", t->energy[d].bounds);
        ipw_jw_obj_end(w);
        put_devices(w, &s->devices, d, withheld);
        put_account(w, &sum, withheld);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

void ipw_summary_put_baseline(struct ipw_jw *w, const struct ipw_totals *t,
                              const struct ipw_summary_run *run)
{
    ipw_jw_key(w, "baseline");
    if (!(run->baseline_s > 0)) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_key(w, "domains");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];
        const struct ipw_baseline_watts *b = &run->baseline[d];
        const char *refusal = ipw_summary_baseline_refusal(b);

        ipw_jw_key(w, ipw_domain_name(d));
        ipw_jw_obj(w);
        ipw_jw_kmicro(w, "after_w", b->after_w);
        ipw_jw_kmicro(w, "before_w", b->before_w);
        ipw_jw_kmicro(w, "drift_w", b->after_w - b->before_w);
        ipw_jw_kmicro(w, "net_j", refusal ? NAN : t->marginal[d].total);
        ipw_jw_kstr(w, "net_withheld", refusal);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
    ipw_jw_knum(w, "seconds", run->baseline_s);
    ipw_jw_obj_end(w);
}
