/* energy/sources/rapl.h: the powercap tree: its zones as a source, and their limits for others.
 *
 * The zones of a tree are listed with their names, paths and channels; the source is made of probes
 * (sysfs.h).  perf.c and cpu_model.c use the packages' power limits. */
#ifndef IPW_ENERGY_SOURCES_RAPL_H
#define IPW_ENERGY_SOURCES_RAPL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "energy/source.h"

struct rapl_zone {
    char id[32];         /* "intel-rapl:a:1": the folder's name */
    char name[32];       /* "package-0", "dram", ...: the content of its name file */
    char path[PATH_MAX]; /* path of the folder */
    bool mmio, sub;      /* intel-rapl-mmio; a zone inside another zone */
    /* The kernel shows counts times a unit that it truncated to whole nanojoules (15258 for 1e9 /
     * 2^16, intel_rapl_common.c): up to 52 millionths too low.  unit_shift is that 16, unit_nj the
     * truncated unit; 0: this zone's unit was not truncated. */
    int unit_shift;
    int64_t unit_nj;
    struct ipw_channel channel;
};

/* Returns 0 with *out set; or IPW_EUNSUPPORTED (nothing found), IPW_EPERM (found but unreadable:
 * the message has the remedy), other codes; then *out is NULL. */
int ipw_rapl_open(struct ipw_source **out, const struct ipw_source_place *place, const char *name,
                  struct ipw_err *err);

/* Lists the zones, each once, in the order of their ids; `*n` 0 if there are none.  The caller
 * frees the array.  -1 if `root` cannot be listed (errno says why). */
int ipw_rapl_scan(struct rapl_zone **zones, size_t *n, const char *root);
/* Gives each channel the max_w of the zone with its name, if there is one: users who may not read
 * the energy may still read the limits. */
void ipw_rapl_limits(struct ipw_channel *channels, size_t n, const char *root);

#endif
