/* What simpler methods would have said: see ledger/ledger.h. */
#include "ledger/ledger_priv.h"

const char *ipw_method_name(enum ipw_method method)
{
    switch (method) {
    case IPW_METHOD_PHASE: return "phase";
    case IPW_METHOD_LINEAR: return "linear";
    case IPW_METHOD_WINDOW: return "window";
    }
    return "none";
}

/* Last minus first sample inside: what lies between a window's end and the sample next to it is
 * lost, and a window with less than two samples has no figure (reference/energy.md 0.1). */
static struct ipw_figure by_samples(const struct ipw_ledger *l, enum ipw_domain domain,
                                    int64_t t0_ns, int64_t t1_ns)
{
    const struct ledger_domain *d = &l->domains[domain];
    struct ipw_figure f = {.known = true, .coverage = 1, .provenance = IPW_PROV_MEASURED};

    if (!d->n) return (struct ipw_figure){.reason = d->reason};
    for (size_t i = 0; i < d->n; i++) {
        const struct ipw_series *s = l->lines[d->first + i].series;
        size_t a = ipw_series_find(s, t0_ns), b = ipw_series_find(s, t1_ns);

        while (a < s->n && s->samples[a].t_ns < t0_ns) a++;
        if (a >= b || b >= s->n || s->samples[b].t_ns > t1_ns) {
            return (struct ipw_figure){.reason = "no_samples"};
        }
        if (s->samples[a].chain != s->samples[b].chain) {
            return (struct ipw_figure){.reason = s->break_reason};
        }
        f.j += (double)(s->samples[b].uj - s->samples[a].uj) / 1e6;
        if (i == 0 || (int64_t)(b - a + 1) < f.samples) f.samples = (int64_t)(b - a + 1);
    }
    f.lo_j = f.hi_j = f.j;
    return f;
}

static int64_t straight_uj(const struct ipw_ledger *l, enum ipw_domain domain, int64_t t_ns)
{
    const struct ledger_domain *d = &l->domains[domain];
    int64_t uj = 0;

    for (size_t i = 0; i < d->n; i++)
        uj += ipw_series_straight(l->lines[d->first + i].series, t_ns);
    return uj;
}

static struct ipw_figure by_lines(const struct ipw_ledger *l, enum ipw_domain domain, int64_t t0_ns,
                                  int64_t t1_ns)
{
    struct ipw_figure f = ipw_ledger_gather(l, domain, t0_ns, t1_ns, IPW_LEDGER_WINDOW_SLACK_NS);
    size_t i = ipw_ledger_edge_at(l, t0_ns);
    int64_t t = t0_ns, uj, next;
    double sum = 0;

    if (!f.known) return f;
    if (!ipw_ledger_answerable(l, t0_ns) || !ipw_ledger_answerable(l, t1_ns)) {
        return (struct ipw_figure){.reason = "not_covered"};
    }
    uj = straight_uj(l, domain, t);
    while (t < t1_ns) {
        int64_t n = i == SIZE_MAX ? 0 : l->edges[i].in_flight;
        int64_t to = i + 1 < l->n_edges ? l->edges[i + 1].t_ns : t1_ns; /* SIZE_MAX + 1 is 0 */

        if (to > t1_ns) to = t1_ns;
        next = straight_uj(l, domain, to);
        if (n > 0) sum += (double)(next - uj) / (double)n;
        uj = next;
        t = to;
        i++;
    }
    f.j = sum / 1e6;
    if (f.lo_j > f.j) f.lo_j = f.j;
    if (f.hi_j < f.j) f.hi_j = f.j;
    return f;
}

struct ipw_figure ipw_ledger_window_by(const struct ipw_ledger *l, enum ipw_method method,
                                       int64_t query, enum ipw_domain domain, int64_t t0_ns,
                                       int64_t t1_ns)
{
    switch (method) {
    case IPW_METHOD_LINEAR: return by_lines(l, domain, t0_ns, t1_ns);
    case IPW_METHOD_WINDOW: return by_samples(l, domain, t0_ns, t1_ns);
    case IPW_METHOD_PHASE: break;
    }
    return ipw_ledger_query_window(l, query, domain, t0_ns, t1_ns);
}
