#include "energy/sources/hwmon.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/sysfs.h"

#define PATH_BYTES    (PATH_MAX + 64)
#define UNKNOWN_MAX_W 1000  /* if the driver names no limit */
#define MACHINE_MAX_W 20000 /* a whole server: a meter's cap is an alarm, not a limit */

enum { ALL_INPUTS = 32, LIMIT = -1, INTERVAL = -1 };

/* What an input is made of: energyN_input; powerN_average or powerN_input; inN_input times
 * currN_input. */
enum input { ENERGY, POWER, RAIL, INPUTS };
static const char *const stems[INPUTS] = {"energy", "power", "in"};

/* One source for each group of drivers. */
static const struct group {
    const char *name;
    int64_t period_ns;
    const char *boards, *maker; /* a group of GPUs: the drivers of a board, and their maker */
    const char *nothing;        /* why there is no channel; %s: the folder */
} groups[] = {
    /* The AMD driver asks the firmware at most once per millisecond; Intel's counter changes once
     * per millisecond. */
    {"amdgpu", 10 * IPW_NS_PER_MS, "amdgpu*", "AMD",
     "the amdgpu driver shows neither energy1_input nor power1_average"},
    {"intel_gpu", 10 * IPW_NS_PER_MS, "@(xe|i915)", "Intel",
     "the Intel driver shows no energy counter"},
    {"power_meter", 50 * IPW_NS_PER_MS, NULL, NULL,
     "no ACPI power meter in %.200s (if the machine has one: modprobe acpi_power_meter; on Grace "
     "with force_cap_on=y)"},
    /* Two transfers per rail on a slow bus. */
    {"ina3221", 20 * IPW_NS_PER_MS, NULL, NULL, "no INA3221 with labelled rails in %.300s"},
    {"hwmon", 100 * IPW_NS_PER_MS, NULL, NULL, "no other power or energy file in %.300s"},
};

/* clang-format off */
#define GPU     IPW_DOMAIN_GPU, IPW_SCOPE_DEVICE
#define TILE    IPW_DOMAIN_GPU, IPW_SCOPE_RAIL
#define PACKAGE IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE
#define CORES   IPW_DOMAIN_CPU, IPW_SCOPE_CORE
#define UNCORE  IPW_DOMAIN_CPU, IPW_SCOPE_UNCORE
#define MODULE  IPW_DOMAIN_MACHINE, IPW_SCOPE_MODULE
#define MACHINE IPW_DOMAIN_MACHINE, IPW_SCOPE_MACHINE
#define SUPPLY  IPW_DOMAIN_MACHINE, IPW_SCOPE_RAIL
#define UNKNOWN IPW_DOMAIN_MACHINE, IPW_SCOPE_DEVICE /* some device of the machine, or around it */
/* The first row that fits an input is its channel.  Drivers and labels are patterns of fnmatch(3).
 * A name holds '@' for the board's number, '%' for the label, '#' for the number that ends the
 * label, '&' for the driver. */
static const struct row {
    const char *group, *driver;
    enum input input;
    int most; /* inputs of that kind */
    const char *label, *name;
    enum ipw_domain domain;
    enum ipw_scope scope;
    bool in_sum;
    int max_w;         /* LIMIT: by the limits that the driver names */
    int64_t period_ns; /* INTERVAL: as the driver says; 0: unknown */
    bool by_label;     /* a label of its own names the device for a person */
} rows[] = {
    {"amdgpu",      "amdgpu",      ENERGY, 1,    "*", "amdgpu@",   GPU,     true,  LIMIT, 0, false},
    {"amdgpu",      "amdgpu",      POWER,  1,    "*", "amdgpu@",   GPU,     true,  LIMIT, 0, false},
    {"amdgpu",      "amdgpu/apu",  ENERGY, 1,    "*", "amdgpu@",   PACKAGE, false, LIMIT, 0, false},
    {"amdgpu",      "amdgpu/apu",  POWER,  1,    "*", "amdgpu@",   PACKAGE, false, LIMIT, 0, false},
    {"intel_gpu",   "@(xe|i915)",  ENERGY, ALL_INPUTS, "card", "intelgpu@",   GPU,  true,  LIMIT, 0, false},
    {"intel_gpu",   "@(xe|i915)",  ENERGY, ALL_INPUTS, "*",    "intelgpu@/%", TILE, false, LIMIT, 0, false},
    {"intel_gpu",   "i915_gt*",    ENERGY, 1,          "*",    "intelgpu@/%", TILE, false, LIMIT, 0, false},
    /* Grace includes its cores (CPU), the rest of the chip (SysIO) and its memory; Module also
     * includes the GPU. */
    {"power_meter", "power_meter", POWER,  1, "Module Power Socket +([0-9])", "module-#", MODULE,  true,  MACHINE_MAX_W, INTERVAL, true},
    {"power_meter", "power_meter", POWER,  1, "Grace Power Socket +([0-9])",  "grace-#",  PACKAGE, true,  MACHINE_MAX_W, INTERVAL, true},
    {"power_meter", "power_meter", POWER,  1, "CPU Power Socket +([0-9])",    "cpu-#",    CORES,   false, MACHINE_MAX_W, INTERVAL, true},
    {"power_meter", "power_meter", POWER,  1, "SysIO Power Socket +([0-9])",  "sysio-#",  UNCORE,  false, MACHINE_MAX_W, INTERVAL, true},
    {"power_meter", "power_meter", POWER,  1, "*",                            "power_meter", MACHINE, true, MACHINE_MAX_W, INTERVAL, true},
    {"ina3221",     "ina3221",     RAIL,   3, "@(VDD_IN|POM_5V_IN|VIN_SYS_5V0)", "%", MACHINE, true, UNKNOWN_MAX_W, 0, false},
    {"ina3221",     "ina3221",     RAIL,   3, "@(*CPU*GPU*|*GPU*CPU*)",       "%", SUPPLY, true, UNKNOWN_MAX_W, 0, false},
    {"ina3221",     "ina3221",     RAIL,   3, "*GPU*", "%", IPW_DOMAIN_GPU, IPW_SCOPE_RAIL, true, UNKNOWN_MAX_W, 0, false},
    {"ina3221",     "ina3221",     RAIL,   3, "*CPU*", "%", IPW_DOMAIN_CPU, IPW_SCOPE_RAIL, true, UNKNOWN_MAX_W, 0, false},
    {"ina3221",     "ina3221",     RAIL,   3, "*",     "%", SUPPLY, true, UNKNOWN_MAX_W, 0, false},
    /* Out of the kernel since 5.13, but still used.  The sockets include the EcoreNNN. */
    {"hwmon",       "amd_energy",  ENERGY, 1024, "Esocket+([0-9])", "package-#", PACKAGE, true, UNKNOWN_MAX_W, IPW_NS_PER_MS, true},
    {"hwmon", "!(amdgpu*|xe|i915*|power_meter|ina3221|amd_energy)", ENERGY, ALL_INPUTS, "*", "&/%", UNKNOWN, false, UNKNOWN_MAX_W, 0, false},
    {"hwmon", "!(amdgpu*|xe|i915*|power_meter|ina3221|amd_energy)", POWER,  ALL_INPUTS, "*", "&/%", UNKNOWN, false, UNKNOWN_MAX_W, 0, false},
};
/* clang-format on */

struct device {
    char dir[PATH_MAX];
    char driver[40];
    char parent[64];         /* the device's own name: its bus id, "1-0040", "ACPI000D:00"; or "" */
    char status[PATH_BYTES]; /* path of its runtime_status; "" if it has none */
};

static bool fits(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, FNM_EXTMATCH) == 0;
}

/* ---- devices and their files ---- */

/* Finds a device's file, in its own folder or (older drivers) in its parent device's. */
static bool find_file(char out[PATH_BYTES], const struct device *dev, const char *file)
{
    snprintf(out, PATH_BYTES, "%s/%s", dev->dir, file);
    if (access(out, F_OK) == 0) return true;
    snprintf(out, PATH_BYTES, "%s/device/%s", dev->dir, file);
    return access(out, F_OK) == 0;
}

static bool read_line(char *out, size_t size, const struct device *dev, const char *file)
{
    char path[64];

    if (ipw_sysfs_line(out, size, dev->dir, file)) return true;
    snprintf(path, sizeof path, "device/%.48s", file);
    return ipw_sysfs_line(out, size, dev->dir, path);
}

static int64_t read_number(const struct device *dev, const char *file)
{
    char text[32];

    return read_line(text, sizeof text, dev, file) ? ipw_sysfs_parse(text, strlen(text)) : -1;
}

/* Stores the name of the device that the link `device` leads to. */
static void find_parent(struct device *dev)
{
    char path[PATH_BYTES], *real, *base;

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

/* All devices in natural order; the caller frees the array.  NULL: there are none. */
static struct device *list_devices(const char *root, size_t *n)
{
    char **names = ipw_sysfs_list(root, "hwmon"), label[32];
    struct device *list = NULL;
    size_t cap = 0;

    *n = 0;
    for (size_t i = 0; names && names[i]; i++) {
        struct device *dev;

        IPW_GROW(list, cap, *n + 1);
        dev = &list[*n];
        *dev = (struct device){0};
        if (snprintf(dev->dir, sizeof dev->dir, "%s/%s", root, names[i]) >= (int)sizeof dev->dir)
            continue;
        if (!read_line(dev->driver, 32, dev, "name")) continue;
        /* A processor with graphics reports the power of the whole package, which RAPL has. */
        if (!strcmp(dev->driver, "amdgpu") && read_line(label, sizeof label, dev, "in1_label") &&
            !strcmp(label, "vddnb"))
            strcat(dev->driver, "/apu");
        find_parent(dev);
        ++*n;
    }
    ipw_sysfs_free_list(names);
    return list;
}

/* ---- channels ---- */

/* 1.3 times the highest limit that the driver names. */
static int64_t limit_of(const struct device *dev)
{
    static const char *const files[] = {"power1_cap_max", "power1_cap", "power1_max",
                                        "power1_rated_max", "power1_crit"};
    int64_t most = 0;

    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        int64_t uw = read_number(dev, files[k]);
        /* Some drivers name the supply's maximum, or all ones, which is no limit. */
        if (uw > most && uw < INT64_C(4000000000)) most = uw;
    }
    return most > 0 ? (most / 1000 * 13 / 10 + 999) / 1000 : UNKNOWN_MAX_W;
}

/* The label of an input; false: it has none, and the label is a usual one. */
static bool read_label(char label[64], const struct device *dev, enum input input, int n)
{
    static const char *const kinds[] = {"oem_info", "label"}, *const intel[] = {"card", "pkg"};
    char file[48];

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        snprintf(file, sizeof file, "%s%d_%s", stems[input], n, kinds[k]);
        if (read_line(label, 64, dev, file)) return true;
    }
    snprintf(label, 64, "%s%d", stems[input], n);
    if (fits("@(xe|i915)", dev->driver) && n <= 2) snprintf(label, 64, "%s", intel[n - 1]);
    if (fits("i915_gt*", dev->driver)) snprintf(label, 64, "%s", dev->driver + strlen("i915_"));
    return false;
}

static const struct row *row_of(const char *group, const struct device *dev, enum input input,
                                int n, const char *label)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];

        if (!strcmp(r->group, group) && r->input == input && n <= r->most &&
            fits(r->driver, dev->driver) && (!label || fits(r->label, label)))
            return r;
    }
    return NULL;
}

static void name_channel(char *out, size_t size, const char *form, const struct device *dev,
                         int board, const char *label)
{
    size_t digits = strlen(label), n = 0;

    while (digits && isdigit((unsigned char)label[digits - 1])) digits--;
    for (out[0] = '\0'; *form; form++, n = strlen(out)) {
        switch (*form) {
        case '@': snprintf(out + n, size - n, "%d", board); break;
        case '#': snprintf(out + n, size - n, "%s", label + digits); break;
        case '%': snprintf(out + n, size - n, "%s", label); break;
        case '&': snprintf(out + n, size - n, "%s", dev->driver); break;
        default: snprintf(out + n, size - n, "%c", *form); break;
        }
    }
}

/* Adds a probe of the input's files; NULL if they do not exist. */
static struct ipw_probe *probe(struct ipw_probe_list *list, const struct device *dev,
                               enum input input, int n)
{
    char path[PATH_BYTES], amperes[PATH_BYTES], file[32];
    const char *status = dev->status[0] ? dev->status : NULL;
    struct ipw_probe *p;
    bool found;

    snprintf(file, sizeof file, "%s%d_%s", stems[input], n, input == POWER ? "average" : "input");
    found = find_file(path, dev, file);
    if (!found && input == POWER) {
        snprintf(file, sizeof file, "power%d_input", n);
        found = find_file(path, dev, file);
    }
    if (!found) return NULL;
    if (input == RAIL) { /* mV times mA is uW */
        snprintf(file, sizeof file, "curr%d_input", n);
        if (!find_file(amperes, dev, file)) return NULL;
        p = ipw_probe_add(list, IPW_CHANNEL_GAUGE, path, amperes, NULL, 1000);
        snprintf(p->channel.method, sizeof p->channel.method, "hwmon in%d x curr%d", n, n);
    } else {
        p = input == ENERGY ? ipw_probe_add(list, IPW_CHANNEL_COUNTER, path, NULL, status, 1)
                            : ipw_probe_add(list, IPW_CHANNEL_GAUGE, path, NULL, status, 1000);
        snprintf(p->channel.method, sizeof p->channel.method, "hwmon %.24s", file);
    }
    p->home = ipw_strdup(dev->dir);
    return p;
}

static void add_input(struct ipw_probe_list *list, const char *group, const struct device *dev,
                      int board, enum input input, int n)
{
    char label[64];
    bool own = read_label(label, dev, input, n);
    const struct row *r = row_of(group, dev, input, n, label);
    struct ipw_probe *p;
    struct ipw_channel *c;

    if (!r || (input == RAIL && !own)) return; /* a rail without a label is not connected */
    p = probe(list, dev, input, n);
    if (!p) return;
    c = &p->channel;
    c->domain = r->domain;
    c->scope = r->scope;
    c->in_sum = r->in_sum;
    c->max_w = r->max_w == LIMIT ? limit_of(dev) : r->max_w;
    c->period_ns = r->period_ns;
    if (r->period_ns == INTERVAL) {
        int64_t ms = read_number(dev, "power1_average_interval");
        c->period_ns = ms > 0 && ms < 3600000 ? ms * IPW_NS_PER_MS : 0;
    }
    snprintf(c->device, sizeof c->device, "%s",
             r->by_label && own ? label
             : dev->parent[0]   ? dev->parent
                                : dev->driver);
    name_channel(c->name, sizeof c->name, r->name, dev, board, label);
    /* The gauge of a GPU that also has a counter. */
    if (input == POWER && list->n > 1 && !strcmp(p[-1].channel.name, c->name) &&
        !strcmp(p[-1].home, p->home)) {
        strncat(c->name, "/power", sizeof c->name - strlen(c->name) - 1);
        c->in_sum = false;
    }
}

static void add_device(struct ipw_probe_list *list, const char *group, const struct device *dev,
                       int board)
{
    for (int i = 0; i < INPUTS; i++)
        for (int n = 1; row_of(group, dev, (enum input)i, n, NULL); n++)
            add_input(list, group, dev, board, (enum input)i, n);
}

/* A board with its tiles.  If none of its inputs is the board's, use the first. */
static void add_board(struct ipw_probe_list *list, const char *group, const struct device *devs,
                      size_t n, size_t at, int board)
{
    size_t first = list->n;
    struct ipw_channel *c;

    add_device(list, group, &devs[at], board);
    c = list->n > first ? &list->items[first].channel : NULL;
    for (size_t i = first; i < list->n; i++)
        if (list->items[i].channel.scope != IPW_SCOPE_RAIL) c = NULL;
    if (c) {
        c->in_sum = true;
        c->scope = IPW_SCOPE_DEVICE;
    }
    for (size_t i = 0; i < n; i++)
        if (fits("i915_gt*", devs[i].driver) && !strcmp(devs[i].parent, devs[at].parent))
            add_device(list, group, &devs[i], board);
}

static bool has_scope(const struct ipw_probe_list *list, enum ipw_scope scope)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].channel.scope == scope) return true;
    return false;
}

/* Sums that depend on which channels there are. */
static void settle_sums(struct ipw_probe_list *list, const char *group)
{
    bool rails = !strcmp(group, "ina3221"), total = has_scope(list, IPW_SCOPE_MACHINE);
    bool package = has_scope(list, IPW_SCOPE_PACKAGE);

    for (size_t i = 0; i < list->n; i++) {
        struct ipw_channel *c = &list->items[i].channel;

        if (rails && total) { /* it includes the rails; those of one part count for that part */
            if (c->domain == IPW_DOMAIN_MACHINE && c->scope == IPW_SCOPE_RAIL) c->in_sum = false;
        } else if (rails) { /* every rail is a part of the machine */
            c->domain = IPW_DOMAIN_MACHINE;
        } else if (!package && (c->scope == IPW_SCOPE_CORE || c->scope == IPW_SCOPE_UNCORE)) {
            c->scope = IPW_SCOPE_PACKAGE; /* the firmware shows no Grace meter: sum its parts */
            c->in_sum = true;
        }
    }
}

/* ---- selected GPUs ---- */

static bool means(const char *word, const struct device *dev, int board)
{
    char name[32];

    snprintf(name, sizeof name, "%s%d", fits("amdgpu*", dev->driver) ? "amdgpu" : "intelgpu",
             board);
    return !strcmp(word, name) || (ipw_pci_is_id(word) && ipw_pci_same_id(word, dev->parent));
}

/* Does the selection name this GPU? */
static bool wanted(const struct device *dev, int board, const char *gpus)
{
    char word[100];
    bool any = false;

    while (ipw_sysfs_word(word, sizeof word, &gpus)) {
        any = true;
        if (means(word, dev, board)) return true;
    }
    return !any;
}

const char *ipw_hwmon_gpu_kind(const char *word, const char *root)
{
    size_t n;
    struct device *devs = list_devices(root, &n);
    const char *kind = NULL;

    for (size_t g = 0; groups[g].boards && !kind; g++) {
        int board = 0;

        for (size_t i = 0; i < n && !kind; i++)
            if (fits(groups[g].boards, devs[i].driver) && means(word, &devs[i], board++))
                kind = groups[g].name;
    }
    free(devs);
    return kind;
}

static int refuse(bool seen, const struct group *g, const struct ipw_source_place *place,
                  struct ipw_err *err)
{
    if (!seen)
        return ipw_fail(err, IPW_EUNSUPPORTED, "no %s board in %.300s", g->maker, place->hwmon);
    return ipw_fail(err, IPW_ENOTFOUND,
                    "no %s GPU '%.100s' (expected a bus id, or a name such as %s0)", g->maker,
                    place->gpus, !strcmp(g->name, "amdgpu") ? "amdgpu" : "intelgpu");
}

int ipw_hwmon_open(struct ipw_source **out, const struct ipw_source_place *place, const char *name,
                   struct ipw_err *err)
{
    const struct group *g = groups;
    struct ipw_probe_list list = {0};
    int boards = 0, chosen = 0;
    char what[400];
    size_t n;
    struct device *devs = list_devices(place->hwmon, &n);

    *out = NULL;
    while (strcmp(g->name, name)) g++;
    for (size_t i = 0; i < n; i++) {
        if (!g->boards) {
            add_device(&list, g->name, &devs[i], 0);
        } else if (fits(g->boards, devs[i].driver)) {
            if (wanted(&devs[i], boards, place->gpus)) {
                add_board(&list, g->name, devs, n, i, boards);
                chosen++;
            }
            boards++;
        }
    }
    free(devs);
    if (g->boards && !chosen) return refuse(boards > 0, g, place, err);
    settle_sums(&list, g->name);
    snprintf(what, sizeof what, g->nothing, place->hwmon);
    return ipw_probe_source(out, g->name, &list, g->period_ns, what, err);
}
