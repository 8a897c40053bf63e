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
    int64_t base;
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

/* ---- the groups that a call is for ---- */

static bool in_scope(const struct group *g, size_t scope)
{
    return scope == SIZE_MAX || g->scopes[scope];
}

static const struct seen *seen_of(const struct ledger_scopes *s, int64_t query)
{
    return query >= s->base && query < s->base + (int64_t)s->n_queries
               ? &s->queries[query - s->base]
               : NULL;
}

bool ipw_ledger_each_group(struct ledger_each *e)
{
    const struct ledger_scopes *s = e->all->scopes;
    const struct seen *q = seen_of(s, e->query);

    for (; e->next < s->n; e->next++) {
        const struct group *g = &s->groups[e->next];

        if (e->query >= 0 && (!q || q->ordinals[e->next] < 0)) continue;
        if (e->timed && (e->at_ns < g->from_ns || e->at_ns > g->to_ns)) continue;
        e->own = q ? q->ordinals[e->next] : e->query;
        e->l = g->ledger;
        e->start_ns = g->start_ns;
        e->end_ns = g->end_ns;
        e->next++;
        return true;
    }
    return false;
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

static bool is_forgotten(const struct ledger_scopes *s, const struct seen *q)
{
    for (size_t i = 0; i < s->n; i++)
        if (q->ordinals[i] >= 0 && ipw_ledger_query(s->groups[i].ledger, q->ordinals[i]))
            return false;
    return true;
}

void ipw_ledger_scopes_trim(struct ledger_scopes *s)
{
    size_t drop = 0;

    while (drop < s->n_queries && is_forgotten(s, &s->queries[drop]))
        free(s->queries[drop++].ordinals);
    if (!drop) return;
    s->n_queries -= drop;
    s->base += (int64_t)drop;
    memmove(s->queries, s->queries + drop, s->n_queries * sizeof *s->queries);
}

/* Devices that no scope had at the end were read up to the end of their own time. */
int64_t ipw_ledger_scopes_read_ns(const struct ipw_ledger *l)
{
    const struct ledger_scopes *s = l->scopes;
    int64_t read = INT64_MAX, newest = INT64_MIN;

    for (size_t i = 0; i < s->n; i++) {
        int64_t t = ipw_ledger_read_ns(s->groups[i].ledger);

        if (t > newest) newest = t;
        if (s->groups[i].to_ns >= l->newest_row_ns && t < s->groups[i].end_ns && t < read) read = t;
    }
    return read < INT64_MAX ? read : newest;
}
