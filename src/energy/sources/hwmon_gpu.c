/* GPUs of AMD and Intel; see hwmon.h and docs/hardware.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "energy/sources/hwmon_priv.h"

/* The AMD driver asks the firmware at most once per millisecond; Intel's counter changes once per
 * millisecond. */
#define PERIOD_NS (10 * IPW_NS_PER_MS)

static bool is_amd(const struct hwmon_dev *dev) { return !strcmp(dev->name, "amdgpu"); }

static bool is_intel(const struct hwmon_dev *dev)
{
    return !strcmp(dev->name, "xe") || !strcmp(dev->name, "i915");
}

static void name_board(char *out, size_t size, const struct hwmon_dev *dev, int board)
{
    snprintf(out, size, "%s%d", is_amd(dev) ? "amdgpu" : "intelgpu", board);
}

static bool means(const char *word, const struct hwmon_dev *dev, int board)
{
    char name[32];

    name_board(name, sizeof name, dev, board);
    return !strcmp(word, name) || (ipw_pci_is_id(word) && ipw_pci_same_id(word, dev->parent));
}

/* Does the selection name this GPU? */
static bool wanted(const struct hwmon_dev *dev, int board, const struct ipw_hwmon_options *o)
{
    char word[100];
    const char *p = o ? o->gpus : NULL;
    bool any = false;

    while (ipw_sysfs_word(word, sizeof word, &p)) {
        any = true;
        if (means(word, dev, board)) return true;
    }
    return !any;
}

const char *ipw_hwmon_gpu_kind(const char *word, const char *root)
{
    int amd = 0, intel = 0;
    const char *kind = NULL;
    size_t n;
    struct hwmon_dev *devs = ipw_hwmon_list(root ? root : ipw_hwmon_root(NULL), &n);

    for (size_t i = 0; i < n && !kind; i++) {
        if (is_amd(&devs[i])) {
            if (means(word, &devs[i], amd++)) kind = "amdgpu";
        } else if (is_intel(&devs[i])) {
            if (means(word, &devs[i], intel++)) kind = "intel_gpu";
        }
    }
    free(devs);
    return kind;
}

static void place(struct ipw_probe *p, const struct hwmon_dev *dev, int board, const char *suffix)
{
    struct ipw_channel *c = &p->channel;

    c->domain = IPW_DOMAIN_GPU;
    c->scope = IPW_SCOPE_DEVICE;
    c->max_w = ipw_hwmon_max_w(dev, 1);
    name_board(c->name, sizeof c->name, dev, board);
    strncat(c->name, suffix, sizeof c->name - strlen(c->name) - 1);
}

/* A processor with graphics reports the power of the whole package, which RAPL has. */
static void place_apu(struct ipw_channel *c)
{
    c->domain = IPW_DOMAIN_CPU;
    c->scope = IPW_SCOPE_PACKAGE;
}

static void add_amd(struct ipw_probe_list *list, const struct hwmon_dev *dev, int board)
{
    struct ipw_probe *energy, *power;
    char label[32];
    bool apu = ipw_hwmon_line(label, sizeof label, dev, "in1_label") && !strcmp(label, "vddnb");
    bool counted = false;

    energy = ipw_hwmon_probe(list, dev, IPW_CHANNEL_COUNTER, "energy1_input");
    if (energy) {
        place(energy, dev, board, "");
        energy->channel.in_sum = !apu;
        if (apu) place_apu(&energy->channel);
        counted = true;
    }
    power = ipw_hwmon_power(list, dev, 1);
    if (!power) return;
    place(power, dev, board, counted ? "/power" : "");
    power->channel.in_sum = !apu && !counted;
    if (apu) place_apu(&power->channel);
}

static int refuse(int seen, const char *what, const char *root, const struct ipw_hwmon_options *o,
                  struct ipw_err *err)
{
    if (seen) {
        return ipw_fail(err, IPW_ENOTFOUND,
                        "no %s board is '%.100s' (a bus id, or a name such as %s0, is expected)",
                        what, o->gpus, !strcmp(what, "AMD") ? "amdgpu" : "intelgpu");
    }
    return ipw_fail(err, IPW_EUNSUPPORTED, "no %s board in %.300s", what, root);
}

int ipw_amdgpu_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                    struct ipw_err *err)
{
    const char *root = ipw_hwmon_root(options);
    struct ipw_probe_list list = {0};
    size_t n;
    struct hwmon_dev *devs = ipw_hwmon_list(root, &n);
    int boards = 0, chosen = 0;

    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!is_amd(&devs[i])) continue;
        if (wanted(&devs[i], boards, options)) {
            add_amd(&list, &devs[i], boards);
            chosen++;
        }
        boards++;
    }
    free(devs);
    if (boards == 0 || chosen == 0) return refuse(boards, "AMD", root, options, err);
    return ipw_probe_source(out, "amdgpu", &list, PERIOD_NS,
                            "the amdgpu driver shows neither energy1_input nor power1_average",
                            err);
}

/* energy1 is the card and energy2 the package, unless the labels say otherwise. */
static void add_intel(struct ipw_probe_list *list, const struct hwmon_dev *dev, int board)
{
    struct ipw_probe *card = NULL;
    size_t first = list->n;

    for (int i = 1; i <= HWMON_INPUTS; i++) {
        char file[32], label[32];
        struct ipw_probe *p;

        snprintf(file, sizeof file, "energy%d_input", i);
        p = ipw_hwmon_probe(list, dev, IPW_CHANNEL_COUNTER, file);
        if (!p) continue;
        snprintf(file, sizeof file, "energy%d_label", i);
        if (!ipw_hwmon_line(label, sizeof label, dev, file)) {
            snprintf(label, sizeof label, "%s", i == 1 ? "card" : i == 2 ? "pkg" : "");
        }
        if (!strcmp(label, "card")) {
            place(p, dev, board, "");
            card = p;
            p->channel.in_sum = true;
        } else {
            char suffix[48];
            if (label[0]) {
                snprintf(suffix, sizeof suffix, "/%s", label);
            } else {
                snprintf(suffix, sizeof suffix, "/energy%d", i);
            }
            place(p, dev, board, suffix);
            p->channel.scope = IPW_SCOPE_RAIL;
        }
    }
    /* If there is only a package, use it. */
    if (!card && list->n > first) {
        list->items[first].channel.in_sum = true;
        list->items[first].channel.scope = IPW_SCOPE_DEVICE;
    }
}

/* "i915_gt1": a tile of a GPU, with its own hwmon device. */
static void add_tile(struct ipw_probe_list *list, const struct hwmon_dev *dev, int board)
{
    struct ipw_probe *p = ipw_hwmon_probe(list, dev, IPW_CHANNEL_COUNTER, "energy1_input");
    char suffix[40];

    if (!p) return;
    snprintf(suffix, sizeof suffix, "/%s", dev->name + strlen("i915_"));
    place(p, dev, board, suffix);
    p->channel.scope = IPW_SCOPE_RAIL;
}

int ipw_intel_gpu_open(struct ipw_source **out, const struct ipw_hwmon_options *options,
                       struct ipw_err *err)
{
    const char *root = ipw_hwmon_root(options);
    struct ipw_probe_list list = {0};
    size_t n;
    struct hwmon_dev *devs = ipw_hwmon_list(root, &n);
    int boards = 0, chosen = 0;

    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!is_intel(&devs[i])) continue;
        if (wanted(&devs[i], boards, options)) {
            add_intel(&list, &devs[i], boards);
            for (size_t k = 0; k < n; k++) {
                if (!strncmp(devs[k].name, "i915_gt", 7) &&
                    !strcmp(devs[k].parent, devs[i].parent)) {
                    add_tile(&list, &devs[k], boards);
                }
            }
            chosen++;
        }
        boards++;
    }
    free(devs);
    if (boards == 0 || chosen == 0) return refuse(boards, "Intel", root, options, err);
    return ipw_probe_source(out, "intel_gpu", &list, PERIOD_NS,
                            "the Intel driver shows no energy counter", err);
}
