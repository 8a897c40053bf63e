/* Reads NVIDIA devices, and recovers lost ones.  docs/hardware.md, "NVIDIA", has the rules. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "energy/sources/nvml_priv.h"
#include "energy/sources/sysfs.h"

#define BACKOFF_FIRST_NS IPW_NS_PER_S
#define BACKOFF_MOST_NS  (64 * IPW_NS_PER_S)
/* Due a little early, so that jitter in a schedule of 20 ms does not skip a turn. */
#define POWER_DUE_NS (NVML_PUBLISH_NS - NVML_PERIOD_NS / 2)

bool ipw_nvml_terminal(int rc)
{
    return rc == NVML_GPU_IS_LOST || rc == NVML_RESET_REQUIRED || rc == NVML_VERSION_MISMATCH ||
           rc == NVML_UNINITIALIZED || rc == NVML_DRIVER_NOT_LOADED;
}

void ipw_nvml_lose(struct nvml *v, struct nvml_device *d, int rc)
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
    if (ipw_nvml_terminal(rc)) ipw_nvml_lose(v, d, rc);
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

int ipw_nvml_read_power(const struct nvml *v, struct nvml_device *d, int64_t *mw)
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
int ipw_nvml_read_metrics(const struct nvml *v, struct nvml_device *d, enum nvml_ask ask)
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
    good(v, d, ipw_nvml_read_power(v, d, &d->power_mw));
    if (d->power_mw != 0) return;
    d->power_mw = IPW_NO_VALUE;
    if (!d->told_zero)
        ipw_source_add_note(&v->source, "gpu%u: 0 W is no reading of a board that is awake",
                            d->index);
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
        good(v, d, ipw_nvml_read_metrics(v, d, (enum nvml_ask)ask));
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
        ipw_nvml_lose(v, d, rc);
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

void ipw_nvml_read(struct ipw_source *self, int64_t *values)
{
    struct nvml *v = (struct nvml *)self;

    for (size_t i = 0; i < v->n_channels; i++) values[i] = IPW_NO_VALUE;
    for (size_t i = 0; i < v->n_devices; i++) read_device(v, &v->devices[i], values);
}

void ipw_nvml_close(struct ipw_source *self)
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
