/* energy/sources/rapl_priv.h: finding and judging powercap zones, apart from reading them.
 *
 * rapl_scan.c walks a powercap tree into a list of zones; rapl.c opens, reads and closes them; perf.c
 * asks what they can draw.  For nobody else. */
#ifndef IPW_ENERGY_SOURCES_RAPL_PRIV_H
#define IPW_ENERGY_SOURCES_RAPL_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "energy/source.h"
#include "energy/sources/sysfs.h"

struct rapl_zone {
    char id[32];         /* "intel-rapl:a:1": the folder's name */
    char name[32];       /* "package-0", "dram", ...: the content of its name file */
    char path[PATH_MAX]; /* of the folder */
    bool mmio, sub;      /* intel-rapl-mmio; a zone inside another */
    int fd;              /* of energy_uj; -1: not open */
    int errnum;          /* why not */
    int64_t retry_ns;    /* not to be opened again before */
    struct ipw_sysfs_id file;
    struct ipw_channel channel;
};

/* Zones by id, each once, in the order of their ids; `*n` 0 when there are none.  The caller frees
 * the array.  -1 when `root` cannot be listed (errno says why). */
int ipw_rapl_scan(struct rapl_zone **zones, size_t *n, const char *root);
/* Gives each channel the max_w of the zone of its name, where there is one: limits may be read by
 * users who may not read the energy. */
void ipw_rapl_limits(struct ipw_channel *channels, size_t n, const char *root);

#endif
