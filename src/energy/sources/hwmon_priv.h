/* energy/sources/hwmon_priv.h: lists /sys/class/hwmon.
 *
 * hwmon.c lists the devices and finds their files; hwmon_gpu.c, hwmon_meter.c and hwmon_other.c
 * interpret the files of each driver.  Internal to them. */
#ifndef IPW_ENERGY_SOURCES_HWMON_PRIV_H
#define IPW_ENERGY_SOURCES_HWMON_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "energy/sources/hwmon.h"
#include "energy/sources/sysfs.h"

#define HWMON_PATH    (PATH_MAX + 64)
#define HWMON_INPUTS  32   /* energy1_input ... energy32_input */
#define UNKNOWN_MAX_W 1000 /* if the driver names no limit */

struct hwmon_dev {
    char dir[PATH_MAX];
    char name[32];           /* name of the driver */
    char parent[64];         /* the device's own name: its bus id, "1-0040", "ACPI000D:00"; or "" */
    char status[HWMON_PATH]; /* path of its runtime_status; "" if it has none */
};

/* All devices in natural order; the caller frees the array.  NULL: there are none. */
struct hwmon_dev *ipw_hwmon_list(const char *root, size_t *n);
/* Finds a device's file, in its own folder or (older drivers) in its parent device's; false if it
 * does not exist. */
bool ipw_hwmon_path(char out[HWMON_PATH], const struct hwmon_dev *dev, const char *file);
bool ipw_hwmon_line(char *out, size_t size, const struct hwmon_dev *dev, const char *file);
int64_t ipw_hwmon_number(const struct hwmon_dev *dev, const char *file);
/* 1.3 times the highest limit that the driver names; UNKNOWN_MAX_W without one. */
int64_t ipw_hwmon_max_w(const struct hwmon_dev *dev, int input);
/* Adds a probe of a file such as "power1_average" or "energy1_input"; NULL if the file does not
 * exist.  Microwatts, or microjoules. */
struct ipw_probe *ipw_hwmon_probe(struct ipw_probe_list *list, const struct hwmon_dev *dev,
                                  enum ipw_channel_kind kind, const char *file);
/* Adds the first of powerN_average, powerN_input that exists. */
struct ipw_probe *ipw_hwmon_power(struct ipw_probe_list *list, const struct hwmon_dev *dev, int n);
const char *ipw_hwmon_root(const struct ipw_hwmon_options *options);

#endif
