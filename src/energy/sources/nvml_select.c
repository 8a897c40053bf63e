/* Decides which devices a selection names; see nvml.h for its words. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "energy/sources/nvml_priv.h"
#include "energy/sources/sysfs.h"

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

bool ipw_nvml_word_means(const struct nvml *v, const char *word, const struct nvml_device *d)
{
    if (!strncmp(word, "gpu", 3) && is_index(word + 3)) word += 3; /* the name of its channels */
    if (is_index(word)) return strtoul(word, NULL, 10) == d->index;
    if (ipw_pci_is_id(word)) return ipw_pci_same_id(word, d->bus_id);
    if (!strncasecmp(word, "MIG-", 4)) return slice_of(v, word, d);
    return !strncasecmp(word, "GPU-", 4) && word[4] && d->uuid[0] &&
           !strncasecmp(word, d->uuid, strlen(word));
}
