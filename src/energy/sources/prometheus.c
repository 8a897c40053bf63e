#include "energy/sources/prometheus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/meter_feed.h"
#include "energy/sources/sysfs.h"

#define PAGE_MAX      (4 * IPW_MIB)
#define TIMEOUT_NS    (2 * IPW_NS_PER_S)
#define CHANNELS_MAX  ((size_t)256)
#define PERIOD_NS     (500 * IPW_NS_PER_MS)
#define OWN_PERIOD_NS (200 * IPW_NS_PER_MS) /* the page of another ipw-agent is small */
#define RETRY_NS      IPW_NS_PER_S
#define OLD_MS        60000 /* a first stamp this far off tells nothing of the present */

/* A series' own time stamps: a page that is served again and again with an old one stands still. */
struct stamps {
    int64_t newest_ms; /* INT64_MIN: none */
    struct ipw_meter_feed_pace pace;
};

struct prometheus {
    struct ipw_source source;
    struct ipw_page_fetch fetch;
    void *kept; /* state of `fetch` */
    char *url;
    char host[128]; /* as the URL has it, for the channels' names */
    bool here;
    struct ipw_buf body;
    struct ipw_prom_series *series;
    size_t n, cap;
    size_t beyond; /* number of series beyond the limit */
    size_t blank;  /* number of series without a value at the first scrape */
    char first_blank[64];
    struct ipw_channel *channels;
    struct stamps *stamps;
    int64_t *values;  /* values of the current scrape */
    int64_t retry_ns; /* do not ask again before this time */
    uint64_t failures;
    size_t old; /* number of series whose time stamp stood still, of this scrape */
};

static struct ipw_prom_series *find(struct prometheus *p, const char *key)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(p->series[i].key, key) == 0) return &p->series[i];
    }
    return NULL;
}

/* The first sample of a key counts, because MIG slices and pods repeat the whole device's.  A
 * device without a value gets no channel, as with NVML; a gauge may then replace its counter. */
static void gather(void *ud, const struct ipw_prom_sample *sample)
{
    struct prometheus *p = ud;
    struct ipw_prom_series series;

    if (!ipw_prom_series_of(&series, sample) || find(p, series.key)) return;
    if (ipw_prom_series_value(&series, sample) == IPW_NO_VALUE) {
        if (p->blank++ == 0) snprintf(p->first_blank, sizeof p->first_blank, "%.60s", series.key);
        return;
    }
    if (p->n == CHANNELS_MAX) {
        p->beyond++;
        return;
    }
    IPW_GROW(p->series, p->cap, p->n + 1);
    series.channel.fresh =
        series.channel.kind == IPW_CHANNEL_GAUGE && sample->stamp_ms != INT64_MIN;
    p->series[p->n++] = series;
}

static void name_chip(void *ud, const struct ipw_prom_sample *sample)
{
    struct prometheus *p = ud;
    char chip[sizeof p->series->chip];

    if (strcmp(sample->name, "node_hwmon_chip_names") != 0) return;
    snprintf(chip, sizeof chip, "%.90s", ipw_prom_label(sample, "chip"));
    for (size_t i = 0; i < p->n; i++) {
        if (!chip[0] || strcmp(p->series[i].chip, chip) != 0) continue;
        ipw_prom_series_chip(&p->series[i], ipw_prom_label(sample, "chip_name"));
    }
}

/* Is the value with this stamp the present one?  Without a stamp it is. */
static bool is_fresh(struct stamps *s, int64_t stamp_ms, int64_t now_ns)
{
    int64_t age_ms = (int64_t)time(NULL) * 1000 - stamp_ms;
    bool first = s->newest_ms == INT64_MIN;

    if (stamp_ms == INT64_MIN) return true;
    if (stamp_ms != s->newest_ms && !(first && (age_ms > OLD_MS || age_ms < -OLD_MS)))
        ipw_meter_feed_pace_news(&s->pace, now_ns);
    s->newest_ms = stamp_ms;
    return !ipw_meter_feed_pace_is_stale(&s->pace, now_ns);
}

static void take(void *ud, const struct ipw_prom_sample *sample)
{
    struct prometheus *p = ud;
    struct ipw_prom_series series;
    const struct ipw_prom_series *known;
    size_t i;

    if (!ipw_prom_series_of(&series, sample)) return;
    known = find(p, series.key);
    i = known ? (size_t)(known - p->series) : 0;
    if (!known || p->values[i] != IPW_NO_VALUE) return;
    if (is_fresh(&p->stamps[i], sample->stamp_ms, p->source.now()))
        p->values[i] = ipw_prom_series_value(known, sample);
    else
        p->old++;
}

static int scrape(struct prometheus *p, struct ipw_err *err)
{
    return p->fetch.get(&p->kept, p->url, &p->body, TIMEOUT_NS, &p->here, err);
}

static void prometheus_read(struct ipw_source *self, int64_t *values)
{
    struct prometheus *p = (struct prometheus *)self;
    struct ipw_err err = {0};
    size_t was_old;

    for (size_t i = 0; i < p->n; i++) values[i] = IPW_NO_VALUE;
    if (self->now() < p->retry_ns) return;
    if (scrape(p, &err) < 0) {
        p->retry_ns = self->now() + RETRY_NS;
        p->failures++;
        ipw_source_set_note(&p->source, "%llu scrape%s failed: %.120s",
                            (unsigned long long)p->failures, p->failures == 1 ? "" : "s", err.text);
        return;
    }
    was_old = p->old;
    p->values = values;
    p->old = 0;
    ipw_prom_parse(ipw_buf_str(&p->body), p->body.len, take, p, NULL);
    p->values = NULL;
    if (p->old)
        ipw_source_set_note(&p->source, "the time stamps of %zu series stand still: no value",
                            p->old);
    else if (was_old)
        ipw_source_set_note(&p->source, "for a while its time stamps stood still");
}

static void prometheus_close(struct ipw_source *self)
{
    struct prometheus *p = (struct prometheus *)self;

    p->fetch.release(p->kept);
    ipw_buf_release(&p->body);
    free(p->url);
    free(p->series);
    free(p->channels);
    free(p->stamps);
    free(p);
}

/* Channel names begin with the host, so that gpu0 of two machines differ. */
static void make_channels(struct prometheus *p)
{
    p->source.period_ns = OWN_PERIOD_NS;
    p->channels = ipw_calloc(p->n, sizeof *p->channels);
    p->stamps = ipw_calloc(p->n, sizeof *p->stamps);
    for (size_t i = 0; i < p->n; i++) p->stamps[i].newest_ms = INT64_MIN;
    for (size_t i = 0; i < p->n; i++) {
        struct ipw_channel *c = &p->channels[i];
        size_t room = sizeof c->name - 1, n = strlen(p->series[i].channel.name);

        *c = p->series[i].channel;
        c->remote = !p->here;
        room = n + 1 < room ? room - n - 1 : 0;
        snprintf(c->name, sizeof c->name, "%.*s/%.52s", (int)room, p->host,
                 p->series[i].channel.name);
        snprintf(c->method, sizeof c->method, "scrape");
        ipw_channel_unique(p->channels, i, i);
        if (!p->series[i].own) p->source.period_ns = PERIOD_NS;
    }
    p->source.channels = p->channels;
    p->source.n_channels = p->n;
}

/* Without a chip name we cannot tell what a series measures, so drop it. */
static void drop_unknown_chips(struct prometheus *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->n; i++) {
        if (p->series[i].chip[0] && p->series[i].channel.scope == IPW_SCOPE_RAIL) continue;
        if (kept != i) p->series[kept] = p->series[i];
        kept++;
    }
    p->n = kept;
}

static int read_page(struct prometheus *p, struct ipw_err *err)
{
    size_t first_bad, bad;

    bad = ipw_prom_parse(ipw_buf_str(&p->body), p->body.len, gather, p, &first_bad);
    ipw_prom_parse(ipw_buf_str(&p->body), p->body.len, name_chip, p, NULL);
    drop_unknown_chips(p);
    if (p->n == 0) {
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%.200s: no known series of energy or power%s (DCGM exporter, "
                        "Scaphandre, Kepler, node_exporter, ipw-agent telemetry)",
                        p->url, bad ? ", and some lines are not samples" : "");
    }
    ipw_prom_series_choose(p->series, p->n);
    make_channels(p);
    if (p->beyond) {
        ipw_source_set_note(&p->source, "%zu series over the limit of %zu are left out", p->beyond,
                            CHANNELS_MAX);
    } else if (p->blank) {
        ipw_source_set_note(&p->source, "without a value and not counted: %s%s", p->first_blank,
                            p->blank > 1 ? " and others" : "");
    } else if (bad) {
        ipw_source_set_note(&p->source,
                            "%zu lines of the page are not samples; the first is line %zu", bad,
                            first_bad);
    }
    return 0;
}

int ipw_page_host(char *host, size_t size, const char **path, const char *url, struct ipw_err *err)
{
    const char *authority = url + 7;
    size_t n;

    if (strncasecmp(url, "https://", 8) == 0)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%.300s: https is not supported. Use the exporter's plain http address, or "
                        "a local proxy",
                        url);
    n = strncasecmp(url, "http://", 7) == 0 ? strcspn(authority, "/?#") : 0;
    if (!n) return ipw_fail(err, IPW_EINVAL, "%.300s: expected http://HOST:PORT/PATH", url);
    if (memchr(authority, '@', n))
        return ipw_fail(err, IPW_EUNSUPPORTED, "%.300s: a user in the URL is not supported", url);
    snprintf(host, size, "%.*s", (int)n, authority);
    *path = authority + n;
    return 0;
}

/* The default path is "/metrics". */
static int take_url(struct prometheus *p, const char *url, struct ipw_err *err)
{
    const char *path;
    int rc = ipw_page_host(p->host, sizeof p->host, &path, url, err);

    if (rc) return rc;
    if (*path == '/' && path[1] && path[1] != '#')
        p->url = ipw_strdup(url);
    else
        p->url = ipw_asprintf("%.*s/metrics%s", (int)(path - url), url, path + (*path == '/'));
    return 0;
}

int ipw_prometheus_open(struct ipw_source **out, const struct ipw_source_place *place,
                        const char *url, struct ipw_err *err)
{
    struct prometheus *p = ipw_calloc(1, sizeof *p);
    int rc;

    *out = NULL;
    p->fetch = *place->fetch;
    ipw_buf_init(&p->body, PAGE_MAX);
    p->source.name = "prometheus";
    p->source.read = prometheus_read;
    p->source.close = prometheus_close;
    p->source.now = ipw_now_ns;
    rc = take_url(p, url, err);
    if (rc == 0) rc = scrape(p, err);
    if (rc == 0) rc = read_page(p, err);
    if (rc < 0) {
        prometheus_close(&p->source);
        return rc;
    }
    *out = &p->source;
    return 0;
}

/* ---- a page ---- */

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
