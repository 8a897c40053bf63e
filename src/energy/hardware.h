/* energy/hardware.h: the hardware of this machine, and its labels.
 *
 * There are two labels.  One follows the upstream project's rule with all its quirks, so that
 * folders and tables of both programs agree.  The other is a sane one of ours ("4x H100 80GB",
 * "EPYC 9654").  The facts are read from /proc and /sys below the given roots.  Owns nothing. */
#ifndef IPW_ENERGY_HARDWARE_H
#define IPW_ENERGY_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "energy/source.h"
#include "energy/trust.h"

/* Upstream's label for a GPU's name (NULL or "": no GPU) and a processor's. */
void ipw_hardware_label_upstream(char *out, size_t size, const char *gpu, const char *cpu);
struct ipw_hardware {
    char cpu[128];                   /* model name; "" if unknown */
    int64_t sockets, cores, threads; /* 0: unknown */
    char governor[32];               /* "" if unknown */
    char virtualised[48];            /* "" on bare metal, else the source of that finding */
    bool virtualised_known;
    struct ipw_hardware_gpus {
        char model[64]; /* of the first one; "" without a GPU */
        size_t n;
    } gpu, other_gpu;         /* those of the first maker; those of another one */
    int64_t gpu_memory_bytes; /* memory of one GPU; 0: unknown */
    char driver[64];          /* version of NVIDIA's kernel module; "" without it */
};

/* Our label. */
void ipw_hardware_label(char *out, size_t size, const struct ipw_hardware *f);

/* NULL roots: /proc and /sys.  The GPUs come from the set's channels (`set` may be NULL). */
void ipw_hardware_gather(struct ipw_hardware *f, const char *proc, const char *sys,
                         const struct ipw_source_set *set);

/* Appends a JSON object: host, kernel, cpu, memory, labels, sensors and the result of their
 * self-test (NULL: no self-test was made). */
void ipw_hardware_json(struct ipw_buf *out, const struct ipw_source_set *sources,
                       const struct ipw_trust *trust);

#endif
