/* energy/select.h: which sensors are opened.
 *
 * A selection is a list of words: "auto" (every kind that this machine may have), "none", names of
 * kinds ("rapl", "nvml"), and the kinds with an argument: "stream=URL", "prometheus=URL",
 * "log=FILE", "exec=COMMAND".  One value may hold several words with commas between them; a word
 * with an argument takes the rest of its value, including commas.  All ties of sources to the
 * machine are in the options, so that tests can replace hardware. */
#ifndef IPW_ENERGY_SELECT_H
#define IPW_ENERGY_SELECT_H

#include "energy/source.h"
#include "energy/sources/prometheus.h"
#include "energy/sources/stream.h"

struct ipw_source_options {
    const char *const *telemetry; /* values, NULL-terminated; NULL: "auto" */
    /* UUIDs, NVIDIA's indices, bus ids or channel names ("amdgpu0"), separated by commas; NULL:
     * all.  Each word goes to the source that shows such a device; a word that matches no device is
     * an error. */
    const char *gpu;
    /* NULL: $IPW_SYSFS_ROOT, else /sys; $IPW_POWERCAP_ROOT, else class/powercap below that;
     * $IPW_NVML_LIBRARY, else libnvidia-ml.so.1 */
    const char *sysfs_root, *powercap_root, *nvml_library;
    const char *proc_root; /* NULL: $IPW_PROC_ROOT, else /proc */
    int64_t (*now)(void);  /* the sources' clock; NULL: ipw_now_ns */
    int (*open_event)(void *ud, uint32_t type, uint64_t config, int cpu); /* for tests */
    /* Needed if `telemetry` may name "prometheus=URL", and for "stream=URL" both. */
    struct ipw_page_fetch fetch;
    struct ipw_stream_link link;
    /* For ipw_source_set_estimate(); energy/source.h says what it makes. */
    int (*estimate)(struct ipw_buf *model, const struct ipw_buf *facts, struct ipw_err *err);
};

/* Opens the selected sources.  A missing source is a verdict, not an error (`named` tells that the
 * user asked for it by name).  IPW_EINVAL for an unknown word (the message suggests the nearest) or
 * a GPU that no source shows; the set is then empty. */
int ipw_source_set_open_with(struct ipw_source_set *set, const struct ipw_source_options *options,
                             struct ipw_err *err);
/* Looks for every kind of source on this machine ("auto"); cannot fail. */
void ipw_source_set_open(struct ipw_source_set *set);
/* Adds an estimate (sources/cpu_model.h) if no sensor of this machine's processors, or of the whole
 * machine, is in a sum.  doubted[d]: the sum of that domain is not believed and counts as missing.
 * True if it added one. */
bool ipw_source_set_estimate(struct ipw_source_set *set, const struct ipw_source_options *options,
                             const char *const doubted[IPW_DOMAIN_COUNT]);
/* Does the selection say to read no sensor? */
bool ipw_source_select_none(const char *const *telemetry);
/* The names of all kinds, NULL-terminated; those with an argument end in "=". */
const char *const *ipw_source_kinds(void);

#endif
