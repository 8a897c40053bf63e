/* What the ledger answers: see ledger/ledger.h and ledger_priv.h. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ledger/ledger.h"
#include "ledger/ledger_priv.h"

#define TOTAL_SLACK_NS (50 * IPW_NS_PER_MS) /* a run's stamps are taken around its readings */
#define SLOW_PERIOD_NS (10 * IPW_NS_PER_MS)

#define NOBODY INT64_C(-1) /* a window that names no query */

static struct ipw_figure unknown(const char *reason)
{
    return (struct ipw_figure){.provenance = IPW_PROV_NONE, .reason = reason};
}

/* Is the state between the edges at t known?  Not in the part that was trimmed. */
bool ipw_ledger_answerable(const struct ipw_ledger *l, int64_t t_ns)
{
    return l->trimmed_ns == INT64_MIN || t_ns <= l->first_edge_ns || t_ns >= l->edges[0].t_ns;
}

static int64_t whole_uj(double j) { return (int64_t)(j * 1e6 + (j < 0 ? -0.5 : 0.5)); }

/* One of them is not known: then the sum is not, and has an estimate when each has either. */
static void add_unknown(struct ipw_figure *sum, const struct ipw_figure *more)
{
    const struct ipw_figure *first = sum->known ? more : sum;
    struct ipw_figure f = {
        .coverage = sum->coverage, .samples = sum->samples, .reason = first->reason};

    f.partial_j =
        (sum->known ? sum->j : sum->partial_j) + (more->known ? more->j : more->partial_j);

    if ((sum->known || sum->estimated) && (more->known || more->estimated)) {
        f.estimated = true;
        f.estimate_by = first->estimate_by;
        f.estimate_j =
            (sum->known ? sum->j : sum->estimate_j) + (more->known ? more->j : more->estimate_j);
        f.lo_j = sum->lo_j + more->lo_j;
        f.hi_j = sum->hi_j + more->hi_j;
    }
    *sum = f;
}

void ipw_figure_add(struct ipw_figure *sum, const struct ipw_figure *more, bool first)
{
    double split;

    if (first) {
        *sum = *more;
        return;
    }
    if (more->coverage < sum->coverage) sum->coverage = more->coverage;
    if (more->samples < sum->samples) sum->samples = more->samples;
    if (!sum->known || !more->known) {
        add_unknown(sum, more);
        return;
    }
    split = sum->split_fraction * sum->j + more->split_fraction * more->j;
    sum->j = (double)(whole_uj(sum->j) + whole_uj(more->j)) / 1e6;
    sum->lo_j += more->lo_j;
    sum->hi_j += more->hi_j;
    sum->split_fraction = sum->j > 0 ? split / sum->j : 0;
    if (more->provenance > sum->provenance) sum->provenance = more->provenance;
}

struct ipw_figure ipw_ledger_gather(const struct ipw_ledger *l, enum ipw_domain domain,
                                    int64_t t0_ns, int64_t t1_ns, int64_t slack_ns)
{
    const struct ledger_domain *d = &l->domains[domain];
    struct ipw_figure sum = unknown(d->reason);

    for (size_t i = 0; i < d->n; i++) {
        struct ipw_figure f =
            ipw_series_between(l->lines[d->first + i].series, t0_ns, t1_ns, slack_ns);

        ipw_figure_add(&sum, &f, i == 0);
    }
    return sum;
}

static int64_t crowded_ns(const struct ipw_ledger *l, int64_t t_ns)
{
    size_t i = ipw_ledger_edge_at(l, t_ns);

    if (i == SIZE_MAX) return 0;
    return l->edges[i].crowded_ns + (l->edges[i].in_flight > 1 ? t_ns - l->edges[i].t_ns : 0);
}

/* The share of the cell from edge i on that the window's owner is due.  By equal slices it is an n-th:
 * what was handed out of a cell of a few microjoules is that only to the microjoule. */
static double part_of_cell(const struct ipw_ledger *l, const struct ledger_query *q,
                           const struct ledger_line *line, size_t i)
{
    double n = l->edges[i].in_flight > 0 ? (double)l->edges[i].in_flight : 1;

    if (q && l->share != IPW_SHARE_EQUAL && i + 1 < line->settled) {
        const struct ledger_slice *s = &q->slices[line - l->lines];
        const struct ledger_mark *mark = &line->marks[i];
        int64_t k = l->edge_base + (int64_t)i - s->from, cell = mark[1].uj - mark->uj;

        if (s->n && k >= 0 && (size_t)k + 1 < s->n && cell > 0) {
            return (double)(s->uj[k + 1] - s->uj[k]) / (double)cell;
        }
    }
    return 1 / n;
}

/* How the truth may differ from the figure when the shares are taken as given: the energy at each
 * cut is uncertain, and moves as much of it as the share changes there. */
static void bound_share(const struct ipw_ledger *l, const struct ledger_query *q,
                        const struct ledger_line *line, int64_t t0_ns, int64_t t1_ns,
                        struct ipw_figure *f)
{
    size_t i = ipw_ledger_edge_at(l, t0_ns);
    double whole_hi = f->hi_j, up = 0, down = 0, part;
    int64_t below, above;

    if (i == SIZE_MAX) return;
    part = part_of_cell(l, q, line, i);
    ipw_series_bounds(line->series, t0_ns, &below, &above);
    up += part * (double)below;
    down += part * (double)above;
    for (i++; i < l->n_edges && l->edges[i].t_ns < t1_ns; i++) {
        double next = part_of_cell(l, q, line, i), change = part - next;

        if (i < line->settled) {
            below = line->marks[i].below;
            above = line->marks[i].above;
        } else {
            ipw_series_bounds(line->series, l->edges[i].t_ns, &below, &above);
        }
        up += change > 0 ? change * (double)above : -change * (double)below;
        down += change > 0 ? change * (double)below : -change * (double)above;
        part = next;
    }
    ipw_series_bounds(line->series, t1_ns, &below, &above);
    up += part * (double)above;
    down += part * (double)below;
    f->lo_j = f->j - down / 1e6;
    f->hi_j = f->j + up / 1e6;
    if (f->lo_j < 0) f->lo_j = 0;
    if (f->hi_j > whole_hi) f->hi_j = whole_hi;
    if (f->hi_j < f->j) f->hi_j = f->j;
}

/* Of one device.  `q` may be NULL: the window names no query. */
static struct ipw_figure line_window(const struct ipw_ledger *l, const struct ledger_query *q,
                                     const struct ledger_line *line, int64_t t0_ns, int64_t t1_ns)
{
    struct ipw_figure f =
        ipw_series_between(line->series, t0_ns, t1_ns, IPW_LEDGER_WINDOW_SLACK_NS);
    double whole = f.j;

    if (!f.known) return ipw_ledger_estimate(l, q, line, t0_ns, t1_ns, f);
    if (!ipw_ledger_answerable(l, t0_ns) || !ipw_ledger_answerable(l, t1_ns)) {
        return unknown("not_covered");
    }
    if (q) {
        f.j =
            (double)(ipw_ledger_due_at(l, q, line, t1_ns) - ipw_ledger_due_at(l, q, line, t0_ns)) /
            1e6;
    } else {
        f.j = (double)((int64_t)(ipw_ledger_mark_at(l, line, t1_ns).share >> 32) -
                       (int64_t)(ipw_ledger_mark_at(l, line, t0_ns).share >> 32)) /
              1e6;
    }
    if (crowded_ns(l, t1_ns) <= crowded_ns(l, t0_ns)) return f;
    if (f.provenance < IPW_PROV_DISTRIBUTED) f.provenance = IPW_PROV_DISTRIBUTED;
    if (line->series->channel.kind == IPW_CHANNEL_GAUGE) { /* since it was handed over, too */
        f.lo_j = whole > 0 ? f.lo_j * f.j / whole : 0;
        f.hi_j = whole > 0 ? f.hi_j * f.j / whole : f.j;
    } else {
        bound_share(l, q, line, t0_ns, t1_ns, &f);
    }
    return f;
}

static struct ipw_figure window(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                                int64_t t0_ns, int64_t t1_ns)
{
    const struct ledger_domain *d = &l->domains[domain];
    const struct ledger_query *q = query == NOBODY ? NULL : ipw_ledger_query(l, query);
    struct ipw_figure sum = unknown(d->reason);

    if (query != NOBODY && !q) return unknown(d->n ? "not_covered" : d->reason);
    for (size_t i = 0; i < d->n; i++) {
        struct ipw_figure f = line_window(l, q, &l->lines[d->first + i], t0_ns, t1_ns);

        ipw_figure_add(&sum, &f, i == 0);
    }
    return ipw_ledger_by_model(l, domain, t0_ns, t1_ns, sum);
}

struct ipw_figure ipw_ledger_window(const struct ipw_ledger *l, enum ipw_domain domain,
                                    int64_t t0_ns, int64_t t1_ns)
{
    return window(l, NOBODY, domain, t0_ns, t1_ns);
}

struct ipw_figure ipw_ledger_query_window(const struct ipw_ledger *l, int64_t query,
                                          enum ipw_domain domain, int64_t t0_ns, int64_t t1_ns)
{
    return window(l, query < 0 ? INT64_MAX : query, domain, t0_ns, t1_ns);
}

/* A gauge says nothing of so short a part of a query. */
static bool is_unresolved(const struct ledger_line *line, int64_t t0_ns, int64_t t1_ns)
{
    return t1_ns > t0_ns && t1_ns - t0_ns < ipw_series_resolution_ns(line->series);
}

static struct ipw_figure unresolved(struct ipw_figure f)
{
    if (!f.known) return f;
    return (struct ipw_figure){.reason = "below_resolution",
                               .coverage = f.coverage,
                               .samples = f.samples,
                               .estimated = true,
                               .estimate_by = "gauge",
                               .estimate_j = f.j,
                               .lo_j = f.lo_j,
                               .hi_j = f.hi_j};
}

struct ipw_figure ipw_ledger_device_span(const struct ipw_ledger *l, int64_t query,
                                         enum ipw_domain domain, size_t device, int64_t t0_ns,
                                         int64_t t1_ns)
{
    const struct ledger_line *line = &l->lines[l->domains[domain].first + device];
    struct ipw_figure f = ipw_ledger_device_window(l, query, domain, device, t0_ns, t1_ns);

    return is_unresolved(line, t0_ns, t1_ns) ? unresolved(f) : f;
}

struct ipw_figure ipw_ledger_query_span(const struct ipw_ledger *l, int64_t query,
                                        enum ipw_domain domain, int64_t t0_ns, int64_t t1_ns)
{
    const struct ledger_domain *d = &l->domains[domain];
    struct ipw_figure f = query < 0 ? ipw_ledger_window(l, domain, t0_ns, t1_ns)
                                    : ipw_ledger_query_window(l, query, domain, t0_ns, t1_ns);

    for (size_t i = 0; i < d->n; i++) {
        if (is_unresolved(&l->lines[d->first + i], t0_ns, t1_ns)) return unresolved(f);
    }
    return f;
}

struct ipw_figure ipw_ledger_so_far(const struct ipw_ledger *l, int64_t query,
                                    enum ipw_domain domain, int64_t t0_ns, int64_t t1_ns)
{
    struct ipw_figure f = ipw_ledger_query_window(l, query, domain, t0_ns, t1_ns), sure, rest;
    int64_t told_ns = ipw_ledger_covered_ns(l);

    if (told_ns < t0_ns) told_ns = t0_ns;
    if (!f.known || told_ns >= t1_ns || crowded_ns(l, t1_ns) <= crowded_ns(l, told_ns)) return f;
    sure = ipw_ledger_query_window(l, query, domain, t0_ns, told_ns);
    rest = ipw_ledger_total(l, domain, told_ns, t1_ns);
    f.provenance = IPW_PROV_ESTIMATED;
    f.lo_j = sure.known ? sure.lo_j : 0;
    f.hi_j = sure.hi_j + rest.hi_j;
    return f;
}

/* Shorter than the period of a counter that is read no more often than that: no edge of it says
 * when its energy was drawn, and a model of its steps has nothing to go by (reference 7). */
static bool too_short(const struct ledger_line *line, int64_t t0_ns, int64_t t1_ns)
{
    const struct ipw_series_sample *next, *at;
    int64_t period = line->series->channel.period_ns;

    if (period < SLOW_PERIOD_NS || t1_ns - t0_ns >= period || t1_ns <= t0_ns) return false;
    at = ipw_series_around(line->series, t0_ns, &next);
    /* Read faster, publication is known to less than half of a period. */
    return at && (int64_t)at->early_ns + at->late_ns > period / 2;
}

/* The energy at an instant is defined wherever a chain has a sample before and after it, so a
 * window inside a known one is known too.  Left over are windows that lie outside the samples by
 * themselves but inside the slack of the whole, and those too short to tell; they get by wall
 * clock what the whole has beyond the others: the last step of the chain of 2h. */
static void line_windows(const struct ipw_ledger *l, const struct ledger_query *q,
                         const struct ledger_line *line, const int64_t *t, size_t n,
                         struct ipw_figure *out)
{
    struct ipw_figure whole = line_window(l, q, line, t[0], t[n]);
    int64_t rest = whole.known ? whole_uj(whole.j) : 0, given = 0;
    struct ledger_split split = {.l = l, .q = q, .line = line, .t = t, .n = n};
    size_t n_open = 0;

    split.open = ipw_calloc(n, sizeof *split.open);
    for (size_t i = 0; i < n; i++) {
        out[i] = line_window(l, q, line, t[i], t[i + 1]);
        split.open[i] = !out[i].known || (n > 1 && too_short(line, t[i], t[i + 1]));
        if (split.open[i]) {
            n_open++;
        } else {
            rest -= whole_uj(out[i].j);
        }
        if (!split.open[i] && n > 1 && is_unresolved(line, t[i], t[i + 1]))
            out[i] = unresolved(out[i]);
    }
    if (whole.known && rest >= 0 && n_open) ipw_ledger_split_begin(&split, rest);
    for (size_t i = 0; i < n && whole.known && rest >= 0 && n_open; i++) {
        int64_t upto;

        if (!split.open[i]) continue;
        upto = ipw_ledger_split_upto(&split, i);
        if (!out[i].known) {
            out[i].lo_j = 0;
            out[i].hi_j = whole.hi_j;
        }
        out[i].known = true;
        out[i].estimated = false;
        out[i].estimate_by = NULL;
        out[i].j = (double)(upto - given) / 1e6;
        if (out[i].lo_j > out[i].j) out[i].lo_j = out[i].j;
        if (out[i].hi_j < out[i].j) out[i].hi_j = out[i].j;
        out[i].split_fraction = 1;
        out[i].provenance =
            whole.provenance > IPW_PROV_DISTRIBUTED ? whole.provenance : IPW_PROV_DISTRIBUTED;
        out[i].reason = NULL;
        given = upto;
    }
    free(split.open);
}

static void windows(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                    const int64_t *t, size_t n, struct ipw_figure *out)
{
    const struct ledger_domain *d = &l->domains[domain];
    const struct ledger_query *q = query == NOBODY ? NULL : ipw_ledger_query(l, query);
    struct ipw_figure *one = d->n > 1 ? ipw_calloc(n + 1, sizeof *one) : NULL;

    for (size_t i = 0; i < n; i++) out[i] = unknown(d->n ? "not_covered" : d->reason);
    for (size_t k = 0; k < d->n && n && (query == NOBODY || q); k++) {
        line_windows(l, q, &l->lines[d->first + k], t, n, k ? one : out);
        for (size_t i = 0; i < n && k; i++) ipw_figure_add(&out[i], &one[i], false);
    }
    for (size_t i = 0; i < n; i++) out[i] = ipw_ledger_by_model(l, domain, t[i], t[i + 1], out[i]);
    free(one);
}

void ipw_ledger_windows(const struct ipw_ledger *l, enum ipw_domain domain, const int64_t *t,
                        size_t n, struct ipw_figure *out)
{
    windows(l, NOBODY, domain, t, n, out);
}

void ipw_ledger_query_windows(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                              const int64_t *t, size_t n, struct ipw_figure *out)
{
    windows(l, query < 0 ? INT64_MAX : query, domain, t, n, out);
}

void ipw_ledger_device_windows(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                               size_t device, const int64_t *t, size_t n, struct ipw_figure *out)
{
    const struct ledger_query *q = query < 0 ? NULL : ipw_ledger_query(l, query);

    for (size_t i = 0; i < n; i++) out[i] = unknown("not_covered");
    if (!n || (query >= 0 && !q)) return;
    line_windows(l, q, &l->lines[l->domains[domain].first + device], t, n, out);
}

struct ipw_figure ipw_ledger_device_window(const struct ipw_ledger *l, int64_t query,
                                           enum ipw_domain domain, size_t device, int64_t t0_ns,
                                           int64_t t1_ns)
{
    const struct ledger_query *q = query < 0 ? NULL : ipw_ledger_query(l, query);

    if (query >= 0 && !q) return unknown("not_covered");
    return line_window(l, q, &l->lines[l->domains[domain].first + device], t0_ns, t1_ns);
}

struct ipw_account ipw_ledger_device_account(const struct ipw_ledger *l, int64_t query,
                                             enum ipw_domain domain, size_t device, int64_t t0_ns,
                                             int64_t t1_ns)
{
    const struct ledger_line *line = &l->lines[l->domains[domain].first + device];
    struct ipw_account a = {.exclusive_j = NAN, .marginal_j = NAN};
    struct ledger_mark from, to;

    a.attributed = ipw_ledger_device_window(l, query, domain, device, t0_ns, t1_ns);
    if (!a.attributed.known) return a;
    from = ipw_ledger_mark_at(l, line, t0_ns);
    to = ipw_ledger_mark_at(l, line, t1_ns);
    a.exclusive_j = (double)(to.alone - from.alone) / 1e6;
    if (!isnan(line->baseline_w))
        a.marginal_j =
            (double)(whole_uj(a.attributed.j) - (int64_t)((to.base - from.base) >> 32)) / 1e6;
    return a;
}

static double add_uj(double a, double b)
{
    return isnan(a) || isnan(b) ? (double)NAN : (double)(whole_uj(a) + whole_uj(b)) / 1e6;
}

struct ipw_account ipw_ledger_account(const struct ipw_ledger *l, int64_t query,
                                      enum ipw_domain domain, int64_t t0_ns, int64_t t1_ns)
{
    struct ipw_account sum = {.exclusive_j = 0, .marginal_j = 0};

    sum.attributed = ipw_ledger_query_window(l, query, domain, t0_ns, t1_ns);
    if (!sum.attributed.known)
        return (struct ipw_account){sum.attributed, .exclusive_j = NAN, .marginal_j = NAN};
    for (size_t i = 0; i < l->domains[domain].n; i++) {
        struct ipw_account one = ipw_ledger_device_account(l, query, domain, i, t0_ns, t1_ns);

        sum.exclusive_j = add_uj(sum.exclusive_j, one.exclusive_j);
        sum.marginal_j = add_uj(sum.marginal_j, one.marginal_j);
    }
    return sum;
}

struct ipw_figure ipw_ledger_total(const struct ipw_ledger *l, enum ipw_domain domain,
                                   int64_t t0_ns, int64_t t1_ns)
{
    return ipw_ledger_gather(l, domain, t0_ns, t1_ns, TOTAL_SLACK_NS);
}

struct ipw_figure ipw_ledger_device_total(const struct ipw_ledger *l, enum ipw_domain domain,
                                          size_t device, int64_t t0_ns, int64_t t1_ns)
{
    return ipw_series_between(l->lines[l->domains[domain].first + device].series, t0_ns, t1_ns,
                              TOTAL_SLACK_NS);
}

struct ipw_figure ipw_ledger_device_idle(const struct ipw_ledger *l, enum ipw_domain domain,
                                         size_t device, int64_t t0_ns, int64_t t1_ns)
{
    const struct ledger_line *line = &l->lines[l->domains[domain].first + device];
    struct ipw_figure f = ipw_ledger_device_total(l, domain, device, t0_ns, t1_ns);
    double whole = f.j;

    if (!f.known) return f;
    if (!ipw_ledger_answerable(l, t0_ns) || !ipw_ledger_answerable(l, t1_ns)) {
        return unknown("not_covered");
    }
    f.j = (double)(ipw_ledger_mark_at(l, line, t1_ns).idle -
                   ipw_ledger_mark_at(l, line, t0_ns).idle) /
          1e6;
    if (f.j < whole) f.lo_j = 0; /* what lies within the window but not in idle time is unknown */
    return f;
}

struct ipw_figure ipw_ledger_idle(const struct ipw_ledger *l, enum ipw_domain domain, int64_t t0_ns,
                                  int64_t t1_ns)
{
    const struct ledger_domain *d = &l->domains[domain];
    struct ipw_figure sum = unknown(d->reason);

    for (size_t i = 0; i < d->n; i++) {
        struct ipw_figure f = ipw_ledger_device_idle(l, domain, i, t0_ns, t1_ns);

        ipw_figure_add(&sum, &f, i == 0);
    }
    return sum;
}
