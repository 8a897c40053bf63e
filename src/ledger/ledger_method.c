/* How simpler methods compute a query's energy: see ledger/ledger.h. */
#include "ledger/ledger_priv.h"

const char *ipw_method_name(enum ipw_ledger_what method)
{
    switch (method) {
    case IPW_LEDGER_QUERY: return "phase";
    case IPW_LEDGER_LINEAR: return "linear";
    case IPW_LEDGER_WINDOW: return "window";
    default: return "none";
    }
}

/* This method loses the energy between a window's end and the sample next to it, and a window with
 * fewer than two samples has no figure.  docs/method.md, section "Why not subtract the samples",
 * puts that error in numbers. */
struct ipw_figure ipw_ledger_by_samples(const struct ipw_ledger *l,
                                        const struct ipw_ledger_question *q)
{
    struct ipw_figure f = {.known = true, .coverage = 1, .provenance = IPW_PROV_MEASURED};
    size_t n;
    const struct ledger_line *lines = ipw_ledger_lines(l, q, &n);

    if (!n) return (struct ipw_figure){.reason = l->domains[q->domain].reason};
    for (size_t i = 0; i < n; i++) {
        const struct ipw_series *s = lines[i].series;
        size_t a = ipw_series_find(s, q->t0_ns), b = ipw_series_find(s, q->t1_ns);

        while (a < s->n && s->samples[a].t_ns < q->t0_ns) a++;
        if (a >= b || b >= s->n || s->samples[b].t_ns > q->t1_ns) {
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

static int64_t straight_uj(const struct ledger_line *lines, size_t n, int64_t t_ns)
{
    int64_t uj = 0;

    for (size_t i = 0; i < n; i++) uj += ipw_series_straight(lines[i].series, t_ns);
    return uj;
}

struct ipw_figure ipw_ledger_by_lines(const struct ipw_ledger *l,
                                      const struct ipw_ledger_question *q)
{
    struct ipw_figure f = ipw_ledger_gather(l, q, IPW_LEDGER_WINDOW_SLACK_NS);
    size_t i = ipw_ledger_edge_at(l, q->t0_ns), n_lines;
    const struct ledger_line *lines = ipw_ledger_lines(l, q, &n_lines);
    int64_t t = q->t0_ns, uj, next;
    double sum = 0;

    if (!f.known) return f;
    if (!ipw_ledger_answerable(l, NULL, NULL, q->t0_ns) ||
        !ipw_ledger_answerable(l, NULL, NULL, q->t1_ns))
        return (struct ipw_figure){.reason = "not_covered"};
    uj = straight_uj(lines, n_lines, t);
    while (t < q->t1_ns) {
        int64_t n = i == SIZE_MAX ? 0 : l->edges[i].in_flight;
        int64_t to = i + 1 < l->n_edges ? l->edges[i + 1].t_ns : q->t1_ns; /* SIZE_MAX + 1 is 0 */

        if (to > q->t1_ns) to = q->t1_ns;
        next = straight_uj(lines, n_lines, to);
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
