/* Power and energy of all other drivers; see hwmon.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "energy/sources/hwmon_priv.h"

#define PERIOD_NS (100 * IPW_NS_PER_MS)

static bool is_placed(const char *name)
{
    static const char *const names[] = {"amdgpu", "xe", "i915", "power_meter", "ina3221"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(name, names[i])) return true;
    }
    return !strncmp(name, "i915_gt", 7);
}

static void add_other(struct ipw_probe_list *list, const struct hwmon_dev *dev, const char *kind,
                      int i)
{
    struct ipw_probe *p;
    char file[32], label[40];

    if (kind[0] == 'p') {
        p = ipw_hwmon_power(list, dev, i);
    } else {
        snprintf(file, sizeof file, "energy%d_input", i);
        p = ipw_hwmon_probe(list, dev, IPW_CHANNEL_COUNTER, file);
    }
    if (!p) return;
    snprintf(file, sizeof file, "%s%d_label", kind, i);
    if (!ipw_hwmon_line(label, sizeof label, dev, file)) {
        snprintf(label, sizeof label, "%s%d", kind, i);
    }
    snprintf(p->channel.name, sizeof p->channel.name, "%.31s/%.24s", dev->name, label);
    /* Some device of the machine, or around it: not in any sum. */
    p->channel.domain = IPW_DOMAIN_MACHINE;
    p->channel.scope = IPW_SCOPE_DEVICE;
}

/* Out of the kernel since 5.13, but still used.  EsocketN are the packages; they include the
 * EcoreNNN. */
static void add_amd_energy(struct ipw_probe_list *list, const struct hwmon_dev *dev)
{
    for (int i = 1; i <= 1024; i++) {
        char file[32], label[32];
        struct ipw_probe *p;
        unsigned socket;
        int end = 0;

        snprintf(file, sizeof file, "energy%d_label", i);
        if (!ipw_hwmon_line(label, sizeof label, dev, file)) break;
        if (sscanf(label, "Esocket%u%n", &socket, &end) != 1 || label[end]) continue;
        snprintf(file, sizeof file, "energy%d_input", i);
        p = ipw_hwmon_probe(list, dev, IPW_CHANNEL_COUNTER, file);
        if (!p) continue;
        snprintf(p->channel.name, sizeof p->channel.name, "package-%u", socket);
        snprintf(p->channel.device, sizeof p->channel.device, "%s", label);
        p->channel.domain = IPW_DOMAIN_CPU;
        p->channel.scope = IPW_SCOPE_PACKAGE;
        p->channel.in_sum = true;
        p->channel.period_ns = IPW_NS_PER_MS;
    }
}

int ipw_hwmon_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                   struct ipw_err *err)
{
    const char *root = ipw_hwmon_root(options);
    struct ipw_probe_list list = {0};
    char what[400];
    size_t n;
    struct hwmon_dev *devs = ipw_hwmon_list(root, &n);

    for (size_t i = 0; i < n; i++) {
        if (is_placed(devs[i].name)) continue;
        if (!strcmp(devs[i].name, "amd_energy")) {
            add_amd_energy(&list, &devs[i]);
            continue;
        }
        for (int k = 1; k <= HWMON_INPUTS; k++) add_other(&list, &devs[i], "energy", k);
        for (int k = 1; k <= HWMON_INPUTS; k++) add_other(&list, &devs[i], "power", k);
    }
    free(devs);
    snprintf(what, sizeof what, "no other power or energy file in %.300s", root);
    return ipw_probe_source(out, "hwmon", &list, PERIOD_NS, what, err);
}
