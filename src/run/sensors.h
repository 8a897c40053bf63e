/* run/sensors.h: a run's sensors, from opening them to the remarks about them in the manifest.
 *
 * Owns the sources, the sampler, the ledger with its feed, and the remarks.  It opens the sources
 * of --telemetry, checks that the machine is quiet and its counters can be believed
 * (run/quiet_check.h), creates the ledger for the rest, and starts the sampler.  It passes rows to
 * the files and to the ledger, and notes what happens to the sensors during the run.  It calls its
 * owner's `rows` when rows are ready.  Borrows the loop, the session and, once there is one, the
 * run's folder. */
#ifndef IPW_RUN_SENSORS_H
#define IPW_RUN_SENSORS_H

#include "base/buf.h"
#include "energy/clockwatch.h"
#include "energy/sampler.h"
#include "energy/sources/prometheus.h"
#include "energy/trust.h"
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
    void (*rows)(void *ud); /* rows are ready: called in the loop, answered by a drain */
    void *ud;

    struct ipw_source_set sources;
    struct ipw_sampler *sampler; /* NULL: there are no sensors */
    struct ipw_wakeup *sampled;
    struct ipw_ledger *ledger;
    struct ipw_feed *feed; /* tells the ledger about queries */
    struct ipw_ledger_rules rules;
    int64_t interval_ns;                   /* between two readings */
    int64_t n_rows;                        /* readings that the ledger has taken */
    const struct ipw_source *model_source; /* the estimate that replaces a sensor, or NULL */
    struct ipw_start_findings found;
    char energy_note[400]; /* why a sensor is missing, or "" */
    char loss_note[256];   /* the lost device and the time, or "" */

    struct ipw_buf early_notes; /* events before run_start, written after it */
    struct ipw_trust *trust;    /* of all rows; NULL without sensors */
    struct ipw_stuck *stuck;    /* for each channel: whether its counter stands still */
    bool doubted;               /* ipw_sensors_doubted() */
    bool sealed;                /* the session's balance was taken: no verdict changes it */
    struct ipw_clockwatch clocks;
    int64_t clocks_due_ns;
};

/* Reads the options.  `begun`: the sharing rule of the resumed run, used if the options have none.
 * IPW_EINVAL for an unknown word. */
int ipw_sensors_init(struct ipw_sensors *s, const struct ipw_sensor_options *o, const char *begun,
                     struct ipw_err *err);
/* `servers`: the model's addresses, NULL at the end; `elsewhere`: one of them is on another
 * machine; `sub_elsewhere`: the address of a sub-model that is, or NULL.  IPW_EINVAL for an invalid
 * selection; other codes for a named sensor that does not exist; IPW_ECANCELLED if --require-quiet
 * found load.  Waits a quarter of a second if there is something to measure, longer for a counter
 * that does not move. */
int ipw_sensors_open(struct ipw_sensors *s, const char *const *servers, bool elsewhere,
                     const char *sub_elsewhere, struct ipw_err *err);
/* There are no sensors: `--telemetry none`, or none was found. */
bool ipw_sensors_none(const struct ipw_sensors *s);
bool ipw_sensors_off(const struct ipw_sensors *s);
/* Writes the header of power.jsonl and waits until every source was read after this call, so that
 * readings enclose the first query's window. */
void ipw_sensors_wait(struct ipw_sensors *s, struct ipw_rundir *dir);
/* The run_start was written: earlier events follow it now. */
void ipw_sensors_started(struct ipw_sensors *s);
/* Passes the ready rows to power.jsonl, then to the ledger. */
void ipw_sensors_drain(struct ipw_sensors *s);
/* Waits until then while the sensors run; no query may be in flight. */
void ipw_sensors_pass(struct ipw_sensors *s, int64_t until_ns);
/* If this event begins or ends a phase, reads the CPU's counters. */
void ipw_sensors_mark(struct ipw_sensors *s, const struct ipw_event *event);
/* A sensor lost its trust during the session, so that lines that were written before may state its
 * energy: they must be written again (run/resume/rebuild.h). */
bool ipw_sensors_doubted(const struct ipw_sensors *s);
/* Takes one more reading, past the end of the session, and ends the threads. */
void ipw_sensors_stop(struct ipw_sensors *s);
/* The joules of the sampler and of the program itself, by their share of the processors' time; NAN
 * if no counter of the CPU was known throughout. */
double ipw_sensors_own_joules(const struct ipw_sensors *s, double cpu_s);
void ipw_sensors_close(struct ipw_sensors *s);

/* How the pages of exporters are fetched and read. */
extern const struct ipw_page_fetch ipw_sensors_fetch;
/* "auto", or the given sensors, separated by commas. */
void ipw_sensors_selection(struct ipw_buf *out, const struct ipw_sensor_options *o);

#endif
