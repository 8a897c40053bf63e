/* run/sensors.h: a run's sensors, from opening them to the remarks about them in the manifest.
 *
 * Owns the sources, the sampler, the ledger with its feed, and the remarks.  Opens the sources that
 * --telemetry selects, looks whether the machine is quiet and its counters can be believed
 * (run/quiet_check.h), makes the ledger for what is left, starts the sampler, takes its rows to the
 * files and to the ledger, and notes what happens to the sensors meanwhile.  Tells its owner through
 * `rows` when there are rows to take.  Borrows the loop, the session and, once there is one, the
 * run's folder. */
#ifndef IPW_RUN_SENSORS_H
#define IPW_RUN_SENSORS_H

#include "base/buf.h"
#include "energy/clockwatch.h"
#include "energy/sampler.h"
#include "energy/selftest.h"
#include "io/loop.h"
#include "ledger/feed.h"
#include "ledger/ledger.h"
#include "ledger/rules.h"
#include "run/quiet_check.h"
#include "run/sensor_options.h"
#include "run/session.h"
#include "trace/rundir.h"

struct ipw_sensors {
    const struct ipw_sensor_options *o;
    const struct ipw_session *session;
    struct ipw_loop *loop;
    struct ipw_rundir *dir;
    void (*rows)(void *ud); /* rows are there: called in the loop, answered by a drain */
    void *ud;

    struct ipw_source_set sources;
    struct ipw_sampler *sampler; /* NULL: nothing is read */
    struct ipw_wakeup *sampled;
    struct ipw_ledger *ledger;
    struct ipw_feed *feed; /* tells the ledger of the queries */
    struct ipw_ledger_rules rules;
    int64_t interval_ns;                   /* between two readings */
    int64_t n_rows;                        /* of samples, that the ledger has taken */
    const struct ipw_source *model_source; /* the estimate in the place of a sensor, or NULL */
    struct ipw_start_findings found;
    char energy_note[400]; /* why a sensor is missing, or "" */
    char loss_note[256];   /* which device fell off, and when, or "" */

    struct ipw_buf early_notes;    /* events of before the run_start, to be written after it */
    struct ipw_selftest *selftest; /* over the first rows; NULL without sensors */
    struct ipw_stuck *stuck;       /* of each channel: does it stand still? */
    struct ipw_clockwatch clocks;
    int64_t clocks_due_ns;
};

/* Reads the options.  `begun`: the sharing rule with which the run was begun, where the options name
 * none.  IPW_EINVAL for a word that means nothing. */
int ipw_sensors_init(struct ipw_sensors *s, const struct ipw_sensor_options *o, const char *begun,
                     struct ipw_err *err);
/* `servers`: the model's addresses, NULL at the end; `elsewhere`: one of them is another machine's.
 * IPW_EINVAL for a selection that means nothing; others for a sensor that was asked for by name and
 * is not there, and IPW_ECANCELLED when --require-quiet found load.  Waits a quarter of a second
 * when there is something to measure, longer for a counter that does not move. */
int ipw_sensors_open(struct ipw_sensors *s, const char *const *servers, bool elsewhere,
                     struct ipw_err *err);
/* No sensor is read; `--telemetry none` asked for that, or none was found. */
bool ipw_sensors_none(const struct ipw_sensors *s);
bool ipw_sensors_off(const struct ipw_sensors *s);
/* Writes the header of power.jsonl and waits until every source was read after this call, so that
 * the first query's window is enclosed by samples. */
void ipw_sensors_wait(struct ipw_sensors *s, struct ipw_rundir *dir);
/* The run_start is written: what happened before it follows. */
void ipw_sensors_started(struct ipw_sensors *s);
/* Takes the rows that are there: to power.jsonl, then to the ledger. */
void ipw_sensors_drain(struct ipw_sensors *s);
/* Lets the sensors run until then; nothing else is in flight. */
void ipw_sensors_pass(struct ipw_sensors *s, int64_t until_ns);
/* A phase begins or ends: the CPU's counters are read, if this event is such an edge. */
void ipw_sensors_mark(struct ipw_sensors *s, const struct ipw_event *event);
/* One more reading, past the end of the session, and the threads end. */
void ipw_sensors_stop(struct ipw_sensors *s);
/* The joules of the sampler and the runner themselves, by their share of the processors' time: NAN
 * when no counter of the CPU was known throughout. */
double ipw_sensors_own_joules(const struct ipw_sensors *s, double cpu_s);
void ipw_sensors_close(struct ipw_sensors *s);

/* "auto", or what was given, with commas. */
void ipw_sensors_selection(struct ipw_buf *out, const struct ipw_sensor_options *o);

#endif
