/* energy/hardware.h: what hardware this is, and the names it goes by.
 *
 * Two labels: the upstream project's, by its own rule with all its quirks, so that directories and
 * tables of both programs agree, and a sane one of ours ("4x H100
 * 80GB", "EPYC 9654").  The facts are gathered from /proc and /sys below the roots that are given.
 * Nothing is owned. */
#ifndef IPW_ENERGY_HARDWARE_H
#define IPW_ENERGY_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "energy/selftest.h"
#include "energy/source.h"

/* Upstream's label of a GPU's name (NULL or "": there is none) and a processor's. */
void ipw_hardware_label_upstream(char *out, size_t size, const char *gpu, const char *cpu);
/* Ours.  `gpus`: how many of them. */
void ipw_hardware_label(char *out, size_t size, const char *gpu, size_t gpus, const char *cpu);

struct ipw_hardware {
    char cpu[128];                   /* model name; "" unknown */
    int64_t sockets, cores, threads; /* 0: not known */
    char governor[32];               /* "" unknown */
    char virtualised[48];            /* "" when it is not, else what says so */
    bool virtualised_known;
    char gpu[64]; /* model of the first GPU; "" without */
    size_t gpus;
    int64_t gpu_memory_bytes; /* of one; 0: not known */
    char driver[64];          /* of NVIDIA's kernel module; "" without */
};

/* NULL roots: /proc and /sys.  GPUs are those of the set's channels (`set` may be NULL). */
void ipw_hardware_gather(struct ipw_hardware *f, const char *proc, const char *sys,
                         const struct ipw_source_set *set);

/* A JSON object: host, kernel, cpu, memory, labels, sensors and what their self-test
 * said (NULL: it was not made). */
void ipw_hardware_json(struct ipw_buf *out, const struct ipw_source_set *sources,
                       const struct ipw_selftest *selftest);

#endif
