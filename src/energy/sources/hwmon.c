#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/hwmon_priv.h"

static const char default_root[] = "/sys/class/hwmon";

const char *ipw_hwmon_root(const struct ipw_hwmon_options *options)
{
    return options && options->root ? options->root : default_root;
}

/* Stores the name of the device that the link `device` leads to. */
static void find_parent(struct hwmon_dev *dev)
{
    char path[HWMON_PATH], *real, *base;

    snprintf(path, sizeof path, "%s/device", dev->dir);
    real = realpath(path, NULL);
    if (!real) return;
    base = strrchr(real, '/');
    base = base ? base + 1 : real;
    if (strlen(base) < sizeof dev->parent) memcpy(dev->parent, base, strlen(base) + 1);
    free(real);
    snprintf(dev->status, sizeof dev->status, "%s/device/power/runtime_status", dev->dir);
    if (access(dev->status, F_OK)) dev->status[0] = '\0';
}

struct hwmon_dev *ipw_hwmon_list(const char *root, size_t *n)
{
    char **names = ipw_sysfs_list(root, "hwmon");
    struct hwmon_dev *list = NULL;
    size_t cap = 0;

    *n = 0;
    for (size_t i = 0; names && names[i]; i++) {
        struct hwmon_dev *dev;

        IPW_GROW(list, cap, *n + 1);
        dev = &list[*n];
        *dev = (struct hwmon_dev){0};
        if (snprintf(dev->dir, sizeof dev->dir, "%s/%s", root, names[i]) >= (int)sizeof dev->dir) {
            continue;
        }
        if (!ipw_sysfs_line(dev->name, sizeof dev->name, dev->dir, "name") &&
            !ipw_sysfs_line(dev->name, sizeof dev->name, dev->dir, "device/name")) {
            continue;
        }
        find_parent(dev);
        ++*n;
    }
    ipw_sysfs_free_list(names);
    return list;
}

bool ipw_hwmon_path(char out[HWMON_PATH], const struct hwmon_dev *dev, const char *file)
{
    snprintf(out, HWMON_PATH, "%s/%s", dev->dir, file);
    if (access(out, F_OK) == 0) return true;
    snprintf(out, HWMON_PATH, "%s/device/%s", dev->dir, file);
    return access(out, F_OK) == 0;
}

bool ipw_hwmon_line(char *out, size_t size, const struct hwmon_dev *dev, const char *file)
{
    char path[64];

    if (ipw_sysfs_line(out, size, dev->dir, file)) return true;
    snprintf(path, sizeof path, "device/%.48s", file);
    return ipw_sysfs_line(out, size, dev->dir, path);
}

int64_t ipw_hwmon_number(const struct hwmon_dev *dev, const char *file)
{
    char text[32];

    return ipw_hwmon_line(text, sizeof text, dev, file) ? ipw_sysfs_parse(text, strlen(text)) : -1;
}

int64_t ipw_hwmon_max_w(const struct hwmon_dev *dev, int input)
{
    static const char *const kinds[] = {"cap_max", "cap", "max", "rated_max", "crit"};
    int64_t most = 0;

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char file[48];
        int64_t uw;
        snprintf(file, sizeof file, "power%d_%s", input, kinds[k]);
        uw = ipw_hwmon_number(dev, file);
        /* Some drivers name the supply's maximum, or all ones, which is no limit. */
        if (uw > most && uw < INT64_C(4000000000)) most = uw;
    }
    return most > 0 ? (most / 1000 * 13 / 10 + 999) / 1000 : UNKNOWN_MAX_W;
}

struct ipw_probe *ipw_hwmon_probe(struct ipw_probe_list *list, const struct hwmon_dev *dev,
                                  enum ipw_channel_kind kind, const char *file)
{
    char path[HWMON_PATH];
    struct ipw_probe *p;

    if (!ipw_hwmon_path(path, dev, file)) return NULL;
    p = ipw_probe_add(list, kind, path, NULL, dev->status[0] ? dev->status : NULL,
                      kind == IPW_CHANNEL_COUNTER ? 1 : 1000);
    p->home = ipw_strdup(dev->dir);
    snprintf(p->channel.method, sizeof p->channel.method, "hwmon %.24s", file);
    snprintf(p->channel.device, sizeof p->channel.device, "%s",
             dev->parent[0] ? dev->parent : dev->name);
    p->channel.max_w = UNKNOWN_MAX_W;
    return p;
}

struct ipw_probe *ipw_hwmon_power(struct ipw_probe_list *list, const struct hwmon_dev *dev, int n)
{
    char file[32];
    struct ipw_probe *p;

    snprintf(file, sizeof file, "power%d_average", n);
    p = ipw_hwmon_probe(list, dev, IPW_CHANNEL_GAUGE, file);
    if (p) return p;
    snprintf(file, sizeof file, "power%d_input", n);
    return ipw_hwmon_probe(list, dev, IPW_CHANNEL_GAUGE, file);
}
