/* run/sensors_priv.h: shared by sensors.c (opens and reads the sensors) and sensors_watch.c (notes
 * what happens to them during a run). */
#ifndef IPW_RUN_SENSORS_PRIV_H
#define IPW_RUN_SENSORS_PRIV_H

#include "run/sensors.h"

/* The sampler's callbacks; ud is the sensors. */
void ipw_sensors_gap(void *ud, const struct ipw_sampler_gap *gap);
void ipw_sensors_loss(void *ud, const struct ipw_sampler_loss *loss);
/* `before`: what was seen before the run. */
void ipw_sensors_watch_start(struct ipw_sensors *s, const struct ipw_trust *before);
/* The ledger has taken the row: notes which counters have stood still for too long, and which move
 * again (IPW_NOTE_STUCK). */
void ipw_sensors_watch_row(struct ipw_sensors *s, const struct ipw_sampler_row *row);
void ipw_sensors_watch_clocks(struct ipw_sensors *s);

#endif
