/* The energy of all queries together, and its bounds: what the device used from the first start to
 * the last end, less the gaps in which no query was in flight. */
#include <math.h>

#include "base/clock.h"
#include "ledger/book.h"

/* u^2 without the sensor's stated error, which is the same in every window. */
static double ends_j2(const struct ipw_figure *f)
{
    double stated = IPW_STATED_U * f->j, ends = f->u_j * f->u_j - stated * stated;

    return ends > 0 ? ends : 0;
}

/* What the ends of a short gap add is no more than the gap can hold. */
static double gap_ends_j2(const struct ipw_figure *f)
{
    double wide = f->hi_j - f->lo_j, ends = ends_j2(f);

    return ends < wide * wide / 12 ? ends : wide * wide / 12;
}

static struct ipw_figure gap_between(const struct ipw_book *b, int64_t t0_ns, int64_t t1_ns,
                                     int64_t slack_ns)
{
    struct ipw_figure f = ipw_series_between(&b->series, t0_ns, t1_ns, slack_ns);
    double most = (double)ipw_series_most_w(&b->series) *
                  (double)(t1_ns - t0_ns + 2 * b->clock_error_ns) / 1e9;

    if (b->clock_error_ns) f.lo_j = 0; /* it may have been elsewhere in the readings */
    if (f.hi_j > most || b->clock_error_ns) f.hi_j = most;
    if (f.hi_j < f.j) f.hi_j = f.j;
    return f;
}

static void end_gap(struct ipw_book_gaps *g, const struct ipw_book *b, int64_t t_ns)
{
    struct ipw_figure f = gap_between(b, g->from_ns, t_ns, IPW_BOOK_WINDOW_SLACK_NS);

    g->from_ns = INT64_MIN;
    g->unknown |= !f.known;
    g->j += f.j;
    g->lo_j += f.lo_j;
    g->hi_j += f.hi_j;
    g->ends_j2 += gap_ends_j2(&f);
}

void ipw_book_note_gap(struct ipw_book_gaps *g, const struct ipw_book *b, int64_t t_ns,
                       int64_t in_flight)
{
    bool open = g->from_ns != INT64_MIN;

    if (in_flight == 0 && !open) g->from_ns = t_ns;
    if (in_flight > 0 && open) end_gap(g, b, t_ns);
}

/* The gaps from the first start to the last end, also where the queue is not taken yet; false: a
 * query is in flight, or a gap is unknown. */
static bool find_gaps(const struct ipw_book *b, struct ipw_book_gaps *gaps)
{
    int64_t n = b->n_active;

    *gaps = b->gaps;
    if (b->now.t_ns != INT64_MIN &&
        !(b->queue.next < b->queue.n && b->queue.all[b->queue.next].t_ns == b->now.t_ns))
        ipw_book_note_gap(gaps, b, b->now.t_ns, n);
    for (size_t i = b->queue.next; i < b->queue.n; i++) {
        const struct ipw_book_instant *x = &b->queue.all[i];

        n += x->change == IPW_BOOK_BEGIN ? 1 : x->change == IPW_BOOK_END ? -1 : 0;
        if (i + 1 < b->queue.n && b->queue.all[i + 1].t_ns == x->t_ns) continue;
        ipw_book_note_gap(gaps, b, x->t_ns, n);
    }
    return n == 0 && !gaps->unknown;
}

void ipw_book_bound_idle(const struct ipw_book *b, int64_t t0_ns, int64_t t1_ns,
                         struct ipw_figure *idle)
{
    int64_t first_ns = b->first_ns, last_ns = b->last_query_ns;
    struct ipw_figure head, tail;
    struct ipw_book_gaps gaps;

    idle->lo_j = 0;
    if (!find_gaps(b, &gaps) || t0_ns > first_ns || t1_ns < last_ns) return;
    head = gap_between(b, t0_ns, first_ns, IPW_BOOK_TOTAL_SLACK_NS);
    tail = gap_between(b, last_ns, t1_ns, IPW_BOOK_TOTAL_SLACK_NS);
    if (!head.known || !tail.known) return;
    idle->lo_j = fmin(idle->j, head.lo_j + gaps.lo_j + tail.lo_j);
    idle->hi_j = fmax(idle->j, fmin(idle->hi_j, head.hi_j + gaps.hi_j + tail.hi_j));
}

struct ipw_figure ipw_book_together(const struct ipw_book *b)
{
    struct ipw_book_gaps g;
    double clock_j, ends;
    struct ipw_figure f;

    if (b->first_ns == INT64_MAX) return (struct ipw_figure){.known = true, .coverage = 1};
    if (!find_gaps(b, &g)) return (struct ipw_figure){.reason = "not_covered"};
    f = ipw_series_between(&b->series, b->first_ns, b->last_query_ns, IPW_BOOK_TOTAL_SLACK_NS);
    if (!f.known) return f;
    clock_j = 2e-9 * (double)(ipw_series_most_w(&b->series) * b->clock_error_ns);
    ends = ends_j2(&f) + g.ends_j2 + clock_j * clock_j / 3;
    f.j = fmax(0, f.j - g.j);
    f.u_j = hypot(sqrt(ends), IPW_STATED_U * f.j);
    f.lo_j = fmin(f.j, fmax(0, f.lo_j - g.hi_j - clock_j));
    f.hi_j = fmax(f.j, f.hi_j - g.lo_j + clock_j);
    return f;
}
