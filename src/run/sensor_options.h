/* run/sensor_options.h: the options of sensors and of the attribution of energy.
 *
 * Plain values; run/sensors.h uses them. */
#ifndef IPW_RUN_SENSOR_OPTIONS_H
#define IPW_RUN_SENSOR_OPTIONS_H

#include <stdbool.h>

#include "base/option.h"

struct ipw_sensor_options {
    struct ipw_opt_list telemetry; /* the sensors to read; empty: auto */
    const char *gpu;               /* measure only these GPUs; or NULL */
    const char *share;             /* the sharing rule; NULL: that of the resumed run, else phase */
    const char *energy;            /* location of the model's devices: auto, local or remote */
    bool no_estimate;              /* do not estimate processors without a sensor */
    bool require_quiet;            /* refuse to start on a busy machine */
    int64_t baseline_ns;           /* duration of the baseline; 0: not measured */
    int64_t sample_interval_ns;    /* 0: the default; slow sensors use their own period */
};

#endif
