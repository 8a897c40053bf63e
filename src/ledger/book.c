#include "ledger/book.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/upto.h"

/* Do not wait for a channel whose reads have been failing for this long. */
#define GIVE_UP_NS     (3 * IPW_NS_PER_S)
#define LOST_NS        (30 * IPW_NS_PER_S)
#define LEAST_GAUGE_MW 1000 /* a gauge above this shows that its device is awake */
/* Plus three times the allowed silence, so at least 5 s. */
#define DEAD_NS (3500 * IPW_NS_PER_MS)

void ipw_book_init(struct ipw_book *b, const struct ipw_channel *channel)
{
    *b = (struct ipw_book){.kind = channel->kind,
                           .domain = channel->domain,
                           .channel = IPW_BOOK_NO_CHANNEL,
                           .gauge_channel = IPW_BOOK_NO_CHANNEL,
                           .most_channel = IPW_BOOK_NO_CHANNEL,
                           .time = {INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX},
                           .first_row_ns = INT64_MIN,
                           .newest_row_ns = INT64_MIN,
                           .handed_over_ns = INT64_MIN,
                           .lost_ns = INT64_MIN,
                           .baseline_w = NAN,
                           .first_ns = INT64_MAX,
                           .last_query_ns = INT64_MIN,
                           .now.t_ns = INT64_MIN,
                           .gaps.from_ns = INT64_MIN};
    ipw_series_init(&b->series, channel);
    ipw_steps_init(&b->steps, (double)ipw_series_most_w(&b->series));
}

void ipw_book_release(struct ipw_book *b)
{
    ipw_series_release(&b->series);
    ipw_series_release(&b->gauge);
    ipw_series_release(&b->most);
    ipw_steps_release(&b->steps);
    free(b->queue.all);
    free(b->fresh);
}

void ipw_book_account_release(struct ipw_book_account *a) { free(a->records); }

/* ---- the sums of a device ---- */

double ipw_book_clock_uj(const struct ipw_book *b, int64_t t_ns)
{
    int64_t error_ns = b->clock_error_ns;
    double mean_w, peak_w;

    if (!error_ns ||
        !ipw_series_power(&b->series, t_ns - error_ns, t_ns + error_ns, &mean_w, &peak_w))
        return 0;
    return ceil(peak_w * (double)error_ns / 1e3); /* W * ns = nJ */
}

/* ipw_series_bounds(), whose bounds are widened by the error of the clock. */
static int64_t bounds_at(const struct ipw_book *b, int64_t t_ns, int64_t *below_uj,
                         int64_t *above_uj)
{
    int64_t more = (int64_t)ipw_book_clock_uj(b, t_ns);
    int64_t uj = ipw_series_bounds(&b->series, t_ns, below_uj, above_uj);

    *below_uj += more;
    *above_uj += more;
    return uj;
}

/* Each query's part of the idle baseline in a cell, in 2^-32 microjoules.  It is not limited to the
 * energy of the cell: net energy may be negative. */
static __int128 idle_each(const struct ipw_book *b, int64_t length_ns, int64_t in_flight)
{
    double idle = b->baseline_w * (double)length_ns / 1e3; /* W * ns = nJ */

    return isnan(idle) ? 0 : (__int128)(idle * 4294967296.0) / in_flight;
}

/* The sums at t, `in_flight` queries after `from`; `uj`: the device's energy there. */
static struct ipw_book_sums sums_to(const struct ipw_book *b, struct ipw_book_sums from,
                                    int64_t t_ns, int64_t uj, int64_t in_flight)
{
    struct ipw_book_sums to = from;
    int64_t cell = uj - from.uj, length_ns = t_ns - from.t_ns;

    to.t_ns = t_ns;
    to.uj = uj;
    to.parted_ns += (double)length_ns / (double)(in_flight > 0 ? in_flight : 1);
    if (in_flight == 0) {
        to.idle += cell;
        return to;
    }
    to.slice += ((__int128)cell << 32) / in_flight;
    to.base += idle_each(b, length_ns, in_flight);
    if (in_flight == 1) {
        to.alone += cell;
    } else {
        to.crowded_ns += length_ns;
    }
    return to;
}

/* Before the first query all energy is idle. */
static struct ipw_book_sums sums_before(int64_t t_ns, int64_t uj)
{
    return (struct ipw_book_sums){.t_ns = t_ns, .uj = uj, .idle = uj};
}

struct ipw_book_sums ipw_book_sums_at(const struct ipw_book *b, int64_t t_ns, int64_t *in_flight)
{
    struct ipw_book_sums s = b->now;
    int64_t n = b->n_active;

    for (size_t i = b->queue.next; i < b->queue.n && b->queue.all[i].t_ns <= t_ns; i++) {
        const struct ipw_book_instant *x = &b->queue.all[i];

        if (x->change != IPW_BOOK_BEGIN && x->change != IPW_BOOK_END) continue;
        if (s.t_ns == INT64_MIN)
            s = sums_before(x->t_ns, ipw_series_at(&b->series, x->t_ns));
        else if (x->t_ns > s.t_ns)
            s = sums_to(b, s, x->t_ns, ipw_series_at(&b->series, x->t_ns), n);
        n += x->change == IPW_BOOK_BEGIN ? 1 : -1;
    }
    if (in_flight) *in_flight = n;
    if (s.t_ns == INT64_MIN) return sums_before(t_ns, ipw_series_at(&b->series, t_ns));
    return t_ns > s.t_ns ? sums_to(b, s, t_ns, ipw_series_at(&b->series, t_ns), n) : s;
}

/* ---- gaps: all queries together are what the device used from the first start to the last end,
 * less the gaps in which no query was in flight ---- */

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

/* The cell that begins at t, with so many queries in flight. */
static void note_gap(struct ipw_book_gaps *g, const struct ipw_book *b, int64_t t_ns,
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
        note_gap(gaps, b, b->now.t_ns, n);
    for (size_t i = b->queue.next; i < b->queue.n; i++) {
        const struct ipw_book_instant *x = &b->queue.all[i];

        n += x->change == IPW_BOOK_BEGIN ? 1 : x->change == IPW_BOOK_END ? -1 : 0;
        if (i + 1 < b->queue.n && b->queue.all[i + 1].t_ns == x->t_ns) continue;
        note_gap(gaps, b, x->t_ns, n);
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

/* ---- cells ---- */

/* The energy at an instant is uncertain, and a share falls there by `change`. */
static void add_change(double *up, double *down, double change, int64_t below, int64_t above)
{
    *up += change > 0 ? change * (double)above : -change * (double)below;
    *down += change > 0 ? change * (double)below : -change * (double)above;
}

/* The device's idle power: measured, else by the fit. */
static double idle_w(const struct ipw_book *b)
{
    if (!isnan(b->baseline_w)) return b->baseline_w;
    return ipw_phase_fit_knows(&b->steps.fit) ? ipw_phase_fit_base_w(&b->steps.fit) : 0;
}

/* The part of a cell's energy that the device would have used with no query in flight. */
static int64_t idle_part(const struct ipw_book *b, int64_t uj, int64_t length_ns)
{
    double idle = idle_w(b) * (double)length_ns / 1e3; /* W * ns = nJ */

    if (!(idle > 0)) return 0;
    return idle < (double)uj ? (int64_t)idle : uj;
}

/* Shares the cell from `now` to t; shares[]: of one query in each phase. */
static void share_cell(struct ipw_book *b, int64_t t_ns, int64_t uj, double shares[IPW_PHASE_COUNT])
{
    unsigned __int128 part[IPW_PHASE_COUNT];
    struct ipw_share_cell cell = {
        .uj = uj - b->now.uj, .n = b->n_active, .fit = &b->steps.fit, .rest = b->rest};

    for (int p = 0; p < IPW_PHASE_COUNT; p++) shares[p] = 1;
    if (!b->n_active) return;
    memcpy(cell.count, b->count, sizeof cell.count);
    cell.idle_uj = idle_part(b, cell.uj, t_ns - b->now.t_ns);
    ipw_share_out(&cell, b->share, part);
    b->rest = cell.rest;
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        if (!b->count[p]) continue;
        b->due[p].due += part[p];
        shares[p] = cell.uj > 0 && b->share != IPW_SHARE_EQUAL
                        ? (double)part[p] / (double)cell.uj * 0x1p-32
                        : 1 / (double)b->n_active;
    }
}

/* The shares from `now` to t are known: what the uncertain energy at `now` may move. */
static void widen(struct ipw_book *b, int64_t t_ns, const double shares[IPW_PHASE_COUNT])
{
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        struct ipw_book_due *due = &b->due[p];

        add_change(&due->up, &due->down, due->part - shares[p], b->below, b->above);
        due->part = shares[p];
    }
    for (size_t i = 0; i < b->n_fresh; i++) {
        struct ipw_book_account *a = b->fresh[i];
        struct ipw_book_record *r = &a->records[a->n - 1];

        r->after = shares[a->phase];
        r->after_ns = t_ns;
        r->with_up = r->up;
        r->with_down = r->down;
        if (a->n > 1)
            add_change(&r->with_up, &r->with_down, r->before - r->after, b->below, b->above);
        a->up = r->with_up - b->due[a->phase].up;
        a->down = r->with_down - b->due[a->phase].down;
    }
    b->n_fresh = 0;
}

/* The cell from `now` to t ends. */
static void end_cell(struct ipw_book *b, int64_t t_ns)
{
    int64_t below, above, uj = bounds_at(b, t_ns, &below, &above);

    if (b->now.t_ns == INT64_MIN) {
        b->now = sums_before(t_ns, uj);
    } else {
        double shares[IPW_PHASE_COUNT];

        share_cell(b, t_ns, uj, shares);
        widen(b, t_ns, shares);
        note_gap(&b->gaps, b, b->now.t_ns, b->n_active);
        b->cell_ns = b->now.t_ns;
        b->now = sums_to(b, b->now, t_ns, uj, b->n_active);
    }
    b->below = below;
    b->above = above;
}

/* ---- records ---- */

static unsigned __int128 due_of(const struct ipw_book *b, const struct ipw_book_account *a)
{
    return a->offset + b->due[a->phase].due;
}

/* The query at `now`, where it is in flight. */
static struct ipw_book_record record_now(const struct ipw_book *b, const struct ipw_book_account *a)
{
    const struct ipw_book_due *due = &b->due[a->phase];

    if (a->n && a->records[a->n - 1].t_ns == b->now.t_ns) return a->records[a->n - 1];
    return (struct ipw_book_record){.t_ns = b->now.t_ns,
                                    .uj = (int64_t)(due_of(b, a) >> 32),
                                    .before = due->part,
                                    .after = due->part,
                                    .before_ns = b->cell_ns,
                                    .after_ns = b->now.t_ns,
                                    .up = a->up + due->up,
                                    .down = a->down + due->down,
                                    .with_up = a->up + due->up,
                                    .with_down = a->down + due->down,
                                    .alone = b->now.alone,
                                    .crowded_ns = b->now.crowded_ns,
                                    .parted_ns = b->now.parted_ns,
                                    .base = b->now.base};
}

/* The query's record of `now`; it has at most one. */
static struct ipw_book_record *keep_record(struct ipw_book *b, struct ipw_book_account *a)
{
    struct ipw_book_record *last = a->n ? &a->records[a->n - 1] : NULL;

    if (last && last->t_ns == b->now.t_ns) return last;
    IPW_GROW(a->records, a->cap, a->n + 1);
    a->records[a->n] = record_now(b, a);
    IPW_GROW(b->fresh, b->cap_fresh, b->n_fresh + 1);
    b->fresh[b->n_fresh++] = a;
    return &a->records[a->n++];
}

static void enter(struct ipw_book *b, struct ipw_book_account *a, enum ipw_phase phase,
                  unsigned __int128 due)
{
    a->phase = phase;
    a->offset = due - b->due[phase].due;
    b->count[phase]++;
}

static void leave(struct ipw_book *b, struct ipw_book_account *a)
{
    struct ipw_book_record *r = keep_record(b, a);
    __int128 due = (__int128)due_of(b, a) + b->owed;

    r->uj = (int64_t)((due + (INT64_C(1) << 31)) >> 32);
    r->after = 0;
    b->owed = (int64_t)(due - ((__int128)r->uj << 32));
    for (size_t i = 0; i < b->n_fresh; i++)
        if (b->fresh[i] == a) b->fresh[i--] = b->fresh[--b->n_fresh];
    b->count[a->phase]--;
    b->n_active--;
    a->in = false;
    a->left = true;
}

static void take(struct ipw_book *b, const struct ipw_book_instant *x)
{
    struct ipw_book_account *a = x->account;

    switch (x->change) {
    case IPW_BOOK_BEGIN:
        a->in = true;
        b->n_active++;
        enter(b, a, IPW_PHASE_AGENT, 0);
        a->up = -b->due[a->phase].up;
        a->down = -b->due[a->phase].down;
        keep_record(b, a);
        break;
    case IPW_BOOK_STAY: keep_record(b, a); break;
    case IPW_BOOK_PHASE:
        keep_record(b, a);
        b->count[a->phase]--;
        enter(b, a, x->phase, due_of(b, a));
        break;
    case IPW_BOOK_END:
        b->queue.n_ends--;
        leave(b, a);
        break;
    }
}

static void take_until(struct ipw_book *b, int64_t until_ns)
{
    while (b->queue.next < b->queue.n && b->queue.all[b->queue.next].t_ns <= until_ns) {
        if (b->queue.all[b->queue.next].t_ns > b->now.t_ns)
            end_cell(b, b->queue.all[b->queue.next].t_ns);
        take(b, &b->queue.all[b->queue.next++]);
    }
    if (b->queue.next < b->queue.n / 2 || !b->queue.next) return; /* too few to move the rest */
    b->queue.n -= b->queue.next;
    memmove(b->queue.all, b->queue.all + b->queue.next, b->queue.n * sizeof *b->queue.all);
    b->queue.next = 0;
}

/* In the cells between those that are next to two records, from `least` to `most`: the shares are
 * not kept, so each may be anything from none to all of the device's energy. */
static void guess(struct ipw_book_record *r, int64_t least, int64_t most, int64_t after,
                  int64_t before)
{
    if (most < least) most = least;
    r->uj = least;
    if (after + before > 0) r->uj += (int64_t)((__int128)(most - least) * after / (after + before));
    if (most > least + after) most = least + after;
    if (least < most - before) least = most - before;
    r->less = r->uj > least ? r->uj - least : 0;
    r->more = most > r->uj ? most - r->uj : 0;
    r->before = r->after = 1; /* at most */
}

/* Between two records of the query.  Its share is known in the cell after the one and in the cell
 * before the other. */
static struct ipw_book_record between(const struct ipw_book *b, const struct ipw_book_record *x,
                                      const struct ipw_book_record *y, int64_t t_ns)
{
    double part = (double)(t_ns - x->t_ns) / (double)(y->t_ns - x->t_ns);
    int64_t at = ipw_series_at(&b->series, t_ns);
    int64_t after = at - ipw_series_at(&b->series, x->t_ns);
    int64_t before = ipw_series_at(&b->series, y->t_ns) - at;
    struct ipw_book_record r = *x;

    r.t_ns = t_ns;
    r.crowded_ns += (int64_t)ceil(part * (double)(y->crowded_ns - x->crowded_ns));
    r.parted_ns += part * (y->parted_ns - x->parted_ns);
    r.base += (__int128)(part * (double)(y->base - x->base));
    if (after + before > 0)
        r.alone += (int64_t)((__int128)(y->alone - x->alone) * after / (after + before));
    if (t_ns <= x->after_ns) {
        r.uj += (int64_t)(x->after * (double)after);
        if (r.uj > y->uj) r.uj = y->uj;
        r.before = x->after;
        r.up = x->with_up;
        r.down = x->with_down;
    } else {
        int64_t first = ipw_series_at(&b->series, x->after_ns) - (at - after);
        int64_t last = at + before - ipw_series_at(&b->series, y->before_ns);
        int64_t least = x->uj + (int64_t)(x->after * (double)first);
        int64_t most = y->uj - (int64_t)(y->before * (double)last);

        r.before = r.after = y->before;
        r.up = r.with_up = y->up;
        r.down = r.with_down = y->down;
        if (t_ns >= y->before_ns) {
            r.uj = y->uj - (int64_t)(y->before * (double)before);
            if (r.uj < least) r.uj = least;
            return r;
        }
        guess(&r, least, most, after - first, before - last);
        r.with_up = x->with_up;
        r.with_down = x->with_down;
    }
    return r;
}

/* Past all that was taken: by equal slices. */
static struct ipw_book_record beyond(const struct ipw_book *b, const struct ipw_book_account *a,
                                     int64_t t_ns)
{
    struct ipw_book_sums from = a->in ? b->now : ipw_book_sums_at(b, a->t0_ns, NULL);
    struct ipw_book_sums to = ipw_book_sums_at(b, t_ns, NULL);
    struct ipw_book_record r = a->in ? record_now(b, a) : (struct ipw_book_record){0};

    r.t_ns = t_ns;
    r.uj += (int64_t)((to.slice - from.slice) >> 32);
    r.before = r.after = 1; /* at most */
    r.alone = to.alone;
    r.crowded_ns = to.crowded_ns;
    r.parted_ns = to.parted_ns;
    r.base = to.base;
    return r;
}

struct ipw_book_record ipw_book_record_at(const struct ipw_book *b,
                                          const struct ipw_book_account *a, int64_t t_ns)
{
    struct ipw_book_record now;
    const struct ipw_book_record *x;
    size_t n;

    if (t_ns < a->t0_ns) t_ns = a->t0_ns;
    if (t_ns > a->t1_ns || t_ns == a->told_ns) t_ns = a->t1_ns;
    n = a->n ? ipw_upto(&a->records->t_ns, a->n, sizeof *a->records, t_ns) : 0;
    if (!n) return beyond(b, a, t_ns);
    x = &a->records[n - 1];
    if (x->t_ns == t_ns) return *x;
    if (n < a->n) return between(b, x, x + 1, t_ns);
    if (t_ns >= b->now.t_ns) return beyond(b, a, t_ns);
    now = record_now(b, a);
    return between(b, x, &now, t_ns);
}

/* ---- how far the device is known ---- */

bool ipw_book_is_given_up(const struct ipw_book *b)
{
    const struct ipw_series *s = &b->series;

    return b->lost_ns != INT64_MIN || (s->failing_since_ns != INT64_MIN &&
                                       s->last_failed_ns - s->failing_since_ns >= GIVE_UP_NS);
}

/* Up to where the device's energy is final. */
static int64_t settled_ns(const struct ipw_book *b)
{
    int64_t t = ipw_series_settled_ns(&b->series);

    return b->lost_ns > t ? b->lost_ns : t;
}

int64_t ipw_book_covered_ns(const struct ipw_book *b)
{
    const struct ipw_series *s = &b->series;
    int64_t t = settled_ns(b);

    /* A counter that was read for a while and never moved has no figure. */
    if (!ipw_series_has_moved(s) && ipw_series_silence_ns(s) > 0 && s->last.t_ns > t)
        t = s->last.t_ns;
    if (b->lost_ns == INT64_MIN && ipw_book_is_given_up(b) && s->last_failed_ns > t)
        t = s->last_failed_ns;
    return t;
}

/* Marks a device as lost if it was silent for too long or was reported lost.  Its sums continue
 * without energy, and a later reading begins a new chain. */
static void look_for_loss(struct ipw_book *b)
{
    struct ipw_series *s = &b->series;
    int64_t heard_ns = s->n ? s->last.t_ns : b->first_row_ns, limit_ns = LOST_NS;
    bool silent;

    if (5 * s->pace.spacing_ns > limit_ns) limit_ns = 5 * s->pace.spacing_ns;
    if (5 * s->channel.period_ns > limit_ns) limit_ns = 5 * s->channel.period_ns;
    silent = b->newest_row_ns - heard_ns >= limit_ns;
    if (!silent && !s->lost) {
        b->lost_ns = INT64_MIN;
        return;
    }
    if (b->lost_ns == INT64_MIN) ipw_series_cut(s, "lost");
    /* A row that its sensor read earlier may still arrive and show the device again. */
    b->lost_ns = silent ? b->newest_row_ns : s->last_failed_ns;
}

/* Did the silence make a query's figure unknown?  It does if no sample came for GIVE_UP_NS after
 * the query's end. */
static bool is_finished_in_silence(const struct ipw_book *b)
{
    for (size_t i = b->queue.next; i < b->queue.n; i++) {
        const struct ipw_book_instant *x = &b->queue.all[i];

        if (x->change == IPW_BOOK_END && x->t_ns > b->series.pace.last_change_ns)
            return b->series.last.t_ns - x->t_ns >= GIVE_UP_NS;
    }
    return false;
}

/* Handles a counter that stands still for long.  If the device's gauge shows that it is awake, the
 * gauge replaces the counter from its next reading on.  Otherwise the next change covers the
 * silence. But if a query already got its figures during the silence, the change begins a new
 * chain: otherwise the balance would count joules that no query was charged with. */
static void look_for_silence(struct ipw_book *b)
{
    struct ipw_series *s = &b->series;
    const struct ipw_series *g = &b->gauge;

    if (s->channel.kind != IPW_CHANNEL_COUNTER || !ipw_series_is_stuck(s)) return;
    if (ipw_book_has_gauge(b) && g->n && g->last.raw > LEAST_GAUGE_MW &&
        s->last.t_ns - g->last.t_ns < IPW_NS_PER_S &&
        ipw_series_silence_ns(s) > DEAD_NS + 3 * ipw_series_quiet_ns(s)) {
        b->handed_over_ns = g->last.t_ns;
        ipw_series_hand_over(s, &g->channel, "stuck");
    } else if (ipw_series_has_moved(s) && is_finished_in_silence(b)) {
        ipw_series_cut(s, "stuck");
    }
}

static int64_t first_end_ns(const struct ipw_book *b)
{
    size_t i = b->queue.next;

    while (b->queue.all[i].change != IPW_BOOK_END) i++;
    return b->queue.all[i].t_ns;
}

/* Steps are closed when a query has ended, for what was told of it says how to split them. */
static void settle(struct ipw_book *b, int64_t until_ns)
{
    size_t left = SIZE_MAX;

    if (b->is_model) {
        take_until(b, INT64_MAX);
        return;
    }
    while (b->queue.n_ends && b->queue.n_ends < left && first_end_ns(b) <= until_ns) {
        int64_t end_ns = first_end_ns(b), done_ns;

        left = b->queue.n_ends;
        ipw_steps_close(&b->steps, &b->series, end_ns, b->now.t_ns);
        done_ns = b->steps.done_ns;
        /* No later sample will come. */
        if (b->lost_ns >= end_ns && done_ns < end_ns) done_ns = end_ns;
        take_until(b, done_ns < until_ns ? done_ns : until_ns);
    }
}

/* ---- what is told ---- */

static void tell(struct ipw_book *b, struct ipw_book_account *a, enum ipw_book_change change,
                 enum ipw_phase phase, int64_t t_ns)
{
    size_t i = b->queue.n;

    if (t_ns > a->newest_ns) a->newest_ns = t_ns;
    IPW_GROW(b->queue.all, b->queue.cap, b->queue.n + 1);
    while (i > b->queue.next && b->queue.all[i - 1].t_ns > t_ns) i--;
    memmove(b->queue.all + i + 1, b->queue.all + i, (b->queue.n++ - i) * sizeof *b->queue.all);
    b->queue.all[i] = (struct ipw_book_instant){t_ns, a, change, phase};
}

/* Not at a time that was shared already. */
static int64_t still_open(struct ipw_book *b, int64_t t_ns)
{
    if (t_ns < b->now.t_ns) t_ns = b->now.t_ns;
    if (t_ns > b->last_query_ns) b->last_query_ns = t_ns;
    return t_ns;
}

void ipw_book_begin(struct ipw_book *b, struct ipw_book_account *a, int64_t t_ns)
{
    t_ns = still_open(b, t_ns > b->last_query_ns ? t_ns : b->last_query_ns);
    *a = (struct ipw_book_account){.seen = true,
                                   .t0_ns = t_ns,
                                   .since_ns = t_ns,
                                   .newest_ns = t_ns,
                                   .t1_ns = INT64_MAX,
                                   .told_ns = INT64_MAX,
                                   .told = IPW_PHASE_COUNT};
    if (b->first_ns == INT64_MAX) {
        b->first_ns = t_ns;
        ipw_series_keep(&b->series, t_ns);
        if (ipw_book_has_gauge(b)) ipw_series_keep(&b->gauge, t_ns);
    }
    tell(b, a, IPW_BOOK_BEGIN, IPW_PHASE_AGENT, t_ns);
}

/* The phase that was told last ends at t, or never was. */
static void end_phase(struct ipw_book *b, const struct ipw_book_account *a, int64_t t_ns)
{
    if (a->told < IPW_PHASE_COUNT) ipw_phase_line_add(&b->steps.line, a->told, t_ns, INT64_MAX, -1);
}

void ipw_book_end(struct ipw_book *b, struct ipw_book_account *a, int64_t t_ns)
{
    a->told_ns = t_ns;
    a->t1_ns = still_open(b, t_ns > a->newest_ns ? t_ns : a->newest_ns);
    end_phase(b, a, a->t1_ns);
    tell(b, a, IPW_BOOK_END, IPW_PHASE_AGENT, a->t1_ns);
    b->queue.n_ends++;
    settle(b, settled_ns(b));
}

/* The newest change of phase was told wrong. */
static void correct(struct ipw_book *b, struct ipw_book_account *a, enum ipw_phase phase)
{
    for (size_t i = b->queue.n; i > b->queue.next; i--) {
        struct ipw_book_instant *x = &b->queue.all[i - 1];

        if (x->account != a || x->change != IPW_BOOK_PHASE) continue;
        x->phase = phase;
        return;
    }
    tell(b, a, IPW_BOOK_PHASE, phase, b->now.t_ns);
}

void ipw_book_phase(struct ipw_book *b, struct ipw_book_account *a, enum ipw_phase phase,
                    int64_t t_ns)
{
    bool again = a->told < IPW_PHASE_COUNT && t_ns <= a->since_ns;

    if (a->t1_ns != INT64_MAX || (again && phase == a->told)) return;
    if (again) {
        t_ns = a->since_ns;
    } else if (t_ns < b->now.t_ns) {
        t_ns = b->now.t_ns;
    }
    if (t_ns < a->t0_ns) t_ns = a->t0_ns;
    if (phase != a->told) {
        end_phase(b, a, t_ns);
        ipw_phase_line_add(&b->steps.line, phase, t_ns, INT64_MAX, 1);
    }
    if (again)
        correct(b, a, phase);
    else
        tell(b, a, IPW_BOOK_PHASE, phase, t_ns);
    a->told = phase;
    a->since_ns = t_ns;
}

void ipw_book_stay(struct ipw_book *b, struct ipw_book_account *a, int64_t t_ns)
{
    if (t_ns > a->t0_ns && t_ns < a->t1_ns && t_ns >= b->now.t_ns)
        tell(b, a, IPW_BOOK_STAY, IPW_PHASE_AGENT, t_ns);
}

/* ---- readings ---- */

/* Uses the gauge in a row.  Exactly 0 W means that the device sleeps: no sensor reports 0 W for a
 * device that is awake.  If the counter is dead, the gauge replaces it. */
static void read_gauge(struct ipw_book *b, int64_t t_ns, int64_t mw)
{
    struct ipw_series *s = &b->series;

    if (b->handed_over_ns != INT64_MIN) {
        ipw_series_push(s, t_ns, mw);
    } else if (mw == 0 && s->last.t_ns == t_ns) {
        ipw_series_sleep(s);
    } else if (mw > 0) {
        s->asleep = false;
    }
}

static void push(struct ipw_series *s, int64_t t_ns, int64_t value, int64_t clock_ns)
{
    if (clock_ns >= 0) ipw_series_clock(s, clock_ns);
    ipw_series_push(s, t_ns, value);
}

static bool holds(size_t channel, size_t first, size_t n)
{
    return channel != IPW_BOOK_NO_CHANNEL && channel >= first && channel < first + n;
}

void ipw_book_row(struct ipw_book *b, size_t first, size_t n, int64_t t_ns, const int64_t *values,
                  int64_t clock_ns)
{
    if (t_ns < b->time.from_ns || t_ns > b->time.to_ns) return;
    if (t_ns > b->newest_row_ns) b->newest_row_ns = t_ns;
    if (b->first_row_ns == INT64_MIN) b->first_row_ns = t_ns;
    /* A counter that its device's gauge has replaced is not read any more. */
    if (holds(b->channel, first, n) && b->kind == b->series.channel.kind)
        push(&b->series, t_ns, values[b->channel - first], clock_ns);
    if (holds(b->gauge_channel, first, n))
        push(&b->gauge, t_ns, values[b->gauge_channel - first], clock_ns);
    if (holds(b->most_channel, first, n))
        push(&b->most, t_ns, values[b->most_channel - first], clock_ns);
    if (!b->is_model && holds(b->gauge_channel, first, n))
        read_gauge(b, t_ns, values[b->gauge_channel - first]);
    look_for_loss(b);
    look_for_silence(b);
    settle(b, settled_ns(b));
}

void ipw_book_close(struct ipw_book *b, int64_t t_ns)
{
    if (b->first_ns == INT64_MAX || t_ns < b->first_ns) return;
    settle(b, t_ns);
    take_until(b, t_ns);
    if (t_ns > b->now.t_ns) end_cell(b, t_ns);
}

void ipw_book_trim(struct ipw_book *b, int64_t before_ns)
{
    int64_t cell_ns = b->gaps.from_ns != INT64_MIN ? b->gaps.from_ns : b->now.t_ns;

    if (b->series.n && b->steps.done_ns < before_ns) before_ns = b->steps.done_ns;
    if (cell_ns < before_ns) before_ns = cell_ns;
    ipw_series_trim(&b->series, before_ns);
    if (ipw_book_has_gauge(b)) ipw_series_trim(&b->gauge, before_ns);
    ipw_steps_trim(&b->steps, &b->series, before_ns);
}
