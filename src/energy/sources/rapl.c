/* The powercap tree as a source: see rapl.h for how zones are found. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/rapl.h"
#include "energy/sources/sysfs.h"

#define PERIOD_NS  IPW_NS_PER_MS
#define REOPEN_NS  IPW_NS_PER_S
#define TWIN_READS 10

struct rapl {
    struct ipw_source source;
    struct rapl_zone *zones;
    struct ipw_channel *channels;
    bool *lost; /* one for each zone */
    size_t n;
};

static void open_zone(struct rapl_zone *z)
{
    char path[PATH_MAX + 16];

    if (z->fd >= 0) close(z->fd);
    snprintf(path, sizeof path, "%s/energy_uj", z->path);
    z->fd = open(path, O_RDONLY | O_CLOEXEC);
    z->errnum = z->fd < 0 ? errno : 0;
}

/* Opens a failed zone again, at most once per second.  The zone may have vanished and come back (a
 * processor was taken offline), and then the old descriptor never reads again.  The zone under its
 * name is then another one.  Its first reading comes a second later, so that the loss shows even if
 * single readings are dropped. */
static int64_t reread(struct rapl_zone *z, int64_t now, bool *lost)
{
    if (now < z->retry_ns) return IPW_NO_VALUE;
    z->retry_ns = now + REOPEN_NS;
    open_zone(z);
    if (z->fd < 0) {
        *lost |= z->errnum == ENOENT || z->errnum == ENODEV;
        return IPW_NO_VALUE;
    }
    if (ipw_sysfs_is_other(&z->file, z->fd)) {
        *lost = true;
        return IPW_NO_VALUE;
    }
    return ipw_sysfs_read_fd(z->fd);
}

static void rapl_read(struct ipw_source *self, int64_t *values)
{
    struct rapl *r = (struct rapl *)self;

    for (size_t i = 0; i < r->n; i++) {
        struct rapl_zone *z = &r->zones[i];
        bool wait = r->lost[i] && self->now() < z->retry_ns;

        values[i] = z->fd < 0 || wait ? IPW_NO_VALUE : ipw_sysfs_read_fd(z->fd);
        if (values[i] == IPW_NO_VALUE) values[i] = reread(z, self->now(), &r->lost[i]);
        if (values[i] == IPW_NO_VALUE) continue;
        values[i] = ipw_rapl_true_uj(z, values[i]);
        r->lost[i] = false;
    }
}

static void rapl_close(struct ipw_source *self)
{
    struct rapl *r = (struct rapl *)self;

    for (size_t i = 0; i < r->n; i++) {
        if (r->zones[i].fd >= 0) close(r->zones[i].fd);
    }
    free(r->zones);
    free(r->channels);
    free(r->lost);
    free(r);
}

/* Some kernels give every die of a package a zone over the same register, or two packages one.  Two
 * independent registers do not show the same 32 bits.  One register read twice within microseconds
 * does, unless it changed just then. */
static bool same_register(const struct rapl_zone *a, const struct rapl_zone *b)
{
    for (int i = 0; i < TWIN_READS; i++) {
        int64_t va = ipw_sysfs_read_fd(a->fd), vb = ipw_sysfs_read_fd(b->fd);
        if (va > 0 && va == vb) return true;
    }
    return false;
}

static bool is_summed_package(const struct rapl_zone *z)
{
    return z->channel.in_sum && z->fd >= 0 && z->channel.scope == IPW_SCOPE_PACKAGE;
}

static void drop_twins(struct rapl *r)
{
    for (size_t i = 0; i < r->n; i++) {
        for (size_t k = i + 1; is_summed_package(&r->zones[i]) && k < r->n; k++) {
            if (!is_summed_package(&r->zones[k]) || !same_register(&r->zones[i], &r->zones[k]))
                continue;
            r->zones[k].channel.in_sum = false;
            ipw_source_set_note(&r->source,
                                "%.40s shows the same register as "
                                "%.40s: counted once",
                                r->zones[k].name, r->zones[i].name);
        }
    }
}

/* If a part of a domain cannot be read, the domain has no sum: a partial sum would pass for the
 * whole. */
static void drop_partial_domains(struct rapl *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct rapl_zone *z = &r->zones[i];
        enum ipw_domain domain = z->channel.domain;
        struct ipw_source_missing *missing;

        if (!z->channel.in_sum || z->fd >= 0) continue;
        for (size_t k = 0; k < r->n; k++) {
            if (r->zones[k].channel.domain == domain) r->zones[k].channel.in_sum = false;
        }
        missing = &r->source.missing[domain];
        missing->denied = z->errnum == EACCES || z->errnum == EPERM;
        snprintf(missing->text, sizeof missing->text, "%.32s/energy_uj: %s%s", z->id,
                 strerror(z->errnum), z->errnum == EACCES ? " (as root: chmod a+r it)" : "");
        ipw_source_set_note(&r->source, "no %s energy: %s", ipw_domain_name(domain), missing->text);
    }
}

static int refuse(const struct rapl *r, const char *root, struct ipw_err *err)
{
    const struct rapl_zone *z = NULL;

    for (size_t i = 0; i < r->n && !z; i++) {
        if (r->zones[i].errnum == EACCES || r->zones[i].errnum == EPERM) z = &r->zones[i];
    }
    if (z) {
        return ipw_fail(err, IPW_EPERM,
                        "%.180s/energy_uj is not readable: chmod a+r %.120s/intel-rapl*/energy_uj "
                        "(as root), or run as root",
                        z->path, root);
    }
    return ipw_fail_errno(err, r->zones[0].errnum, "%.300s/energy_uj", r->zones[0].path);
}

int ipw_rapl_open(struct ipw_source **out, const char *root, struct ipw_err *err)
{
    struct rapl *r;
    size_t open_zones = 0;
    int rc;

    *out = NULL;
    r = ipw_calloc(1, sizeof *r);
    if (ipw_rapl_scan(&r->zones, &r->n, root) < 0) {
        rc = errno == ENOENT || errno == ENOTDIR
                 ? ipw_fail(err, IPW_EUNSUPPORTED, "no %.300s: no RAPL here", root)
                 : ipw_fail_errno(err, errno, "%.300s", root);
        rapl_close(&r->source);
        return rc;
    }
    for (size_t i = 0; i < r->n; i++) {
        open_zone(&r->zones[i]);
        if (r->zones[i].fd >= 0) ipw_sysfs_is_other(&r->zones[i].file, r->zones[i].fd);
        open_zones += r->zones[i].fd >= 0;
    }
    if (open_zones == 0) {
        rc = r->n ? refuse(r, root, err)
                  : ipw_fail(err, IPW_EUNSUPPORTED, "no intel-rapl zone in %.300s", root);
        rapl_close(&r->source);
        return rc;
    }
    r->source.name = "rapl";
    r->source.read = rapl_read;
    r->source.close = rapl_close;
    r->source.now = ipw_now_ns;
    r->source.period_ns = PERIOD_NS;
    drop_twins(r);
    drop_partial_domains(r);
    r->channels = ipw_calloc(r->n, sizeof *r->channels);
    for (size_t i = 0; i < r->n; i++) r->channels[i] = r->zones[i].channel;
    r->source.channels = r->channels;
    r->source.n_channels = r->n;
    r->lost = ipw_calloc(r->n + 1, sizeof *r->lost);
    r->source.lost = r->lost;
    *out = &r->source;
    return 0;
}
