/* A stand-in for libnvidia-ml.so.1: loaded by name (IPW_NVML_LIBRARY), told what to be by a text
 * file (IPW_STUB_NVML, read by nvmlInit_v2).  Without the file: no device.  One statement a line,
 * '#' starts a comment, devices are numbered from 0 in the order of their lines:
 *
 *   device UUID NAME LIMIT_MW [MAX_MW]
 *                                 a device; '_' in NAME becomes a space; its power limit, and the
 *                                 highest that it can be set to (0: not supported)
 *   energy N counter watts=W [period_ms=P] [start_mj=S] [origin_ms=O] [reset_after_reads=R]
 *                                 the energy counter of device N: W watts, published every P ms
 *                                 (default 100) of CLOCK_MONOTONIC, S mJ at nvmlInit_v2 (default
 *                                 1000000), or at O ms of the clock: then all processes read
 *                                 the same; after R reads it starts again from 0
 *   power N gauge watts=W         the power of device N
 *                                 (without these lines: not supported, code 3)
 *   field N ID TYPE watts=W       field ID (185, 186) of device N, in mW, as a value of that type
 *                                 (0 double ... 6 unsigned short: nvmlValueType_t)
 *   util N gpu=P memory=P         utilisation in percent; likewise not supported without
 *   memory N used=B total=B       bytes
 *   temperature N C               degrees Celsius
 *   process N PID BYTES           a process that computes on device N (-1 bytes: not known)
 *   record N BYTES                how long a process record is: 16, 24 (default), 32
 *   mig N                         device N is cut into slices; "MIG-x" names a slice of it when x
 *                                 is its UUID
 *   bus N ID                      its bus id (default 00000000:0N:00.0)
 *   fail N energy|power|handle|field|metrics CODE [times=K] [after_reads=R]
 *                                 that call returns CODE: always, or K times; from the first call
 *                                 on, or after R calls of its kind
 *   zero N after_reads=R [times=K]  the energy counter answers 0 for K calls (default 1)
 *   still N while=PATH            its energy counter stands still for as long as there is such a
 *                                 file, and then shows what it would have come to
 *   lost N after_reads=R          after R calls for energy or power: 15 (GPU is lost), for good
 *   lost N while=PATH             15 for as long as there is such a file
 *   init CODE                     nvmlInit_v2 returns CODE
 *   count CODE                    nvmlDeviceGetCount_v2 returns CODE
 *
 * A line that cannot be understood makes nvmlInit_v2 return 999 with the line on stderr.
 * The file is read anew by an nvmlInit_v2 after the last nvmlShutdown: so a test
 * reloads the driver.  stub_nvml_calls(N) says how often device N was asked for energy or power
 * (fields too) since then; stub_nvml_total() how often anything was called, ever.  Compiled with
 * STUB_INCOMPLETE it lacks an entry point, as a library that is too old does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEVICES   16
#define MAX_FIELDS    4
#define MAX_PROCESSES 128

enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    LOST = 15,
    UNKNOWN = 999
};

struct failure {
    int code;          /* 0: none */
    long times, after; /* -1: always */
    long calls, done;
};

struct field {
    unsigned id;
    int type;
    double w;
};

struct process {
    unsigned pid;
    long long bytes;
};

struct device {
    char uuid[96], name[96], bus[32], lost_while[256], still_while[256];
    unsigned long long shown_mj;
    struct field fields[MAX_FIELDS];
    int n_fields;
    int has_util, has_memory, has_temperature, mig;
    unsigned util_gpu, util_memory, celsius;
    unsigned long long used, total;
    struct process processes[MAX_PROCESSES];
    unsigned n_processes, record;
    unsigned limit_mw, max_mw;
    int has_energy, has_power;
    double energy_w, power_w;
    long long period_ms, start_mj, origin_ms;
    long reset_after, zero_after, zero_times, lost_after; /* -1: never */
    long reads, energy_reads;
    struct failure energy, power, handle, field, metrics;
};

static struct {
    int initialised, init_code, count_code;
    unsigned n;
    struct device devices[MAX_DEVICES];
} stub;
static long total_calls;

/* nvmlFieldValue_t, nvmlPciInfo_t, nvmlProcessInfo_t, nvmlUtilization_t, nvmlMemory_t */
struct field_value {
    unsigned id, scope;
    long long timestamp, latency;
    int type, rc;
    union {
        double d;
        unsigned ui;
        unsigned long ul;
        unsigned long long ull;
        long long sll;
        int si;
        unsigned short us;
    } value;
};
struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
struct process_info {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
    unsigned long long protected_bytes; /* of drivers 535.43 to 535.86 */
};
struct utilization {
    unsigned gpu, memory;
};
struct memory {
    unsigned long long total, free, used;
};

/* The library's face, as its users declare it for themselves. */
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetUUID(void *device, char *out, unsigned size);
int nvmlDeviceGetName(void *device, char *out, unsigned size);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj);
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw);
int nvmlDeviceGetPowerManagementLimitConstraints(void *device, unsigned *min_mw, unsigned *max_mw);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetIndex(void *device, unsigned *index);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci_info *pci);
int nvmlDeviceGetFieldValues(void *device, int n, struct field_value *values);
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *u);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *m);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *slice, void **device);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, void *list);
long stub_nvml_calls(unsigned index);
long stub_nvml_total(void);

static long long now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static long option(const char *line, const char *name, long otherwise)
{
    const char *at = strstr(line, name);

    return at && at[strlen(name)] == '=' ? atol(at + strlen(name) + 1) : otherwise;
}

static int parse_fail(const char *line)
{
    char what[16];
    unsigned n;
    int code;
    struct failure *f;

    if (sscanf(line, "fail %u %15s %d", &n, what, &code) != 3 || n >= stub.n) return 0;
    if (!strcmp(what, "energy")) {
        f = &stub.devices[n].energy;
    } else if (!strcmp(what, "power")) {
        f = &stub.devices[n].power;
    } else if (!strcmp(what, "handle")) {
        f = &stub.devices[n].handle;
    } else if (!strcmp(what, "field")) {
        f = &stub.devices[n].field;
    } else if (!strcmp(what, "metrics")) {
        f = &stub.devices[n].metrics;
    } else {
        return 0;
    }
    *f = (struct failure){
        .code = code, .times = option(line, "times", -1), .after = option(line, "after_reads", 0)};
    return 1;
}

static int parse_device(const char *line)
{
    struct device *d = &stub.devices[stub.n];

    if (stub.n == MAX_DEVICES) return 0;
    *d = (struct device){.reset_after = -1, .zero_after = -1, .lost_after = -1, .record = 24};
    if (sscanf(line, "device %95s %95s %u %u", d->uuid, d->name, &d->limit_mw, &d->max_mw) < 3) {
        return 0;
    }
    for (char *p = d->name; *p; p++) {
        if (*p == '_') *p = ' ';
    }
    snprintf(d->bus, sizeof d->bus, "00000000:%02X:00.0", stub.n);
    stub.n++;
    return 1;
}

static int parse_more(const char *line)
{
    unsigned n, id;
    int type;
    double w;
    struct process p;
    struct device *d;
    char bus[32];

    if (sscanf(line, "%*s %u", &n) != 1 || n >= stub.n) return 0;
    d = &stub.devices[n];
    if (sscanf(line, "field %*u %u %d watts=%lf", &id, &type, &w) == 3) {
        if (d->n_fields == MAX_FIELDS) return 0;
        d->fields[d->n_fields++] = (struct field){.id = id, .type = type, .w = w};
        return 1;
    }
    if (sscanf(line, "util %*u gpu=%u memory=%u", &d->util_gpu, &d->util_memory) == 2) {
        return d->has_util = 1;
    }
    if (sscanf(line, "memory %*u used=%llu total=%llu", &d->used, &d->total) == 2) {
        return d->has_memory = 1;
    }
    if (sscanf(line, "temperature %*u %u", &d->celsius) == 1) return d->has_temperature = 1;
    if (sscanf(line, "process %*u %u %lld", &p.pid, &p.bytes) == 2) {
        if (d->n_processes == MAX_PROCESSES) return 0;
        d->processes[d->n_processes++] = p;
        return 1;
    }
    if (sscanf(line, "record %*u %u", &d->record) == 1)
        return d->record >= 16 && d->record <= sizeof(struct process_info);
    if (!strncmp(line, "mig ", 4)) return d->mig = 1;
    if (sscanf(line, "bus %*u %31s", bus) == 1) {
        memcpy(d->bus, bus, sizeof bus);
        return 1;
    }
    return 0;
}

static int parse(const char *line)
{
    unsigned n;
    double w;

    if (sscanf(line, "init %d", &stub.init_code) == 1) return 1;
    if (sscanf(line, "count %d", &stub.count_code) == 1) return 1;
    if (!strncmp(line, "device ", 7)) return parse_device(line);
    if (!strncmp(line, "fail ", 5)) return parse_fail(line);
    if (sscanf(line, "energy %u counter watts=%lf", &n, &w) == 2 && n < stub.n) {
        struct device *d = &stub.devices[n];
        d->has_energy = 1;
        d->energy_w = w;
        d->period_ms = option(line, "period_ms", 100);
        d->start_mj = option(line, "start_mj", 1000000);
        d->reset_after = option(line, "reset_after_reads", -1);
        d->origin_ms = option(line, "origin_ms", (long)(now_ms() / d->period_ms * d->period_ms));
        return d->period_ms > 0;
    }
    if (sscanf(line, "power %u gauge watts=%lf", &n, &w) == 2 && n < stub.n) {
        stub.devices[n].has_power = 1;
        stub.devices[n].power_w = w;
        return 1;
    }
    if (sscanf(line, "zero %u", &n) == 1 && n < stub.n) {
        stub.devices[n].zero_after = option(line, "after_reads", 0);
        stub.devices[n].zero_times = option(line, "times", 1);
        return 1;
    }
    if (sscanf(line, "still %u", &n) == 1 && n < stub.n)
        return sscanf(line, "still %*u while=%255s", stub.devices[n].still_while) == 1;
    if (sscanf(line, "lost %u", &n) == 1 && n < stub.n &&
        sscanf(line, "lost %*u while=%255s", stub.devices[n].lost_while) == 1) {
        return 1;
    }
    if (sscanf(line, "lost %u", &n) == 1 && n < stub.n) {
        stub.devices[n].lost_after = option(line, "after_reads", 0);
        return 1;
    }
    return parse_more(line);
}

static int load(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[512];
    int good = 1;

    if (!f) {
        fprintf(stderr, "stub_nvml: cannot read %s\n", path);
        return 0;
    }
    while (good && fgets(line, sizeof line, f)) {
        line[strcspn(line, "#\n")] = '\0';
        if (line[strspn(line, " \t")] == '\0') continue;
        good = parse(line);
        if (!good) fprintf(stderr, "stub_nvml: %s: cannot understand: %s\n", path, line);
    }
    fclose(f);
    return good;
}

int nvmlInit_v2(void)
{
    const char *path = getenv("IPW_STUB_NVML");

    total_calls++;
    if (stub.initialised++) return OK;
    memset(&stub, 0, sizeof stub);
    if (path && path[0] && !load(path)) {
        stub.initialised = 0;
        return UNKNOWN;
    }
    stub.initialised = stub.init_code == OK;
    return stub.init_code;
}

int nvmlShutdown(void)
{
    total_calls++;
    if (!stub.initialised) return UNINITIALIZED;
    stub.initialised--;
    return OK;
}

#ifndef STUB_INCOMPLETE
int nvmlDeviceGetCount_v2(unsigned *n)
{
    total_calls++;
    if (!stub.initialised) return UNINITIALIZED;
    *n = stub.n;
    return stub.count_code;
}
#endif

static int fails(struct failure *f)
{
    if (!f->code || f->calls++ < f->after) return OK;
    if (f->times >= 0 && f->done >= f->times) return OK;
    f->done++;
    return f->code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    total_calls++;
    if (!stub.initialised) return UNINITIALIZED;
    if (index >= stub.n) return INVALID;
    *device = &stub.devices[index];
    return fails(&stub.devices[index].handle);
}

/* A slice's handle is its device's here. */
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    total_calls++;
    if (!stub.initialised) return UNINITIALIZED;
    for (unsigned i = 0; i < stub.n; i++) {
        struct device *d = &stub.devices[i];
        int slice = d->mig && !strncmp(uuid, "MIG-", 4) && !strcmp(uuid + 4, d->uuid);
        if (strcmp(uuid, d->uuid) && !slice) continue;
        *device = d;
        return fails(&d->handle);
    }
    return NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    total_calls++;
    if (!stub.initialised) return UNINITIALIZED;
    for (unsigned i = 0; i < stub.n; i++) {
        /* The library takes shorter domains than it gives. */
        const char *known = stub.devices[i].bus;
        if (strcmp(bus, known) && strcmp(bus, known + 4)) continue;
        *device = &stub.devices[i];
        return fails(&stub.devices[i].handle);
    }
    return NOT_FOUND;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *slice, void **device)
{
    *device = slice;
    return OK;
}

int nvmlDeviceGetIndex(void *device, unsigned *index)
{
    *index = (unsigned)((struct device *)device - stub.devices);
    return OK;
}

static int copy(char *out, unsigned size, const char *text)
{
    if (strlen(text) >= size) return 7; /* insufficient size */
    memcpy(out, text, strlen(text) + 1);
    return OK;
}

int nvmlDeviceGetUUID(void *device, char *out, unsigned size)
{
    return copy(out, size, ((struct device *)device)->uuid);
}

int nvmlDeviceGetName(void *device, char *out, unsigned size)
{
    return copy(out, size, ((struct device *)device)->name);
}

int nvmlDeviceGetPciInfo_v3(void *device, struct pci_info *pci)
{
    memset(pci, 0, sizeof *pci);
    return copy(pci->bus_id, sizeof pci->bus_id, ((struct device *)device)->bus);
}

static int ask(struct device *d, struct failure *f)
{
    long before = d->reads;

    total_calls++;
    if (!stub.initialised) return UNINITIALIZED;
    d->reads++;
    if (d->lost_after >= 0 && before >= d->lost_after) return LOST;
    if (d->lost_while[0] && !access(d->lost_while, F_OK)) return LOST;
    return fails(f);
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
    struct device *d = device;
    int rc = ask(d, &d->energy);
    long long ms;
    long read;

    if (rc) return rc;
    if (!d->has_energy) return NOT_SUPPORTED;
    read = d->energy_reads++;
    ms = now_ms() / d->period_ms * d->period_ms;
    if (d->reset_after >= 0 && read >= d->reset_after) {
        d->reset_after = -1;
        d->start_mj = 0;
        d->origin_ms = ms;
    }
    ms -= d->origin_ms;
    *mj = (unsigned long long)(d->start_mj + (long long)(d->energy_w * (double)ms));
    if (d->still_while[0] && d->shown_mj && !access(d->still_while, F_OK)) *mj = d->shown_mj;
    d->shown_mj = *mj;
    read -= d->zero_after;
    if (d->zero_after >= 0 && read >= 0 && read < d->zero_times) *mj = 0;
    return OK;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
    struct device *d = device;
    int rc = ask(d, &d->power);

    if (rc) return rc;
    if (!d->has_power) return NOT_SUPPORTED;
    *mw = (unsigned)(d->power_w * 1000);
    return OK;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw)
{
    const struct device *d = device;

    *mw = d->limit_mw;
    return d->limit_mw ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetPowerManagementLimitConstraints(void *device, unsigned *min_mw, unsigned *max_mw)
{
    const struct device *d = device;

    *min_mw = 0;
    *max_mw = d->max_mw;
    return d->max_mw ? OK : NOT_SUPPORTED;
}

static void set_field(struct field_value *v, const struct field *f)
{
    double mw = f->w * 1000;

    v->rc = OK;
    v->type = f->type;
    switch (f->type) {
    case 0: v->value.d = mw; break;
    case 1: v->value.ui = (unsigned)mw; break;
    case 2: v->value.ul = (unsigned long)mw; break;
    case 3: v->value.ull = (unsigned long long)mw; break;
    case 4: v->value.sll = (long long)mw; break;
    case 5: v->value.si = (int)mw; break;
    case 6: v->value.us = (unsigned short)mw; break;
    default: break; /* a type of a later library */
    }
}

int nvmlDeviceGetFieldValues(void *device, int n, struct field_value *values)
{
    struct device *d = device;
    int rc = ask(d, &d->field);

    if (rc) return rc;
    for (int i = 0; i < n; i++) {
        values[i].rc = NOT_SUPPORTED;
        for (int k = 0; k < d->n_fields; k++) {
            if (d->fields[k].id == values[i].id) set_field(&values[i], &d->fields[k]);
        }
    }
    return OK;
}

static int ask_metric(struct device *d, int has)
{
    int rc;

    total_calls++;
    if (!stub.initialised) return UNINITIALIZED;
    rc = fails(&d->metrics);
    return rc ? rc : has ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *u)
{
    struct device *d = device;

    *u = (struct utilization){.gpu = d->util_gpu, .memory = d->util_memory};
    return ask_metric(d, d->has_util);
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *m)
{
    struct device *d = device;

    *m = (struct memory){.total = d->total, .used = d->used, .free = d->total - d->used};
    return ask_metric(d, d->has_memory);
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    struct device *d = device;

    *celsius = d->celsius;
    return sensor ? INVALID : ask_metric(d, d->has_temperature);
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    *current = *pending = (unsigned)((struct device *)device)->mig;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, void *list)
{
    const struct device *d = device;
    unsigned room = *n;
    int rc = ask_metric(device, 1);

    if (rc) return rc;
    *n = d->n_processes;
    if (room < d->n_processes) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < d->n_processes; i++) {
        struct process_info p = {.pid = d->processes[i].pid,
                                 .bytes = (unsigned long long)d->processes[i].bytes,
                                 .gpu_instance = 0xffffffff,
                                 .compute_instance = 0xffffffff};
        memcpy((char *)list + i * d->record, &p, d->record);
    }
    return OK;
}

long stub_nvml_total(void) { return total_calls; }

long stub_nvml_calls(unsigned index) { return index < stub.n ? stub.devices[index].reads : -1; }
