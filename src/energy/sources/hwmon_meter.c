/* ACPI power meters, including NVIDIA Grace's, and the INA3221 of Jetson boards; see hwmon.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/hwmon_priv.h"

#define METER_PERIOD_NS (50 * IPW_NS_PER_MS)
#define RAILS_PERIOD_NS (20 * IPW_NS_PER_MS) /* two transfers per rail on a slow bus */

/* The firmware's label distinguishes Grace's meters: "Grace Power Socket 0".  Grace includes its
 * cores (CPU), the rest of the chip (SysIO) and its memory; Module also includes the GPU. */
static bool place_grace(struct ipw_channel *c, const char *label)
{
    static const struct {
        const char *word, *name;
        enum ipw_domain domain;
        enum ipw_scope scope;
    } parts[] = {
        {"Module", "module", IPW_DOMAIN_MACHINE, IPW_SCOPE_MODULE},
        {"Grace", "grace", IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE},
        {"CPU", "cpu", IPW_DOMAIN_CPU, IPW_SCOPE_CORE},
        {"SysIO", "sysio", IPW_DOMAIN_CPU, IPW_SCOPE_UNCORE},
    };
    char word[16];
    unsigned socket;
    int end = 0;

    if (sscanf(label, "%15s Power Socket %u%n", word, &socket, &end) != 2 || label[end])
        return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(word, parts[i].word)) continue;
        snprintf(c->name, sizeof c->name, "%s-%u", parts[i].name, socket);
        c->domain = parts[i].domain;
        c->scope = parts[i].scope;
        c->in_sum = parts[i].scope == IPW_SCOPE_MODULE || parts[i].scope == IPW_SCOPE_PACKAGE;
        return true;
    }
    return false;
}

/* If the firmware shows no Grace meter, sum the processor's parts. */
static void sum_parts(struct ipw_probe_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].channel.scope == IPW_SCOPE_PACKAGE) return;
    }
    for (size_t i = 0; i < list->n; i++) {
        struct ipw_channel *c = &list->items[i].channel;
        if (c->scope != IPW_SCOPE_CORE && c->scope != IPW_SCOPE_UNCORE) continue;
        c->scope = IPW_SCOPE_PACKAGE;
        c->in_sum = true;
    }
}

static void add_meter(struct ipw_probe_list *list, const struct hwmon_dev *dev)
{
    struct ipw_probe *p = ipw_hwmon_power(list, dev, 1);
    char label[64] = "";
    int64_t ms = ipw_hwmon_number(dev, "power1_average_interval");

    if (!p) return;
    p->channel.period_ns = ms > 0 && ms < 3600000 ? ms * IPW_NS_PER_MS : 0;
    p->channel.max_w = 20000; /* a whole server: its cap is an alarm, not a limit */
    if (!ipw_hwmon_line(label, sizeof label, dev, "power1_oem_info")) {
        ipw_hwmon_line(label, sizeof label, dev, "power1_label");
    }
    if (label[0]) snprintf(p->channel.device, sizeof p->channel.device, "%s", label);
    if (place_grace(&p->channel, label)) return;
    p->channel.domain = IPW_DOMAIN_MACHINE;
    p->channel.scope = IPW_SCOPE_MACHINE;
    p->channel.in_sum = true;
    snprintf(p->channel.name, sizeof p->channel.name, "power_meter");
}

int ipw_power_meter_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                         struct ipw_err *err)
{
    const char *root = ipw_hwmon_root(options);
    struct ipw_probe_list list = {0};
    char what[400];
    size_t n;
    struct hwmon_dev *devs = ipw_hwmon_list(root, &n);

    for (size_t i = 0; i < n; i++) {
        if (!strcmp(devs[i].name, "power_meter")) add_meter(&list, &devs[i]);
    }
    free(devs);
    sum_parts(&list);
    snprintf(what, sizeof what,
             "no ACPI power meter in %.200s (where the machine has one: modprobe acpi_power_meter; "
             "on Grace with force_cap_on=y)",
             root);
    return ipw_probe_source(out, "power_meter", &list, METER_PERIOD_NS, what, err);
}

static bool is_total(const char *label)
{
    return !strcmp(label, "VDD_IN") || !strcmp(label, "POM_5V_IN") || !strcmp(label, "VIN_SYS_5V0");
}

static enum ipw_domain domain_of(const char *label)
{
    bool gpu = strstr(label, "GPU") != NULL, cpu = strstr(label, "CPU") != NULL;

    if (gpu == cpu) return IPW_DOMAIN_MACHINE; /* neither or both, such as VDD_CPU_GPU_CV */
    return gpu ? IPW_DOMAIN_GPU : IPW_DOMAIN_CPU;
}

static bool add_rail(struct ipw_probe_list *list, const struct hwmon_dev *dev, int i)
{
    char file[32], volts[HWMON_PATH], amperes[HWMON_PATH], label[32];
    struct ipw_channel *c;
    struct ipw_probe *p;

    snprintf(file, sizeof file, "in%d_label", i);
    if (!ipw_hwmon_line(label, sizeof label, dev, file)) return false; /* not connected */
    snprintf(file, sizeof file, "in%d_input", i);
    if (!ipw_hwmon_path(volts, dev, file)) return false;
    snprintf(file, sizeof file, "curr%d_input", i);
    if (!ipw_hwmon_path(amperes, dev, file)) return false;
    /* mV times mA is uW. */
    p = ipw_probe_add(list, IPW_CHANNEL_GAUGE, volts, amperes, NULL, 1000);
    p->home = ipw_strdup(dev->dir);
    c = &p->channel;
    snprintf(c->name, sizeof c->name, "%s", label);
    snprintf(c->device, sizeof c->device, "%s", dev->parent[0] ? dev->parent : dev->name);
    snprintf(c->method, sizeof c->method, "hwmon in%d x curr%d", i, i);
    c->max_w = UNKNOWN_MAX_W;
    c->domain = is_total(label) ? IPW_DOMAIN_MACHINE : domain_of(label);
    c->scope = is_total(label) ? IPW_SCOPE_MACHINE : IPW_SCOPE_RAIL;
    c->in_sum = true;
    return is_total(label);
}

int ipw_ina3221_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                     struct ipw_err *err)
{
    const char *root = ipw_hwmon_root(options);
    struct ipw_probe_list list = {0};
    char what[400];
    size_t n;
    struct hwmon_dev *devs = ipw_hwmon_list(root, &n);
    bool total = false;

    for (size_t i = 0; i < n; i++) {
        if (strcmp(devs[i].name, "ina3221")) continue;
        for (int k = 1; k <= 3; k++) total |= add_rail(&list, &devs[i], k);
    }
    free(devs);
    /* The total includes the rails; rails of one part still count for that part. */
    for (size_t i = 0; total && i < list.n; i++) {
        struct ipw_channel *c = &list.items[i].channel;
        if (c->domain == IPW_DOMAIN_MACHINE && c->scope == IPW_SCOPE_RAIL) c->in_sum = false;
    }
    /* Without a total every rail is a part of the machine. */
    for (size_t i = 0; !total && i < list.n; i++) {
        list.items[i].channel.domain = IPW_DOMAIN_MACHINE;
    }
    snprintf(what, sizeof what, "no INA3221 with labelled rails in %.300s", root);
    return ipw_probe_source(out, "ina3221", &list, RAILS_PERIOD_NS, what, err);
}
