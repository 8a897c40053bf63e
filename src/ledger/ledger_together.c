/* The energy of all queries together, and its bounds: what the device used from the first start to
 * the last end, less the gaps in which no query was in flight. */
#include <math.h>

#include "base/clock.h"
#include "ledger/ledger_priv.h"

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

static struct ipw_figure gap_between(const struct ipw_ledger *l, const struct ledger_line *line,
                                     int64_t t0_ns, int64_t t1_ns, int64_t slack_ns)
{
    struct ipw_figure f = ipw_series_between(line->series, t0_ns, t1_ns, slack_ns);
    double most = (double)ipw_series_most_w(line->series) *
                  (double)(t1_ns - t0_ns + 2 * l->clock_error_ns) / 1e9;

    if (l->clock_error_ns) f.lo_j = 0; /* it may have been elsewhere in the readings */
    if (f.hi_j > most || l->clock_error_ns) f.hi_j = most;
    if (f.hi_j < f.j) f.hi_j = f.j;
    return f;
}

static void end_gap(struct ledger_gaps *g, const struct ipw_ledger *l,
                    const struct ledger_line *line, int64_t t_ns)
{
    struct ipw_figure f = gap_between(l, line, g->from_ns, t_ns, IPW_LEDGER_WINDOW_SLACK_NS);

    g->from_ns = INT64_MIN;
    g->unknown |= !f.known;
    g->j += f.j;
    g->lo_j += f.lo_j;
    g->hi_j += f.hi_j;
    g->ends_j2 += gap_ends_j2(&f);
}

/* The cell that edge i begins. */
static void note_cell(struct ledger_gaps *g, const struct ipw_ledger *l,
                      const struct ledger_line *line, size_t i)
{
    bool open = g->from_ns != INT64_MIN;

    if (l->edges[i].in_flight == 0 && !open) g->from_ns = l->edges[i].t_ns;
    if (l->edges[i].in_flight > 0 && open) end_gap(g, l, line, l->edges[i].t_ns);
}

void ipw_ledger_note_gap(const struct ipw_ledger *l, struct ledger_line *line, size_t i)
{
    note_cell(&line->gaps, l, line, i);
}

int64_t ipw_ledger_gap_ns(const struct ipw_ledger *l, const struct ledger_line *line)
{
    if (line->gaps.from_ns != INT64_MIN) return line->gaps.from_ns;
    return line->settled ? l->edges[line->settled - 1].t_ns : INT64_MAX;
}

/* From the first start to the last end, and the gaps between, also where the device's sums are not
 * settled; false: a query is in flight, or a gap is unknown. */
static bool find_span(const struct ipw_ledger *l, const struct ledger_line *line, int64_t *t0_ns,
                      int64_t *t1_ns, struct ledger_gaps *gaps)
{
    *gaps = line->gaps;
    *t0_ns = l->first_edge_ns;
    *t1_ns = l->last_query_ns;
    for (size_t i = line->settled ? line->settled - 1 : 0; i < l->n_edges; i++)
        note_cell(gaps, l, line, i);
    return l->n_edges && l->edges[l->n_edges - 1].in_flight == 0 && !gaps->unknown;
}

void ipw_ledger_bound_idle(const struct ipw_ledger *l, const struct ledger_line *line,
                           int64_t t0_ns, int64_t t1_ns, struct ipw_figure *idle)
{
    int64_t first_ns, last_ns;
    struct ipw_figure head, tail;
    struct ledger_gaps gaps;

    idle->lo_j = 0;
    if (!find_span(l, line, &first_ns, &last_ns, &gaps) || t0_ns > first_ns || t1_ns < last_ns)
        return;
    head = gap_between(l, line, t0_ns, first_ns, IPW_LEDGER_TOTAL_SLACK_NS);
    tail = gap_between(l, line, last_ns, t1_ns, IPW_LEDGER_TOTAL_SLACK_NS);
    if (!head.known || !tail.known) return;
    idle->lo_j = fmin(idle->j, head.lo_j + gaps.lo_j + tail.lo_j);
    idle->hi_j = fmax(idle->j, fmin(idle->hi_j, head.hi_j + gaps.hi_j + tail.hi_j));
}

struct ipw_figure ipw_ledger_together(const struct ipw_ledger *l, const struct ledger_line *line)
{
    struct ledger_gaps g;
    double clock_j, ends;
    int64_t t0_ns, t1_ns;
    struct ipw_figure f;

    if (!l->n_edges) return (struct ipw_figure){.known = true, .coverage = 1};
    if (!find_span(l, line, &t0_ns, &t1_ns, &g))
        return (struct ipw_figure){.reason = "not_covered"};
    f = ipw_series_between(line->series, t0_ns, t1_ns, IPW_LEDGER_TOTAL_SLACK_NS);
    if (!f.known) return f;
    clock_j = 2e-9 * (double)(ipw_series_most_w(line->series) * l->clock_error_ns);
    ends = ends_j2(&f) + g.ends_j2 + clock_j * clock_j / 3;
    f.j = fmax(0, f.j - g.j);
    f.u_j = hypot(sqrt(ends), IPW_STATED_U * f.j);
    f.lo_j = fmin(f.j, fmax(0, f.lo_j - g.hi_j - clock_j));
    f.hi_j = fmax(f.j, f.hi_j - g.lo_j + clock_j);
    return f;
}
