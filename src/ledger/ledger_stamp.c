/* The stamps of a query, and how far the uncertain energy at edges may move it: see
 * ledger/ledger_priv.h. */
#include <string.h>

#include "base/mem.h"
#include "base/upto.h"
#include "ledger/ledger_priv.h"

/* ---- shares of a cell, and the effect of uncertain energy at its ends ---- */

/* The share of running sum `kind` in the cell that begins at edge i. */
static double part_of_sum(const struct ipw_ledger *l, const struct ledger_line *line, size_t kind,
                          size_t i)
{
    double n = l->edges[i].in_flight > 0 ? (double)l->edges[i].in_flight : 1, step;
    int64_t cell =
        i + 1 < line->settled ? ipw_ledger_mark(line, i + 1)->uj - ipw_ledger_mark(line, i)->uj : 0;

    if (l->share == IPW_SHARE_EQUAL || cell <= 0) return 1 / n;
    step = (double)(ipw_ledger_sum_of(l, line, i + 1, kind)->due -
                    ipw_ledger_sum_of(l, line, i, kind)->due);
    return step / (double)cell * 0x1p-32;
}

/* The share of a query; `p` may be NULL: an equal share. */
static double part_of(const struct ipw_ledger *l, const struct ledger_line *line,
                      const struct ledger_piece *p, size_t i)
{
    double n = l->edges[i].in_flight > 0 ? (double)l->edges[i].in_flight : 1;

    return p ? part_of_sum(l, line, p->kind, i) : 1 / n;
}

/* The energy up to an edge is uncertain, and the share falls there by `change`. */
static void add_change(double *up, double *down, double change, int64_t below, int64_t above)
{
    *up += change > 0 ? change * (double)above : -change * (double)below;
    *down += change > 0 ? change * (double)below : -change * (double)above;
}

bool ipw_ledger_has_mark(const struct ipw_ledger *l, const struct ledger_line *line, int64_t t_ns)
{
    size_t i = ipw_ledger_edge_at(l, t_ns);

    return i != SIZE_MAX && i >= line->first;
}

/* ---- stamps ---- */

/* The last stamp at or before t; NULL: none. */
const struct ledger_stamp *ipw_ledger_stamp_upto(const struct ledger_stamps *s, int64_t t_ns)
{
    size_t n = s->n ? ipw_upto(&s->all->t_ns, s->n, sizeof *s->all, t_ns) : 0;

    return n ? &s->all[n - 1] : NULL;
}

/* What edges 1 to i of the query may move its energy by; p is its piece in the cell that begins at
 * edge i. */
static struct ledger_reach moved_upto(const struct ipw_ledger *l, const struct ledger_line *line,
                                      const struct ledger_piece *p, size_t i)
{
    const struct ledger_sum *sum = ipw_ledger_sum_of(l, line, i, p->kind);

    return (struct ledger_reach){p->up + sum->up, p->down + sum->down};
}

static void keep_stamp(struct ledger_stamps *s, const struct ledger_stamp *stamp)
{
    size_t i = s->n;

    IPW_GROW(s->all, s->cap, s->n + 1);
    for (; i && s->all[i - 1].t_ns > stamp->t_ns; i--) s->all[i] = s->all[i - 1];
    s->all[i] = *stamp;
    s->n++;
}

static void keep_instant(const struct ipw_ledger *l, struct ledger_query *q, int64_t t_ns)
{
    size_t i = q->n_instants;

    while (i && q->instants[i - 1].t_ns > t_ns) i--;
    if (i && q->instants[i - 1].t_ns == t_ns) return;
    IPW_GROW(q->instants, q->cap_instants, q->n_instants + 1);
    memmove(q->instants + i + 1, q->instants + i, (q->n_instants++ - i) * sizeof *q->instants);
    q->instants[i] = ipw_ledger_integrals(l, NULL, t_ns);
}

/* A stamp of the query at t, in the shared cell that edge i begins, where its piece is p. */
static void stamp_in(const struct ipw_ledger *l, const struct ledger_line *line,
                     struct ledger_query *q, struct ledger_piece *p, size_t i, int64_t t_ns)
{
    const struct ledger_mark *mark = ipw_ledger_mark(line, i);
    bool at_edge = t_ns == mark->t_ns, begins = at_edge && p->from == l->edge_base + (int64_t)i;
    struct ledger_slice *s = &q->slices[line - l->lines];
    const struct ledger_piece *before = !begins ? p : p > s->pieces ? p - 1 : NULL;
    struct ledger_stamp stamp = {.t_ns = t_ns, .after = part_of(l, line, p, i)};
    struct ledger_reach r = {0}, with = moved_upto(l, line, p, i);

    stamp.uj = (int64_t)(ipw_ledger_due_of(l, line, p, i, t_ns) >> 32);
    if (!at_edge) {
        stamp.before = stamp.after;
        r = with;
    } else if (before) {
        stamp.before = part_of(l, line, before, i - 1);
        r = moved_upto(l, line, before, i - 1);
    }
    stamp.up = r.up;
    stamp.down = r.down;
    if (!begins) {
        stamp.own_up = with.up - r.up;
        stamp.own_down = with.down - r.down;
    } else {
        if (before)
            add_change(&stamp.own_up, &stamp.own_down, stamp.before - stamp.after, mark->below,
                       mark->above);
        p->up = r.up + stamp.own_up - with.up;
        p->down = r.down + stamp.own_down - with.down;
    }
    keep_stamp(&s->stamps, &stamp);
    keep_instant(l, q, t_ns);
}

/* The query's piece there, if it has no stamp at t. */
static struct ledger_piece *unstamped(const struct ipw_ledger *l, const struct ledger_line *line,
                                      const struct ledger_query *q, size_t i, int64_t t_ns)
{
    const struct ledger_slice *s = &q->slices[line - l->lines];
    const struct ledger_stamp *known = s->stamps.n ? &s->stamps.all[s->stamps.n - 1] : NULL;
    const struct ledger_piece *p;

    if (known && known->t_ns > t_ns) known = ipw_ledger_stamp_upto(&s->stamps, t_ns);
    if (known && known->t_ns == t_ns) return NULL;
    p = ipw_ledger_piece_in(l, line, s, i);
    return p ? &s->pieces[p - s->pieces] : NULL;
}

/* The instant was told after its cell was shared. */
void ipw_ledger_stamp_late(const struct ipw_ledger *l, const struct ledger_line *line,
                           int64_t query, int64_t t_ns)
{
    struct ledger_query *q = ipw_ledger_query(l, query);
    size_t i = ipw_ledger_edge_at(l, t_ns);
    struct ledger_piece *p;

    if (!q || i == SIZE_MAX || i <= line->first || i + 1 >= line->settled) return;
    p = unstamped(l, line, q, i, t_ns);
    if (p) stamp_in(l, line, q, p, i, t_ns);
}

void ipw_ledger_stamp(const struct ipw_ledger *l, struct ledger_line *line, size_t i)
{
    for (size_t k = 0; k < line->fresh.n; k++) {
        struct ledger_query *q = ipw_ledger_query(l, line->fresh.all[k]);
        struct ledger_piece *p = q ? unstamped(l, line, q, i, l->edges[i].t_ns) : NULL;

        if (p) stamp_in(l, line, q, p, i, l->edges[i].t_ns);
    }
    line->fresh.n = 0;
    for (; line->next_stamp < l->n_looks && l->looks[line->next_stamp].t_ns < l->edges[i + 1].t_ns;
         line->next_stamp++) {
        const struct ledger_look *look = &l->looks[line->next_stamp];
        struct ledger_query *q = ipw_ledger_query(l, look->query);
        struct ledger_piece *p = q ? unstamped(l, line, q, i, look->t_ns) : NULL;

        if (look->t_ns < l->edges[i].t_ns) {
            ipw_ledger_stamp_late(l, line, look->query, look->t_ns);
        } else if (p) {
            stamp_in(l, line, q, p, i, look->t_ns);
        }
    }
}

/* The query left at edge i. */
void ipw_ledger_stamp_end(const struct ipw_ledger *l, const struct ledger_line *line,
                          struct ledger_query *q, size_t i)
{
    struct ledger_slice *s = &q->slices[line - l->lines];
    const struct ledger_piece *p = &s->pieces[s->n - 1];
    struct ledger_stamp stamp = {.t_ns = q->t1_ns, .uj = s->uj};
    struct ledger_reach r;

    keep_instant(l, q, q->t1_ns);
    if (p->from >= l->edge_base + (int64_t)i) return;
    r = moved_upto(l, line, p, i - 1);
    stamp.before = part_of(l, line, p, i - 1);
    stamp.up = r.up;
    stamp.down = r.down;
    keep_stamp(&s->stamps, &stamp);
}

/* The energy up to an instant without a stamp, before all marks: between the stamps around it, or
 * the last stamp and the newest mark, it grows with the energy of the device. */
int64_t ipw_ledger_after_stamp(const struct ipw_ledger *l, const struct ledger_line *line,
                               const struct ledger_slice *s, const struct ledger_stamp *stamp,
                               int64_t t_ns)
{
    size_t newest = line->settled - 1;
    const struct ledger_stamp *next = stamp + 1;
    int64_t from = ipw_series_at(line->series, stamp->t_ns), to, uj;

    if (next < s->stamps.all + s->stamps.n) {
        to = ipw_series_at(line->series, next->t_ns);
        uj = next->uj - stamp->uj;
    } else {
        const struct ledger_mark *mark = ipw_ledger_mark(line, newest);

        to = mark->uj;
        uj = (int64_t)(ipw_ledger_due_of(l, line, &s->pieces[s->n - 1], newest, mark->t_ns) >> 32) -
             stamp->uj;
    }
    if (to <= from) return stamp->uj;
    return stamp->uj +
           (int64_t)((__int128)uj * (ipw_series_at(line->series, t_ns) - from) / (to - from));
}

/* ---- bounds ---- */

void ipw_ledger_widen(const struct ipw_ledger *l, struct ledger_line *line, size_t i)
{
    const struct ledger_mark *mark = ipw_ledger_mark(line, i);

    for (size_t kind = 0; kind < ipw_ledger_kinds(l); kind++) {
        struct ledger_sum *sum = ipw_ledger_sum_of(l, line, i, kind);
        bool empty = l->share == IPW_SHARE_PHASE && !line->count[kind]; /* nobody asks for it */
        double part = empty ? 0 : part_of_sum(l, line, kind, i), change = line->parts[kind] - part;

        line->parts[kind] = part;
        if (!i) continue;
        sum->up = sum[-(ptrdiff_t)ipw_ledger_kinds(l)].up;
        sum->down = sum[-(ptrdiff_t)ipw_ledger_kinds(l)].down;
        add_change(&sum->up, &sum->down, change, mark->below, mark->above);
    }
}

/* Adds the changes at edges i + 1 to `last`, while the query is in piece p. */
static void add_changes(struct ledger_reach *r, const struct ipw_ledger *l,
                        const struct ledger_line *line, const struct ledger_piece *p, size_t i,
                        size_t last)
{
    const struct ledger_sum *a = ipw_ledger_sum_of(l, line, i, p->kind);
    const struct ledger_sum *b = ipw_ledger_sum_of(l, line, last, p->kind);

    r->up += b->up - a->up;
    r->down += b->down - a->down;
}

/* The last edge, at most `most`, that begins a settled cell of piece p. */
static size_t last_in(const struct ipw_ledger *l, const struct ledger_line *line,
                      const struct ledger_slice *s, const struct ledger_piece *p, size_t most)
{
    int64_t to = p + 1 < s->pieces + s->n ? p[1].from : s->left ? s->to : INT64_MAX;

    if (most > line->settled - 2) most = line->settled - 2;
    return to - 1 - l->edge_base < (int64_t)most ? (size_t)(to - 1 - l->edge_base) : most;
}

/* By the edges: of a query in flight, of a window between other instants, or of no query. */
static struct ledger_reach reach_of_edges(const struct ipw_ledger *l, const struct ledger_query *q,
                                          const struct ledger_line *line, int64_t t0_ns,
                                          int64_t t1_ns, const struct ipw_series_ends *ends)
{
    const struct ledger_slice *s = q ? &q->slices[line - l->lines] : NULL;
    size_t i = ipw_ledger_edge_at(l, t0_ns), end = ipw_ledger_edge_at(l, t1_ns);
    const struct ledger_piece *p = ipw_ledger_piece_in(l, line, s, i);
    struct ledger_reach r;
    int64_t below, above;
    double part = part_of(l, line, p, i);

    if (end > i && l->edges[end].t_ns == t1_ns) end--;
    r.up = part * (double)ends->below0_uj;
    r.down = part * (double)ends->above0_uj;
    for (;;) {
        double next;

        if (p) {
            size_t last = last_in(l, line, s, p, end);

            add_changes(&r, l, line, p, i, last);
            part = part_of(l, line, p, last);
            i = last;
        }
        if (++i > end) break;
        p = ipw_ledger_piece_in(l, line, s, i);
        next = part_of(l, line, p, i);
        if (i < line->settled) {
            below = ipw_ledger_mark(line, i)->below;
            above = ipw_ledger_mark(line, i)->above;
        } else {
            ipw_ledger_bounds(l, line, l->edges[i].t_ns, &below, &above);
        }
        add_change(&r.up, &r.down, part - next, below, above);
        part = next;
    }
    r.up += part * (double)ends->above1_uj;
    r.down += part * (double)ends->below1_uj;
    return r;
}

/* By the stamps around the window.  Where it begins or ends between two, its share there may have
 * been anything. */
static struct ledger_reach reach_of_stamps(const struct ledger_stamps *s,
                                           const struct ledger_stamp *from, int64_t t0_ns,
                                           int64_t t1_ns, const struct ipw_series_ends *ends)
{
    const struct ledger_stamp *to = ipw_ledger_stamp_upto(s, t1_ns), *end = s->all + s->n;
    double part0 = from->t_ns == t0_ns ? from->after : 1, part1 = 1;
    struct ledger_reach r;

    if (to->t_ns == t1_ns) {
        part1 = to->before;
    } else if (to + 1 < end) {
        to++;
    }
    r.up = part0 * (double)ends->below0_uj;
    r.down = part0 * (double)ends->above0_uj;
    if (to > from) {
        r.up += to->up - from->up - from->own_up;
        r.down += to->down - from->down - from->own_down;
    }
    r.up += part1 * (double)ends->above1_uj;
    r.down += part1 * (double)ends->below1_uj;
    return r;
}

bool ipw_ledger_reach(const struct ipw_ledger *l, const struct ledger_query *q,
                      const struct ledger_line *line, int64_t t0_ns, int64_t t1_ns,
                      const struct ipw_series_ends *ends, struct ledger_reach *out)
{
    const struct ledger_stamps *s = q ? &q->slices[line - l->lines].stamps : NULL;
    const struct ledger_stamp *from = s ? ipw_ledger_stamp_upto(s, t0_ns) : NULL;
    const struct ledger_stamp *to = from ? ipw_ledger_stamp_upto(s, t1_ns) : NULL;
    bool told = from && to > from && from->t_ns == t0_ns && to->t_ns == t1_ns;

    if (!told && ipw_ledger_has_mark(l, line, t0_ns)) {
        *out = reach_of_edges(l, q, line, t0_ns, t1_ns, ends);
        return true;
    }
    if (from) *out = reach_of_stamps(s, from, t0_ns, t1_ns, ends);
    return from;
}
