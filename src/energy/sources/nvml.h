/* energy/sources/nvml.h: NVIDIA GPUs through the management library, opened at run time.
 *
 * Each chosen device has its energy counter ("gpu0") and its power beside it ("gpu0/power", in the
 * sum only without a counter).  Optional metrics are utilisation ("gpu0/util"), activity of its
 * memory ("gpu0/mem_util"), memory used and installed ("gpu0/mem_used", "gpu0/mem_total"), and
 * temperature ("gpu0/temp").  The number is the management library's own index, independent of
 * CUDA's order.  Energy is read with every reading.  Power is read about every 100 ms, its own
 * period.  To keep a row cheap, each reading asks for one metric in turn; in between, the last
 * value is repeated, or there is none.  Power is the instant field 186 if the driver has it, else
 * the average field 185, else nvmlDeviceGetPowerUsage (a one-second average since Ampere).  The
 * channel's `method` says which.
 *
 * A device divided into slices (MIG) is counted as a whole; `whole_gpu` is set, and its text says
 * so.
 *
 * A laptop's GPU that sleeps (runtime_status "suspended") is not woken: while all chosen devices
 * sleep, the library is not even loaded.  If a device falls asleep later, its counter repeats and
 * its power is 0.
 *
 * A lost device is asked again after 1 s, then 2 s, and so on up to 64 s.  Its handle is then found
 * again by its UUID; if all devices are lost, the library is started again first.  So a reloaded
 * driver comes back, in a new chain (`lost` of source.h).  A device that is lost when the source is
 * opened keeps its place in the sum, without a value, so that the other devices do not pass for
 * all.  A device without permission (another job's GPU) gets no channels.  A driver that is loaded
 * after the start is not noticed, because the channels of a run are fixed at its start: start
 * again.  err->detail is NVML's return code. */
#ifndef IPW_ENERGY_SOURCES_NVML_H
#define IPW_ENERGY_SOURCES_NVML_H

#include <stdint.h>

#include "energy/source.h"

/* place->gpus: by UUID ("GPU-8f2c..." or its beginning; "MIG-..." chooses the device that the slice
 * belongs to), by the library's index ("0", "gpu0"), or by bus id ("0000:01:00.0", "01:00.0").  A
 * missing device is IPW_ENOTFOUND. */
int ipw_nvml_open(struct ipw_source **out, const struct ipw_source_place *place, const char *name,
                  struct ipw_err *err);

struct ipw_gpu_process {
    char channel[16]; /* "gpu0" */
    unsigned pid;
    int64_t bytes; /* its device memory; -1: unknown */
};
/* The processes that compute on the chosen devices now; the caller frees *out (NULL if there are
 * none).  `source` was opened by ipw_nvml_open(); no sampler may read it meanwhile. */
int ipw_nvml_processes(struct ipw_gpu_process **out, size_t *n, struct ipw_source *source,
                       struct ipw_err *err);

#endif
