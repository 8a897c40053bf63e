/* Finds the NVIDIA GPUs in the PCI tree, and which of them sleep.  Used before the management
 * library, because its first call would wake them.  See nvml_priv.h. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "energy/sources/nvml_priv.h"
#include "energy/sources/sysfs.h"

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
