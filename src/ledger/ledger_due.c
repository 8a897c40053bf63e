/* The energy of a query on a device, piece by piece: see ledger/ledger_priv.h. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/upto.h"
#include "ledger/ledger_priv.h"

/* ---- the kind of a query ---- */

/* The query's phase at t; of overlapping spans the one told last. */
static enum ipw_phase phase_at(const struct ledger_query *q, int64_t t_ns)
{
    for (size_t i = q->n_phases; i-- > 0;) {
        if (q->phases[i].t0_ns <= t_ns && t_ns < q->phases[i].t1_ns) return q->phases[i].phase;
    }
    return IPW_PHASE_AGENT;
}

static enum ipw_phase kind_at(const struct ipw_ledger *l, const struct ledger_query *q,
                              int64_t t_ns)
{
    return l->share == IPW_SHARE_PHASE ? phase_at(q, t_ns) : 0;
}

/* ---- running sums ---- */

/* A running sum at t.  Edge i, which is settled, is the last at or before t.  Inside a cell the sum
 * grows with the energy of the line. */
static unsigned __int128 sum_at(const struct ipw_ledger *l, const struct ledger_line *line,
                                size_t kind, size_t i, int64_t t_ns)
{
    unsigned __int128 due = ipw_ledger_sum_of(l, line, i, kind)->due, step, cell, part;
    const struct ledger_mark *a = ipw_ledger_mark(line, i);
    int64_t uj;

    if (t_ns <= a->t_ns || i + 1 >= line->settled) return due;
    uj = ipw_series_at(line->series, t_ns);
    if (uj > a[1].uj) uj = a[1].uj;
    if (uj <= a->uj) return due;
    cell = (unsigned __int128)(a[1].uj - a->uj);
    part = (unsigned __int128)(uj - a->uj);
    step = ipw_ledger_sum_of(l, line, i + 1, kind)->due - due;
    return due + step / cell * part + step % cell * part / cell;
}

/* The query's piece in the cell that begins at edge i, which is settled; NULL: it has no piece
 * there. */
const struct ledger_piece *ipw_ledger_piece_in(const struct ipw_ledger *l,
                                               const struct ledger_line *line,
                                               const struct ledger_slice *s, size_t i)
{
    int64_t edge = l->edge_base + (int64_t)i;
    size_t n;

    if (i + 1 >= line->settled || !s || !s->n || (s->left && edge >= s->to)) return NULL;
    n = ipw_upto(&s->pieces->from, s->n, sizeof *s->pieces, edge);
    return n ? &s->pieces[n - 1] : NULL;
}

/* The energy due to the query up to t, with its piece p; edge i is the last at or before t. */
unsigned __int128 ipw_ledger_due_of(const struct ipw_ledger *l, const struct ledger_line *line,
                                    const struct ledger_piece *p, size_t i, int64_t t_ns)
{
    return p->offset + sum_at(l, line, p->kind, i, t_ns);
}

/* ---- queries start, change and end ---- */

static void push(struct ledger_ordinals *to, int64_t query)
{
    IPW_GROW(to->all, to->cap, to->n + 1);
    to->all[to->n++] = query;
}

/* Is this look the last one, and no line has passed it?  A phase's end is the start of the next. */
static bool is_known(const struct ipw_ledger *l, int64_t query, int64_t t_ns)
{
    const struct ledger_look *last = l->n_looks ? &l->looks[l->n_looks - 1] : NULL;

    if (!last || last->query != query || last->t_ns != t_ns) return false;
    for (size_t i = 0; i < l->n_lines; i++)
        if (l->lines[i].next_look == l->n_looks || l->lines[i].next_stamp == l->n_looks)
            return false;
    return true;
}

void ipw_ledger_look(struct ipw_ledger *l, int64_t query, int64_t t_ns)
{
    size_t i = l->n_looks;

    if (!l->n_lines || is_known(l, query, t_ns)) return;
    IPW_GROW(l->looks, l->cap_looks, l->n_looks + 1);
    while (i > 0 && l->looks[i - 1].t_ns > t_ns) i--;
    memmove(l->looks + i + 1, l->looks + i, (l->n_looks++ - i) * sizeof *l->looks);
    l->looks[i] = (struct ledger_look){t_ns, query};
    for (size_t k = 0; k < l->n_lines; k++) {
        struct ledger_line *line = &l->lines[k];

        /* The look that moves up is looked at twice, which changes nothing. */
        if (line->next_stamp > i) ipw_ledger_stamp_late(l, line, query, t_ns);
        if (line->next_look > i) push(&line->late, query);
    }
}

static struct ledger_alone alone_at(const struct ipw_ledger *l, const struct ledger_line *line,
                                    int64_t t_ns, size_t i)
{
    struct ledger_mark mark = ipw_ledger_has_mark(l, line, t_ns) ? ipw_ledger_mark_at(l, line, t_ns)
                                                                 : *ipw_ledger_mark(line, i);

    return (struct ledger_alone){mark.alone, mark.base};
}

/* Stamps tell what lies before the line's marks. */
static void drop_pieces(const struct ipw_ledger *l, const struct ledger_line *line,
                        struct ledger_slice *s)
{
    size_t drop = 0;

    while (drop + 1 < s->n && s->pieces[drop + 1].from <= l->edge_base + (int64_t)line->first)
        drop++;
    if (!drop) return;
    s->n -= drop;
    memmove(s->pieces, s->pieces + drop, s->n * sizeof *s->pieces);
}

/* Begins a piece at edge i if the query changes its kind there, or `late` if it has done so before.
 */
static void look_at(const struct ipw_ledger *l, struct ledger_line *line, int64_t query, size_t i,
                    bool late)
{
    struct ledger_query *q = ipw_ledger_query(l, query);
    int64_t t_ns = l->edges[i].t_ns;
    struct ledger_piece piece = {.from = l->edge_base + (int64_t)i};
    struct ledger_slice *s;

    if (!q || q->t0_ns > t_ns || q->t1_ns <= t_ns) return;
    s = &q->slices[line - l->lines];
    piece.kind = kind_at(l, q, t_ns);
    if (s->n) {
        const struct ledger_piece *last = &s->pieces[s->n - 1];

        if (last->kind == piece.kind) return;
        piece.offset = ipw_ledger_due_of(l, line, last, i, t_ns);
        line->count[last->kind]--;
    } else {
        line->n_active++;
        s->first = alone_at(l, line, q->t0_ns, i);
    }
    piece.offset -= ipw_ledger_sum_of(l, line, i, piece.kind)->due;
    line->count[piece.kind]++;
    drop_pieces(l, line, s);
    IPW_GROW(s->pieces, s->cap, s->n + 1);
    s->pieces[s->n++] = piece;
    if (late) push(&line->fresh, query);
}

void ipw_ledger_bring_up(const struct ipw_ledger *l, struct ledger_line *line, size_t i)
{
    for (size_t k = 0; k < line->late.n; k++) look_at(l, line, line->late.all[k], i, true);
    line->late.n = 0;
    while (line->next_look < l->n_looks && l->looks[line->next_look].t_ns <= l->edges[i].t_ns) {
        const struct ledger_look *look = &l->looks[line->next_look++];

        look_at(l, line, look->query, i, look->t_ns < l->edges[i].t_ns);
    }
}

static void leave(const struct ipw_ledger *l, struct ledger_line *line, struct ledger_query *q)
{
    struct ledger_slice *s = &q->slices[line - l->lines];
    const struct ledger_piece *last = s->n ? &s->pieces[s->n - 1] : NULL;
    size_t i = ipw_ledger_edge_at(l, q->t1_ns);
    __int128 due;

    if (!last) return; /* it started and ended at once */
    due = (__int128)ipw_ledger_due_of(l, line, last, i, q->t1_ns) + line->owed;
    s->uj = (int64_t)((due + (INT64_C(1) << 31)) >> 32);
    line->owed = (int64_t)(due - ((__int128)s->uj << 32));
    ipw_ledger_stamp_end(l, line, q, i);
    s->left = true;
    s->to = l->edge_base + (int64_t)i;
    s->last = alone_at(l, line, q->told_ns, i);
    line->n_active--;
    line->count[last->kind]--;
}

void ipw_ledger_let_go(const struct ipw_ledger *l, struct ledger_line *line)
{
    int64_t t_ns = line->settled ? l->edges[line->settled - 1].t_ns : INT64_MIN;

    while (line->next_leave < l->n_ends && l->ends[line->next_leave].t_ns <= t_ns) {
        struct ledger_query *q = ipw_ledger_query(l, l->ends[line->next_leave++].query);

        if (q) leave(l, line, q);
    }
}

/* Energy by equal slices between two instants. */
static int64_t equal_part(const struct ipw_ledger *l, const struct ledger_line *line, int64_t t0_ns,
                          int64_t t1_ns)
{
    return (int64_t)((ipw_ledger_mark_at(l, line, t1_ns).share -
                      ipw_ledger_mark_at(l, line, t0_ns).share) >>
                     32);
}

int64_t ipw_ledger_due_at(const struct ipw_ledger *l, const struct ledger_query *q,
                          const struct ledger_line *line, int64_t t_ns)
{
    const struct ledger_slice *s = &q->slices[line - l->lines];
    const struct ledger_piece *p = s->n ? &s->pieces[s->n - 1] : NULL;
    const struct ledger_stamp *stamp;
    size_t i, k;

    if (t_ns <= q->t0_ns || q->t1_ns <= q->t0_ns) return 0;
    if (t_ns > q->t1_ns) t_ns = q->t1_ns;
    if (s->left && t_ns == q->t1_ns) return s->uj;
    stamp = ipw_ledger_stamp_upto(&s->stamps, t_ns);
    if (stamp && stamp->t_ns == t_ns) return stamp->uj;
    i = ipw_ledger_edge_at(l, t_ns);
    if (stamp && (i == SIZE_MAX || i < line->first))
        return ipw_ledger_after_stamp(l, line, s, stamp, t_ns);
    if (!p || i == SIZE_MAX || l->edge_base + (int64_t)i < s->pieces[0].from)
        return equal_part(l, line, q->t0_ns, t_ns);
    if (i + 1 < line->settled)
        return (int64_t)(ipw_ledger_due_of(l, line, ipw_ledger_piece_in(l, line, s, i), i, t_ns) >>
                         32);
    /* Not settled yet: equal slices from the last settled edge on. */
    k = line->settled - 1;
    return (int64_t)(ipw_ledger_due_of(l, line, p, k, l->edges[k].t_ns) >> 32) +
           equal_part(l, line, l->edges[k].t_ns, t_ns);
}
