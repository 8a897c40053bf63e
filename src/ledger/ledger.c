#include "ledger/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/upto.h"
#include "ledger/ledger_priv.h"

/* Do not wait for a channel whose reads have been failing for this long. */
#define GIVE_UP_NS (3 * IPW_NS_PER_S)

/* A gauge beside a counter of the same device gives the counter's steps their shape. */
static bool is_shape_of(const struct ipw_channel *gauge, const struct ipw_channel *counter)
{
    return gauge->kind == IPW_CHANNEL_GAUGE && !gauge->in_sum && counter->in_sum &&
           counter->kind == IPW_CHANNEL_COUNTER && gauge->domain == counter->domain &&
           gauge->device[0] && !strcmp(gauge->device, counter->device);
}

static struct ipw_series *series_of(struct ipw_ledger *l, const struct ipw_channel *channel,
                                    size_t i)
{
    if (!l->series[i]) {
        l->series[i] = ipw_malloc(sizeof(struct ipw_series));
        ipw_series_init(l->series[i], channel);
    }
    return l->series[i];
}

static void add_line(struct ipw_ledger *l, const struct ipw_channel *channels, size_t n_channels,
                     size_t i)
{
    struct ledger_line *line = &l->lines[l->n_lines++];
    struct ipw_series *series = series_of(l, &channels[i], i);

    l->channels[i].summed = true;
    *line = (struct ledger_line){.series = series,
                                 .channel = i,
                                 .baseline_w = NAN,
                                 .done_ns = INT64_MIN,
                                 .lost_ns = INT64_MIN,
                                 .handed_over_ns = INT64_MIN,
                                 .gaps.from_ns = INT64_MIN,
                                 .closed_ns = INT64_MIN};
    line->fit.most_w = (double)ipw_series_most_w(series);
    for (size_t k = 0; k < n_channels && !line->gauge; k++) {
        if (!is_shape_of(&channels[k], &channels[i])) continue;
        line->gauge = series_of(l, &channels[k], k);
        line->gauge_channel = k;
    }
    l->has_gauges |= line->gauge != NULL;
}

/* The three channels of a model, in their order, for their domain. */
static void add_models(struct ipw_ledger *l, const struct ipw_channel *channels, size_t n_channels)
{
    size_t n[IPW_DOMAIN_COUNT] = {0};

    for (size_t i = 0; i < n_channels; i++) {
        enum ipw_domain d = channels[i].domain;

        if (channels[i].kind != IPW_CHANNEL_ESTIMATE || n[d] == 3) continue;
        /* A model's value is right at every reading.  Its period says how often we ask, not how
         * often it changes, so no time before the newest reading is flat. */
        struct ipw_channel c = channels[i];
        c.kind = l->channels[i].kind = IPW_CHANNEL_COUNTER;
        c.period_ns = 1;
        l->model[d][n[d]++] = series_of(l, &c, i);
    }
}

struct ipw_ledger *ipw_ledger_new(const struct ipw_channel *channels, size_t n_channels)
{
    struct ipw_ledger *l = ipw_calloc(1, sizeof *l);

    l->n_channels = n_channels;
    l->trimmed_ns = l->first_row_ns = l->newest_row_ns = INT64_MIN;
    l->series = ipw_calloc(n_channels, sizeof(struct ipw_series *));
    l->channels = ipw_calloc(n_channels, sizeof *l->channels);
    for (size_t i = 0; i < n_channels; i++) {
        l->channels[i].kind = channels[i].kind;
        l->channels[i].is_clock =
            channels[i].kind == IPW_CHANNEL_METRIC && !strcmp(channels[i].unit, IPW_UNIT_CLOCK);
    }
    l->lines = ipw_calloc(n_channels, sizeof *l->lines);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        l->domains[d] = (struct ledger_domain){.first = l->n_lines, .reason = "no_sensor"};
        for (size_t i = 0; i < n_channels; i++) {
            if (channels[i].in_sum && channels[i].domain == (enum ipw_domain)d)
                add_line(l, channels, n_channels, i);
        }
        l->domains[d].n = l->n_lines - l->domains[d].first;
    }
    add_models(l, channels, n_channels);
    return l;
}

void ipw_ledger_free(struct ipw_ledger *l)
{
    if (!l) return;
    ipw_ledger_scopes_free(l->scopes);
    for (size_t i = 0; i < l->n_queries; i++) ipw_ledger_free_query(l, l->queries[i]);
    for (size_t i = 0; i < l->n_channels; i++) {
        if (!l->series[i]) continue;
        ipw_series_release(l->series[i]);
        free(l->series[i]);
    }
    for (size_t i = 0; i < l->n_lines; i++) {
        free(l->lines[i].marks);
        free(l->lines[i].sums);
        free(l->lines[i].late.all);
        free(l->lines[i].fresh.all);
    }
    ipw_phase_line_release(&l->line);
    free(l->lines);
    free(l->queries);
    free(l->ends);
    free(l->looks);
    free(l->series);
    free(l->channels);
    free(l->edges);
    free(l);
}

size_t ipw_ledger_devices(const struct ipw_ledger *l, enum ipw_domain domain)
{
    return l->domains[domain].n;
}

const char *ipw_ledger_device_name(const struct ipw_ledger *l, enum ipw_domain domain, size_t i)
{
    return l->lines[l->domains[domain].first + i].series->channel.name;
}

void ipw_ledger_set_reason(struct ipw_ledger *l, enum ipw_domain domain, const char *reason)
{
    l->domains[domain].reason = reason;
}

void ipw_ledger_set_share(struct ipw_ledger *l, enum ipw_share share)
{
    l->share = share;
    for (size_t i = 0; i < l->n_lines; i++) l->lines[i].idle_by_fit = share == IPW_SHARE_PHASE;
}

double ipw_ledger_unfitted(const struct ipw_ledger *l, enum ipw_domain domain)
{
    const struct ledger_domain *d = &l->domains[domain];
    double crowded = 0, equal = 0;

    for (size_t i = 0; i < d->n; i++) {
        crowded += l->lines[d->first + i].crowded_j;
        equal += l->lines[d->first + i].equal_j;
    }
    return crowded > 0 ? equal / crowded : 0;
}

void ipw_ledger_set_baseline(struct ipw_ledger *l, enum ipw_domain domain, double watts)
{
    size_t n = l->domains[domain].n;

    for (size_t i = 0; i < n; i++) ipw_ledger_set_device_baseline(l, domain, i, watts / (double)n);
}

void ipw_ledger_set_device_baseline(struct ipw_ledger *l, enum ipw_domain domain, size_t device,
                                    double watts)
{
    l->lines[l->domains[domain].first + device].baseline_w = watts;
}

size_t ipw_ledger_edge_at(const struct ipw_ledger *l, int64_t t_ns)
{
    return l->n_edges ? ipw_upto(&l->edges->t_ns, l->n_edges, sizeof *l->edges, t_ns) - 1
                      : SIZE_MAX;
}

/* A counter that its device's gauge has replaced is not read any more. */
static void push(struct ipw_ledger *l, size_t channel, int64_t t_ns, int64_t value)
{
    struct ipw_series *s = l->series[channel];

    if (l->channels[channel].kind == s->channel.kind) ipw_series_push(s, t_ns, value);
}

/* Uses the gauge in a row.  Exactly 0 W means that the device sleeps: no sensor reports 0 W for a
 * device that is awake.  If the counter is dead, the gauge replaces it. */
static void read_gauge(struct ledger_line *line, size_t first, size_t n, int64_t t_ns,
                       const int64_t *values)
{
    struct ipw_series *s = line->series;
    int64_t mw;

    if (!line->gauge || line->gauge_channel < first || line->gauge_channel >= first + n) return;
    mw = values[line->gauge_channel - first];
    if (line->handed_over_ns != INT64_MIN) {
        ipw_series_push(s, t_ns, mw);
    } else if (mw == 0 && s->last.t_ns == t_ns) {
        ipw_series_sleep(s);
    } else if (mw > 0) {
        s->asleep = false;
    }
}

/* How far the row's time may be off; -1: it does not say. */
static int64_t clock_of(const struct ipw_ledger *l, size_t first, size_t n, const int64_t *values)
{
    for (size_t i = n; i-- > 0;)
        if (first + i < l->n_channels && l->channels[first + i].is_clock) return values[i];
    return -1;
}

void ipw_ledger_row(struct ipw_ledger *l, size_t first, size_t n, int64_t t_ns,
                    const int64_t *values)
{
    int64_t clock_ns = clock_of(l, first, n, values);

    if (t_ns > l->newest_row_ns) l->newest_row_ns = t_ns;
    if (l->scopes) { /* rows of other devices, too: they show that time passes */
        for (struct ledger_each e = {.all = l,
                                    .query = IPW_LEDGER_ANY,
                                    .timed = true,
                                    .at_ns = t_ns};
             ipw_ledger_each(&e);)
            ipw_ledger_row(e.l, first, n, t_ns, values);
        return;
    }
    for (size_t i = 0; i < n && first + i < l->n_channels; i++) {
        if (l->series[first + i] && clock_ns >= 0) ipw_series_clock(l->series[first + i], clock_ns);
        if (l->series[first + i]) push(l, first + i, t_ns, values[i]);
    }
    for (size_t i = 0; i < l->n_lines && l->has_gauges; i++)
        read_gauge(&l->lines[i], first, n, t_ns, values);
    if (l->first_row_ns == INT64_MIN) l->first_row_ns = t_ns;
    ipw_ledger_settle(l);
}

void ipw_ledger_break(struct ipw_ledger *l, const char *reason)
{
    for (struct ledger_each e = {.all = l,
                                .query = IPW_LEDGER_ANY,
                                .timed = true,
                                .at_ns = l->newest_row_ns};
         ipw_ledger_each(&e);)
        for (size_t i = 0; i < e.l->n_channels; i++)
            if (e.l->series[i]) ipw_series_cut(e.l->series[i], reason);
}

void ipw_ledger_lose(struct ipw_ledger *l, size_t channel, const char *reason)
{
    for (struct ledger_each e = {.all = l,
                                .query = IPW_LEDGER_ANY,
                                .timed = true,
                                .at_ns = l->newest_row_ns};
         ipw_ledger_each(&e);)
        if (channel < e.l->n_channels && e.l->series[channel])
            ipw_series_lose(e.l->series[channel], reason);
}

void ipw_ledger_doubt(struct ipw_ledger *l, size_t channel, const char *reason)
{
    for (struct ledger_each e = {.all = l, .query = IPW_LEDGER_ANY}; ipw_ledger_each(&e);)
        if (channel < e.l->n_channels && e.l->series[channel]) e.l->series[channel]->doubt = reason;
}

/* Computes the integrals up to an edge from those of the edge before it. */
static void follow(struct ledger_edge *e, const struct ledger_edge *before)
{
    int64_t n = before->in_flight, length_ns = e->t_ns - before->t_ns;

    e->crowded_ns = before->crowded_ns + (n > 1 ? length_ns : 0);
    e->parted_ns = before->parted_ns + (double)length_ns / (double)(n > 0 ? n : 1);
}

/* Adds an edge at t, also between known edges, but never before a settled one. */
static struct ledger_edge *cut_at(struct ipw_ledger *l, int64_t t_ns)
{
    size_t before = ipw_ledger_edge_at(l, t_ns);
    struct ledger_edge edge = {.t_ns = t_ns}, *at;

    if (before == SIZE_MAX && l->n_edges) return NULL;
    if (l->n_edges) {
        at = &l->edges[before];
        if (at->t_ns == t_ns) return at;
        for (size_t i = 0; i < l->n_lines; i++) {
            if (before + 1 < l->lines[i].settled) return NULL;
        }
        edge.in_flight = at->in_flight;
        follow(&edge, at);
        before++;
    } else {
        before = 0;
    }
    IPW_GROW(l->edges, l->cap_edges, l->n_edges + 1);
    at = l->edges + before;
    memmove(at + 1, at, (l->n_edges - before) * sizeof *at);
    *at = edge;
    l->n_edges++;
    return at;
}

/* The earliest instant at which a query can still start or end. */
static int64_t open_ns(const struct ipw_ledger *l)
{
    int64_t t_ns = l->last_query_ns;

    for (size_t i = 0; i < l->n_lines; i++) {
        size_t settled = l->lines[i].settled;
        if (settled && l->edges[settled - 1].t_ns > t_ns) t_ns = l->edges[settled - 1].t_ns;
    }
    return t_ns;
}

/* Returns the time of the edge; queries start and end in order of time. */
static int64_t add_edge(struct ipw_ledger *l, int64_t t_ns, int change)
{
    struct ledger_edge *edge, *end;

    if (!l->n_edges) {
        l->first_edge_ns = t_ns;
        for (size_t i = 0; i < l->n_channels; i++) {
            if (l->series[i]) ipw_series_keep(l->series[i], t_ns);
        }
    } else if (t_ns < open_ns(l)) {
        t_ns = open_ns(l);
    }
    l->last_query_ns = t_ns;
    edge = cut_at(l, t_ns);
    end = l->edges + l->n_edges;
    /* Some edges may have been announced ahead. */
    for (struct ledger_edge *e = edge; e < end; e++) {
        e->in_flight += change;
        if (e->in_flight < 0) IPW_BUG("a query left the ledger that had not entered it");
        if (e > edge) follow(e, e - 1);
    }
    return t_ns;
}

void ipw_ledger_close(struct ipw_ledger *l, int64_t t_ns)
{
    for (struct ledger_each e = {.all = l, .query = IPW_LEDGER_ANY}; ipw_ledger_each(&e);) {
        if (!e.l->n_edges || t_ns < e.l->edges[0].t_ns) continue;
        cut_at(e.l, t_ns);
        ipw_ledger_settle_all(e.l, t_ns);
    }
}

int64_t ipw_ledger_query_begin(struct ipw_ledger *l, int64_t t_ns)
{
    struct ledger_query *q;

    if (l->scopes) return ipw_ledger_query_begin_in(l, SIZE_MAX, t_ns);
    q = ipw_calloc(1, sizeof *q);
    q->t0_ns = add_edge(l, t_ns, 1);
    q->t1_ns = q->told_ns = INT64_MAX;
    q->slices = ipw_calloc(l->n_lines, sizeof *q->slices);
    IPW_GROW(l->queries, l->cap_queries, l->n_queries + 1);
    l->queries[l->n_queries++] = q;
    q->ordinal = l->next_query++;
    ipw_ledger_look(l, q->ordinal, q->t0_ns);
    ipw_ledger_settle(l);
    return q->ordinal;
}

/* The query's open phase, or NULL. */
static struct ledger_phase *open_phase(struct ledger_query *q)
{
    struct ledger_phase *last = q->n_phases ? &q->phases[q->n_phases - 1] : NULL;

    return last && last->t1_ns == INT64_MAX ? last : NULL;
}

/* The query's phase changes at t, where a window of it may start; adds an edge if the rule depends
 * on phases. */
static void cut_phase(struct ipw_ledger *l, const struct ledger_query *q, int64_t t_ns)
{
    if (l->share != IPW_SHARE_EQUAL) cut_at(l, t_ns);
    ipw_ledger_look(l, q->ordinal, t_ns);
}

static void close_phase(struct ipw_ledger *l, const struct ledger_query *q,
                        struct ledger_phase *phase, int64_t t_ns)
{
    if (t_ns < phase->t0_ns) t_ns = phase->t0_ns;
    phase->t1_ns = t_ns;
    ipw_phase_line_add(&l->line, phase->phase, t_ns, INT64_MAX, -1);
    cut_phase(l, q, t_ns);
}

static void end_query(struct ipw_ledger *l, int64_t query, int64_t t_ns)
{
    struct ledger_query *q = ipw_ledger_query(l, query);

    if (!q || q->t1_ns != INT64_MAX) {
        IPW_BUG("a query left the ledger that had not entered it");
    }
    if (open_phase(q)) close_phase(l, q, open_phase(q), t_ns);
    q->told_ns = t_ns;
    q->t1_ns = add_edge(l, t_ns, -1);
    IPW_GROW(l->ends, l->cap_ends, l->n_ends + 1);
    l->ends[l->n_ends++] = (struct ledger_look){q->t1_ns, query};
    ipw_ledger_settle(l);
}

void ipw_ledger_query_end(struct ipw_ledger *l, int64_t query, int64_t t_ns)
{
    for (struct ledger_each e = {.all = l, .query = query}; ipw_ledger_each(&e);)
        end_query(e.l, e.own, t_ns);
}

static void tell_phase(struct ipw_ledger *l, struct ledger_query *q, enum ipw_phase phase,
                       int64_t t0_ns, int64_t t1_ns)
{
    struct ledger_phase *open;

    if (t0_ns < q->t0_ns) t0_ns = q->t0_ns;
    if (t1_ns > q->t1_ns) t1_ns = q->t1_ns;
    open = open_phase(q);
    if (open && open->phase == phase && open->t0_ns == t0_ns) {
        if (t1_ns != INT64_MAX) close_phase(l, q, open, t1_ns);
        return;
    }
    if (open) close_phase(l, q, open, t0_ns);
    if (t1_ns <= t0_ns) return;
    IPW_GROW(q->phases, q->cap_phases, q->n_phases + 1);
    q->phases[q->n_phases++] = (struct ledger_phase){t0_ns, t1_ns, phase};
    ipw_phase_line_add(&l->line, phase, t0_ns, t1_ns, 1);
    cut_phase(l, q, t0_ns);
    if (t1_ns != INT64_MAX) cut_phase(l, q, t1_ns);
}

void ipw_ledger_phase(struct ipw_ledger *l, int64_t query, enum ipw_phase phase, int64_t t0_ns,
                      int64_t t1_ns)
{
    if (t1_ns < t0_ns || phase >= IPW_PHASE_COUNT) return;
    for (struct ledger_each e = {.all = l, .query = query}; ipw_ledger_each(&e);) {
        struct ledger_query *q = ipw_ledger_query(e.l, e.own);

        if (q) tell_phase(e.l, q, phase, t0_ns, t1_ns);
    }
}

/* Has the channel been failing, or without rows, for so long that the ledger no longer waits for
 * it? */
static bool is_given_up(const struct ledger_line *line)
{
    const struct ipw_series *s = line->series;

    return line->lost_ns != INT64_MIN || (s->failing_since_ns != INT64_MIN &&
                                          s->last_failed_ns - s->failing_since_ns >= GIVE_UP_NS);
}

/* A counter that was read for a while and never moved.  It has no figure, and the ledger does not
 * wait for its first change. */
static bool is_unmoved(const struct ledger_line *line)
{
    return !ipw_series_has_moved(line->series) && ipw_series_silence_ns(line->series) > 0;
}

static const struct ledger_line *line_of(const struct ipw_ledger *l, size_t channel)
{
    for (size_t i = 0; i < l->n_lines; i++) {
        if (l->lines[i].channel == channel) return &l->lines[i];
    }
    return NULL;
}

int64_t ipw_ledger_silence_ns(const struct ipw_ledger *l, size_t channel)
{
    const struct ledger_line *line = line_of(l, channel);

    return line && line->handed_over_ns == INT64_MIN ? ipw_series_silence_ns(line->series) : 0;
}

int64_t ipw_ledger_handed_over_ns(const struct ipw_ledger *l, size_t channel)
{
    const struct ledger_line *line = line_of(l, channel);

    return line ? line->handed_over_ns : INT64_MIN;
}

/* Of a query, too, whose end was told late: it waits until it is covered up to where it left the
 * sums. */
static int64_t covered_ns(const struct ipw_ledger *l, const struct ledger_query *q)
{
    int64_t covered = INT64_MAX;

    for (size_t i = 0; i < l->n_lines; i++) {
        const struct ledger_line *line = &l->lines[i];
        int64_t t = ipw_ledger_settled_ns(line);

        if (is_unmoved(line) && line->series->last.t_ns > t) t = line->series->last.t_ns;
        if (line->lost_ns == INT64_MIN && is_given_up(line) && line->series->last_failed_ns > t)
            t = line->series->last_failed_ns;
        if (t < covered) covered = t;
    }
    /* A model needs two readings before it says anything; afterwards it continues at its last
     * power. */
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (l->model[d][2] && l->model[d][2]->n < 2 && l->n_lines == 0) covered = INT64_MIN;
    }
    return q && q->told_ns <= covered && covered < q->t1_ns ? q->told_ns - 1 : covered;
}

int64_t ipw_ledger_query_covered_ns(const struct ipw_ledger *l, int64_t query)
{
    int64_t least = INT64_MAX;

    for (struct ledger_each e = {.all = l, .query = query}; ipw_ledger_each(&e);) {
        int64_t t = covered_ns(e.l, query < 0 ? NULL : ipw_ledger_query(e.l, e.own));

        if (t < least) least = t;
    }
    return least;
}

int64_t ipw_ledger_covered_ns(const struct ipw_ledger *l)
{
    return ipw_ledger_query_covered_ns(l, IPW_LEDGER_ANY);
}

int64_t ipw_ledger_read_ns(const struct ipw_ledger *l)
{
    int64_t read = INT64_MAX, given_up = INT64_MAX;

    if (l->scopes) return ipw_ledger_scopes_read_ns(l);
    for (size_t i = 0; i < l->n_lines; i++) {
        const struct ledger_line *line = &l->lines[i];
        int64_t t = line->series->n ? line->series->last.t_ns : INT64_MIN;

        if (is_given_up(line)) {
            if (t < given_up) given_up = t;
        } else if (t < read) {
            read = t;
        }
    }
    return read < INT64_MAX ? read : given_up;
}
