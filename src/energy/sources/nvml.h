/* energy/sources/nvml.h: NVIDIA GPUs through the management library, opened at run time.
 *
 * For each chosen device: its energy counter ("gpu0"), its power beside it ("gpu0/power"; in the
 * sum's place when there is no counter), and on request metrics: utilisation ("gpu0/util"), how
 * busy its memory is ("gpu0/mem_util"), memory used and there ("gpu0/mem_used", "gpu0/mem_total"),
 * temperature ("gpu0/temp").  The number is the management library's own index, whatever order CUDA
 * has.  Energy is read with every reading; power about every 100 ms, which is as often as it moves;
 * one metric in turn with each reading, so that a row stays cheap: between two looks the last value
 * is repeated, or there is none.  Power is the instant field 186 where the driver has it, else the
 * average field 185, else nvmlDeviceGetPowerUsage (a one-second average since Ampere): the
 * channel's `method` says which.
 *
 * A device cut into slices (MIG) is counted whole; `whole_gpu` is set, and its text says so.
 *
 * A laptop's GPU that sleeps (runtime_status "suspended") is not woken: the library is not even
 * loaded while all chosen devices sleep.  One that falls asleep while it is watched stands still:
 * its counter repeats, its power is 0.
 *
 * A lost device is not asked again for 1 s, then 2 s, and so on up to 64 s; then its handle is taken
 * anew by its UUID, after the library was started anew when all devices are lost: so a driver that
 * is reloaded comes back, in a new chain (`lost` of source.h).  One that is lost when the source is
 * opened has its place in the sum all the same, without a value, so that the others do not pass for
 * all; one that may not be asked (a job's other boards) has none.  There is no
 * hook for a driver that is loaded only after the start: the channels of a run are fixed when it
 * starts, and who waits for one starts again.  err->detail is NVML's return code. */
#ifndef IPW_ENERGY_SOURCES_NVML_H
#define IPW_ENERGY_SOURCES_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "energy/source.h"

struct ipw_nvml_options {
    const char *library; /* NULL: "libnvidia-ml.so.1" */
    /* Which devices, separated by commas, each by UUID ("GPU-8f2c..." or the beginning of it;
     * "MIG-..." chooses the device that it is a part of), by the library's index ("0", "gpu0"), or by
     * bus id ("0000:01:00.0", "01:00.0").  NULL or "": all.  One that is not there is IPW_ENOTFOUND. */
    const char *gpus;
    const char *pci_root; /* NULL: "/sys/bus/pci/devices" */
    bool metrics;
    int64_t (*now)(void); /* NULL: ipw_now_ns */
};
/* `options` may be NULL: all devices, no metrics. */
int ipw_nvml_open(struct ipw_source **out, const struct ipw_nvml_options *options,
                  struct ipw_err *err);

struct ipw_gpu_process {
    char channel[16]; /* "gpu0" */
    unsigned pid;
    int64_t bytes; /* device memory it holds; -1: not known */
};
/* The processes that compute on the chosen devices now; *out is freed by the caller (NULL when there
 * is none).  `source` is one that ipw_nvml_open() opened, not being read by a sampler meanwhile. */
int ipw_nvml_processes(struct ipw_gpu_process **out, size_t *n, struct ipw_source *source,
                       struct ipw_err *err);

#endif
