/* Finds out which NVIDIA devices are chosen, and what each can report.  See nvml.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/nvml_priv.h"
#include "energy/sources/sysfs.h"

#define UNKNOWN_MAX_W   1500
#define OPEN_TRIES      3 /* one "not supported" proves nothing */
#define DEVICE_CHANNELS (2 + NVML_METRICS)

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
            rc = ipw_nvml_read_power(v, d, &d->power_mw);
        }
    }
    d->power_ns = v->source.now();
    if (d->power_mw == 0) d->power_ns = 0; /* not a reading; nvml.c notes it at the next one */
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
    c->period_ns = NVML_PUBLISH_NS;
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
        bool answers = ipw_nvml_read_metrics(v, d, (enum nvml_ask)a) == NVML_SUCCESS;
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
    if (!d->lost) ipw_nvml_lose(v, d, rc);
}

/* Energy is the integral, so it is in the sum; power is in the sum only if there is no energy. */
static void add_device(struct nvml *v, struct nvml_device *d, const struct ipw_source_place *place)
{
    struct ipw_channel device = describe(v, d);
    int energy = d->lost ? NVML_GPU_IS_LOST : try_energy(v, d);
    int power = d->lost ? NVML_GPU_IS_LOST : try_power(v, d);

    if (ipw_nvml_terminal(energy) || (energy != NVML_SUCCESS && ipw_nvml_terminal(power))) {
        add_lost(v, d, &device, ipw_nvml_terminal(energy) ? energy : power);
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
    for (unsigned i = 0; i < count && i < NVML_MAX_DEVICES; i++) {
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
            ipw_nvml_lose(v, d, rc);
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
            ipw_nvml_lose(v, d, rc);
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
            if (!ipw_nvml_word_means(v, word, &found[i])) continue;
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
    struct nvml_pci_device pci[NVML_MAX_DEVICES];
    struct nvml_device *found;
    bool chosen[NVML_MAX_DEVICES] = {false}, some_sleep = false;
    size_t n = 0, n_pci = ipw_nvml_pci_scan(pci, NVML_MAX_DEVICES, place->pci);
    int rc = refuse_sleeping(pci, n_pci, place->gpus, &some_sleep, err);

    if (rc == 0) rc = ipw_nvml_load(&v->api, v->library, err);
    if (rc < 0) return rc;
    rc = v->api.init();
    if (rc != NVML_SUCCESS) return ipw_nvml_fail(err, v->library, "nvmlInit_v2", rc);
    v->initialised = true;
    found = ipw_calloc(NVML_MAX_DEVICES, sizeof *found);
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
                                    .read = ipw_nvml_read,
                                    .close = ipw_nvml_close,
                                    .now = place->now ? place->now : ipw_now_ns,
                                    .period_ns = NVML_PERIOD_NS};
    rc = open_devices(v, place, err);
    if (rc < 0) {
        ipw_nvml_close(&v->source);
        return rc;
    }
    v->source.channels = v->channels;
    v->source.n_channels = v->n_channels;
    v->source.lost = v->lost;
    *out = &v->source;
    return 0;
}
