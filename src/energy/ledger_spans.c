#include "energy/ledger_spans.h"

#include <stdlib.h>

#include "base/mem.h"

const char *ipw_waste_name(enum ipw_waste waste)
{
    static const char *const names[] = {"cancelled", "timeout", "failed", "malformed"};

    return waste < IPW_WASTE_COUNT ? names[waste] : "none";
}

static struct ipw_figure nothing(void)
{
    return (struct ipw_figure){.known = true, .coverage = 1, .provenance = IPW_PROV_MEASURED};
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* The instants where any window begins or ends, in order, each once. */
static int64_t *cuts_of(const struct ipw_window *windows, size_t n, size_t *n_cuts)
{
    int64_t *cuts = ipw_calloc(2 * n + 1, sizeof *cuts);
    size_t k = 0, kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (windows[i].t1_ns <= windows[i].t0_ns) continue;
        cuts[k++] = windows[i].t0_ns;
        cuts[k++] = windows[i].t1_ns;
    }
    qsort(cuts, k, sizeof *cuts, by_time);
    for (size_t i = 0; i < k; i++) {
        if (!kept || cuts[kept - 1] != cuts[i]) cuts[kept++] = cuts[i];
    }
    *n_cuts = kept;
    return cuts;
}

static bool holds(const struct ipw_window *w, int64_t t0_ns, int64_t t1_ns)
{
    return w->t0_ns <= t0_ns && t1_ns <= w->t1_ns;
}

/* Adds an n-th of `part`, of `uj` whole microjoules. */
static void add_part(struct ipw_figure *to, const struct ipw_figure *part, int64_t uj, double n)
{
    double split = to->split_fraction * to->j, whole = part->j > 0 ? part->j : 1;

    if (!to->known) return;
    if (!part->known) {
        *to = (struct ipw_figure){.provenance = IPW_PROV_NONE, .reason = part->reason};
        return;
    }
    split += part->split_fraction * (double)uj / 1e6;
    /* Whole microjoules are added as such. */
    to->j = (double)((int64_t)(to->j * 1e6 + 0.5) + uj) / 1e6;
    to->split_fraction = to->j > 0 ? split / to->j : 0;
    to->lo_j += n > 1 ? part->lo_j * (double)uj / 1e6 / whole : part->lo_j;
    to->hi_j += n > 1 ? part->hi_j / n : part->hi_j;
    if (to->lo_j > to->j) to->lo_j = to->j;
    if (to->hi_j < to->j) to->hi_j = to->j;
    to->samples += part->samples;
    if (part->coverage < to->coverage) to->coverage = part->coverage;
    if (part->provenance > to->provenance) to->provenance = part->provenance;
    if (n > 1 && to->provenance < IPW_PROV_DISTRIBUTED) to->provenance = IPW_PROV_DISTRIBUTED;
}

static int64_t whole_uj(double j) { return (int64_t)(j * 1e6 + (j < 0 ? -0.5 : 0.5)); }

struct ipw_figure ipw_ledger_union(const struct ipw_ledger *l, int64_t query,
                                   enum ipw_domain domain, const struct ipw_window *windows,
                                   size_t n)
{
    struct ipw_figure sum = nothing();
    size_t n_cuts;
    int64_t *cuts = cuts_of(windows, n, &n_cuts);

    for (size_t i = 0; i + 1 < n_cuts;) {
        size_t end = i;
        struct ipw_figure part;

        /* As far as any window goes without a hole. */
        for (bool more = true; more && end + 1 < n_cuts;) {
            more = false;
            for (size_t k = 0; k < n && !more; k++) {
                more = holds(&windows[k], cuts[end], cuts[end + 1]);
            }
            if (more) end++;
        }
        if (end > i) {
            part = ipw_ledger_query_window(l, query, domain, cuts[i], cuts[end]);
            add_part(&sum, &part, whole_uj(part.j), 1);
        }
        i = end > i ? end : i + 1;
    }
    free(cuts);
    return sum;
}

void ipw_ledger_spans(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                      const struct ipw_window *windows, size_t n, struct ipw_figure *out)
{
    size_t n_cuts;
    int64_t *cuts = cuts_of(windows, n, &n_cuts);

    for (size_t i = 0; i < n; i++) out[i] = nothing();
    for (size_t i = 0; i + 1 < n_cuts; i++) {
        struct ipw_figure part;
        int64_t uj, crowd = 0, turn = 0;

        for (size_t k = 0; k < n; k++) crowd += holds(&windows[k], cuts[i], cuts[i + 1]);
        if (!crowd) continue;
        part = ipw_ledger_query_window(l, query, domain, cuts[i], cuts[i + 1]);
        uj = whole_uj(part.j);
        for (size_t k = 0; k < n; k++) {
            if (!holds(&windows[k], cuts[i], cuts[i + 1])) continue;
            turn++;
            add_part(&out[k], &part, uj * turn / crowd - uj * (turn - 1) / crowd, (double)crowd);
        }
    }
    free(cuts);
}

void ipw_ledger_waste(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                      const struct ipw_window *windows, size_t n,
                      struct ipw_figure out[IPW_WASTE_COUNT])
{
    size_t n_cuts;
    int64_t *cuts = cuts_of(windows, n, &n_cuts);

    for (int i = 0; i < IPW_WASTE_COUNT; i++) out[i] = nothing();
    for (size_t i = 0; i + 1 < n_cuts; i++) {
        struct ipw_figure part;
        int label = IPW_WASTE_COUNT;

        for (size_t k = 0; k < n; k++) {
            if (windows[k].label >= 0 && windows[k].label < label &&
                holds(&windows[k], cuts[i], cuts[i + 1])) {
                label = windows[k].label;
            }
        }
        if (label == IPW_WASTE_COUNT) continue;
        part = ipw_ledger_query_window(l, query, domain, cuts[i], cuts[i + 1]);
        add_part(&out[label], &part, whole_uj(part.j), 1);
    }
    free(cuts);
}
