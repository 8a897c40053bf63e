/* energy/sources/hwmon.h: power and energy files of /sys/class/hwmon.
 *
 * One tree, several sources, so that a slow bus does not delay a fast one and each source says
 * which part of the machine it covers.  A device is found by its driver's name, never by its
 * number, which changes from boot to boot.
 *   amdgpu      AMD GPUs: energy1_input if it exists, with power1_average or power1_input beside or
 *               instead of it ("amdgpu0", "amdgpu0/power").  A processor with graphics (it shows
 *               vddnb) reports its package's power, which stays out of the sum.
 *   intel_gpu   Intel GPUs (xe, i915): the card's energy counter ("intelgpu0"), the package's and
 *               the tiles' beside it.
 *   power_meter ACPI power meters: of the machine, or on NVIDIA Grace of its parts ("module-0",
 *               "grace-0", "cpu-0", "sysio-0").
 *   ina3221     the rails of a Jetson board, voltage times current; VDD_IN includes all others.
 *   hwmon       powerN and energyN of all other drivers.  Their place is unknown, so they are in no
 *               sum, except the sockets of amd_energy, which are the packages.
 * GPUs that sleep (runtime_status) are not woken: 0 W.  Missing readings (ENODATA, and the
 * 4294967295 of some meters) are no value. */
#ifndef IPW_ENERGY_SOURCES_HWMON_H
#define IPW_ENERGY_SOURCES_HWMON_H

#include "energy/source.h"

struct ipw_hwmon_options {
    const char *root; /* NULL: "/sys/class/hwmon" */
    /* amdgpu, intel_gpu: GPUs by bus id or by name ("amdgpu0"), separated by commas; words of other
     * kinds choose none.  NULL or "": all.  IPW_ENOTFOUND if no GPU matches. */
    const char *gpus;
};
/* The source of the GPU that a word of such a list names: "amdgpu", "intel_gpu", or NULL. */
const char *ipw_hwmon_gpu_kind(const char *word, const char *root);

/* `options` may be NULL. */
int ipw_amdgpu_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                    struct ipw_err *err);
int ipw_intel_gpu_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                       struct ipw_err *err);
int ipw_power_meter_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                         struct ipw_err *err);
int ipw_ina3221_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                     struct ipw_err *err);
int ipw_hwmon_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                   struct ipw_err *err);

#endif
