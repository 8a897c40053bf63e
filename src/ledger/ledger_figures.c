/* The answers of the ledger: see ledger/ledger.h and ledger_priv.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/upto.h"
#include "ledger/ledger.h"
#include "ledger/ledger_priv.h"

#define SLOW_PERIOD_NS (10 * IPW_NS_PER_MS)
/* A part of a query that is shorter has wider bounds: the edges may be over 2 % of it. */
#define SHORT_PART_NS (50 * IPW_SERIES_EDGE_NS)

static struct ipw_figure unknown(const char *reason)
{
    return (struct ipw_figure){.provenance = IPW_PROV_NONE, .reason = reason};
}

static int64_t whole_uj(double j) { return (int64_t)(j * 1e6 + (j < 0 ? -0.5 : 0.5)); }

/* If one is unknown, so is the sum.  The sum has an estimate if each has a value or an estimate. */
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

/* The sum is known if all its figures are; it takes the weakest provenance and the poorest coverage
 * among them.  Whole microjoules are added as such. */
static void add_figure(struct ipw_figure *sum, const struct ipw_figure *more, bool first)
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
    sum->j = ipw_figure_add_j(sum->j, more->j);
    sum->lo_j += more->lo_j;
    sum->hi_j += more->hi_j;
    sum->u_j += more->u_j;
    sum->split_fraction = sum->j > 0 ? split / sum->j : 0;
    if (more->provenance > sum->provenance) sum->provenance = more->provenance;
}

struct ledger_asked ipw_ledger_asks(const struct ipw_ledger *l, const struct ipw_ledger_question *q)
{
    return (struct ledger_asked){.l = l, .q = q, .query = ipw_ledger_query(l, q->query)};
}

static bool is_asked(const struct ledger_asked *a, const struct ipw_book *b)
{
    const struct ipw_ledger *l = a->l;

    if (b->domain != a->q->domain || b->is_model != a->models) return false;
    if (a->query && !a->query->accounts[b->index].seen) return false;
    return a->q->device == IPW_LEDGER_ALL || a->models ||
           b->channel == l->devices[l->domains[b->domain].first + a->q->device];
}

bool ipw_ledger_next(struct ledger_asked *a)
{
    bool whole = a->q->what == IPW_LEDGER_TOTAL || a->q->what == IPW_LEDGER_IDLE;

    while (a->next < a->l->n_books) {
        const struct ipw_book *b = a->l->books[a->next++];

        if (!is_asked(a, b)) continue;
        a->book = b;
        a->account = a->query ? &a->query->accounts[b->index] : NULL;
        a->t0_ns = a->q->t0_ns;
        a->t1_ns = a->q->t1_ns;
        if (whole && a->t0_ns < b->time.start_ns) a->t0_ns = b->time.start_ns;
        if (whole && a->t1_ns > b->time.end_ns) a->t1_ns = b->time.end_ns;
        if (whole && a->l->scopes && a->t1_ns <= a->t0_ns) continue;
        return true;
    }
    return false;
}

/* ---- the energy of a query on a device ---- */

/* Bounds with the shares taken as given.  The energy at each cut is uncertain; it moves the figure
 * by as much as the share changes there. */
static void bound_share(const struct ipw_book_record *from, const struct ipw_book_record *to,
                        const struct ipw_series_ends *ends, struct ipw_figure *f)
{
    double whole_hi = f->hi_j, up = from->after * (double)ends->below0_uj;
    double down = from->after * (double)ends->above0_uj;

    up += to->up - from->with_up + to->before * (double)ends->above1_uj;
    down += to->down - from->with_down + to->before * (double)ends->below1_uj;
    f->lo_j = f->j - down / 1e6;
    f->hi_j = f->j + up / 1e6;
    if (f->lo_j < 0) f->lo_j = 0;
    if (f->lo_j > f->j) f->lo_j = f->j;
    if (f->hi_j > whole_hi) f->hi_j = whole_hi;
    if (f->hi_j < f->j) f->hi_j = f->j;
}

/* An end at an instant that was not told is shared out by a guess. */
static void widen_by_guess(const struct ipw_book_record *from, const struct ipw_book_record *to,
                           double whole_hi, struct ipw_figure *f)
{
    double less = (double)(from->more + to->less) / 1e6;
    double more = (double)(from->less + to->more) / 1e6;

    f->lo_j = fmax(0, f->lo_j - less);
    f->hi_j = fmax(f->j, fmin(whole_hi, f->hi_j + more));
    f->u_j = hypot(f->u_j, (less + more) / sqrt(12)); /* anything between them */
}

/* The window may begin and end earlier or later. */
static void widen_by_clock(const struct ipw_book *b, int64_t t0_ns, int64_t t1_ns,
                           struct ipw_figure *f, struct ipw_series_ends *ends)
{
    double uj0 = ipw_book_clock_uj(b, t0_ns), uj1 = ipw_book_clock_uj(b, t1_ns);
    double j = (uj0 + uj1) / 1e6;

    f->lo_j = f->lo_j > j ? f->lo_j - j : 0;
    f->hi_j += j;
    ends->below0_uj += (int64_t)uj0;
    ends->above0_uj += (int64_t)uj0;
    ends->below1_uj += (int64_t)uj1;
    ends->above1_uj += (int64_t)uj1;
}

static struct ipw_figure window_of(const struct ipw_book *b, const struct ipw_book_account *a,
                                   int64_t t0_ns, int64_t t1_ns)
{
    struct ipw_book_record from, to;
    struct ipw_series_ends ends;
    struct ipw_figure f;
    double whole, whole_hi;

    if (!a) return unknown("not_covered");
    from = ipw_book_record_at(b, a, t0_ns);
    to = ipw_book_record_at(b, a, t1_ns);
    /* It has a share of every cell until it left, which is later than its end if that came late. */
    if (t1_ns == a->told_ns && a->t1_ns > t1_ns && b->series.n && b->series.last.t_ns > t1_ns)
        t1_ns = a->t1_ns < b->series.last.t_ns ? a->t1_ns : b->series.last.t_ns;
    f = ipw_series_window(&b->series, t0_ns, t1_ns, IPW_BOOK_WINDOW_SLACK_NS, &ends);
    whole = f.j;
    if (!f.known) return ipw_ledger_estimate(b, a, t0_ns, t1_ns, f);
    if (b->clock_error_ns) widen_by_clock(b, t0_ns, t1_ns, &f, &ends);
    whole_hi = f.hi_j;
    f.j = (double)(to.uj - from.uj) / 1e6;
    f.u_j = whole > 0 ? f.u_j * f.j / whole : 0;
    if (to.crowded_ns <= from.crowded_ns) return f;
    if (f.provenance < IPW_PROV_DISTRIBUTED) f.provenance = IPW_PROV_DISTRIBUTED;
    /* Also if the gauge replaced the counter. */
    if (b->series.channel.kind == IPW_CHANNEL_GAUGE) {
        f.lo_j = whole > 0 ? f.lo_j * f.j / whole : 0;
        f.hi_j = whole > 0 ? f.hi_j * f.j / whole : f.j;
    } else {
        bound_share(&from, &to, &ends, &f);
    }
    widen_by_guess(&from, &to, whole_hi, &f);
    return f;
}

/* A model describes a domain, not a single device. */
static struct ipw_figure by_model(const struct ipw_ledger *l, const struct ipw_ledger_question *q,
                                  int64_t t0_ns, int64_t t1_ns, struct ipw_figure f)
{
    struct ledger_asked a = ipw_ledger_asks(l, q);

    a.models = true;
    if (f.known || q->device != IPW_LEDGER_ALL) return f;
    while (!f.estimated && ipw_ledger_next(&a))
        f = ipw_ledger_by_model(a.book, a.account, t0_ns, t1_ns, f);
    return f;
}

/* Is the window too short for a gauge to resolve? */
static bool is_unresolved(const struct ipw_book *b, int64_t t0_ns, int64_t t1_ns)
{
    return t1_ns > t0_ns && t1_ns - t0_ns < ipw_series_resolution_ns(&b->series);
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

/* The device's power at an instant, in watts: the larger of those before and after it between the
 * samples around it. */
static double power_at(const struct ipw_series *s, int64_t t_ns)
{
    const struct ipw_series_sample *next, *at = ipw_series_around(s, t_ns, &next);
    double uj = (double)ipw_series_at(s, t_ns), before = 0, after = 0;

    if (at && t_ns > at->t_ns) before = (uj - (double)at->uj) / (double)(t_ns - at->t_ns);
    if (next && t_ns < next->t_ns) after = ((double)next->uj - uj) / (double)(next->t_ns - t_ns);
    return fmax(before, after) * 1e3; /* uJ / ns = kW */
}

/* What the edges of a part may hold: the power of its devices at its ends, and their energy. */
struct edges {
    double watts, whole_j;
};

static void add_edges(struct edges *e, const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns)
{
    e->watts += fmax(power_at(s, t0_ns), power_at(s, t1_ns));
    e->whole_j += (double)(ipw_series_at(s, t1_ns) - ipw_series_at(s, t0_ns)) / 1e6;
}

/* The power's edges may lie up to IPW_SERIES_EDGE_NS before the events at the ends of a part of a
 * query (docs/method.md, "Edges").  That matters where the part is short. */
static bool is_short(const struct ipw_figure *f, int64_t t0_ns, int64_t t1_ns)
{
    return f->known && f->hi_j > 0 && t1_ns > t0_ns && t1_ns - t0_ns < SHORT_PART_NS;
}

static void widen_by_edges(const struct edges *e, struct ipw_figure *f)
{
    double j =
        e->watts * (double)IPW_SERIES_EDGE_NS / 1e9 * (e->whole_j > f->j ? f->j / e->whole_j : 1);
    double half;

    f->lo_j = fmax(f->lo_j - j, 0);
    f->hi_j += j;
    half = (f->hi_j - f->lo_j) / 2;
    if (half > IPW_MEASURED_HALF * f->j && f->provenance < IPW_PROV_INTERPOLATED)
        f->provenance = IPW_PROV_INTERPOLATED;
    if (half > IPW_INTERPOLATED_HALF * f->j && f->provenance < IPW_PROV_DISTRIBUTED)
        f->provenance = IPW_PROV_DISTRIBUTED;
}

/* Of a window that begins before the first query and ends after what was shared. */
static struct ipw_figure idle_of(const struct ipw_book *b, int64_t t0_ns, int64_t t1_ns)
{
    struct ipw_figure f = ipw_series_between(&b->series, t0_ns, t1_ns, IPW_BOOK_TOTAL_SLACK_NS);
    double whole = f.j;

    if (!f.known || b->first_ns == INT64_MAX || t1_ns <= b->first_ns) return f;
    if (t0_ns > b->first_ns || t1_ns < b->now.t_ns) return unknown("not_covered");
    f.j = (double)(ipw_book_sums_at(b, t1_ns, NULL).idle - ipw_series_at(&b->series, t0_ns)) / 1e6;
    if (f.j < whole) ipw_book_bound_idle(b, t0_ns, t1_ns, &f);
    f.u_j = whole > 0 ? f.u_j * f.j / whole : 0;
    return f;
}

/* The figure of one of the question's devices. */
static struct ipw_figure figure_of(const struct ledger_asked *a)
{
    switch (a->q->what) {
    case IPW_LEDGER_QUERY:
    case IPW_LEDGER_SPAN: break;
    case IPW_LEDGER_TOTAL:
        return ipw_series_between(&a->book->series, a->t0_ns, a->t1_ns, IPW_BOOK_TOTAL_SLACK_NS);
    case IPW_LEDGER_IDLE: return idle_of(a->book, a->t0_ns, a->t1_ns);
    case IPW_LEDGER_QUERIES: return ipw_book_together(a->book);
    }
    return window_of(a->book, a->account, a->t0_ns, a->t1_ns);
}

struct ipw_figure ipw_ledger_figure(const struct ipw_ledger *l, struct ipw_ledger_question q)
{
    struct ipw_figure sum = unknown(l->domains[q.domain].reason);
    bool first = true, is_span = q.what == IPW_LEDGER_SPAN, too_fine = false;
    struct edges edges = {0};

    for (struct ledger_asked a = ipw_ledger_asks(l, &q); ipw_ledger_next(&a); first = false) {
        struct ipw_figure f = figure_of(&a);

        add_figure(&sum, &f, first);
        too_fine |= is_span && is_unresolved(a.book, q.t0_ns, q.t1_ns);
        if (is_span && is_short(&f, q.t0_ns, q.t1_ns))
            add_edges(&edges, &a.book->series, q.t0_ns, q.t1_ns);
    }
    if (q.what == IPW_LEDGER_QUERY || is_span) sum = by_model(l, &q, q.t0_ns, q.t1_ns, sum);
    if (too_fine) return unresolved(sum);
    if (is_span && is_short(&sum, q.t0_ns, q.t1_ns)) widen_by_edges(&edges, &sum);
    /* Of a few milliseconds, what events 20 ms late may add is more than there is. */
    if (q.t1_ns - q.t0_ns < 2 * IPW_SERIES_EDGE_NS)
        sum.u_j = fmax(IPW_STATED_U * sum.j, fmin(sum.u_j, sum.hi_j - sum.lo_j));
    return sum;
}

/* The window is shorter than the period of a counter that is read no more often than it publishes.
 * No sample says when the energy was used, and the fit has no steps to learn from. */
static bool too_short(const struct ipw_book *b, int64_t t0_ns, int64_t t1_ns)
{
    const struct ipw_series_sample *next, *at;
    int64_t period = b->series.channel.period_ns;

    if (period < SLOW_PERIOD_NS || t1_ns - t0_ns >= period || t1_ns <= t0_ns) return false;
    at = ipw_series_around(&b->series, t0_ns, &next);
    /* If the counter is read faster, publication is known to less than half a period. */
    return at && (int64_t)at->early_ns + at->late_ns > period / 2;
}

/* The window gets `j` of the energy that several windows share. */
static void share_of_rest(struct ipw_figure *f, const struct ipw_figure *whole, double j)
{
    if (!f->known) {
        f->lo_j = 0;
        f->hi_j = whole->hi_j;
    }
    f->known = true;
    f->estimated = false;
    f->estimate_by = NULL;
    f->j = j;
    if (f->lo_j > j) f->lo_j = j;
    if (f->hi_j < j) f->hi_j = j;
    f->u_j = (f->hi_j - f->lo_j) / sqrt(12); /* anything between the bounds */
    f->split_fraction = 1;
    f->provenance =
        whole->provenance > IPW_PROV_DISTRIBUTED ? whole->provenance : IPW_PROV_DISTRIBUTED;
    f->reason = NULL;
}

/* The energy at an instant is defined wherever a chain has a sample before and after it.  So a
 * window inside a known window is known too.  Two kinds of windows stay open: those outside the
 * samples but inside the slack of the whole, and those that are too short.  They share the energy
 * that the other windows leave of the whole by wall clock (docs/method.md, "Fallbacks"). */
static void windows_of(const struct ipw_book *b, const struct ipw_book_account *account,
                       const int64_t *t, size_t n, struct ipw_figure *out)
{
    struct ipw_figure whole = window_of(b, account, t[0], t[n]);
    int64_t rest = whole.known ? whole_uj(whole.j) : 0, given = 0, open_ns = 0, done_ns = 0;
    bool *open = ipw_calloc(n, sizeof *open);

    for (size_t i = 0; i < n; i++) {
        out[i] = window_of(b, account, t[i], t[i + 1]);
        open[i] = !out[i].known || (n > 1 && too_short(b, t[i], t[i + 1]));
        if (open[i]) {
            open_ns += t[i + 1] - t[i];
        } else {
            rest -= whole_uj(out[i].j);
        }
        if (!open[i] && n > 1 && is_unresolved(b, t[i], t[i + 1])) out[i] = unresolved(out[i]);
        if (!open[i] && n > 1 && is_short(&out[i], t[i], t[i + 1])) {
            struct edges edges = {0};

            add_edges(&edges, &b->series, t[i], t[i + 1]);
            widen_by_edges(&edges, &out[i]);
        }
    }
    for (size_t i = 0; i < n && whole.known && rest >= 0; i++) {
        int64_t upto;

        if (!open[i]) continue;
        done_ns += t[i + 1] - t[i];
        upto = done_ns < open_ns ? (int64_t)((__int128)rest * done_ns / open_ns) : rest;
        share_of_rest(&out[i], &whole, (double)(upto - given) / 1e6);
        given = upto;
    }
    free(open);
}

void ipw_ledger_figures(const struct ipw_ledger *l, struct ipw_ledger_question q, const int64_t *t,
                        size_t n, struct ipw_figure *out)
{
    struct ipw_figure *one = NULL;
    bool first = true;

    for (size_t i = 0; i < n; i++) out[i] = unknown(l->domains[q.domain].reason);
    for (struct ledger_asked a = ipw_ledger_asks(l, &q); n && ipw_ledger_next(&a); first = false) {
        if (!first && !one) one = ipw_calloc(n, sizeof *one);
        windows_of(a.book, a.account, t, n, one ? one : out);
        for (size_t i = 0; i < n && one; i++) add_figure(&out[i], &one[i], false);
    }
    for (size_t i = 0; i < n; i++) out[i] = by_model(l, &q, t[i], t[i + 1], out[i]);
    free(one);
}

struct ipw_account ipw_ledger_account(const struct ipw_ledger *l, struct ipw_ledger_question q)
{
    struct ipw_account account = {.marginal_j = 0};
    int64_t base_uj = 0;

    q.what = IPW_LEDGER_QUERY;
    account.attributed = ipw_ledger_figure(l, q);
    if (!account.attributed.known)
        return (struct ipw_account){account.attributed, .exclusive_j = NAN, .marginal_j = NAN};
    for (struct ledger_asked a = ipw_ledger_asks(l, &q); ipw_ledger_next(&a);) {
        struct ipw_book_record from = ipw_book_record_at(a.book, a.account, q.t0_ns);
        struct ipw_book_record to = ipw_book_record_at(a.book, a.account, q.t1_ns);

        account.exclusive_j =
            ipw_figure_add_j(account.exclusive_j, (double)(to.alone - from.alone) / 1e6);
        base_uj += (int64_t)((to.base - from.base) >> 32);
        if (isnan(a.book->baseline_w)) account.marginal_j = NAN;
    }
    account.marginal_j += (double)(whole_uj(account.attributed.j) - base_uj) / 1e6;
    return account;
}
