/* energy/sources/hwmon.h: power and energy files of /sys/class/hwmon.
 *
 * One tree, several sources, so that a slow bus does not delay a fast one and each says what it
 * covers.  A device is found by its driver's name, never by its number, which changes from boot to
 * boot.
 *   amdgpu      AMD boards: energy1_input where there is one, power1_average or power1_input beside
 *               or instead of it ("amdgpu0", "amdgpu0/power").  That of a processor with graphics
 *               (it shows vddnb) is the package's and stays out of the sum.
 *   intel_gpu   Intel boards (xe, i915): the card's energy counter ("intelgpu0"), the package's and
 *               the tiles' beside it.
 *   power_meter ACPI power meters: of the machine, or on NVIDIA Grace of its parts ("module-0",
 *               "grace-0", "cpu-0", "sysio-0").
 *   ina3221     the rails of a Jetson board, voltage times current; VDD_IN is all of it.
 *   hwmon       what is left: powerN and energyN of other drivers, which nobody can place: none is
 *               in a sum.  Except amd_energy, whose sockets are the packages.
 * Boards that sleep (runtime_status) are not woken: 0 W.  What is not there (ENODATA, and the
 * 4294967295 of some meters) is no value. */
#ifndef IPW_ENERGY_SOURCES_HWMON_H
#define IPW_ENERGY_SOURCES_HWMON_H

#include "energy/source.h"

struct ipw_hwmon_options {
    const char *root; /* NULL: "/sys/class/hwmon" */
    /* amdgpu, intel_gpu: boards by bus id or by name ("amdgpu0"), separated by commas; words of
     * other kinds choose none.  NULL or "": all.  IPW_ENOTFOUND when no board is meant. */
    const char *gpus;
};
/* Of which source is the board that a word of such a list means: "amdgpu", "intel_gpu", or NULL. */
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
