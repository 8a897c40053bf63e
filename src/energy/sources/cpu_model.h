/* energy/sources/cpu_model.h: an estimate in the place of a sensor.
 *
 * Not a sensor: it reads how busy the processors were (/proc/stat) and says what energy/power_model.h makes
 * of it, as three cumulative channels of kind "estimate": the middle, the least and the most.  No sum
 * has them.  ipw_source_set_open_with() opens it where no sensor of this machine's processors was
 * found and estimates were not refused. */
#ifndef IPW_ENERGY_SOURCES_CPU_MODEL_H
#define IPW_ENERGY_SOURCES_CPU_MODEL_H

#include "energy/power_model.h"
#include "energy/source.h"

enum { IPW_CPU_MODEL_MID, IPW_CPU_MODEL_LO, IPW_CPU_MODEL_HI, IPW_CPU_MODEL_CHANNELS };

struct ipw_cpu_model_options {
    const char *proc;     /* "/proc" */
    const char *powercap; /* for the power limits */
    const char *saved;    /* file of a calibration; NULL: none */
};

/* IPW_EUNSUPPORTED where /proc does not tell. */
int ipw_cpu_model_open(struct ipw_source **out, const struct ipw_cpu_model_options *options,
                       struct ipw_err *err);
/* The share of their time that all processors together were busy, by two first lines of /proc/stat;
 * NAN when no time passed between them. */
double ipw_cpu_model_busy(const char *before, const char *after);

#endif
