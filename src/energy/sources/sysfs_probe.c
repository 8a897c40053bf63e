/* Sources made of probes: see sysfs.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/sysfs.h"

#define REOPEN_NS  IPW_NS_PER_S
#define TWIN_READS 10

struct probe_source {
    struct ipw_source source;
    struct ipw_probe_list list;
    struct ipw_channel *channels;
    bool *lost; /* one for each probe */
};

struct ipw_probe *ipw_probe_add(struct ipw_probe_list *list, enum ipw_channel_kind kind,
                                const char *path, const char *path2, const char *status,
                                int64_t divisor)
{
    struct ipw_probe *p;

    IPW_GROW(list->items, list->cap, list->n + 1);
    p = &list->items[list->n++];
    *p = (struct ipw_probe){.fd = {-1, -1},
                            .status_fd = -1,
                            .multiplier = 1,
                            .divisor = divisor,
                            .last = IPW_NO_VALUE,
                            .path = {ipw_strdup(path), ipw_strdup(path2)},
                            .status = ipw_strdup(status)};
    p->channel.kind = kind;
    snprintf(p->channel.unit, sizeof p->channel.unit, "%s",
             kind == IPW_CHANNEL_COUNTER ? "uJ" : "mW");
    return p;
}

static void close_probe(struct ipw_probe *p)
{
    for (int k = 0; k < 2; k++) {
        if (p->fd[k] >= 0) close(p->fd[k]);
        p->fd[k] = -1;
    }
    if (p->status_fd >= 0) close(p->status_fd);
    p->status_fd = -1;
}

void ipw_probe_release(struct ipw_probe_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        struct ipw_probe *p = &list->items[i];
        close_probe(p);
        free(p->path[0]);
        free(p->path[1]);
        free(p->status);
        free(p->home);
        free(p->owner);
    }
    free(list->items);
    *list = (struct ipw_probe_list){0};
}

/* The last part of an input device's path, "0003:1B1C:1C0B.0005", ends with a count of plug-ins;
 * cut it. */
static void cut_count(char *path)
{
    char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

    if (slash && dot && dot - slash == 15 && strlen(dot) == 5) *dot = '\0';
}

/* The device behind a numbered folder: its name and the target of its link `device`.  NULL:
 * none. */
static char *owner_of(const char *home)
{
    char name[64], path[PATH_MAX], *real, *owner;

    if (!ipw_sysfs_line(name, sizeof name, home, "name") &&
        !ipw_sysfs_line(name, sizeof name, home, "device/name"))
        return NULL;
    if (snprintf(path, sizeof path, "%s/device", home) >= (int)sizeof path) return NULL;
    real = realpath(path, NULL);
    if (real) cut_count(real);
    owner = ipw_asprintf("%s %s", name, real ? real : "");
    free(real);
    return owner;
}

static bool is_home(const char *home, const char *owner)
{
    char *here = owner_of(home);
    bool same = here && !strcmp(here, owner);

    free(here);
    return same;
}

static void move_path(char **path, size_t old_len, const char *home)
{
    char *moved = *path ? ipw_asprintf("%s%s", home, *path + old_len) : NULL;

    free(*path);
    *path = moved;
}

/* hwmon numbers change when a device is reconnected, so find the device again by its name and
 * device link, not by its number. */
static bool find_home(struct ipw_probe *p)
{
    size_t len = strlen(p->home);
    /* A home is always a folder of its source's root. */
    const char *base = strrchr(p->home, '/') + 1;
    char *root, *kind, **names;
    bool found = is_home(p->home, p->owner);

    /* A name alone does not identify a device. */
    if (found || p->owner[strlen(p->owner) - 1] == ' ') return found;
    root = ipw_asprintf("%.*s.", (int)(base - p->home), p->home);
    kind = ipw_asprintf("%.*s", (int)strcspn(base, "0123456789"), base);
    names = ipw_sysfs_list(root, kind);
    for (size_t i = 0; names && names[i] && !found; i++) {
        char *home = ipw_asprintf("%.*s%s", (int)(base - p->home), p->home, names[i]);

        found = is_home(home, p->owner);
        if (found) {
            for (int k = 0; k < 2; k++) move_path(&p->path[k], len, home);
            move_path(&p->status, len, home);
            free(p->home);
            p->home = home;
            break;
        }
        free(home);
    }
    ipw_sysfs_free_list(names);
    free(kind);
    free(root);
    return found;
}

static bool open_probe(struct ipw_probe *p)
{
    close_probe(p);
    p->errnum = 0;
    if (p->home && !p->owner) p->owner = owner_of(p->home);
    if (p->owner && !find_home(p)) {
        p->errnum = ENODEV;
        return false;
    }
    if (p->status) p->status_fd = open(p->status, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    for (int k = 0; k < 2 && p->path[k] && !p->errnum; k++) {
        p->fd[k] = open(p->path[k], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (p->fd[k] < 0) p->errnum = errno;
    }
    if (p->errnum) close_probe(p);
    return !p->errnum;
}

/* Drivers of power meters answer all ones, in milliwatts, if they have no reading. */
static bool is_sentinel(int64_t v)
{
    return v == INT64_C(4294967295) || v == INT64_C(4294967295000);
}

static int64_t read_files(const struct ipw_probe *p)
{
    int64_t v, second;

    if (p->fd[0] < 0) return IPW_NO_VALUE;
    if (!p->path[1]) {
        v = ipw_sysfs_read_fd(p->fd[0]);
        if (p->channel.kind == IPW_CHANNEL_GAUGE && is_sentinel(v)) return IPW_NO_VALUE;
    } else {
        if (!ipw_sysfs_read_signed_fd(&v, p->fd[0])) return IPW_NO_VALUE;
        if (!ipw_sysfs_read_signed_fd(&second, p->fd[1])) return IPW_NO_VALUE;
        if (is_sentinel(v) || is_sentinel(second)) return IPW_NO_VALUE;
        if (__builtin_mul_overflow(v, second, &v)) return IPW_NO_VALUE;
    }
    /* A negative power is a sensor's offset or power that flows back; it is not consumption. */
    if (v < 0 || v > INT64_MAX - p->divisor) return IPW_NO_VALUE;
    if (p->multiplier == 1) return (v + p->divisor / 2) / p->divisor;
    return (int64_t)((__int128)v * p->multiplier / p->divisor);
}

/* A device that is awake draws power, so a 0 means that its driver has no reading.  A rail can be
 * switched off. */
static bool is_false_zero(const struct ipw_probe *p, int64_t value)
{
    return value == 0 && p->channel.kind == IPW_CHANNEL_GAUGE && p->channel.scope != IPW_SCOPE_RAIL;
}

static int64_t read_probe(struct ipw_probe *p, struct ipw_source *source, bool *lost)
{
    int64_t v, now;

    if (p->status_fd >= 0 && ipw_sysfs_says(p->status_fd, "suspended")) {
        return p->channel.kind == IPW_CHANNEL_COUNTER ? p->last : 0;
    }
    v = *lost && source->now() < p->retry_ns ? IPW_NO_VALUE : read_files(p);
    if (v == IPW_NO_VALUE && (now = source->now()) >= p->retry_ns) {
        /* The device may have vanished and come back; then the old descriptor never reads again.
         * The device under its name is then another one.  Its first reading comes a second later,
         * so that the loss shows even if single readings are dropped. */
        p->retry_ns = now + REOPEN_NS;
        if (!open_probe(p)) {
            *lost |= p->errnum == ENOENT || p->errnum == ENODEV;
        } else if (ipw_sysfs_is_other(&p->id, p->fd[0])) {
            *lost = true;
        } else {
            v = read_files(p);
        }
    }
    if (v == IPW_NO_VALUE) return v;
    *lost = false;
    if (is_false_zero(p, v)) {
        if (!p->told_zero)
            ipw_source_add_note(source, "%s: ignored 0 W while awake", p->channel.name);
        p->told_zero = true;
        return IPW_NO_VALUE;
    }
    p->last = v;
    return v;
}

static void probe_read(struct ipw_source *self, int64_t *values)
{
    struct probe_source *s = (struct probe_source *)self;

    for (size_t i = 0; i < s->list.n; i++)
        values[i] = read_probe(&s->list.items[i], self, &s->lost[i]);
}

static void probe_close(struct ipw_source *self)
{
    struct probe_source *s = (struct probe_source *)self;

    ipw_probe_release(&s->list);
    free(s->channels);
    free(s->lost);
    free(s);
}

static bool denied(const struct ipw_probe *p) { return p->errnum == EACCES || p->errnum == EPERM; }

/* Some kernels give every die of a package a zone over the same register, or two packages one.  Two
 * independent registers do not show the same 32 bits.  One register read twice within microseconds
 * does, unless it changed just then. */
static bool same_register(const struct ipw_probe *a, const struct ipw_probe *b)
{
    for (int i = 0; i < TWIN_READS; i++) {
        int64_t va = ipw_sysfs_read_fd(a->fd[0]), vb = ipw_sysfs_read_fd(b->fd[0]);
        if (va > 0 && va == vb) return true;
    }
    return false;
}

static bool is_summed_package(const struct probe_source *s, size_t i)
{
    const struct ipw_channel *c = &s->channels[i];

    return c->in_sum && c->scope == IPW_SCOPE_PACKAGE && c->kind == IPW_CHANNEL_COUNTER &&
           s->list.items[i].fd[0] >= 0;
}

static void drop_twins(struct probe_source *s)
{
    for (size_t i = 0; i < s->list.n; i++) {
        for (size_t k = i + 1; is_summed_package(s, i) && k < s->list.n; k++) {
            if (!is_summed_package(s, k) || !same_register(&s->list.items[i], &s->list.items[k]))
                continue;
            s->channels[k].in_sum = false;
            ipw_source_set_note(&s->source, "%.40s shows the same register as %.40s: counted once",
                                s->channels[k].name, s->channels[i].name);
        }
    }
}

void ipw_source_no_sum(struct ipw_source *source, struct ipw_channel *channels, size_t n,
                       enum ipw_domain domain, int errnum, const char *what, const char *remedy)
{
    struct ipw_source_missing *missing = &source->missing[domain];
    bool had = false;

    for (size_t i = 0; i < n; i++) {
        if (channels[i].domain != domain) continue;
        had |= channels[i].in_sum;
        channels[i].in_sum = false;
    }
    if (!had) return;
    missing->denied = errnum == EACCES || errnum == EPERM;
    snprintf(missing->text, sizeof missing->text, "%.80s: %s%s", what, strerror(errnum),
             missing->denied ? remedy : "");
    ipw_source_add_note(source, "no %s energy: %s", ipw_domain_name(domain), missing->text);
}

static void drop_partial_domains(struct probe_source *s)
{
    for (size_t i = 0; i < s->list.n; i++) {
        const struct ipw_probe *p = &s->list.items[i];

        if (p->errnum && s->channels[i].in_sum)
            ipw_source_no_sum(&s->source, s->channels, s->list.n, p->channel.domain, p->errnum,
                              p->path[0], " (as root: chmod a+r it)");
    }
}

static int refuse(const struct ipw_probe_list *list, struct ipw_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        if (!denied(&list->items[i])) continue;
        return ipw_fail(err, IPW_EPERM,
                        "%.300s is not readable: chmod a+r %s (as root), or run as root",
                        list->items[i].path[0], list->all[0] ? list->all : "it");
    }
    return ipw_fail_errno(err, list->items[0].errnum, "%.300s", list->items[0].path[0]);
}

int ipw_probe_source(struct ipw_source **out, const char *name, struct ipw_probe_list *list,
                     int64_t period_ns, const char *what, struct ipw_err *err)
{
    struct probe_source *s;
    size_t usable = 0;
    int rc;

    *out = NULL;
    for (size_t i = 0; i < list->n; i++) {
        if (!open_probe(&list->items[i])) continue;
        ipw_sysfs_is_other(&list->items[i].id, list->items[i].fd[0]);
        usable++;
    }
    if (usable == 0) {
        rc = list->n ? refuse(list, err) : ipw_fail(err, IPW_EUNSUPPORTED, "%s", what);
        ipw_probe_release(list);
        return rc;
    }
    s = ipw_calloc(1, sizeof *s);
    s->list = *list;
    *list = (struct ipw_probe_list){0};
    s->channels = ipw_calloc(s->list.n, sizeof *s->channels);
    for (size_t i = 0; i < s->list.n; i++) {
        s->channels[i] = s->list.items[i].channel;
        ipw_channel_unique(s->channels, i, i);
    }
    s->source.name = name;
    s->source.read = probe_read;
    s->source.close = probe_close;
    s->source.now = ipw_now_ns;
    s->source.period_ns = period_ns;
    s->source.channels = s->channels;
    s->source.n_channels = s->list.n;
    s->lost = ipw_calloc(s->list.n + 1, sizeof *s->lost);
    s->source.lost = s->lost;
    drop_twins(s);
    drop_partial_domains(s);
    *out = &s->source;
    return 0;
}
