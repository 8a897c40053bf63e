/* The management library's entry points and return codes; see nvml_priv.h. */
#include <dlfcn.h>
#include <string.h>

#include "energy/sources/nvml_priv.h"

const char *ipw_nvml_return_name(int rc)
{
    switch (rc) {
    case NVML_SUCCESS: return "success";
    case 1: return "uninitialized";
    case 2: return "invalid argument";
    case NVML_NOT_SUPPORTED: return "not supported";
    case NVML_NO_PERMISSION: return "no permission";
    case 5: return "already initialized";
    case 6: return "not found";
    case 7: return "insufficient size";
    case 8: return "insufficient external power";
    case NVML_DRIVER_NOT_LOADED: return "driver not loaded";
    case 10: return "timeout";
    case 11: return "interrupt request issue";
    case 12: return "library not found";
    case 13: return "function not found";
    case 14: return "corrupted infoROM";
    case NVML_GPU_IS_LOST: return "GPU is lost";
    case NVML_RESET_REQUIRED: return "reset required";
    case 17: return "operating system call failed";
    case NVML_VERSION_MISMATCH: return "library and driver versions differ";
    case 19: return "in use";
    case 20: return "memory";
    case 21: return "no data";
    case 22: return "vGPU ECC not supported";
    case 23: return "insufficient resources";
    case 24: return "frequency not supported";
    case 25: return "argument version mismatch";
    case 26: return "deprecated";
    case 27: return "not ready";
    case 28: return "GPU not found";
    case 29: return "invalid state";
    case NVML_UNKNOWN: return "unknown error";
    default: return "unlisted error";
    }
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
