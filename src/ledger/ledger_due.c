/* The energy of a query on a device, piece by piece: see ledger/ledger_priv.h. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/ledger_priv.h"

#define RATE_UNIT                                                                                  \
    0x1p50 /* a rate of tokens is a whole number of 2^-50 tokens per nanosecond, and */
#define MOST_RATE 0x1p48 /* at most 250 million tokens per second */

/* ---- the kind of a query ---- */

/* The query's phase at t; of overlapping spans the one told last. */
static enum ipw_phase phase_at(const struct ledger_query *q, int64_t t_ns)
{
    for (size_t i = q->n_phases; i-- > 0;) {
        if (q->phases[i].t0_ns <= t_ns && t_ns < q->phases[i].t1_ns) return q->phases[i].phase;
    }
    return IPW_PHASE_AGENT;
}

/* The first tokens that end after t; of overlapping ones the first. */
static size_t tokens_after(const struct ledger_query *q, int64_t t_ns)
{
    size_t lo = 0, hi = q->tokens_overlap ? 0 : q->n_tokens;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (q->tokens[mid].t1_ns <= t_ns) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

double ipw_ledger_token_weight(const struct ipw_ledger *l, const struct ledger_query *q,
                               int64_t t0_ns, int64_t t1_ns)
{
    double weight = 0;

    for (size_t i = tokens_after(q, t0_ns); i < q->n_tokens; i++) {
        const struct ledger_tokens *x = &q->tokens[i];
        int64_t from = x->t0_ns > t0_ns ? x->t0_ns : t0_ns;
        int64_t to = x->t1_ns < t1_ns ? x->t1_ns : t1_ns;

        if (x->t0_ns >= t1_ns && !q->tokens_overlap) break;
        if (to <= from) continue;
        weight += (l->alpha * x->prefilled + x->decoded) * (double)(to - from) /
                  (double)(x->t1_ns - x->t0_ns);
    }
    return weight;
}

static uint64_t rate_at(const struct ipw_ledger *l, const struct ledger_query *q, int64_t t_ns)
{
    double rate = ipw_ledger_token_weight(l, q, t_ns, t_ns + 1) * RATE_UNIT;

    if (!(rate > 0)) return 0;
    return rate < 1 ? 1 : rate < MOST_RATE ? (uint64_t)rate : (uint64_t)MOST_RATE;
}

static uint64_t key_at(const struct ipw_ledger *l, const struct ledger_query *q, int64_t t_ns)
{
    switch (l->share) {
    case IPW_SHARE_TOKENS: return rate_at(l, q, t_ns);
    case IPW_SHARE_PHASE: return phase_at(q, t_ns);
    case IPW_SHARE_EQUAL: break;
    }
    return 0;
}

/* The running sum that the piece follows. */
static size_t kind_of(const struct ipw_ledger *l, const struct ledger_piece *p)
{
    return l->share == IPW_SHARE_PHASE ? (size_t)p->key : 0;
}

/* ---- running sums ---- */

static struct ledger_sum *sum_of(const struct ipw_ledger *l, const struct ledger_line *line,
                                 size_t i, size_t kind)
{
    return &line->sums[i * ipw_ledger_kinds(l) + kind];
}

/* A running sum at t.  Edge i, which is settled, is the last at or before t.  Inside a cell the sum
 * grows with the energy of the line. */
static unsigned __int128 sum_at(const struct ipw_ledger *l, const struct ledger_line *line,
                                size_t kind, size_t i, int64_t t_ns)
{
    unsigned __int128 due = sum_of(l, line, i, kind)->due, step, cell, part;
    const struct ledger_mark *a = &line->marks[i];
    int64_t uj;

    if (t_ns <= a->t_ns || i + 1 >= line->settled) return due;
    uj = ipw_series_at(line->series, t_ns);
    if (uj > a[1].uj) uj = a[1].uj;
    if (uj <= a->uj) return due;
    cell = (unsigned __int128)(a[1].uj - a->uj);
    part = (unsigned __int128)(uj - a->uj);
    step = sum_of(l, line, i + 1, kind)->due - due;
    return due + step / cell * part + step % cell * part / cell;
}

/* Converts 2^-64 microjoules for a rate of 1 to 2^-32 microjoules for `rate`. */
static unsigned __int128 by_rate(unsigned __int128 tokens, uint64_t rate)
{
    return ((tokens >> 64) * rate << 32) + (((tokens & UINT64_MAX) * rate) >> 32);
}

/* The query's piece in the cell that begins at edge i, which is settled; NULL: it has no piece
 * there. */
static const struct ledger_piece *piece_in(const struct ipw_ledger *l,
                                           const struct ledger_line *line,
                                           const struct ledger_slice *s, size_t i)
{
    int64_t edge = l->edge_base + (int64_t)i;
    size_t lo = 0, hi = s ? s->n : 0;

    if (i + 1 >= line->settled || (hi && s->left && edge >= s->to)) return NULL;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s->pieces[mid].from <= edge) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo ? &s->pieces[lo - 1] : NULL;
}

/* The energy due to the query up to t, with its piece p; edge i is the last at or before t. */
static unsigned __int128 due_of(const struct ipw_ledger *l, const struct ledger_line *line,
                                const struct ledger_piece *p, size_t i, int64_t t_ns)
{
    unsigned __int128 due = p->offset + sum_at(l, line, kind_of(l, p), i, t_ns);

    if (l->share == IPW_SHARE_TOKENS && p->key)
        due += by_rate(sum_at(l, line, LEDGER_TOKENS, i, t_ns) - p->tokens, p->key);
    return due;
}

/* ---- queries start, change and end ---- */

void ipw_ledger_look(struct ipw_ledger *l, int64_t query, int64_t t_ns)
{
    size_t i = l->n_looks;

    if (!l->n_lines) return;
    IPW_GROW(l->looks, l->cap_looks, l->n_looks + 1);
    while (i > 0 && l->looks[i - 1].t_ns > t_ns) i--;
    memmove(l->looks + i + 1, l->looks + i, (l->n_looks++ - i) * sizeof *l->looks);
    l->looks[i] = (struct ledger_look){t_ns, query};
    for (size_t k = 0; k < l->n_lines; k++) {
        struct ledger_line *line = &l->lines[k];

        if (line->next_look <= i) continue;
        line->next_look++;
        IPW_GROW(line->late, line->cap_late, line->n_late + 1);
        line->late[line->n_late++] = query;
    }
}

static void count(const struct ipw_ledger *l, struct ledger_line *line, uint64_t key, int change)
{
    if (l->share == IPW_SHARE_PHASE) line->count[key] += change;
    if (l->share == IPW_SHARE_TOKENS) line->rate += change > 0 ? key : -key;
}

/* Begins a piece at edge i if the query changes its kind there. */
static void look_at(const struct ipw_ledger *l, struct ledger_line *line, int64_t query, size_t i)
{
    struct ledger_query *q = ipw_ledger_query(l, query);
    int64_t t_ns = l->edges[i].t_ns;
    struct ledger_piece piece = {.from = l->edge_base + (int64_t)i};
    struct ledger_slice *s;

    if (!q || q->t0_ns > t_ns || q->t1_ns <= t_ns) return;
    s = &q->slices[line - l->lines];
    piece.key = key_at(l, q, t_ns);
    if (s->n) {
        const struct ledger_piece *last = &s->pieces[s->n - 1];

        if (last->key == piece.key) return;
        piece.offset = due_of(l, line, last, i, t_ns);
        count(l, line, last->key, -1);
    } else {
        line->n_active++;
    }
    piece.offset -= sum_of(l, line, i, kind_of(l, &piece))->due;
    if (l->share == IPW_SHARE_TOKENS) piece.tokens = sum_of(l, line, i, LEDGER_TOKENS)->due;
    count(l, line, piece.key, 1);
    IPW_GROW(s->pieces, s->cap, s->n + 1);
    s->pieces[s->n++] = piece;
}

void ipw_ledger_bring_up(const struct ipw_ledger *l, struct ledger_line *line, size_t i)
{
    for (size_t k = 0; k < line->n_late; k++) look_at(l, line, line->late[k], i);
    line->n_late = 0;
    while (line->next_look < l->n_looks && l->looks[line->next_look].t_ns <= l->edges[i].t_ns)
        look_at(l, line, l->looks[line->next_look++].query, i);
}

static void leave(const struct ipw_ledger *l, struct ledger_line *line, struct ledger_query *q)
{
    struct ledger_slice *s = &q->slices[line - l->lines];
    const struct ledger_piece *last = s->n ? &s->pieces[s->n - 1] : NULL;
    size_t i = ipw_ledger_edge_at(l, q->t1_ns);
    __int128 due;

    if (!last) return; /* it started and ended at once */
    due = (__int128)due_of(l, line, last, i, q->t1_ns) + line->owed;
    s->uj = (int64_t)((due + (INT64_C(1) << 31)) >> 32);
    line->owed = (int64_t)(due - ((__int128)s->uj << 32));
    s->left = true;
    s->to = l->edge_base + (int64_t)i;
    line->n_active--;
    count(l, line, last->key, -1);
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
    size_t i, k;

    if (t_ns <= q->t0_ns || q->t1_ns <= q->t0_ns) return 0;
    if (t_ns > q->t1_ns) t_ns = q->t1_ns;
    if (s->left && t_ns == q->t1_ns) return s->uj;
    i = ipw_ledger_edge_at(l, t_ns);
    if (!p || i == SIZE_MAX || l->edge_base + (int64_t)i < s->pieces[0].from)
        return equal_part(l, line, q->t0_ns, t_ns);
    if (i + 1 < line->settled)
        return (int64_t)(due_of(l, line, piece_in(l, line, s, i), i, t_ns) >> 32);
    /* Not settled yet: equal slices from the last settled edge on. */
    k = line->settled - 1;
    return (int64_t)(due_of(l, line, p, k, l->edges[k].t_ns) >> 32) +
           equal_part(l, line, l->edges[k].t_ns, t_ns);
}

/* ---- the effect of uncertain energy at edges ---- */

/* The share of running sum `kind` in the cell that begins at edge i. */
static double part_of_sum(const struct ipw_ledger *l, const struct ledger_line *line, size_t kind,
                          size_t i)
{
    double n = l->edges[i].in_flight > 0 ? (double)l->edges[i].in_flight : 1, step;
    bool tokens = l->share == IPW_SHARE_TOKENS && kind == LEDGER_TOKENS;
    int64_t cell = i + 1 < line->settled ? line->marks[i + 1].uj - line->marks[i].uj : 0;

    if (l->share == IPW_SHARE_EQUAL || cell <= 0) return tokens ? 0 : 1 / n;
    step = (double)(sum_of(l, line, i + 1, kind)->due - sum_of(l, line, i, kind)->due);
    return step / (double)cell * (tokens ? 0x1p-64 : 0x1p-32);
}

/* The share of a query; `p` may be NULL: an equal share. */
static double part_of(const struct ipw_ledger *l, const struct ledger_line *line,
                      const struct ledger_piece *p, size_t i)
{
    double n = l->edges[i].in_flight > 0 ? (double)l->edges[i].in_flight : 1, part;

    if (!p) return 1 / n;
    part = part_of_sum(l, line, kind_of(l, p), i);
    if (l->share == IPW_SHARE_TOKENS && p->key)
        part += part_of_sum(l, line, LEDGER_TOKENS, i) * (double)p->key;
    return part;
}

/* The energy up to an edge is uncertain, and the share falls there by `change`. */
static void add_change(double *up, double *down, double change, int64_t below, int64_t above)
{
    *up += change > 0 ? change * (double)above : -change * (double)below;
    *down += change > 0 ? change * (double)below : -change * (double)above;
}

void ipw_ledger_widen(const struct ipw_ledger *l, struct ledger_line *line, size_t i)
{
    const struct ledger_mark *mark = &line->marks[i];

    for (size_t kind = 0; kind < ipw_ledger_kinds(l); kind++) {
        struct ledger_sum *sum = sum_of(l, line, i, kind);
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
    const struct ledger_sum *a = sum_of(l, line, i, kind_of(l, p));
    const struct ledger_sum *b = sum_of(l, line, last, kind_of(l, p));

    r->up += b->up - a->up;
    r->down += b->down - a->down;
    if (l->share != IPW_SHARE_TOKENS || !p->key) return;
    /* Take each of the two parts by itself; together they may change it by less. */
    a = sum_of(l, line, i, LEDGER_TOKENS);
    b = sum_of(l, line, last, LEDGER_TOKENS);
    r->up += (b->up - a->up) * (double)p->key;
    r->down += (b->down - a->down) * (double)p->key;
}

/* The last edge, at most `most`, that begins a settled cell of piece p. */
static size_t last_in(const struct ipw_ledger *l, const struct ledger_line *line,
                      const struct ledger_slice *s, const struct ledger_piece *p, size_t most)
{
    int64_t to = p + 1 < s->pieces + s->n ? p[1].from : s->left ? s->to : INT64_MAX;

    if (most > line->settled - 2) most = line->settled - 2;
    return to - 1 - l->edge_base < (int64_t)most ? (size_t)(to - 1 - l->edge_base) : most;
}

struct ledger_reach ipw_ledger_reach(const struct ipw_ledger *l, const struct ledger_query *q,
                                     const struct ledger_line *line, int64_t t0_ns, int64_t t1_ns)
{
    const struct ledger_slice *s = q ? &q->slices[line - l->lines] : NULL;
    size_t i = ipw_ledger_edge_at(l, t0_ns), end = ipw_ledger_edge_at(l, t1_ns);
    const struct ledger_piece *p = piece_in(l, line, s, i);
    struct ledger_reach r;
    int64_t below, above;
    double part = part_of(l, line, p, i);

    if (end > i && l->edges[end].t_ns == t1_ns) end--;
    ipw_ledger_bounds(l, line, t0_ns, &below, &above);
    r.up = part * (double)below;
    r.down = part * (double)above;
    for (;;) {
        double next;

        if (p) {
            size_t last = last_in(l, line, s, p, end);

            add_changes(&r, l, line, p, i, last);
            part = part_of(l, line, p, last);
            i = last;
        }
        if (++i > end) break;
        p = piece_in(l, line, s, i);
        next = part_of(l, line, p, i);
        if (i < line->settled) {
            below = line->marks[i].below;
            above = line->marks[i].above;
        } else {
            ipw_ledger_bounds(l, line, l->edges[i].t_ns, &below, &above);
        }
        add_change(&r.up, &r.down, part - next, below, above);
        part = next;
    }
    ipw_ledger_bounds(l, line, t1_ns, &below, &above);
    r.up += part * (double)above;
    r.down += part * (double)below;
    return r;
}
