#include "energy/sources/prometheus_page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* ---- the text ---- */

/* A line is copied, and cut into texts in place; a longer line is not a sample. */
#define LINE_MAX_BYTES   ((size_t)8192)
#define NUMBER_MAX_BYTES ((size_t)63)

static char *skip_blanks(char *at) { return at + strspn(at, " \t"); }

/* The end of the name that begins here; NULL: none does. */
static char *name_end(char *at)
{
    size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789");

    return n == 0 || (*at >= '0' && *at <= '9') ? NULL : at + n;
}

/* Reads a quoted text after its opening quote; returns what follows it, or NULL. */
static char *cut_quoted(char *at)
{
    char *out = at;

    for (; *at != '"'; at++) {
        if (*at == '\\' && at[1])
            *out++ = *++at == 'n' ? '\n' : *at;
        else if (*at)
            *out++ = *at;
        else
            return NULL;
    }
    *out = '\0';
    return at + 1;
}

/* Reads labels after their brace; returns what follows, or NULL. */
static char *read_labels(char *at, struct ipw_prom_sample *s)
{
    for (at = skip_blanks(at); *at != '}'; at = skip_blanks(at)) {
        char *name = at, *end = name_end(at), *value;

        if (!end || *(at = skip_blanks(end)) != '=') return NULL;
        *end = '\0';
        at = skip_blanks(at + 1);
        if (*at != '"') return NULL;
        value = at + 1;
        at = cut_quoted(value);
        if (!at) return NULL;
        if (s->n_labels < IPW_PROM_LABELS) {
            s->labels[s->n_labels].name = name;
            s->labels[s->n_labels++].value = value;
        }
        at = skip_blanks(at);
        if (*at == ',')
            at++;
        else if (*at != '}')
            return NULL;
    }
    return at + 1;
}

/* Cuts out a number as Go writes it: decimal, NaN, +Inf; returns what follows, or NULL. */
static char *cut_number(char *at, double *value)
{
    size_t n = strcspn(at, " \t");
    bool more = at[n] != '\0';
    char *end;

    at[n] = '\0';
    /* strtod also accepts hexadecimal numbers and "nan(...)". */
    if (n == 0 || n > NUMBER_MAX_BYTES || strpbrk(at, "xXpP(")) return NULL;
    *value = strtod(at, &end);
    return *end ? NULL : at + n + more;
}

/* Reads the value and the rest: nothing, a time stamp (whole milliseconds; in OpenMetrics seconds
 * with a point), or an exemplar. */
static bool read_value(char *at, struct ipw_prom_sample *s)
{
    char *text = at = skip_blanks(at), *end;
    double stamp;

    at = cut_number(at, &s->value);
    if (!at) return false;
    errno = 0;
    s->integer = strtoll(text, &end, 10);
    s->is_int = *end == '\0' && errno == 0;
    s->stamp_ms = INT64_MIN;
    text = at = skip_blanks(at);
    if (*at == '\0' || *at == '#') return true;
    at = cut_number(at, &stamp);
    if (!at) return false;
    if (strpbrk(text, ".eE")) stamp *= 1e3;
    if (stamp > -9e15 && stamp < 9e15) s->stamp_ms = (int64_t)stamp;
    at = skip_blanks(at);
    return *at == '\0' || *at == '#';
}

static bool read_sample(char *at, struct ipw_prom_sample *s)
{
    char *end = name_end(at);

    if (!end) return false;
    s->name = at;
    s->n_labels = 0;
    at = skip_blanks(end);
    if (*at == '{')
        at = read_labels(at + 1, s);
    else if (at == end)
        return false;
    *end = '\0';
    return at && read_value(at, s);
}

size_t ipw_prom_parse(const char *text, size_t n,
                      void (*fn)(void *ud, const struct ipw_prom_sample *sample), void *ud,
                      size_t *first_bad)
{
    char line[LINE_MAX_BYTES], *at;
    struct ipw_prom_sample s;
    const char *end = text + n;
    size_t bad = 0, number = 0;

    if (first_bad) *first_bad = 0;
    while (text < end) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((nl ? nl : end) - text), kept = length;

        if (kept >= sizeof line) kept = sizeof line - 1;
        memcpy(line, text, kept);
        text = nl ? nl + 1 : end;
        number++;
        if (length && kept == length && line[kept - 1] == '\r') kept--;
        line[kept] = '\0';
        at = skip_blanks(line);
        if (at == line + kept || *at == '#') continue;
        if (length < sizeof line && strlen(line) == kept && read_sample(at, &s)) {
            fn(ud, &s);
        } else if (bad++ == 0 && first_bad) {
            *first_bad = number;
        }
    }
    return bad;
}

const char *ipw_prom_label(const struct ipw_prom_sample *sample, const char *name)
{
    for (size_t i = 0; i < sample->n_labels; i++) {
        if (strcmp(sample->labels[i].name, name) == 0) return sample->labels[i].value;
    }
    return "";
}

/* ---- the meaning of a series ---- */

#define GPU_MAX_W     2000
#define CPU_MAX_W     1500
#define MACHINE_MAX_W 30000
#define MOST_MW       1e9 /* no machine draws a megawatt */

enum { C = IPW_CHANNEL_COUNTER, G = IPW_CHANNEL_GAUGE };

/* DCGM's "blank" values of 64-bit integers and of doubles (reasons are 0 to 15 above). */
#define DCGM_BLANK_INT    INT64_C(0x7ffffffffffffff0)
#define DCGM_BLANK_DOUBLE 140737488355328.0

/* clang-format off */
#define GPU          IPW_DOMAIN_GPU, IPW_SCOPE_DEVICE
#define PACKAGE      IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE
#define CPU_RAIL     IPW_DOMAIN_CPU, IPW_SCOPE_RAIL
#define DRAM         IPW_DOMAIN_DRAM, IPW_SCOPE_DRAM
#define MODULE       IPW_DOMAIN_MACHINE, IPW_SCOPE_MODULE
#define PLATFORM     IPW_DOMAIN_MACHINE, IPW_SCOPE_PLATFORM
#define MACHINE      IPW_DOMAIN_MACHINE, IPW_SCOPE_MACHINE
#define MACHINE_RAIL IPW_DOMAIN_MACHINE, IPW_SCOPE_RAIL
static const struct rule {
    const char *metric;
    int kind;
    double factor; /* to microjoules or milliwatts */
    enum ipw_domain domain;
    enum ipw_scope scope;
    const char *ids[3]; /* the labels that identify a device; the first is part of the name */
    const char *device; /* the label with a name for a person, or NULL */
    const char *name;
    int rank;
    int period_s; /* the exporter's usual period; 0: it reads when asked */
} rules[] = {
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",  C, 1e3,  GPU,          {"gpu", "UUID", "Hostname"},           "UUID",        "gpu",       0, 1},
    {"DCGM_FI_DEV_POWER_USAGE_INSTANT",       G, 1e3,  GPU,          {"gpu", "UUID", "Hostname"},           "UUID",        "gpu",       1, 1},
    {"DCGM_FI_DEV_POWER_USAGE",               G, 1e3,  GPU,          {"gpu", "UUID", "Hostname"},           "UUID",        "gpu",       0, 1},
    {"DCGM_FI_DEV_CPU_POWER_UTIL_CURRENT",    G, 1e3,  PACKAGE,      {"cpu", "Hostname"},                   NULL,          "cpu",       0, 1},
    {"DCGM_FI_DEV_SYSIO_POWER_UTIL_CURRENT",  G, 1e3,  CPU_RAIL,     {"cpu", "Hostname"},                   NULL,          "sysio",     0, 1},
    {"DCGM_FI_DEV_MODULE_POWER_UTIL_CURRENT", G, 1e3,  MODULE,       {"cpu", "Hostname"},                   NULL,          "module",    0, 1},

    {"scaph_host_energy_microjoules",         C, 1,    PLATFORM,     {NULL},                                NULL,          "host",      0, 1},
    {"scaph_host_power_microwatts",           G, 1e-3, PLATFORM,     {NULL},                                NULL,          "host",      0, 1},
    {"scaph_socket_energy_microjoules",       C, 1,    PACKAGE,      {"socket_id"},                         NULL,          "socket",    0, 1},
    {"scaph_socket_power_microwatts",         G, 1e-3, PACKAGE,      {"socket_id"},                         NULL,          "socket",    0, 1},
    {"scaph_domain_energy_microjoules",       C, 1,    CPU_RAIL,     {"socket_id", "domain_name"},          "domain_name", "zone",      0, 1},
    {"scaph_domain_power_microwatts",         G, 1e-3, CPU_RAIL,     {"socket_id", "domain_name"},          "domain_name", "zone",      0, 1},

    {"kepler_node_cpu_joules_total",          C, 1e6,  CPU_RAIL,     {"zone", "path"},                      "path",        "",          0, 3},
    {"kepler_node_cpu_watts",                 G, 1e3,  CPU_RAIL,     {"zone", "path"},                      "path",        "",          0, 3},
    {"kepler_node_gpu_joules_total",          C, 1e6,  GPU,          {"gpu", "gpu_uuid", "mode"},           "gpu_uuid",    "gpu",       0, 3},
    {"kepler_node_gpu_watts",                 G, 1e3,  GPU,          {"gpu", "gpu_uuid", "mode"},           "gpu_uuid",    "gpu",       0, 3},
    {"kepler_platform_watts",                 G, 1e3,  MACHINE,      {"source", "node_name", "chassis_id"}, "source",      "platform-", 0, 3},
    /* Before 0.10: one counter for each mode (dynamic, idle); together they are the device. */
    {"kepler_node_package_joules_total",      C, 1e6,  PACKAGE,      {"package", "mode", "source"},         "mode",        "package",   0, 3},
    {"kepler_node_dram_joules_total",         C, 1e6,  DRAM,         {"package", "mode", "source"},         "mode",        "dram",      0, 3},
    {"kepler_node_platform_joules_total",     C, 1e6,  PLATFORM,     {"mode", "source"},                    "source",      "platform-", 0, 3},

    {"node_hwmon_energy_joule_total",         C, 1e6,  MACHINE_RAIL, {"chip", "sensor"},                    "chip",        "",          0, 0},
    {"node_hwmon_power_average_watt",         G, 1e3,  MACHINE_RAIL, {"chip", "sensor"},                    "chip",        "",          0, 1},
    {"node_hwmon_power_watt",                 G, 1e3,  MACHINE_RAIL, {"chip", "sensor"},                    "chip",        "",          1, 0},

    {"ipw_energy_joules_total",               C, 1e6,  MACHINE_RAIL, {"channel"},                           "device",      "",          0, 0},
    {"ipw_power_watts",                       G, 1e3,  MACHINE_RAIL, {"channel"},                           "device",      "",          0, 0},
};

/* node_exporter names the metric after the zone: node_rapl_<zone>_joules_total{index,path}. */
static const struct rule rapl_rule = {"node_rapl_", C, 1e6, CPU_RAIL, {"index", "path"}, "path", "", 0, 0};
/* clang-format on */

static bool is_rapl(const char *metric)
{
    size_t n = strlen(metric), tail = strlen("_joules_total");

    return strncmp(metric, "node_rapl_", 10) == 0 && n > 10 + tail &&
           strcmp(metric + n - tail, "_joules_total") == 0;
}

/* Sets domain and scope by the name of a RAPL zone, as Intel's driver has it, or of a chip; false
 * if it is unknown. */
static bool place_named(struct ipw_channel *c, const char *name, size_t n)
{
    static const struct {
        const char *name;
        enum ipw_domain domain;
        enum ipw_scope scope;
    } known[] = {
        {"package", PACKAGE},
        {"dram", DRAM},
        {"core", IPW_DOMAIN_CPU, IPW_SCOPE_CORE},
        {"uncore", IPW_DOMAIN_CPU, IPW_SCOPE_UNCORE},
        {"psys", PLATFORM},
        {"amdgpu", GPU},
        {"i915", GPU},
        {"xe", GPU},
        {"power_meter", MACHINE},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t k = strlen(known[i].name);
        /* "package", "package-0", "package_0_die_1" */
        if (n < k || strncmp(name, known[i].name, k) != 0 ||
            (n > k && name[k] != '-' && name[k] != '_')) {
            continue;
        }
        c->domain = known[i].domain;
        c->scope = known[i].scope;
        return true;
    }
    return false;
}

static bool place_own(struct ipw_channel *c, const char *domain, const char *scope)
{
    bool known = false;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (strcmp(domain, ipw_domain_name((enum ipw_domain)d)) != 0) continue;
        c->domain = (enum ipw_domain)d;
        known = true;
    }
    for (int s = IPW_SCOPE_DEVICE; s <= IPW_SCOPE_RAIL; s++) {
        if (strcmp(scope, ipw_scope_name((enum ipw_scope)s)) == 0) c->scope = (enum ipw_scope)s;
    }
    return known;
}

static const struct rule *find_rule(const char *metric)
{
    if (is_rapl(metric)) return &rapl_rule;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strcmp(rules[i].metric, metric) == 0) return &rules[i];
    }
    return NULL;
}

static int64_t most_watts(enum ipw_domain domain)
{
    if (domain == IPW_DOMAIN_GPU) return GPU_MAX_W;
    return domain == IPW_DOMAIN_MACHINE ? MACHINE_MAX_W : CPU_MAX_W;
}

/* The last part of a path, or the whole of another text. */
static const char *leaf(const char *text)
{
    const char *slash = strrchr(text, '/');

    return slash && slash[1] ? slash + 1 : text;
}

/* Sets the sample's place, beyond what its rule says. */
static bool place(struct ipw_prom_series *p, const struct rule *r, const struct ipw_prom_sample *s)
{
    struct ipw_channel *c = &p->channel;
    const char *id = r->ids[0] ? ipw_prom_label(s, r->ids[0]) : "";
    const char *path = ipw_prom_label(s, "path"), *zone = NULL, *of = id;
    size_t n = 0;

    if (r == &rapl_rule) {
        zone = s->name + 10;
        n = strlen(zone) - strlen("_joules_total");
    } else if (strncmp(s->name, "scaph_domain_", 13) == 0) {
        zone = ipw_prom_label(s, "domain_name");
        if (!*zone) zone = ipw_prom_label(s, "domain");
    } else if (strncmp(s->name, "kepler_node_cpu_", 16) == 0) {
        zone = id;
        of = leaf(path);
    }
    if (zone) {
        if (!n) n = strlen(zone);
        p->twin = strstr(path, "-mmio") != NULL;
        snprintf(c->name, sizeof c->name, "%.*s-%.24s", (int)(n < 32 ? n : 32), zone, of);
        return place_named(c, zone, n);
    }
    if (strncmp(s->name, "ipw_", 4) == 0) {
        p->own = true;
        snprintf(c->name, sizeof c->name, "%.48s", id);
        return *id && place_own(c, ipw_prom_label(s, "domain"), ipw_prom_label(s, "scope"));
    }
    if (strncmp(s->name, "node_hwmon_", 11) == 0) {
        snprintf(p->chip, sizeof p->chip, "%.90s", id);
        snprintf(c->name, sizeof c->name, "%.32s-%.20s", id, ipw_prom_label(s, "sensor"));
        return true;
    }
    snprintf(c->name, sizeof c->name, "%.24s%.24s", r->name, id);
    return true;
}

bool ipw_prom_series_of(struct ipw_prom_series *out, const struct ipw_prom_sample *sample)
{
    const struct rule *r = find_rule(sample->name);
    const char *device, *model;
    struct ipw_channel *c = &out->channel;
    char ids[160];

    if (!r) return false;
    *out = (struct ipw_prom_series){.factor = r->factor, .rank = r->rank};
    out->blank_ints = strncmp(r->metric, "DCGM_", 5) == 0;
    c->kind = (enum ipw_channel_kind)r->kind;
    c->domain = r->domain;
    c->scope = r->scope;
    c->period_ns = r->period_s * IPW_NS_PER_S;
    snprintf(c->unit, sizeof c->unit, "%s", r->kind == C ? "uJ" : "mW");
    if (!place(out, r, sample)) return false;
    c->max_w = most_watts(c->domain);
    device = r->device ? ipw_prom_label(sample, r->device) : "";
    model = out->blank_ints ? ipw_prom_label(sample, "modelName") : "";
    if (*model)
        snprintf(c->device, sizeof c->device, "%.41s %.20s", device, model);
    else
        snprintf(c->device, sizeof c->device, "%.60s", *device ? device : c->name);
    snprintf(ids, sizeof ids, "%.60s|%.60s|%.30s",
             r->ids[0] ? ipw_prom_label(sample, r->ids[0]) : "",
             r->ids[1] ? ipw_prom_label(sample, r->ids[1]) : "",
             r->ids[2] ? ipw_prom_label(sample, r->ids[2]) : "");
    snprintf(out->key, sizeof out->key, "%.80s{%s}", sample->name, ids);
    /* Counters and gauges of one device of another ipw-agent have different channels. */
    snprintf(out->group, sizeof out->group, "%s", out->own ? c->device : ids);
    return true;
}

void ipw_prom_series_chip(struct ipw_prom_series *series, const char *chip_name)
{
    struct ipw_channel *c = &series->channel;

    if (place_named(c, chip_name, strlen(chip_name))) c->max_w = most_watts(c->domain);
}

/* Does this scope make up its domain? */
static bool makes_up(const struct ipw_channel *c, bool machine_metered)
{
    static const enum ipw_scope whole[IPW_DOMAIN_COUNT] = {[IPW_DOMAIN_GPU] = IPW_SCOPE_DEVICE,
                                                           [IPW_DOMAIN_CPU] = IPW_SCOPE_PACKAGE,
                                                           [IPW_DOMAIN_DRAM] = IPW_SCOPE_DRAM,
                                                           [IPW_DOMAIN_MACHINE] =
                                                               IPW_SCOPE_MACHINE};

    return c->scope == whole[c->domain] ||
           (c->domain == IPW_DOMAIN_MACHINE && !machine_metered && c->scope == IPW_SCOPE_PLATFORM);
}

static bool stands_back(const struct ipw_prom_series *p, const struct ipw_prom_series *other)
{
    const struct ipw_channel *c = &p->channel, *o = &other->channel;

    if (c->kind != IPW_CHANNEL_GAUGE || c->domain != o->domain || c->scope != o->scope ||
        strcmp(p->group, other->group) != 0) {
        return false;
    }
    return o->kind == IPW_CHANNEL_COUNTER || other->rank > p->rank;
}

void ipw_prom_series_choose(struct ipw_prom_series *series, size_t n)
{
    bool metered = false;

    for (size_t i = 0; i < n; i++) {
        const struct ipw_channel *c = &series[i].channel;
        metered = metered || (c->domain == IPW_DOMAIN_MACHINE && c->scope == IPW_SCOPE_MACHINE);
    }
    for (size_t i = 0; i < n; i++) {
        struct ipw_channel *c = &series[i].channel;

        c->in_sum = !series[i].twin && makes_up(c, metered);
        for (size_t k = 0; k < n && c->in_sum; k++) {
            if (k != i && stands_back(&series[i], &series[k])) c->in_sum = false;
        }
        if (c->kind == IPW_CHANNEL_GAUGE && !strstr(c->name, "power"))
            strncat(c->name, "/power", sizeof c->name - strlen(c->name) - 1);
    }
}

int64_t ipw_prom_series_value(const struct ipw_prom_series *series,
                              const struct ipw_prom_sample *sample)
{
    double x = sample->value * series->factor;
    int64_t whole = (int64_t)series->factor, exact;

    if (series->blank_ints &&
        ((sample->is_int && sample->integer >= DCGM_BLANK_INT) ||
         (sample->value >= DCGM_BLANK_DOUBLE && sample->value < DCGM_BLANK_DOUBLE + 16))) {
        return IPW_NO_VALUE;
    }
    if (!isfinite(x) || x < 0 || x > (series->channel.kind == IPW_CHANNEL_GAUGE ? MOST_MW : 9e18))
        return IPW_NO_VALUE;
    if (sample->is_int && (double)whole == series->factor &&
        !__builtin_mul_overflow(sample->integer, whole, &exact)) {
        return exact;
    }
    return (int64_t)(x + 0.5);
}
