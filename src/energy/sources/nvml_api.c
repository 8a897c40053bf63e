#include "energy/sources/nvml_api.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "energy/sources/sysfs.h"

const char *ipw_nvml_return_name(int rc)
{
    static const char *const names[] = {"success",
                                        "uninitialized",
                                        "invalid argument",
                                        "not supported",
                                        "no permission",
                                        "already initialized",
                                        "not found",
                                        "insufficient size",
                                        "insufficient external power",
                                        "driver not loaded",
                                        "timeout",
                                        "interrupt request issue",
                                        "library not found",
                                        "function not found",
                                        "corrupted infoROM",
                                        "GPU is lost",
                                        "reset required",
                                        "operating system call failed",
                                        "library and driver versions differ",
                                        "in use",
                                        "memory",
                                        "no data",
                                        "vGPU ECC not supported",
                                        "insufficient resources",
                                        "frequency not supported",
                                        "argument version mismatch",
                                        "deprecated",
                                        "not ready",
                                        "GPU not found",
                                        "invalid state"};

    if (rc == NVML_UNKNOWN) return "unknown error";
    return rc >= 0 && rc < (int)(sizeof names / sizeof *names) ? names[rc] : "unlisted error";
}

/* What a person can do about it; "" if nothing. */
static const char *remedy(int rc)
{
    switch (rc) {
    case NVML_NO_PERMISSION: return ": run as a user who may open /dev/nvidiactl";
    case NVML_DRIVER_NOT_LOADED: return ": modprobe nvidia (as root)";
    case NVML_RESET_REQUIRED: return ": nvidia-smi --gpu-reset (as root)";
    case NVML_VERSION_MISMATCH: return ": reload the nvidia module or reboot";
    default: return "";
    }
}

int ipw_nvml_fail(struct ipw_err *err, const char *library, const char *call, int rc)
{
    enum ipw_code code = rc == NVML_NO_PERMISSION ? IPW_EPERM : IPW_EUNSUPPORTED;

    ipw_fail(err, code, "%.120s: %s: %s (%d)%s", library, call, ipw_nvml_return_name(rc), rc,
             remedy(rc));
    if (err) err->detail = rc;
    return code;
}

void ipw_nvml_unload(struct nvml_api *api)
{
    if (api->library) dlclose(api->library);
    *api = (struct nvml_api){0};
}

int ipw_nvml_load(struct nvml_api *api, const char *library, struct ipw_err *err)
{
    /* POSIX guarantees that a symbol's address survives a conversion to void *. */
    const struct {
        const char *symbol;
        void *where;
        bool needed;
    } table[] = {
        {"nvmlInit_v2", &api->init, true},
        {"nvmlShutdown", &api->shutdown, true},
        {"nvmlDeviceGetCount_v2", &api->count, true},
        {"nvmlDeviceGetHandleByIndex_v2", &api->handle, true},
        {"nvmlDeviceGetHandleByUUID", &api->by_uuid, false},
        {"nvmlDeviceGetHandleByPciBusId_v2", &api->by_bus, false},
        {"nvmlDeviceGetIndex", &api->index, false},
        {"nvmlDeviceGetUUID", &api->uuid, false},
        {"nvmlDeviceGetName", &api->name, false},
        {"nvmlDeviceGetPciInfo_v3", &api->pci, false},
        {"nvmlDeviceGetTotalEnergyConsumption", &api->energy, false},
        {"nvmlDeviceGetPowerUsage", &api->power, false},
        {"nvmlDeviceGetFieldValues", &api->fields, false},
        {"nvmlDeviceGetEnforcedPowerLimit", &api->limit, false},
        {"nvmlDeviceGetPowerManagementLimitConstraints", &api->limits, false},
        {"nvmlDeviceGetUtilizationRates", &api->utilization, false},
        {"nvmlDeviceGetMemoryInfo", &api->memory, false},
        {"nvmlDeviceGetTemperature", &api->temperature, false},
        {"nvmlDeviceGetMigMode", &api->mig, false},
        {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle", &api->mig_parent, false},
        /* The first that exists is used; only the layout of _v2 never changed. */
        {"nvmlDeviceGetComputeRunningProcesses_v2", &api->processes, false},
        {"nvmlDeviceGetComputeRunningProcesses_v3", &api->processes, false},
        {"nvmlDeviceGetComputeRunningProcesses", &api->processes, false},
    };

    api->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!api->library) {
        const char *why = dlerror();
        return ipw_fail(err, IPW_EUNSUPPORTED, "no NVIDIA library: %.300s", why ? why : library);
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        void *symbol = dlsym(api->library, table[i].symbol), *there;
        if (!symbol && table[i].needed) {
            return ipw_fail(err, IPW_EUNSUPPORTED, "%.120s: it has no %s", library,
                            table[i].symbol);
        }
        memcpy(&there, table[i].where, sizeof there);
        if (!there) memcpy(table[i].where, &symbol, sizeof symbol);
    }
    return 0;
}

/* ---- the PCI tree ---- */

static bool is_nvidia_display(const char *dir)
{
    char vendor[16], class_[16];

    return ipw_sysfs_line(vendor, sizeof vendor, dir, "vendor") && !strcmp(vendor, "0x10de") &&
           ipw_sysfs_line(class_, sizeof class_, dir, "class") && !strncmp(class_, "0x03", 4);
}

size_t ipw_nvml_pci_scan(struct nvml_pci_device *list, size_t max, const char *pci_root)
{
    char **names = ipw_sysfs_list(pci_root, "");
    size_t n = 0;

    for (size_t i = 0; names && names[i] && n < max; i++) {
        char dir[PATH_MAX], status[32];

        if (strlen(names[i]) >= sizeof list[n].bus_id) continue;
        if (snprintf(dir, sizeof dir, "%s/%s", pci_root, names[i]) >= (int)sizeof dir) continue;
        if (!is_nvidia_display(dir)) continue;
        list[n] = (struct nvml_pci_device){0};
        memcpy(list[n].bus_id, names[i], strlen(names[i]) + 1);
        list[n].asleep = ipw_sysfs_line(status, sizeof status, dir, "power/runtime_status") &&
                         !strcmp(status, "suspended");
        n++;
    }
    ipw_sysfs_free_list(names);
    return n;
}

int ipw_nvml_status_open(const char *pci_root, const char *bus_id)
{
    char id[IPW_PCI_ID_BYTES], path[PATH_MAX];

    if (!ipw_pci_canonical(id, bus_id)) return -1;
    if (snprintf(path, sizeof path, "%s/%s/power/runtime_status", pci_root, id) >=
        (int)sizeof path) {
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}
