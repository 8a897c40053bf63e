/* run/sensor_options.h: what the command line says about sensors and about whose joules they read.
 *
 * Plain values; run/sensors.h acts on them. */
#ifndef IPW_RUN_SENSOR_OPTIONS_H
#define IPW_RUN_SENSOR_OPTIONS_H

#include <stdbool.h>

#include "base/option.h"

struct ipw_sensor_options {
    struct ipw_opt_list telemetry; /* the sensors to read; empty: auto */
    const char *gpu;               /* of all GPUs only these, or NULL */
    const char *share;             /* the sharing rule; NULL: as the run was begun, else phase */
    const char *energy;            /* where the model's devices are: auto, local or remote */
    bool undo_mean;                /* of gauges that are running means */
    bool no_estimate;              /* no model of the processors where no sensor reads them */
    bool require_quiet;            /* refuse to start on a busy machine */
    int64_t baseline_ns;           /* how long the idle machine is measured; 0: it is not */
    int64_t sample_interval_ns;    /* 0: by default, and slow sensors by their own period */
};

#endif
