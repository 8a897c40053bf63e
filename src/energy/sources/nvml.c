/* NVIDIA devices: opened, read, recovered.  docs/hardware.md, "NVIDIA", has the rules. */
#include "energy/sources/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/nvml_api.h"
#include "energy/sources/sysfs.h"

#define MAX_DEVICES     64
#define UNKNOWN_MAX_W   1500
#define OPEN_TRIES      3 /* one "not supported" proves nothing */
#define DEVICE_CHANNELS (2 + NVML_METRICS)
/* Counter and power publish about every 100 ms.  Polling five times as often locates the counter's
 * edges to a tenth of that. */
#define PUBLISH_NS (100 * IPW_NS_PER_MS)
#define PERIOD_NS  (PUBLISH_NS / 5)
/* Due a little early, so that jitter in a schedule of 20 ms does not skip a turn. */
#define POWER_DUE_NS     (PUBLISH_NS - PERIOD_NS / 2)
#define BACKOFF_FIRST_NS IPW_NS_PER_S
#define BACKOFF_MOST_NS  (64 * IPW_NS_PER_S)

enum nvml_metric {
    NVML_UTIL,
    NVML_MEM_UTIL,
    NVML_MEM_USED,
    NVML_MEM_TOTAL,
    NVML_TEMP,
    NVML_METRICS,
};
/* Metrics that one call returns are read together. */
enum nvml_ask { NVML_ASK_UTILIZATION, NVML_ASK_MEMORY, NVML_ASK_TEMPERATURE, NVML_ASKS };

struct nvml_device {
    void *handle;
    unsigned index;
    char uuid[96];
    char bus_id[32];  /* "00000000:01:00.0" */
    int status_fd;    /* descriptor of runtime_status; -1: it never sleeps */
    bool lost, shown; /* shown: a reading has shown the loss */
    bool told_zero;   /* the source's note says that its gauge reports 0 W */
    int64_t retry_ns, backoff_ns;
    int energy_channel, power_channel; /* -1: it has none */
    int metric_channel[NVML_METRICS];  /* likewise */
    unsigned power_field;              /* 0: nvmlDeviceGetPowerUsage */
    unsigned long long last_mj;
    int64_t power_mw, power_ns; /* last reading, and its time */
    int64_t metrics[NVML_METRICS], metric_ns[NVML_ASKS];
    unsigned turn; /* which metric is next */
};

struct nvml {
    struct ipw_source source;
    struct nvml_api api;
    char *library; /* path of the library */
    bool initialised;
    struct nvml_device *devices;
    size_t n_devices;
    struct ipw_channel *channels;
    bool *lost; /* one for each channel */
    size_t n_channels;
};

/* ---- reading ---- */

static bool is_terminal(int rc)
{
    return rc == NVML_GPU_IS_LOST || rc == NVML_RESET_REQUIRED || rc == NVML_VERSION_MISMATCH ||
           rc == NVML_UNINITIALIZED || rc == NVML_DRIVER_NOT_LOADED;
}

static void lose(struct nvml *v, struct nvml_device *d, int rc)
{
    if (!d->backoff_ns)
        ipw_source_add_note(&v->source, "gpu%u: %s (%d)", d->index, ipw_nvml_return_name(rc), rc);
    d->lost = true;
    d->shown = false;
    d->backoff_ns = d->backoff_ns ? 2 * d->backoff_ns : BACKOFF_FIRST_NS;
    if (d->backoff_ns > BACKOFF_MOST_NS) d->backoff_ns = BACKOFF_MOST_NS;
    d->retry_ns = v->source.now() + d->backoff_ns;
    d->power_mw = IPW_NO_VALUE;
    for (int m = 0; m < NVML_METRICS; m++) d->metrics[m] = IPW_NO_VALUE;
}

static bool good(struct nvml *v, struct nvml_device *d, int rc)
{
    if (is_terminal(rc)) lose(v, d, rc);
    if (rc == NVML_SUCCESS) d->backoff_ns = 0;
    return rc == NVML_SUCCESS;
}

static int64_t field_mw(const struct nvml_field *f)
{
    double mw = -1;

    switch (f->type) {
    case 0: mw = f->value.d; break;
    case 1: mw = f->value.ui; break;
    case 2: mw = (double)f->value.ul; break;
    case 3: mw = (double)f->value.ull; break;
    case 4: mw = (double)f->value.sll; break;
    case 5: mw = f->value.si; break;
    case 6: mw = f->value.us; break;
    default: break;
    }
    return mw >= 0 && mw <= 4e9 ? (int64_t)mw : IPW_NO_VALUE;
}

static int read_power(const struct nvml *v, struct nvml_device *d, int64_t *mw)
{
    unsigned usage = 0;
    int rc;

    *mw = IPW_NO_VALUE;
    if (d->power_field) {
        struct nvml_field f = {.id = d->power_field};
        if (!v->api.fields) return NVML_FUNCTION_NOT_FOUND;
        rc = v->api.fields(d->handle, 1, &f);
        if (rc == NVML_SUCCESS) rc = f.rc;
        if (rc != NVML_SUCCESS) return rc;
        *mw = field_mw(&f);
        return *mw == IPW_NO_VALUE ? NVML_UNKNOWN : NVML_SUCCESS;
    }
    if (!v->api.power) return NVML_FUNCTION_NOT_FOUND;
    rc = v->api.power(d->handle, &usage);
    if (rc == NVML_SUCCESS) *mw = usage;
    return rc;
}

static int64_t thousandfold(unsigned long long x)
{
    return x > (unsigned long long)INT64_MAX / 1000 ? IPW_NO_VALUE : (int64_t)x * 1000;
}

static int64_t percent(unsigned x) { return x <= 100 ? (int64_t)x * 1000 : IPW_NO_VALUE; }

/* Reads the values of one call; no values if it failed. */
static int read_metrics(const struct nvml *v, struct nvml_device *d, enum nvml_ask ask)
{
    int64_t *m = d->metrics;
    int rc = NVML_FUNCTION_NOT_FOUND;

    if (ask == NVML_ASK_UTILIZATION) {
        struct nvml_utilization u = {0};
        if (v->api.utilization) rc = v->api.utilization(d->handle, &u);
        m[NVML_UTIL] = rc ? IPW_NO_VALUE : percent(u.gpu);
        m[NVML_MEM_UTIL] = rc ? IPW_NO_VALUE : percent(u.memory);
    } else if (ask == NVML_ASK_MEMORY) {
        struct nvml_memory memory = {0};
        if (v->api.memory) rc = v->api.memory(d->handle, &memory);
        m[NVML_MEM_USED] = rc ? IPW_NO_VALUE : thousandfold(memory.used);
        m[NVML_MEM_TOTAL] = rc ? IPW_NO_VALUE : thousandfold(memory.total);
    } else {
        unsigned celsius = 0;
        if (v->api.temperature) rc = v->api.temperature(d->handle, 0, &celsius);
        m[NVML_TEMP] = rc ? IPW_NO_VALUE : thousandfold(celsius);
    }
    return rc;
}

static int64_t read_energy(struct nvml *v, struct nvml_device *d)
{
    unsigned long long mj = 0;
    int rc = v->api.energy ? v->api.energy(d->handle, &mj) : NVML_FUNCTION_NOT_FOUND;

    if (!good(v, d, rc) || mj > (unsigned long long)INT64_MAX / 1000) return IPW_NO_VALUE;
    /* Some drivers answer 0 occasionally if asked often; a real reset shows as a small number
     * next. */
    if (mj == 0 && d->last_mj > 0) return IPW_NO_VALUE;
    d->last_mj = mj;
    return (int64_t)mj * 1000;
}

/* This device is awake, so a power of 0 is a fault of its driver. */
static void read_due_power(struct nvml *v, struct nvml_device *d, int64_t now)
{
    if (d->energy_channel >= 0 && now - d->power_ns < POWER_DUE_NS) return;
    d->power_ns = now;
    good(v, d, read_power(v, d, &d->power_mw));
    if (d->power_mw != 0) return;
    d->power_mw = IPW_NO_VALUE;
    if (!d->told_zero) ipw_source_add_note(&v->source, "gpu%u: ignored 0 W while awake", d->index);
    d->told_zero = true;
}

static const enum nvml_metric first_of[NVML_ASKS] = {NVML_UTIL, NVML_MEM_USED, NVML_TEMP};

/* Makes at most one call, and only when its turn has come. */
static void read_due_metric(struct nvml *v, struct nvml_device *d, int64_t now)
{
    for (int i = 0; i < NVML_ASKS; i++) {
        unsigned ask = (d->turn + (unsigned)i) % NVML_ASKS;
        if (d->metric_channel[first_of[ask]] < 0 || now - d->metric_ns[ask] < POWER_DUE_NS) {
            continue;
        }
        d->metric_ns[ask] = now;
        d->turn = ask + 1;
        good(v, d, read_metrics(v, d, (enum nvml_ask)ask));
        return;
    }
}

static bool all_lost(const struct nvml *v)
{
    for (size_t i = 0; i < v->n_devices; i++) {
        if (!v->devices[i].lost) return false;
    }
    return true;
}

/* Finds the device by UUID, because indices may have changed.  If the library cannot do that, tries
 * the index, and checks that its UUID is the known one. */
static int find_again(const struct nvml *v, struct nvml_device *d)
{
    char uuid[sizeof d->uuid] = "";
    void *handle = NULL;
    int rc;

    if (v->api.by_uuid && d->uuid[0]) {
        rc = v->api.by_uuid(d->uuid, &handle);
    } else {
        rc = v->api.handle(d->index, &handle);
        if (rc == NVML_SUCCESS && d->uuid[0]) {
            rc = v->api.uuid ? v->api.uuid(handle, uuid, sizeof uuid) : NVML_FUNCTION_NOT_FOUND;
            if (rc == NVML_SUCCESS && strcmp(uuid, d->uuid)) rc = NVML_NOT_FOUND;
        }
    }
    if (rc == NVML_SUCCESS) d->handle = handle;
    return rc;
}

/* The driver may have been replaced.  Keep nothing of the old one, including its library, which
 * only works with its own driver ("library and driver versions differ"). */
static void reload(struct nvml *v)
{
    if (v->initialised) v->api.shutdown();
    ipw_nvml_unload(&v->api);
    v->initialised = ipw_nvml_load(&v->api, v->library, NULL) == 0 && v->api.init() == NVML_SUCCESS;
}

static void revive(struct nvml *v, struct nvml_device *d)
{
    int rc = NVML_DRIVER_NOT_LOADED;

    if (all_lost(v)) reload(v);
    if (!v->initialised || (rc = find_again(v, d)) != NVML_SUCCESS) {
        lose(v, d, rc);
        return;
    }
    d->lost = false;
    d->last_mj = 0;
    d->power_ns = d->metric_ns[0] = d->metric_ns[1] = d->metric_ns[2] = 0;
}

/* A device that was lost in the middle of a reading may already have given its energy.  The loss
 * then shows in the next reading. */
static void show_loss(struct nvml *v, struct nvml_device *d, const int64_t *values)
{
    const int all[] = {d->energy_channel, d->power_channel};
    bool shows = d->lost;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i] < 0) continue;
        v->lost[all[i]] = d->lost;
        shows &= values[all[i]] == IPW_NO_VALUE;
    }
    d->shown |= shows;
}

static void read_device(struct nvml *v, struct nvml_device *d, int64_t *values)
{
    int64_t now = v->source.now();

    if (d->status_fd >= 0 && ipw_sysfs_says(d->status_fd, "suspended")) {
        if (d->energy_channel >= 0 && d->last_mj > 0) {
            values[d->energy_channel] = (int64_t)d->last_mj * 1000;
        }
        if (d->power_channel >= 0) values[d->power_channel] = 0;
        return;
    }
    if (d->lost && d->shown && now >= d->retry_ns) revive(v, d);
    if (d->energy_channel >= 0 && !d->lost) values[d->energy_channel] = read_energy(v, d);
    if (d->power_channel >= 0 && !d->lost) read_due_power(v, d, now);
    if (!d->lost) read_due_metric(v, d, now);
    if (d->power_channel >= 0) values[d->power_channel] = d->power_mw;
    for (int m = 0; m < NVML_METRICS; m++) {
        if (d->metric_channel[m] >= 0) values[d->metric_channel[m]] = d->metrics[m];
    }
    show_loss(v, d, values);
}

static void nvml_read(struct ipw_source *self, int64_t *values)
{
    struct nvml *v = (struct nvml *)self;

    for (size_t i = 0; i < v->n_channels; i++) values[i] = IPW_NO_VALUE;
    for (size_t i = 0; i < v->n_devices; i++) read_device(v, &v->devices[i], values);
}

static void nvml_close(struct ipw_source *self)
{
    struct nvml *v = (struct nvml *)self;

    if (v->initialised) v->api.shutdown();
    ipw_nvml_unload(&v->api);
    for (size_t i = 0; i < v->n_devices; i++) {
        if (v->devices[i].status_fd >= 0) close(v->devices[i].status_fd);
    }
    free(v->library);
    free(v->devices);
    free(v->channels);
    free(v->lost);
    free(v);
}

/* ---- the devices of a selection; see nvml.h for its words ---- */

static bool is_index(const char *word)
{
    size_t digits = strspn(word, "0123456789");

    return digits > 0 && digits < 4 && word[digits] == '\0';
}

/* A slice's UUID does not name its device, so ask the library.  Up to R470 it was "MIG-GPU-<the
 * device's>/<instance>/<instance>". */
static bool slice_of(const struct nvml *v, const char *word, const struct nvml_device *d)
{
    char uuid[96];
    void *slice, *parent;

    if (!strncasecmp(word, "MIG-GPU-", 8)) {
        size_t n = strcspn(word + 4, "/");
        return strlen(d->uuid) == n && !strncasecmp(word + 4, d->uuid, n);
    }
    if (!v->api.by_uuid || !v->api.mig_parent || !v->api.uuid) return false;
    if (v->api.by_uuid(word, &slice) != NVML_SUCCESS) return false;
    if (v->api.mig_parent(slice, &parent) != NVML_SUCCESS) return false;
    return v->api.uuid(parent, uuid, sizeof uuid) == NVML_SUCCESS && !strcmp(uuid, d->uuid);
}

static bool word_means(const struct nvml *v, const char *word, const struct nvml_device *d)
{
    if (!strncmp(word, "gpu", 3) && is_index(word + 3)) word += 3; /* the name of its channels */
    if (is_index(word)) return strtoul(word, NULL, 10) == d->index;
    if (ipw_pci_is_id(word)) return ipw_pci_same_id(word, d->bus_id);
    if (!strncasecmp(word, "MIG-", 4)) return slice_of(v, word, d);
    return !strncasecmp(word, "GPU-", 4) && word[4] && d->uuid[0] &&
           !strncasecmp(word, d->uuid, strlen(word));
}

/* ---- opening: which devices are chosen, and what each can report ---- */

static int try_energy(const struct nvml *v, struct nvml_device *d)
{
    int rc = NVML_NOT_SUPPORTED;

    for (int i = 0; v->api.energy && rc == NVML_NOT_SUPPORTED && i < OPEN_TRIES; i++) {
        rc = v->api.energy(d->handle, &d->last_mj);
    }
    return rc;
}

/* Stores in the device how its power is read, and a first value. */
static int try_power(const struct nvml *v, struct nvml_device *d)
{
    static const unsigned fields[] = {NVML_FIELD_POWER_INSTANT, NVML_FIELD_POWER_AVERAGE, 0};
    int rc = NVML_NOT_SUPPORTED;

    for (size_t f = 0; f < sizeof fields / sizeof *fields && rc != NVML_SUCCESS; f++) {
        d->power_field = fields[f];
        if (d->power_field && !v->api.fields) continue;
        rc = NVML_NOT_SUPPORTED;
        for (int i = 0; rc == NVML_NOT_SUPPORTED && i < (d->power_field ? 1 : OPEN_TRIES); i++) {
            rc = read_power(v, d, &d->power_mw);
        }
    }
    d->power_ns = v->source.now();
    if (d->power_mw == 0) d->power_ns = 0; /* not a reading; the next read notes it */
    if (d->power_mw == 0) d->power_mw = IPW_NO_VALUE;
    return rc == NVML_FUNCTION_NOT_FOUND ? NVML_NOT_SUPPORTED : rc;
}

/* The device's highest power: its limit and a third.  The limit may be raised while we run, up to
 * the device's maximum; use that if it is known. */
static int64_t max_w(const struct nvml *v, void *handle)
{
    unsigned limit = 0, least = 0, most = 0;

    if (v->api.limit && v->api.limit(handle, &limit) != NVML_SUCCESS) limit = 0;
    if (v->api.limits && v->api.limits(handle, &least, &most) != NVML_SUCCESS) most = 0;
    if (most > limit) limit = most;
    return limit > 0 ? ((int64_t)limit * 13 / 10 + 999) / 1000 : UNKNOWN_MAX_W;
}

static struct ipw_channel *add_channel(struct nvml *v, const struct ipw_channel *device,
                                       const char *suffix, enum ipw_channel_kind kind,
                                       const char *unit, int *at)
{
    struct ipw_channel *c = &v->channels[v->n_channels];

    *c = *device;
    c->kind = kind;
    c->period_ns = PUBLISH_NS;
    strncat(c->name, suffix, sizeof c->name - strlen(c->name) - 1);
    snprintf(c->unit, sizeof c->unit, "%s", unit);
    *at = (int)v->n_channels++;
    return c;
}

static void add_power(struct nvml *v, struct nvml_device *d, const struct ipw_channel *device,
                      bool in_sum)
{
    struct ipw_channel *c =
        add_channel(v, device, in_sum ? "" : "/power", IPW_CHANNEL_GAUGE, "mW", &d->power_channel);

    c->in_sum = in_sum;
    /* Yang et al. 2024 ("Part-time power measurements"): 25 ms of each 100, or the last second. */
    c->window_ns = d->power_field == NVML_FIELD_POWER_INSTANT ? 25 * IPW_NS_PER_MS : IPW_NS_PER_S;
    if (d->power_field) {
        snprintf(c->method, sizeof c->method, "field %u (%s)", d->power_field,
                 d->power_field == NVML_FIELD_POWER_INSTANT ? "instant" : "average");
    } else {
        snprintf(c->method, sizeof c->method, "nvmlDeviceGetPowerUsage");
    }
}

static void add_metrics(struct nvml *v, struct nvml_device *d, const struct ipw_channel *device)
{
    static const struct {
        const char *suffix, *unit;
        enum nvml_ask ask;
    } all[NVML_METRICS] = {
        [NVML_UTIL] = {"/util", "pct", NVML_ASK_UTILIZATION},
        [NVML_MEM_UTIL] = {"/mem_util", "pct", NVML_ASK_UTILIZATION},
        [NVML_MEM_USED] = {"/mem_used", "bytes", NVML_ASK_MEMORY},
        [NVML_MEM_TOTAL] = {"/mem_total", "bytes", NVML_ASK_MEMORY},
        [NVML_TEMP] = {"/temp", "celsius", NVML_ASK_TEMPERATURE},
    };

    for (int a = 0; a < NVML_ASKS; a++) {
        bool answers = read_metrics(v, d, (enum nvml_ask)a) == NVML_SUCCESS;
        d->metric_ns[a] = v->source.now();
        for (int m = 0; answers && m < NVML_METRICS; m++) {
            if ((int)all[m].ask != a) continue;
            add_channel(v, device, all[m].suffix, IPW_CHANNEL_METRIC, all[m].unit,
                        &d->metric_channel[m]);
        }
    }
}

static bool is_cut(const struct nvml *v, void *handle)
{
    unsigned current = 0, pending = 0;

    return v->api.mig && v->api.mig(handle, &current, &pending) == NVML_SUCCESS && current == 1;
}

static struct ipw_channel describe(struct nvml *v, const struct nvml_device *d)
{
    struct ipw_channel c = {.domain = IPW_DOMAIN_GPU, .scope = IPW_SCOPE_DEVICE};
    char name[96] = "";

    c.max_w = UNKNOWN_MAX_W;
    if (!d->lost) {
        if (!v->api.name || v->api.name(d->handle, name, sizeof name)) name[0] = '\0';
        c.max_w = max_w(v, d->handle);
        c.whole_gpu = is_cut(v, d->handle);
    }
    /* Grace Hopper's counter includes the processor on the module. */
    if (strstr(name, "GH200")) c.scope = IPW_SCOPE_MODULE;
    snprintf(c.name, sizeof c.name, "gpu%u", d->index);
    /* The UUID (40 characters) identifies the device; the name is for a person. */
    if (c.whole_gpu) {
        snprintf(c.device, sizeof c.device, "%.41s MIG: whole GPU", d->uuid);
        ipw_source_add_note(&v->source, "gpu%u: MIG: whole GPU", d->index);
    } else {
        snprintf(c.device, sizeof c.device, "%.41s%s%.20s", d->uuid,
                 d->uuid[0] && name[0] ? " " : "", name);
    }
    return c;
}

/* The device exists but does not answer.  Keep its place in the sum, without a value, so that the
 * other devices do not pass for all.  It may come back. */
static void add_lost(struct nvml *v, struct nvml_device *d, const struct ipw_channel *device,
                     int rc)
{
    struct ipw_channel *c =
        add_channel(v, device, "", IPW_CHANNEL_COUNTER, "uJ", &d->energy_channel);

    c->in_sum = true;
    snprintf(c->method, sizeof c->method, "TotalEnergyConsumption");
    if (!d->lost) lose(v, d, rc);
}

/* Energy is the integral, so it is in the sum; power is in the sum only if there is no energy. */
static void add_device(struct nvml *v, struct nvml_device *d, const struct ipw_source_place *place)
{
    struct ipw_channel device = describe(v, d);
    int energy = d->lost ? NVML_GPU_IS_LOST : try_energy(v, d);
    int power = d->lost ? NVML_GPU_IS_LOST : try_power(v, d);

    if (is_terminal(energy) || (energy != NVML_SUCCESS && is_terminal(power))) {
        add_lost(v, d, &device, is_terminal(energy) ? energy : power);
        v->n_devices++;
        return;
    }
    if (energy == NVML_SUCCESS) {
        struct ipw_channel *c =
            add_channel(v, &device, "", IPW_CHANNEL_COUNTER, "uJ", &d->energy_channel);
        c->in_sum = true;
        snprintf(c->method, sizeof c->method, "TotalEnergyConsumption");
        if (power == NVML_SUCCESS) add_power(v, d, &device, false);
    } else if (power == NVML_SUCCESS) {
        add_power(v, d, &device, true);
        ipw_source_add_note(&v->source, "gpu%u: energy %s (%d), power is integrated instead",
                            d->index, ipw_nvml_return_name(energy), energy);
    } else {
        ipw_source_add_note(&v->source, "gpu%u not counted: energy %s (%d), power %s (%d)",
                            d->index, ipw_nvml_return_name(energy), energy,
                            ipw_nvml_return_name(power), power);
        return;
    }
    if (!place->no_metrics) add_metrics(v, d, &device);
    d->status_fd = ipw_nvml_status_open(place->pci, d->bus_id);
    v->n_devices++;
}

/* Reads the facts by which the device can be found again. */
static void identify(const struct nvml *v, struct nvml_device *d)
{
    struct nvml_pci pci = {0};

    if (!v->api.uuid || v->api.uuid(d->handle, d->uuid, sizeof d->uuid)) d->uuid[0] = '\0';
    if (v->api.pci && v->api.pci(d->handle, &pci) == NVML_SUCCESS) {
        pci.bus_id[sizeof pci.bus_id - 1] = '\0';
        memcpy(d->bus_id, pci.bus_id, sizeof d->bus_id);
    }
}

static struct nvml_device blank(unsigned index)
{
    struct nvml_device d = {.index = index,
                            .status_fd = -1,
                            .energy_channel = -1,
                            .power_channel = -1,
                            .power_mw = IPW_NO_VALUE};

    for (int m = 0; m < NVML_METRICS; m++) {
        d.metric_channel[m] = -1;
        d.metrics[m] = IPW_NO_VALUE;
    }
    return d;
}

static int find_by_index(struct nvml *v, struct nvml_device *found, size_t *n, const char *library,
                         struct ipw_err *err)
{
    unsigned count = 0;
    int rc = v->api.count(&count);

    if (rc != NVML_SUCCESS) return ipw_nvml_fail(err, library, "nvmlDeviceGetCount_v2", rc);
    for (unsigned i = 0; i < count && i < MAX_DEVICES; i++) {
        struct nvml_device *d = &found[*n];
        *d = blank(i);
        rc = v->api.handle(i, &d->handle);
        if (rc == NVML_NO_PERMISSION) { /* not ours: a container or a job has only some devices */
            ipw_source_add_note(&v->source, "gpu%u not counted: %s (%d)", i,
                                ipw_nvml_return_name(rc), rc);
            continue;
        }
        if (rc == NVML_SUCCESS)
            identify(v, d);
        else
            lose(v, d, rc);
        ++*n;
    }
    return 0;
}

/* Some devices sleep, and asking for a device by its index would wake it. */
static int find_awake(struct nvml *v, struct nvml_device *found, size_t *n,
                      const struct nvml_pci_device *pci, size_t n_pci, const char *library,
                      struct ipw_err *err)
{
    if (!v->api.by_bus) {
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%.120s: nvmlDeviceGetHandleByPciBusId_v2 is missing, and a GPU sleeps",
                        library);
    }
    for (size_t i = 0; i < n_pci; i++) {
        struct nvml_device *d = &found[*n];
        int rc;

        if (pci[i].asleep) {
            ipw_source_add_note(&v->source, "%s sleeps and is not woken", pci[i].bus_id);
            continue;
        }
        *d = blank((unsigned)i);
        rc = v->api.by_bus(pci[i].bus_id, &d->handle);
        if (rc == NVML_SUCCESS && v->api.index) rc = v->api.index(d->handle, &d->index);
        if (rc == NVML_NO_PERMISSION || rc == NVML_NOT_FOUND) {
            ipw_source_add_note(&v->source, "%s not counted: %s (%d)", pci[i].bus_id,
                                ipw_nvml_return_name(rc), rc);
            continue;
        }
        /* Its index is its position among them, because both are ordered by bus id. */
        if (rc != NVML_SUCCESS) {
            snprintf(d->bus_id, sizeof d->bus_id, "%s", pci[i].bus_id);
            lose(v, d, rc);
            ++*n;
            continue;
        }
        identify(v, d);
        ++*n;
    }
    return 0;
}

static int not_there(const struct nvml *v, const char *word, const struct nvml_device *found,
                     size_t n, struct ipw_err *err)
{
    char list[320] = "";

    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%u %.41s %.16s", at ? ", " : "", found[i].index,
                 found[i].uuid, found[i].bus_id);
    }
    return ipw_fail(err, IPW_ENOTFOUND, "no GPU '%.60s': there is %s%s%.100s", word,
                    list[0] ? list : "none", v->source.note[0] ? "; " : "", v->source.note);
}

static int choose(const struct nvml *v, bool *chosen, const struct nvml_device *found, size_t n,
                  const char *gpus, struct ipw_err *err)
{
    char word[100];
    const char *p = gpus;
    bool any = false;

    while (ipw_sysfs_word(word, sizeof word, &p)) {
        bool there = false;
        any = true;
        for (size_t i = 0; i < n; i++) {
            if (!word_means(v, word, &found[i])) continue;
            chosen[i] = there = true;
        }
        if (!there) return not_there(v, word, found, n, err);
    }
    for (size_t i = 0; i < n && !any; i++) chosen[i] = true;
    return 0;
}

/* Checks before the library is loaded.  Only the library can resolve words other than bus ids, and
 * it would wake the device.  So if all devices sleep, such words are taken for sleeping ones. */
static int refuse_sleeping(const struct nvml_pci_device *pci, size_t n_pci, const char *gpus,
                           bool *some, struct ipw_err *err)
{
    char word[100];
    const char *p = gpus, *sleeper = NULL;
    size_t asleep = 0;

    for (size_t i = 0; i < n_pci; i++) {
        asleep += pci[i].asleep;
        if (pci[i].asleep) sleeper = pci[i].bus_id;
    }
    *some = asleep > 0;
    if (asleep > 0 && asleep < n_pci) {
        sleeper = NULL;
        while (!sleeper && ipw_sysfs_word(word, sizeof word, &p)) {
            for (size_t i = 0; i < n_pci; i++) {
                if (pci[i].asleep && ipw_pci_same_id(word, pci[i].bus_id)) {
                    sleeper = pci[i].bus_id;
                }
            }
        }
    }
    if (!sleeper) return 0;
    return ipw_fail(err, IPW_EUNSUPPORTED,
                    "the GPU at %s sleeps (runtime_status suspended) and is not woken. Start its "
                    "work first, then this command",
                    sleeper);
}

static int open_devices(struct nvml *v, const struct ipw_source_place *place, struct ipw_err *err)
{
    struct nvml_pci_device pci[MAX_DEVICES];
    struct nvml_device *found;
    bool chosen[MAX_DEVICES] = {false}, some_sleep = false;
    size_t n = 0, n_pci = ipw_nvml_pci_scan(pci, MAX_DEVICES, place->pci);
    int rc = refuse_sleeping(pci, n_pci, place->gpus, &some_sleep, err);

    if (rc == 0) rc = ipw_nvml_load(&v->api, v->library, err);
    if (rc < 0) return rc;
    rc = v->api.init();
    if (rc != NVML_SUCCESS) return ipw_nvml_fail(err, v->library, "nvmlInit_v2", rc);
    v->initialised = true;
    found = ipw_calloc(MAX_DEVICES, sizeof *found);
    rc = some_sleep ? find_awake(v, found, &n, pci, n_pci, v->library, err)
                    : find_by_index(v, found, &n, v->library, err);
    if (rc == 0) rc = choose(v, chosen, found, n, place->gpus, err);
    v->devices = ipw_calloc(n, sizeof *v->devices);
    v->channels = ipw_calloc(DEVICE_CHANNELS * n, sizeof *v->channels);
    v->lost = ipw_calloc(DEVICE_CHANNELS * n + 1, sizeof *v->lost);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (!chosen[i]) continue;
        v->devices[v->n_devices] = found[i];
        add_device(v, &v->devices[v->n_devices], place);
    }
    free(found);
    if (rc == 0 && v->n_channels == 0) {
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%.120s: no device with an energy or power reading%s%s", v->library,
                        v->source.note[0] ? ": " : "", v->source.note);
    }
    return rc;
}

int ipw_nvml_open(struct ipw_source **out, const struct ipw_source_place *place, const char *name,
                  struct ipw_err *err)
{
    struct nvml *v = ipw_calloc(1, sizeof *v);
    int rc;

    *out = NULL;
    v->library = ipw_strdup(place->nvml);
    v->source = (struct ipw_source){.name = name,
                                    .read = nvml_read,
                                    .close = nvml_close,
                                    .now = place->now ? place->now : ipw_now_ns,
                                    .period_ns = PERIOD_NS};
    rc = open_devices(v, place, err);
    if (rc < 0) {
        nvml_close(&v->source);
        return rc;
    }
    v->source.channels = v->channels;
    v->source.n_channels = v->n_channels;
    v->source.lost = v->lost;
    *out = &v->source;
    return 0;
}

/* ---- processes that compute ---- */

#define FIRST_ROOM 32
#define MOST_ROOM  4096
#define TRIES      4 /* processes may start between asking for their number and listing them */

/* An entry begins with the process and its memory in bytes.  Its length depends on the library,
 * even under one name (_v3 has had entries of 24 and of 32 bytes).  So each gets room for the
 * longest, filled with a mark; the remaining marks show the true length. */
struct record {
    unsigned pid;
    unsigned long long bytes; /* all ones: unknown */
};
#define LONGEST 32
#define MARK    0xa5

static size_t record_length(const unsigned char *list, unsigned n, size_t size)
{
    static const size_t lengths[] = {16, 24, LONGEST};

    while (size > 0 && list[size - 1] == MARK) size--;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (n * lengths[i] >= size) return lengths[i];
    }
    return LONGEST;
}

/* Fetches the entries of a device into *list, which the caller frees. */
static int list_device(const struct nvml *v, const struct nvml_device *d, unsigned char **list,
                       unsigned *n, size_t *length)
{
    unsigned room = FIRST_ROOM;
    int rc = NVML_INSUFFICIENT_SIZE;

    *list = NULL;
    if (!v->api.processes) return NVML_FUNCTION_NOT_FOUND;
    for (int i = 0; rc == NVML_INSUFFICIENT_SIZE && i < TRIES; i++) {
        size_t size = room * (size_t)LONGEST;
        free(*list);
        *list = ipw_malloc(size);
        memset(*list, MARK, size);
        *n = room;
        rc = v->api.processes(d->handle, n, *list);
        if (rc == NVML_SUCCESS) {
            if (*n > room) *n = room; /* a library that reports more than it had room for */
            *length = record_length(*list, *n, size);
        }
        room = *n > room ? *n + FIRST_ROOM : 2 * room;
        if (room > MOST_ROOM) room = MOST_ROOM;
    }
    return rc;
}

static void add(struct ipw_gpu_process *p, const struct nvml_device *d, const unsigned char *at)
{
    struct record r;

    memcpy(&r, at, sizeof r);
    *p = (struct ipw_gpu_process){.pid = r.pid, .bytes = -1};
    snprintf(p->channel, sizeof p->channel, "gpu%u", d->index);
    if (r.bytes <= (unsigned long long)INT64_MAX) p->bytes = (int64_t)r.bytes;
}

int ipw_nvml_processes(struct ipw_gpu_process **out, size_t *n, struct ipw_source *source,
                       struct ipw_err *err)
{
    const struct nvml *v = (const struct nvml *)source;
    size_t cap = 0;

    *out = NULL;
    *n = 0;
    if (source->read != nvml_read) {
        return ipw_fail(err, IPW_EINVAL, "source %s is not NVML's", source->name);
    }
    for (size_t i = 0; i < v->n_devices; i++) {
        const struct nvml_device *d = &v->devices[i];
        unsigned char *list;
        unsigned count = 0;
        size_t length = 0;
        char what[48];
        int rc;

        if (d->lost) continue;
        rc = list_device(v, d, &list, &count, &length);

        if (rc != NVML_SUCCESS) {
            free(list);
            free(*out);
            *out = NULL;
            *n = 0;
            snprintf(what, sizeof what, "processes of gpu%u", d->index);
            return ipw_nvml_fail(err, source->name, what, rc);
        }
        for (unsigned k = 0; k < count; k++) {
            IPW_GROW(*out, cap, *n + 1);
            add(&(*out)[(*n)++], d, list + k * length);
        }
        free(list);
    }
    return 0;
}
