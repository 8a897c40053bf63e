/* energy/sources/cpu_model.h: an estimate for a machine without a sensor.
 *
 * Not a sensor.  It reads how busy the processors were (/proc/stat) and turns that into energy by a
 * model of the machine, as three cumulative channels of kind "estimate": middle, least and most.
 * They are in no sum.  The model is a table of watts over utilisation, which place->estimate makes
 * from the facts of the machine (lua/ipw/power_model.lua has the laws).  ipw_source_set_estimate()
 * opens it if no sensor of this machine's processors was found. */
#ifndef IPW_ENERGY_SOURCES_CPU_MODEL_H
#define IPW_ENERGY_SOURCES_CPU_MODEL_H

#include "energy/source.h"

enum { IPW_CPU_MODEL_MID, IPW_CPU_MODEL_LO, IPW_CPU_MODEL_HI, IPW_CPU_MODEL_CHANNELS };

/* Needs the place's proc, powercap and estimate.  IPW_EUNSUPPORTED if /proc lacks the facts. */
int ipw_cpu_model_open(struct ipw_source **out, const struct ipw_source_place *place,
                       const char *name, struct ipw_err *err);
/* The busy share of all processors together, from two first lines of /proc/stat; NAN if no time
 * passed between them. */
double ipw_cpu_model_busy(const char *before, const char *after);

#endif
