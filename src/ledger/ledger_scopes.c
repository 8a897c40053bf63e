/* A ledger of queries that could use different devices: see ipw_ledger_set_scopes() and
 * ledger/ledger_priv.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ledger/ledger_priv.h"

/* Readings around a group's time: of the session before it opens its sensors, and while the ledger
 * waits for a last reading (LOST_NS in ledger_phase.c). */
#define BEFORE_NS (10 * IPW_NS_PER_S)
#define AFTER_NS  (60 * IPW_NS_PER_S)
/* A pause of the readings up to this length belongs to the time of a group, and is idle. */
#define PAUSE_NS (2 * IPW_NS_PER_S)

struct group { /* the devices that exactly these scopes have, in a time without gaps */
    struct ipw_ledger *ledger;
    bool *scopes;
    int64_t start_ns, end_ns;
    int64_t from_ns, to_ns; /* readings that it takes */
};

struct seen { /* a query: its ordinal in each group of its scope */
    size_t scope;
    int64_t *ordinals;
};

struct ledger_scopes {
    struct group *groups;
    size_t n, cap;
    size_t n_scopes;
    struct seen *queries; /* by ordinal, from `base` on */
    size_t n_queries, cap_queries;
    int64_t base, newest_ns;
};

/* ---- the groups ---- */

/* A device, and the scopes that have it one after the other without a gap. */
struct stretch {
    bool *scopes;
    int64_t start_ns, end_ns;
};

/* The stretch of the channel that begins with the first scope after `after_ns`. */
static bool next_stretch(struct stretch *out, const struct ipw_ledger_scope *scopes, size_t n,
                         size_t channel, int64_t after_ns)
{
    bool grows = true;

    memset(out->scopes, 0, n * sizeof *out->scopes);
    out->start_ns = INT64_MAX;
    for (size_t i = 0; i < n; i++)
        if (scopes[i].channels[channel] && scopes[i].start_ns > after_ns &&
            scopes[i].start_ns < out->start_ns)
            out->start_ns = scopes[i].start_ns;
    out->end_ns = out->start_ns;
    if (out->start_ns == INT64_MAX) return false;
    while (grows) {
        grows = false;
        for (size_t i = 0; i < n; i++) {
            if (!scopes[i].channels[channel] || out->scopes[i] ||
                scopes[i].start_ns < out->start_ns || scopes[i].start_ns > out->end_ns + PAUSE_NS)
                continue;
            out->scopes[i] = grows = true;
            if (scopes[i].end_ns > out->end_ns) out->end_ns = scopes[i].end_ns;
        }
    }
    return true;
}

static struct group *group_of(struct ledger_scopes *s, const struct stretch *stretch)
{
    size_t size = s->n_scopes * sizeof *stretch->scopes;
    struct group *g;

    for (size_t i = 0; i < s->n; i++)
        if (!memcmp(s->groups[i].scopes, stretch->scopes, size)) return &s->groups[i];
    IPW_GROW(s->groups, s->cap, s->n + 1);
    g = &s->groups[s->n++];
    *g = (struct group){.scopes = ipw_calloc(s->n_scopes + 1, sizeof *g->scopes),
                        .start_ns = stretch->start_ns,
                        .end_ns = stretch->end_ns,
                        .from_ns = stretch->start_ns - BEFORE_NS,
                        .to_ns = stretch->end_ns + AFTER_NS};
    memcpy(g->scopes, stretch->scopes, size);
    return g;
}

/* The readings in the pause between two groups with one device: to the nearer one. */
static void part(struct group *before, struct group *after)
{
    int64_t middle_ns = before->end_ns + (after->start_ns - before->end_ns) / 2;

    if (before->to_ns > middle_ns) before->to_ns = middle_ns;
    if (after->from_ns < middle_ns) after->from_ns = middle_ns;
}

/* Finds the groups, and marks their channels: has[group * n_channels + channel]. */
static void find_groups(struct ledger_scopes *s, const struct ipw_ledger_scope *scopes,
                        size_t n_channels, bool **has)
{
    struct stretch stretch = {.scopes = ipw_calloc(s->n_scopes + 1, sizeof *stretch.scopes)};
    size_t cap = 0;

    for (size_t c = 0; c < n_channels; c++) {
        int64_t after_ns = INT64_MIN;
        size_t before = SIZE_MAX;

        while (next_stretch(&stretch, scopes, s->n_scopes, c, after_ns)) {
            size_t known = s->n, at;
            struct group *g = group_of(s, &stretch);

            at = (size_t)(g - s->groups);
            IPW_GROW(*has, cap, s->n * n_channels);
            if (s->n > known) memset(*has + known * n_channels, 0, n_channels);
            (*has)[at * n_channels + c] = true;
            if (before != SIZE_MAX) part(&s->groups[before], g);
            before = at;
            after_ns = stretch.end_ns;
        }
    }
    free(stretch.scopes);
}

/* What a device's stamps and those of its queries may differ by. */
static int64_t clock_error(const struct group *g, const struct ipw_ledger_scope *scopes, size_t n)
{
    const char *clock = NULL;
    int64_t most = 0;
    bool several = false;

    for (size_t i = 0; i < n; i++) {
        const char *own = scopes[i].clock ? scopes[i].clock : "";

        if (!g->scopes[i]) continue;
        several |= clock && strcmp(clock, own) != 0;
        clock = own;
        if (scopes[i].clock_error_ns > most) most = scopes[i].clock_error_ns;
    }
    return several ? most : 0;
}

static void open_group(struct ipw_ledger *l, struct group *g, const struct ipw_channel *channels,
                       const bool *has)
{
    struct ipw_channel *own = ipw_calloc(l->n_channels + 1, sizeof *own);

    for (size_t c = 0; c < l->n_channels; c++) {
        own[c] = channels[c];
        if (has[c]) continue;
        own[c].in_sum = false;
        if (own[c].kind == IPW_CHANNEL_ESTIMATE) own[c].kind = IPW_CHANNEL_METRIC;
    }
    g->ledger = ipw_ledger_new(own, l->n_channels);
    if (l->keeps_told) ipw_ledger_keep_told(g->ledger);
    ipw_ledger_set_share(g->ledger, l->share);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        ipw_ledger_set_reason(g->ledger, (enum ipw_domain)d, l->domains[d].reason);
    for (size_t i = 0; i < g->ledger->n_lines; i++)
        for (size_t k = 0; k < l->n_lines; k++)
            if (l->lines[k].channel == g->ledger->lines[i].channel)
                g->ledger->lines[i].baseline_w = l->lines[k].baseline_w;
    free(own);
}

void ipw_ledger_set_scopes(struct ipw_ledger *l, const struct ipw_channel *channels,
                           const struct ipw_ledger_scope *scopes, size_t n)
{
    struct ledger_scopes *s = l->scopes = ipw_calloc(1, sizeof *s);
    bool *has = NULL;

    s->n_scopes = n;
    s->newest_ns = INT64_MIN;
    find_groups(s, scopes, l->n_channels, &has);
    for (size_t i = 0; i < s->n; i++) {
        struct group *g = &s->groups[i];

        open_group(l, g, channels, has + i * l->n_channels);
        g->ledger->clock_error_ns = clock_error(g, scopes, n);
    }
    free(has);
}

void ipw_ledger_scopes_free(struct ledger_scopes *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++) {
        ipw_ledger_free(s->groups[i].ledger);
        free(s->groups[i].scopes);
    }
    for (size_t i = 0; i < s->n_queries; i++) free(s->queries[i].ordinals);
    free(s->groups);
    free(s->queries);
    free(s);
}

/* ---- what the ledger is told ---- */

static bool is_active(const struct group *g, int64_t t_ns)
{
    return t_ns >= g->from_ns && t_ns <= g->to_ns;
}

/* Rows of other devices, too: they show that time passes while a device is silent. */
void ipw_ledger_scopes_row(struct ledger_scopes *s, size_t first, size_t n, int64_t t_ns,
                           const int64_t *values)
{
    if (t_ns > s->newest_ns) s->newest_ns = t_ns;
    for (size_t i = 0; i < s->n; i++)
        if (is_active(&s->groups[i], t_ns))
            ipw_ledger_row(s->groups[i].ledger, first, n, t_ns, values);
}

void ipw_ledger_scopes_break(struct ledger_scopes *s, const char *reason)
{
    for (size_t i = 0; i < s->n; i++)
        if (is_active(&s->groups[i], s->newest_ns)) ipw_ledger_break(s->groups[i].ledger, reason);
}

void ipw_ledger_scopes_lose(struct ledger_scopes *s, size_t channel, const char *reason)
{
    for (size_t i = 0; i < s->n; i++)
        if (is_active(&s->groups[i], s->newest_ns))
            ipw_ledger_lose(s->groups[i].ledger, channel, reason);
}

void ipw_ledger_scopes_doubt(struct ledger_scopes *s, size_t channel, const char *reason)
{
    for (size_t i = 0; i < s->n; i++) ipw_ledger_doubt(s->groups[i].ledger, channel, reason);
}

void ipw_ledger_scopes_close(struct ledger_scopes *s, int64_t t_ns)
{
    for (size_t i = 0; i < s->n; i++) ipw_ledger_close(s->groups[i].ledger, t_ns);
}

void ipw_ledger_scopes_keep_told(struct ledger_scopes *s)
{
    for (size_t i = 0; i < s->n; i++) ipw_ledger_keep_told(s->groups[i].ledger);
}

static bool in_scope(const struct group *g, size_t scope)
{
    return scope == SIZE_MAX || g->scopes[scope];
}

int64_t ipw_ledger_query_begin_in(struct ipw_ledger *l, size_t scope, int64_t t_ns)
{
    struct ledger_scopes *s = l->scopes;
    struct seen *q;

    if (!s) return ipw_ledger_query_begin(l, t_ns);
    if (scope >= s->n_scopes) scope = SIZE_MAX;
    IPW_GROW(s->queries, s->cap_queries, s->n_queries + 1);
    q = &s->queries[s->n_queries++];
    *q = (struct seen){scope, ipw_calloc(s->n + 1, sizeof *q->ordinals)};
    for (size_t i = 0; i < s->n; i++)
        q->ordinals[i] =
            in_scope(&s->groups[i], scope) ? ipw_ledger_query_begin(s->groups[i].ledger, t_ns) : -1;
    return s->base + (int64_t)s->n_queries - 1;
}

static const struct seen *seen_of(const struct ledger_scopes *s, int64_t query)
{
    return query >= s->base && query < s->base + (int64_t)s->n_queries
               ? &s->queries[query - s->base]
               : NULL;
}

void ipw_ledger_scopes_end(struct ledger_scopes *s, int64_t query, int64_t t_ns)
{
    const struct seen *q = seen_of(s, query);

    for (size_t i = 0; q && i < s->n; i++)
        if (q->ordinals[i] >= 0) ipw_ledger_query_end(s->groups[i].ledger, q->ordinals[i], t_ns);
}

void ipw_ledger_scopes_phase(struct ledger_scopes *s, int64_t query, const struct ledger_phase *p)
{
    const struct seen *q = seen_of(s, query);

    for (size_t i = 0; q && i < s->n; i++)
        if (q->ordinals[i] >= 0)
            ipw_ledger_phase(s->groups[i].ledger, q->ordinals[i], p->phase, p->t0_ns, p->t1_ns);
}

void ipw_ledger_scopes_instant(struct ledger_scopes *s, int64_t query, int64_t t_ns)
{
    const struct seen *q = seen_of(s, query);

    for (size_t i = 0; q && i < s->n; i++)
        if (q->ordinals[i] >= 0) ipw_ledger_instant(s->groups[i].ledger, q->ordinals[i], t_ns);
}

void ipw_ledger_scopes_forget(struct ledger_scopes *s, int64_t query)
{
    const struct seen *q = seen_of(s, query);

    for (size_t i = 0; q && i < s->n; i++)
        if (q->ordinals[i] >= 0) ipw_ledger_forget(s->groups[i].ledger, q->ordinals[i]);
}

static bool is_forgotten(const struct ledger_scopes *s, const struct seen *q)
{
    for (size_t i = 0; i < s->n; i++)
        if (q->ordinals[i] >= 0 && ipw_ledger_query(s->groups[i].ledger, q->ordinals[i]))
            return false;
    return true;
}

void ipw_ledger_scopes_trim(struct ledger_scopes *s, int64_t before_ns)
{
    size_t drop = 0;

    for (size_t i = 0; i < s->n; i++) ipw_ledger_trim(s->groups[i].ledger, before_ns);
    while (drop < s->n_queries && is_forgotten(s, &s->queries[drop]))
        free(s->queries[drop++].ordinals);
    if (!drop) return;
    s->n_queries -= drop;
    s->base += (int64_t)drop;
    memmove(s->queries, s->queries + drop, s->n_queries * sizeof *s->queries);
}

/* ---- what it answers ---- */

int64_t ipw_ledger_scopes_covered_ns(const struct ledger_scopes *s)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < s->n; i++) {
        int64_t t = ipw_ledger_covered_ns(s->groups[i].ledger);

        if (t < least) least = t;
    }
    return least;
}

/* A query whose end was told late waits until it is covered up to where it left the sums. */
static int64_t covered_ns(const struct ipw_ledger *l, int64_t query)
{
    const struct ledger_query *q = ipw_ledger_query(l, query);
    int64_t covered = ipw_ledger_covered_ns(l);

    return q && q->told_ns <= covered && covered < q->t1_ns ? q->told_ns - 1 : covered;
}

int64_t ipw_ledger_query_covered_ns(const struct ipw_ledger *l, int64_t query)
{
    const struct seen *q = l->scopes ? seen_of(l->scopes, query) : NULL;
    int64_t least = INT64_MAX;

    if (!q) return covered_ns(l, query);
    for (size_t i = 0; i < l->scopes->n; i++) {
        int64_t t;

        if (q->ordinals[i] < 0) continue;
        t = covered_ns(l->scopes->groups[i].ledger, q->ordinals[i]);
        if (t < least) least = t;
    }
    return least;
}

/* Devices that no scope had at the end were read up to the end of their own time. */
int64_t ipw_ledger_scopes_read_ns(const struct ledger_scopes *s)
{
    int64_t read = INT64_MAX, newest = INT64_MIN;

    for (size_t i = 0; i < s->n; i++) {
        int64_t t = ipw_ledger_read_ns(s->groups[i].ledger);

        if (t > newest) newest = t;
        if (s->groups[i].to_ns >= s->newest_ns && t < s->groups[i].end_ns && t < read) read = t;
    }
    return read < INT64_MAX ? read : newest;
}

/* The group's own question; false: it has none of the devices, or the query did not use it. */
static bool ask_group(struct ipw_ledger_question *out, const struct ipw_ledger *l, size_t i,
                      const struct ipw_ledger_question *q)
{
    const struct group *g = &l->scopes->groups[i];
    const struct ledger_domain *d = &g->ledger->domains[q->domain];
    const struct seen *query = q->query >= 0 ? seen_of(l->scopes, q->query) : NULL;
    size_t k = 0;

    *out = *q;
    if (query) out->query = query->ordinals[i];
    if (query && out->query < 0) return false;
    if (q->device == IPW_LEDGER_ALL) return d->n || g->ledger->model[q->domain][2];
    while (k < d->n && g->ledger->lines[d->first + k].channel !=
                           l->lines[l->domains[q->domain].first + q->device].channel)
        k++;
    out->device = k;
    return k < d->n;
}

bool ipw_ledger_query_sees(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                           size_t device)
{
    struct ipw_ledger_question q = {.query = query, .domain = domain, .device = device}, own;

    for (size_t i = 0; l->scopes && i < l->scopes->n; i++)
        if (ask_group(&own, l, i, &q)) return true;
    return !l->scopes;
}

struct ipw_figure ipw_ledger_scopes_figure(const struct ipw_ledger *l,
                                           const struct ipw_ledger_question *q)
{
    struct ipw_figure sum = {.reason = l->domains[q->domain].reason};
    bool first = true;

    for (size_t i = 0; i < l->scopes->n; i++) {
        const struct group *g = &l->scopes->groups[i];
        struct ipw_ledger_question own;
        struct ipw_figure f;

        if (!ask_group(&own, l, i, q)) continue;
        if (q->what == IPW_LEDGER_TOTAL || q->what == IPW_LEDGER_IDLE) {
            if (own.t0_ns < g->start_ns) own.t0_ns = g->start_ns;
            if (own.t1_ns > g->end_ns) own.t1_ns = g->end_ns;
            if (own.t1_ns <= own.t0_ns) continue;
        }
        f = ipw_ledger_figure(g->ledger, own);
        ipw_ledger_add_figure(&sum, &f, first);
        first = false;
    }
    return sum;
}

void ipw_ledger_scopes_figures(const struct ipw_ledger *l, const struct ipw_ledger_question *q,
                               const int64_t *t, size_t n, struct ipw_figure *out)
{
    struct ipw_figure *one = ipw_calloc(n + 1, sizeof *one);
    bool first = true;

    for (size_t i = 0; i < n; i++)
        out[i] = (struct ipw_figure){.reason = l->domains[q->domain].reason};
    for (size_t i = 0; i < l->scopes->n; i++) {
        struct ipw_ledger_question own;

        if (!ask_group(&own, l, i, q)) continue;
        ipw_ledger_figures(l->scopes->groups[i].ledger, own, t, n, one);
        for (size_t k = 0; k < n; k++) ipw_ledger_add_figure(&out[k], &one[k], first);
        first = false;
    }
    free(one);
}

struct ipw_account ipw_ledger_scopes_account(const struct ipw_ledger *l,
                                             const struct ipw_ledger_question *q)
{
    struct ipw_account sum = {.attributed = {.reason = l->domains[q->domain].reason}};
    bool first = true;

    for (size_t i = 0; i < l->scopes->n; i++) {
        struct ipw_ledger_question own;
        struct ipw_account a;

        if (!ask_group(&own, l, i, q)) continue;
        a = ipw_ledger_account(l->scopes->groups[i].ledger, own);
        ipw_ledger_add_figure(&sum.attributed, &a.attributed, first);
        sum.exclusive_j = ipw_figure_add_j(sum.exclusive_j, a.exclusive_j);
        sum.marginal_j = ipw_figure_add_j(sum.marginal_j, a.marginal_j);
        first = false;
    }
    if (first) sum.exclusive_j = sum.marginal_j = NAN;
    return sum;
}

size_t ipw_ledger_scopes_lines(const struct ledger_scopes *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) n += s->groups[i].ledger->n_lines;
    return n;
}

size_t ipw_ledger_scopes_series(const struct ipw_ledger *l, const struct ipw_ledger_question *q,
                                const struct ipw_series **out)
{
    size_t n = 0, n_lines;

    for (size_t i = 0; i < l->scopes->n; i++) {
        struct ipw_ledger_question own;
        const struct ledger_line *lines;

        if (!ask_group(&own, l, i, q)) continue;
        lines = ipw_ledger_lines(l->scopes->groups[i].ledger, &own, &n_lines);
        for (size_t k = 0; k < n_lines; k++) out[n++] = lines[k].series;
    }
    return n;
}
