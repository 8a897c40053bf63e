/* Lists the processes that compute on the GPUs; see nvml.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "energy/sources/nvml_priv.h"

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
    if (source->read != ipw_nvml_read) {
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
