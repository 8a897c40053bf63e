/* energy/sources/nvml_api.h: NVIDIA's management library, and its GPUs in the PCI tree.
 *
 * The entry points that we use ourselves, with their types and return codes, loaded at run time.
 * The PCI tree tells which GPUs sleep before the library is used, because its first call would wake
 * them.  For nvml.c alone. */
#ifndef IPW_ENERGY_SOURCES_NVML_API_H
#define IPW_ENERGY_SOURCES_NVML_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

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
    int (*processes)(void *device, unsigned *n, void *list); /* entries: see list_device() */
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

#endif
