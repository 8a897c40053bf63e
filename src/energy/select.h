/* energy/select.h: which sensors are opened.
 *
 * A selection is a list of words: "auto" (every kind this machine may have), "none", names of kinds
 * ("rapl", "nvml"), and the kinds that must be told what to read: "prometheus=URL", "log=FILE",
 * "exec=COMMAND".  One value may hold several words with commas between them; the three that take
 * an argument take all the rest of their value, commas too.  Everything that ties sources to the
 * machine is in the options, so that tests stand in for hardware. */
#ifndef IPW_ENERGY_SELECT_H
#define IPW_ENERGY_SELECT_H

#include "energy/source.h"
#include "energy/sources/prometheus.h"

struct ipw_perf_options; /* energy/sources/perf.h */

struct ipw_source_options {
    const char *const *telemetry; /* values, NULL at the end; NULL: "auto" */
    /* UUIDs, NVIDIA's indices, bus ids or channel names ("amdgpu0") with commas between; NULL: all.
     * Each word goes to the source that shows such a device; one that none shows is an error. */
    const char *gpu;
    /* NULL: $IPW_SYSFS_ROOT, else /sys; $IPW_POWERCAP_ROOT, else class/powercap below that;
     * $IPW_NVML_LIBRARY, else libnvidia-ml.so.1 */
    const char *sysfs_root, *powercap_root, *nvml_library;
    const char *proc_root; /* NULL: $IPW_PROC_ROOT, else /proc */
    int64_t (*now)(void);  /* the sources' clock; NULL: ipw_now_ns */
    /* How perf's events are opened (its roots are those above); NULL: as sources/perf.h says. */
    const struct ipw_perf_options *perf;
    struct ipw_page_fetch fetch; /* needed where `telemetry` may name "prometheus=URL" */
};

/* Opens what was selected.  A source that is not there is a verdict, not an error (`named` tells
 * that somebody asked for it by name); IPW_EINVAL for a word that means nothing (the message has the
 * nearest that does) or a GPU that no source shows, and the set is empty then. */
int ipw_source_set_open_with(struct ipw_source_set *set, const struct ipw_source_options *options,
                             struct ipw_err *err);
/* Looks for every kind of source on this machine ("auto"), which cannot fail. */
void ipw_source_set_open(struct ipw_source_set *set);
/* Adds an estimate (sources/cpu_model.h) where no sensor of this machine's processors, nor of all of
 * the machine, is in a sum.  doubted[d]: the sum of that domain is not believed, and counts as none.
 * True: it did. */
bool ipw_source_set_estimate(struct ipw_source_set *set, const struct ipw_source_options *options,
                             const char *const doubted[IPW_DOMAIN_COUNT]);
/* Does the selection say to read nothing at all? */
bool ipw_source_select_none(const char *const *telemetry);
/* The names of all kinds, NULL at the end; those that take an argument end in "=". */
const char *const *ipw_source_kinds(void);

#endif
