#include "energy/sources/prometheus_page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* ---- the text ---- */

/* Texts of a line are copied here, each with its NUL; a longer line is not a sample. */
#define LINE_MAX_BYTES ((size_t)8192)

struct cursor {
    const char *at, *end;
    char *out, *out_end; /* place for the next text */
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t')) c->at++;
}

static bool is_name_byte(char b, bool first)
{
    return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '_' || b == ':' ||
           (!first && b >= '0' && b <= '9');
}

static bool put(struct cursor *c, char b)
{
    if (c->out == c->out_end) return false;
    *c->out++ = b;
    return true;
}

static const char *read_name(struct cursor *c)
{
    const char *text = c->out;

    while (c->at < c->end && is_name_byte(*c->at, c->out == text)) {
        if (!put(c, *c->at++)) return NULL;
    }
    return c->out > text && put(c, '\0') ? text : NULL;
}

/* Reads a quoted text after its opening quote. */
static const char *read_quoted(struct cursor *c)
{
    const char *text = c->out;

    while (c->at < c->end && *c->at != '"') {
        char b = *c->at++;
        if (b == '\\' && c->at < c->end) {
            b = *c->at++;
            if (b == 'n') b = '\n';
        }
        if (!put(c, b)) return NULL;
    }
    if (c->at == c->end || !put(c, '\0')) return NULL;
    c->at++;
    return text;
}

static bool read_labels(struct cursor *c, struct ipw_prom_sample *s)
{
    for (;;) {
        const char *name, *value;

        skip_blanks(c);
        if (c->at < c->end && *c->at == '}') {
            c->at++;
            return true;
        }
        name = read_name(c);
        skip_blanks(c);
        if (!name || c->at == c->end || *c->at++ != '=') return false;
        skip_blanks(c);
        if (c->at == c->end || *c->at++ != '"') return false;
        value = read_quoted(c);
        if (!value) return false;
        if (s->n_labels < IPW_PROM_LABELS) {
            s->labels[s->n_labels].name = name;
            s->labels[s->n_labels++].value = value;
        }
        skip_blanks(c);
        if (c->at < c->end && *c->at == ',') {
            c->at++;
        } else if (c->at == c->end || *c->at != '}') {
            return false;
        }
    }
}

/* Reads a number as Go writes it: decimal, NaN, +Inf; `text` receives it as it stands. */
static bool read_number(struct cursor *c, char *text, size_t size, double *value)
{
    size_t n = 0;
    char *end;

    skip_blanks(c);
    while (c->at < c->end && *c->at != ' ' && *c->at != '\t' && n < size - 1) text[n++] = *c->at++;
    text[n] = '\0';
    /* strtod also accepts hexadecimal numbers and "nan(...)". */
    if (n == 0 || strpbrk(text, "xXpP(")) return false;
    *value = strtod(text, &end);
    return !*end && (c->at == c->end || *c->at == ' ' || *c->at == '\t');
}

/* Reads the value and the rest: nothing, a time stamp (whole milliseconds; in OpenMetrics seconds
 * with a point), or an exemplar. */
static bool read_value(struct cursor *c, struct ipw_prom_sample *s)
{
    char text[64], *end;
    double stamp;

    if (!read_number(c, text, sizeof text, &s->value)) return false;
    errno = 0;
    s->integer = strtoll(text, &end, 10);
    s->is_int = *end == '\0' && errno == 0;
    s->stamp_ms = INT64_MIN;
    skip_blanks(c);
    if (c->at == c->end || *c->at == '#') return true;
    if (!read_number(c, text, sizeof text, &stamp)) return false;
    if (strpbrk(text, ".eE")) stamp *= 1e3;
    if (stamp > -9e15 && stamp < 9e15) s->stamp_ms = (int64_t)stamp;
    skip_blanks(c);
    return c->at == c->end || *c->at == '#';
}

static bool read_sample(struct cursor *c, struct ipw_prom_sample *s)
{
    s->n_labels = 0;
    s->name = read_name(c);
    if (!s->name) return false;
    skip_blanks(c);
    if (c->at < c->end && *c->at == '{') {
        c->at++;
        if (!read_labels(c, s)) return false;
    }
    return read_value(c, s);
}

size_t ipw_prom_parse(const char *text, size_t n,
                      void (*fn)(void *ud, const struct ipw_prom_sample *sample), void *ud,
                      size_t *first_bad)
{
    char copy[LINE_MAX_BYTES];
    struct ipw_prom_sample s;
    const char *end = text + n;
    size_t bad = 0, number = 0;

    if (first_bad) *first_bad = 0;
    while (text < end) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        struct cursor c = {
            .at = text, .end = nl ? nl : end, .out = copy, .out_end = copy + sizeof copy};

        text = nl ? nl + 1 : end;
        number++;
        if (c.end > c.at && c.end[-1] == '\r') c.end--;
        skip_blanks(&c);
        if (c.at == c.end || *c.at == '#') continue;
        if (read_sample(&c, &s)) {
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
