#include "run/merge/sessions_joined.h"

#include <stdlib.h>
#include <string.h>

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

static bool is_same(const struct ipw_shard_device *a, const struct ipw_shard_device *b)
{
    return !strcmp(a->domain, b->domain) && !strcmp(a->name, b->name) &&
           !strcmp(a->device, b->device);
}

/* What two sessions have in common. */
struct shared {
    size_t devices;
    bool domain, remote; /* a domain with one sensor for a machine; a device of another machine */
};

static struct shared compare(const struct ipw_shard_session *a, const struct ipw_shard_session *b)
{
    struct shared out = {0};

    for (size_t i = 0; i < a->n_devices; i++) {
        for (size_t k = 0; k < b->n_devices; k++) {
            const struct ipw_shard_device *x = &a->devices[i], *y = &b->devices[k];
            bool same = is_same(x, y);

            out.devices += same;
            out.remote |= same && x->remote && y->remote;
            /* GPUs have names of their own. */
            out.domain |= !strcmp(x->domain, y->domain) &&
                          strcmp(x->domain, ipw_domain_name(IPW_DOMAIN_GPU)) != 0;
        }
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

    *join = shared.devices == a->s->n_devices && shared.devices == b->s->n_devices;
    if (*join) return 0;
    if (shared.devices)
        return refuse(a, b,
                      "ran at the same time on one host and shared some devices, but not all; one "
                      "ledger cannot divide them: give all shards the same sensors",
                      err);
    if (shared.domain)
        return refuse(a, b,
                      "ran at the same time on one host and read it by different sensors: give all "
                      "shards the same --telemetry",
                      err);
    return 0;
}

/* Two sessions of different boots, or of unknown ones, at the same time. */
static int check_hosts(const struct part *a, const struct part *b, struct ipw_err *err)
{
    struct shared shared = compare(a->s, b->s);

    if (shared.remote)
        return refuse(a, b,
                      "clients on two hosts read the same device of a server at the same time; "
                      "they cannot be merged, because its joules would count twice",
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
            } else if (overlap(a->start_wall_ns, a->end_wall_ns, b->start_wall_ns,
                               b->end_wall_ns)) {
                rc = check_hosts(a, b, err);
            }
        }
        if (rc) break;
    }
    return rc;
}

static void put_groups(struct ipw_sessions_joined *out, const struct part *parts, size_t n)
{
    out->members = ipw_calloc(n + 1, sizeof *out->members);
    out->first = ipw_calloc(n + 1, sizeof *out->first);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].group != i) continue;
        out->first[out->n++] = out->n_members;
        for (size_t k = i; k < n; k++)
            if (parts[k].group == i)
                out->members[out->n_members++] =
                    (struct ipw_join_member){parts[k].run, parts[k].session};
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
    *s = (struct ipw_sessions_joined){0};
}
