/* run/sensors.h: a run's sensors, from opening them to what the manifest says of them.
 *
 * Opens what --telemetry selects, looks whether the machine is quiet and its counters can be believed
 * (run/quiet_check.h), makes the ledger for what is left, starts the sampler, and keeps the self-test going
 * over the run's first seconds.  Everything hangs on struct ipw_run; the rows themselves are taken
 * by write_queries.c. */
#ifndef IPW_RUN_SENSORS_H
#define IPW_RUN_SENSORS_H

#include "run/run.h"

/* IPW_EINVAL for a selection that means nothing; others for a sensor that was asked for by name and
 * is not there, and IPW_ECANCELLED when --require-quiet found load.  Waits a quarter of a second
 * when there is something to measure, longer for a counter that does not move. */
int ipw_sensors_open(struct ipw_run *run, struct ipw_err *err);
/* Writes the header of power.jsonl and waits until every source was read after this call, so that
 * the first query's window is enclosed by samples. */
void ipw_sensors_wait(struct ipw_run *run);
/* The run_start is written: what happened before it follows. */
void ipw_sensors_started(struct ipw_run *run);
/* A row passes, on its way to the ledger. */
void ipw_sensors_row(struct ipw_run *run, const struct ipw_sampler_row *row);
/* The ledger has taken the row: which counters have stood still for too long, and which move again, is
 * noted (IPW_NOTE_STUCK). */
void ipw_sensors_watch(struct ipw_run *run, const struct ipw_sampler_row *row);
/* A phase begins or ends: the CPU's counters are read, if this event is such an edge. */
void ipw_sensors_mark(struct ipw_run *run, const struct ipw_event *event);
/* The same where no event is: the first token. */
void ipw_sensors_mark_now(struct ipw_run *run);
/* What the sampler and the runner themselves cost in joules, by their share of the processors'
 * time: NAN when no counter of the CPU was known throughout. */
double ipw_sensors_own_joules(const struct ipw_run *run, double cpu_s);
void ipw_sensors_close(struct ipw_run *run);

/* "auto", or what was given, with commas. */
void ipw_sensors_selection(struct ipw_buf *out, const struct ipw_run_options *o);

#endif
