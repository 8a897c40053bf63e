/* summary.json: where the joules went, and what of them the machine would have drawn anyway. */
#include <math.h>

#include "report/summary_priv.h"

static const enum ipw_domain sorted[IPW_DOMAIN_COUNT] = {IPW_DOMAIN_CPU, IPW_DOMAIN_DRAM,
                                                         IPW_DOMAIN_GPU, IPW_DOMAIN_MACHINE};

void ipw_summary_put_accounts(struct ipw_jw *w, const struct ipw_totals *t,
                              const struct ipw_summary_run *run)
{
    ipw_jw_key(w, "accounts");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = sorted[i];
        double net = t->marginal[d].total;

        ipw_jw_key(w, ipw_domain_name(d));
        if (isnan(t->energy[d].known)) {
            ipw_jw_null(w);
            continue;
        }
        if (run->baseline_s > 0 && ipw_baseline_refusal(&run->baseline[d])) net = NAN;
        ipw_jw_obj(w);
        ipw_jw_knum(w, "attributed_j", t->energy[d].total);
        ipw_jw_knum(w, "exclusive_j", t->exclusive[d].total);
        ipw_jw_knum(w, "idle_tax_j", t->idle_tax[d].total);
        ipw_jw_knum(w, "marginal_j", net);
        ipw_jw_knum(w, "waste_j", t->waste[d].total);
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
        enum ipw_domain d = sorted[i];
        const struct ipw_baseline_watts *b = &run->baseline[d];
        const char *refusal = ipw_baseline_refusal(b);

        ipw_jw_key(w, ipw_domain_name(d));
        ipw_jw_obj(w);
        ipw_jw_knum(w, "after_w", b->after_w);
        ipw_jw_knum(w, "before_w", b->before_w);
        ipw_jw_knum(w, "drift_w", b->after_w - b->before_w);
        ipw_jw_knum(w, "net_j", refusal ? NAN : t->marginal[d].total);
        ipw_jw_kstr(w, "net_withheld", refusal);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
    ipw_jw_knum(w, "seconds", run->baseline_s);
    ipw_jw_obj_end(w);
}
