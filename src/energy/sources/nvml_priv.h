/* energy/sources/nvml_priv.h: the parts of the NVML source.
 *
 * nvml_api.c loads the library and names its return codes; nvml_pci.c finds in the PCI tree which
 * GPUs sleep; nvml_select.c decides which devices are chosen; nvml_open.c finds out what each can
 * report; nvml.c reads and recovers; nvml_procs.c lists processes.  We declare only the entry
 * points that we use ourselves.  Internal to these files. */
#ifndef IPW_ENERGY_SOURCES_NVML_PRIV_H
#define IPW_ENERGY_SOURCES_NVML_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "energy/sources/nvml.h"

#define NVML_MAX_DEVICES 64
/* Counter and power publish about every 100 ms.  Polling five times as often locates the counter's
 * edges to a tenth of that. */
#define NVML_PUBLISH_NS INT64_C(100000000)
#define NVML_PERIOD_NS  (NVML_PUBLISH_NS / 5)

enum { /* nvmlReturn_t */
       NVML_SUCCESS = 0,
       NVML_UNINITIALIZED = 1,
       NVML_NOT_SUPPORTED = 3,
       NVML_NO_PERMISSION = 4,
       NVML_NOT_FOUND = 6,
       NVML_INSUFFICIENT_SIZE = 7,
       NVML_DRIVER_NOT_LOADED = 9,
       NVML_FUNCTION_NOT_FOUND = 13,
       NVML_GPU_IS_LOST = 15,
       NVML_RESET_REQUIRED = 16,
       NVML_VERSION_MISMATCH = 18,
       NVML_UNKNOWN = 999,
};

enum { NVML_FIELD_POWER_AVERAGE = 185, NVML_FIELD_POWER_INSTANT = 186 };

struct nvml_field { /* nvmlFieldValue_t */
    unsigned id, scope;
    long long timestamp_us, latency_us;
    /* 0 double, 1 unsigned, 2 unsigned long, 3 unsigned long long, 4 long long, 5 int, 6 unsigned
     * short. */
    int type;
    int rc;
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

struct nvml_utilization {
    unsigned gpu, memory; /* percent during the last period */
};
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_pci { /* nvmlPciInfo_t */
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};
struct nvml_api {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned index, void **device);
    /* Each of the following may be missing. */
    int (*by_uuid)(const char *uuid, void **device);
    int (*by_bus)(const char *bus_id, void **device);
    int (*index)(void *device, unsigned *index);
    int (*uuid)(void *device, char *out, unsigned size);
    int (*name)(void *device, char *out, unsigned size);
    int (*pci)(void *device, struct nvml_pci *pci);
    int (*energy)(void *device, unsigned long long *mj);
    int (*power)(void *device, unsigned *mw);
    int (*fields)(void *device, int n, struct nvml_field *fields);
    int (*limit)(void *device, unsigned *mw);
    int (*limits)(void *device, unsigned *min_mw, unsigned *max_mw);
    int (*utilization)(void *device, struct nvml_utilization *u);
    int (*memory)(void *device, struct nvml_memory *m);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*mig)(void *device, unsigned *current, unsigned *pending);
    int (*mig_parent)(void *slice, void **device);
    int (*processes)(void *device, unsigned *n, void *list); /* entries: see nvml_procs.c */
};

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

int ipw_nvml_load(struct nvml_api *api, const char *library, struct ipw_err *err);
void ipw_nvml_unload(struct nvml_api *api); /* also safe if it was never loaded */
const char *ipw_nvml_return_name(int rc);
int ipw_nvml_fail(struct ipw_err *err, const char *library, const char *call, int rc);

/* The NVIDIA display devices in a PCI tree. */
struct nvml_pci_device {
    char bus_id[32]; /* "0000:01:00.0" */
    bool asleep;
};
size_t ipw_nvml_pci_scan(struct nvml_pci_device *list, size_t max, const char *pci_root);
/* Opens PCI_ROOT/<bus id>/power/runtime_status; -1 if it does not exist. */
int ipw_nvml_status_open(const char *pci_root, const char *bus_id);

/* Does a word of a selection name this device? */
bool ipw_nvml_word_means(const struct nvml *v, const char *word, const struct nvml_device *d);

/* After these codes the handle never works again. */
bool ipw_nvml_terminal(int rc);
/* Marks the device as lost: it is not asked again before its back-off has passed. */
void ipw_nvml_lose(struct nvml *v, struct nvml_device *d, int rc);
void ipw_nvml_read(struct ipw_source *self, int64_t *values);
void ipw_nvml_close(struct ipw_source *self);
/* Return NVML's return code; a value only on success. */
int ipw_nvml_read_power(const struct nvml *v, struct nvml_device *d, int64_t *mw);
int ipw_nvml_read_metrics(const struct nvml *v, struct nvml_device *d, enum nvml_ask ask);

#endif
