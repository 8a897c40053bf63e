#include "energy/sources/rapl.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/sysfs.h"

#define PERIOD_NS     IPW_NS_PER_MS
#define LEAST_UNIT    10 /* 1 / 2^10 J; coarser units are whole nanojoules up to 2^9 */
#define MOST_UNIT     24
#define MAX_ZONES     256
#define MAX_DEPTH     3 /* intel-rapl / intel-rapl:0 / intel-rapl:0:0 */
#define UNKNOWN_MAX_W 1000
#define MOST_MAX_W    4000

/* The number of indices in "intel-rapl:1", "intel-rapl:a:0", "intel-rapl-mmio:0"; 0: not a zone. */
static int zone_depth(const char *id, bool *mmio)
{
    const char *p = id;
    int depth = 0;

    if (strncmp(p, "intel-rapl", 10)) return 0;
    p += 10;
    *mmio = !strncmp(p, "-mmio", 5);
    while (*p && *p != ':') p++;
    while (*p == ':') {
        size_t digits = strspn(++p, "0123456789abcdefABCDEF");
        if (!digits) return 0;
        p += digits;
        depth++;
    }
    return *p ? 0 : depth;
}

/* The range shows the unit: it is 2^32 - 1 counts.  The register holds 1 / 2^k joules per count. */
static void find_unit(struct rapl_zone *z, int64_t max_range_uj)
{
    const int64_t counts = INT64_C(0xffffffff);
    int64_t nj = max_range_uj > 0 && max_range_uj < INT64_C(1) << 50
                     ? (max_range_uj * 1000 + counts / 2) / counts
                     : 0;

    for (int k = LEAST_UNIT; k <= MOST_UNIT && nj; k++) {
        if (INT64_C(1000000000) >> k != nj || max_range_uj != counts * nj / 1000) continue;
        z->unit_shift = k;
        z->unit_nj = nj;
    }
}

/* The register has 32 bits of `unit`; the range is one unit less than its modulus. */
static int64_t modulus_of(int64_t max_range_uj)
{
    int64_t lsb;

    if (max_range_uj <= 0 || max_range_uj > INT64_MAX / 2) return 0;
    lsb = (max_range_uj + INT64_C(0x7fffffff)) / INT64_C(0xffffffff);
    return max_range_uj + (lsb > 0 ? lsb : 1);
}

/* A generous highest power of the zone: twice its highest limit, for bursts; 0: it names no
 * limit. */
static int64_t max_w_of(const char *dir)
{
    static const char *const kinds[] = {"max_power_uw", "power_limit_uw"};
    int64_t most = 0;

    for (int c = 0; c < 3; c++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            char file[64];
            int64_t uw;
            snprintf(file, sizeof file, "constraint_%d_%s", c, kinds[k]);
            uw = ipw_sysfs_number(dir, file);
            if (uw > most) most = uw;
        }
    }
    most = most / 1000000 * 2;
    if (most <= 0) return 0;
    return most < 200 ? 200 : most > MOST_MAX_W ? MOST_MAX_W : most;
}

static bool is_package(const char *name) { return !strncmp(name, "package-", 8); }

/* "psys"; since Linux 5.17 a further package has "platform-1". */
static bool is_platform(const char *name)
{
    return !strcmp(name, "psys") || !strncmp(name, "platform-", 9);
}

static enum ipw_scope scope_of(const char *name)
{
    if (!strcmp(name, "dram")) return IPW_SCOPE_DRAM;
    if (!strcmp(name, "core")) return IPW_SCOPE_CORE;
    if (!strcmp(name, "uncore")) return IPW_SCOPE_UNCORE;
    if (is_platform(name)) return IPW_SCOPE_PLATFORM;
    return is_package(name) ? IPW_SCOPE_PACKAGE : IPW_SCOPE_RAIL;
}

static void describe(struct rapl_zone *z)
{
    struct ipw_channel *c = &z->channel;
    int64_t range = ipw_sysfs_number(z->path, "max_energy_range_uj");

    *c = (struct ipw_channel){.kind = IPW_CHANNEL_COUNTER,
                              .domain = IPW_DOMAIN_CPU,
                              .modulus_uj = modulus_of(range),
                              .max_w = max_w_of(z->path),
                              .period_ns = PERIOD_NS,
                              .scope = scope_of(z->name),
                              .unit = "uJ",
                              .method = "powercap energy_uj"};
    find_unit(z, range);
    if (z->unit_nj) c->modulus_uj = (INT64_C(1000000) << 32) >> z->unit_shift;
    if (!strcmp(z->name, "dram")) c->domain = IPW_DOMAIN_DRAM;
    if (is_platform(z->name)) c->domain = IPW_DOMAIN_MACHINE;
    snprintf(c->device, sizeof c->device, "%s", z->id);
}

static void add_zone(struct rapl_zone **zones, size_t *n, size_t *cap, const char *dir,
                     const char *id, bool mmio, bool sub)
{
    struct rapl_zone *z;

    for (size_t i = 0; i < *n; i++) {
        if (!strcmp((*zones)[i].id, id)) return; /* a link and the folder that it leads to */
    }
    if (*n >= MAX_ZONES || strlen(id) >= sizeof z->id) return;
    IPW_GROW(*zones, *cap, *n + 1);
    z = *zones + *n;
    *z = (struct rapl_zone){.mmio = mmio, .sub = sub};
    memcpy(z->id, id, strlen(id) + 1);
    if (snprintf(z->path, sizeof z->path, "%s", dir) >= (int)sizeof z->path) return;
    if (!ipw_sysfs_line(z->name, sizeof z->name, dir, "name")) return;
    describe(z);
    (*n)++;
}

static int scan(struct rapl_zone **zones, size_t *n, size_t *cap, const char *dir, int depth)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    if (!d) return -1;
    while ((e = readdir(d))) {
        bool mmio = false;
        int indices = zone_depth(e->d_name, &mmio);
        char path[PATH_MAX];

        if (strncmp(e->d_name, "intel-rapl", 10)) continue;
        if (snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path) continue;
        if (indices > 0) add_zone(zones, n, cap, path, e->d_name, mmio, indices > 1);
        if (depth < MAX_DEPTH) scan(zones, n, cap, path, depth + 1);
    }
    closedir(d);
    return 0;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct rapl_zone *)a)->id, ((const struct rapl_zone *)b)->id);
}

/* The zone that contains `z`. */
static const struct rapl_zone *parent_of(const struct rapl_zone *zones, size_t n,
                                         const struct rapl_zone *z)
{
    size_t len = (size_t)(strrchr(z->id, ':') - z->id);

    for (size_t i = 0; i < n && z->sub; i++) {
        if (strlen(zones[i].id) == len && !memcmp(zones[i].id, z->id, len)) return &zones[i];
    }
    return NULL;
}

/* Most memory zones name no limit.  Cores and uncore are inside their package.  The memory beside
 * it draws less than twice the package's limit on every known machine (a socket of 350 W has 24
 * modules of at most 20 W).  The platform may include several sockets and GPUs.  A zone's observed
 * power bounds nothing, because the next second may differ. */
static void bound_unlimited(struct rapl_zone *zones, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct rapl_zone *parent = parent_of(zones, n, &zones[i]);

        if (!zones[i].channel.max_w && parent) zones[i].channel.max_w = parent->channel.max_w;
    }
    for (size_t i = 0; i < n; i++) {
        struct ipw_channel *c = &zones[i].channel;

        if (!c->max_w) c->max_w = c->scope == IPW_SCOPE_PLATFORM ? MOST_MAX_W : UNKNOWN_MAX_W;
    }
}

/* "package-0", "package-0/dram", "mmio/package-0". */
static void name_channels(struct rapl_zone *zones, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rapl_zone *z = &zones[i];
        const struct rapl_zone *in = parent_of(zones, n, z);

        snprintf(z->channel.name, sizeof z->channel.name - 16, "%s%s%s%s", z->mmio ? "mmio/" : "",
                 in ? in->name : "", in ? "/" : "", z->name);
    }
}

/* Package and dram make up the processor's energy.  core and uncore are inside the package, psys
 * contains it, and the mmio zone shows the package a second time. */
static void choose_sum(struct rapl_zone *zones, size_t n)
{
    bool msr_package = false;

    for (size_t i = 0; i < n; i++) {
        if (!zones[i].mmio && is_package(zones[i].name)) msr_package = true;
    }
    for (size_t i = 0; i < n; i++) {
        struct rapl_zone *z = &zones[i];
        z->channel.in_sum =
            (is_package(z->name) || !strcmp(z->name, "dram")) && (!z->mmio || !msr_package);
    }
}

int ipw_rapl_scan(struct rapl_zone **zones, size_t *n, const char *root)
{
    size_t cap = 0;

    *zones = NULL;
    *n = 0;
    if (scan(zones, n, &cap, root, 1) < 0) return -1;
    if (*n) qsort(*zones, *n, sizeof **zones, by_id);
    name_channels(*zones, *n);
    bound_unlimited(*zones, *n);
    choose_sum(*zones, *n);
    return 0;
}

void ipw_rapl_limits(struct ipw_channel *channels, size_t n, const char *root)
{
    struct rapl_zone *zones;
    size_t n_zones;

    if (ipw_rapl_scan(&zones, &n_zones, root) < 0) return;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n_zones; k++) {
            if (!strcmp(zones[k].channel.name, channels[i].name))
                channels[i].max_w = zones[k].channel.max_w;
        }
    }
    free(zones);
}

int ipw_rapl_open(struct ipw_source **out, const struct ipw_source_place *place, const char *name,
                  struct ipw_err *err)
{
    const char *root = place->powercap;
    struct ipw_probe_list list = {0};
    struct rapl_zone *zones;
    char path[PATH_MAX + 16], what[400];
    size_t n;

    *out = NULL;
    if (ipw_rapl_scan(&zones, &n, root) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? ipw_fail(err, IPW_EUNSUPPORTED, "no %.300s: no RAPL here", root)
                   : ipw_fail_errno(err, errno, "%.300s", root);
    for (size_t i = 0; i < n; i++) {
        const struct rapl_zone *z = &zones[i];
        struct ipw_probe *p;

        snprintf(path, sizeof path, "%s/energy_uj", z->path);
        p = ipw_probe_add(&list, IPW_CHANNEL_COUNTER, path, NULL, NULL, 1);
        p->channel = z->channel;
        if (!z->unit_nj) continue;
        p->multiplier = 1000000000;
        p->divisor = z->unit_nj << z->unit_shift;
    }
    free(zones);
    snprintf(what, sizeof what, "no intel-rapl zone in %.300s", root);
    snprintf(list.all, sizeof list.all, "%.120s/intel-rapl*/energy_uj", root);
    return ipw_probe_source(out, name, &list, PERIOD_NS, what, err);
}
