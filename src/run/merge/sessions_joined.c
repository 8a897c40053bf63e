#include "run/merge/sessions_joined.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/source.h"

struct part {
    const struct ipw_shard_run *run;
    int session;
    const struct ipw_shard_session *s;
    int64_t start_wall_ns, end_wall_ns;
    size_t group; /* the place of the first part of its group */
};

static bool overlap(int64_t a0, int64_t a1, int64_t b0, int64_t b1) { return a0 < b1 && b0 < a1; }

static bool one_boot(const struct part *a, const struct part *b)
{
    return a->s->boot_id && b->s->boot_id && !strcmp(a->s->boot_id, b->s->boot_id);
}

/* A GPU has an id of its own, but its number may differ from process to process. */
static bool is_same(const struct ipw_shard_device *a, const struct ipw_shard_device *b)
{
    bool gpu = !strcmp(a->domain, ipw_domain_name(IPW_DOMAIN_GPU)) && a->device[0];

    return !strcmp(a->domain, b->domain) && !strcmp(a->device, b->device) &&
           (gpu || !strcmp(a->name, b->name));
}

/* What two sessions have in common. */
struct shared {
    size_t devices;
    bool remote; /* a device of another machine */
    bool apart;  /* both read a domain of one machine, by different sensors */
};

static const struct ipw_shard_device *find(const struct ipw_shard_session *s,
                                           const struct ipw_shard_device *device)
{
    for (size_t i = 0; i < s->n_devices; i++)
        if (is_same(&s->devices[i], device)) return &s->devices[i];
    return NULL;
}

static bool has_domain(const struct ipw_shard_session *s, const char *domain)
{
    for (size_t i = 0; i < s->n_devices; i++)
        if (!strcmp(s->devices[i].domain, domain)) return true;
    return false;
}

/* A GPU that only one of them has is another GPU; a CPU package is not another machine. */
static bool is_apart(const struct ipw_shard_session *a, const struct ipw_shard_session *b)
{
    for (size_t i = 0; i < a->n_devices; i++) {
        const struct ipw_shard_device *d = &a->devices[i];

        if (strcmp(d->domain, ipw_domain_name(IPW_DOMAIN_GPU)) != 0 && !find(b, d) &&
            has_domain(b, d->domain))
            return true;
    }
    return false;
}

static struct shared compare(const struct ipw_shard_session *a, const struct ipw_shard_session *b)
{
    struct shared out = {.apart = is_apart(a, b) || is_apart(b, a)};

    for (size_t i = 0; i < a->n_devices; i++) {
        const struct ipw_shard_device *other = find(b, &a->devices[i]);

        out.devices += other != NULL;
        out.remote |= other && other->remote && a->devices[i].remote;
    }
    return out;
}

static int refuse(const struct part *a, const struct part *b, const char *why, struct ipw_err *err)
{
    return ipw_fail(err, IPW_EUNSUPPORTED, "%s and %s: %s", a->run->path, b->run->path, why);
}

/* Two sessions on one boot at the same time. */
static int check_boot(bool *join, const struct part *a, const struct part *b, struct ipw_err *err)
{
    struct shared shared = compare(a->s, b->s);

    *join = shared.devices > 0;
    if (!shared.apart) return 0;
    return refuse(a, b,
                  "ran at the same time on one host and read it by different sensors: give all "
                  "shards the same --telemetry",
                  err);
}

/* Two sessions of different boots, or of unknown ones, at the same time. */
static int check_hosts(bool *join, const struct part *a, const struct part *b, struct ipw_err *err)
{
    struct shared shared = compare(a->s, b->s);

    *join = shared.remote;
    if (shared.remote && (!a->s->clock.wall_ns || !b->s->clock.wall_ns))
        return refuse(a, b,
                      "clients on two hosts read the same device of a server, and the wall clock "
                      "of one is unknown: run the clients of one server on one host",
                      err);
    if (a->s->n_devices && b->s->n_devices && (!a->s->boot_id || !b->s->boot_id))
        return refuse(a, b,
                      "the boot id of a host is unknown, so that nothing tells whether they "
                      "shared its devices",
                      err);
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    if (x->start_wall_ns != y->start_wall_ns) return x->start_wall_ns < y->start_wall_ns ? -1 : 1;
    if (x->run->index != y->run->index) return x->run->index < y->run->index ? -1 : 1;
    return (x->session > y->session) - (x->session < y->session);
}

static void unite(struct part *parts, size_t n, size_t a, size_t b)
{
    size_t from = parts[b].group, to = parts[a].group;

    if (from < to) {
        size_t swap = from;

        from = to;
        to = swap;
    }
    for (size_t i = 0; i < n; i++)
        if (parts[i].group == from) parts[i].group = to;
}

/* By their wall clocks; without one nobody knows. */
static bool may_overlap(const struct part *a, const struct part *b)
{
    return !a->s->clock.wall_ns || !b->s->clock.wall_ns ||
           overlap(a->start_wall_ns, a->end_wall_ns, b->start_wall_ns, b->end_wall_ns);
}

static int join_pairs(struct part *parts, size_t n, struct ipw_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n && !rc; k++) {
            const struct part *a = &parts[i], *b = &parts[k];
            bool join = false;

            if (one_boot(a, b)) {
                if (!overlap(a->s->start_ns, a->s->end_ns, b->s->start_ns, b->s->end_ns)) continue;
                rc = check_boot(&join, a, b, err);
                if (join) unite(parts, n, i, k);
            } else if (may_overlap(a, b)) {
                rc = check_hosts(&join, a, b, err);
                if (join) unite(parts, n, i, k);
            }
        }
        if (rc) break;
    }
    return rc;
}

/* ---- the groups ---- */

/* A wall clock whose error the system does not tell: that of machines with a time service that is
 * set up in the usual way, and more. */
#define ASSUMED_CLOCK_ERROR_NS (100 * IPW_NS_PER_MS)

static int64_t clock_error(const struct part *p)
{
    return p->s->clock_error_ns < 0 ? ASSUMED_CLOCK_ERROR_NS : p->s->clock_error_ns;
}

/* The first part of the group on this part's boot: all its sessions are moved alike. */
static const struct part *of_boot(const struct part *parts, const struct part *p)
{
    for (const struct part *q = parts; q < p; q++)
        if (q->group == p->group && one_boot(q, p)) return q;
    return p;
}

static struct ipw_join_member member_of(const struct part *parts, const struct part *p)
{
    const struct part *first = &parts[p->group], *own = of_boot(parts, p);
    struct ipw_join_member m = {.run = p->run, .session = p->session};

    if (own == first) return m;
    m.ahead_ns = (own->s->clock.wall_ns - own->s->clock.mono_ns) -
                 (first->s->clock.wall_ns - first->s->clock.mono_ns);
    m.clock_error_ns = clock_error(first) + clock_error(own);
    return m;
}

static bool is_divided(const struct part *a, const struct part *b)
{
    return !one_boot(a, b) || a->s->n_devices != b->s->n_devices ||
           compare(a->s, b->s).devices != a->s->n_devices;
}

static void put_groups(struct ipw_sessions_joined *out, const struct part *parts, size_t n)
{
    out->members = ipw_calloc(n + 1, sizeof *out->members);
    out->first = ipw_calloc(n + 1, sizeof *out->first);
    out->divided = ipw_calloc(n + 1, sizeof *out->divided);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].group != i) continue;
        out->first[out->n++] = out->n_members;
        for (size_t k = i; k < n; k++) {
            if (parts[k].group != i) continue;
            if (k > i && is_divided(&parts[i], &parts[k])) out->divided[out->n - 1] = true;
            out->members[out->n_members++] = member_of(parts, &parts[k]);
        }
    }
    out->first[out->n] = out->n_members;
}

int ipw_sessions_joined_find(struct ipw_sessions_joined *out, const struct ipw_shard_runs *runs,
                             struct ipw_err *err)
{
    struct part *parts;
    size_t n = 0;
    int rc;

    *out = (struct ipw_sessions_joined){0};
    for (size_t i = 0; i < runs->n; i++) n += runs->all[i].n_sessions;
    parts = ipw_calloc(n + 1, sizeof *parts);
    n = 0;
    for (size_t i = 0; i < runs->n; i++) {
        const struct ipw_shard_run *run = &runs->all[i];

        for (size_t k = 0; k < run->n_sessions; k++) {
            const struct ipw_shard_session *s = &run->sessions[k];

            if (!s->start_ns) continue; /* killed before it began */
            parts[n++] = (struct part){
                .run = run,
                .session = (int)k,
                .s = s,
                .start_wall_ns = ipw_anchor_wall_ns(&s->clock, s->start_ns),
                .end_wall_ns = ipw_anchor_wall_ns(&s->clock, s->end_ns),
            };
        }
    }
    if (n) qsort(parts, n, sizeof *parts, by_start);
    for (size_t i = 0; i < n; i++) parts[i].group = i;
    rc = join_pairs(parts, n, err);
    if (!rc) put_groups(out, parts, n);
    free(parts);
    return rc;
}

void ipw_sessions_joined_release(struct ipw_sessions_joined *s)
{
    free(s->members);
    free(s->first);
    free(s->divided);
    *s = (struct ipw_sessions_joined){0};
}
