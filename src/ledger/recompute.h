/* ledger/recompute.h: a run's figures once more, from its files alone.
 *
 * Streams events.jsonl and power.jsonl side by side, after a look for the ends of the sessions, into
 * a new ledger and new turn builders, which are those of the live run.  Each query is handed over, booked, at the point of
 * the record where the run booked it (the "booked" note); by another sharing rule as soon as the
 * samples have passed its end.  Nothing is kept longer than the live run keeps it.
 *
 * A run that was resumed consists of segments, one a session, each with its own clock, sensors and
 * ledger; they are booked one after the other.  A segment that was killed (it has no run_end) ends
 * with the last instant at which every sensor had been read, and so do the queries that it had not
 * booked by then: they are handed over as `cut`.  So the books of every segment balance.
 *
 * A power cut may keep the end of events.jsonl and lose the end of power.jsonl.  Each event says how
 * many samples came before it: a booking or a run_end with fewer samples in the file does not
 * count. */
#ifndef IPW_LEDGER_RECOMPUTE_H
#define IPW_LEDGER_RECOMPUTE_H

#include "ledger/balance.h"
#include "ledger/power_reader.h"
#include "ledger/rules.h"
#include "trace/turn.h"

struct ipw_recompute_segment {
    int number; /* from 0 */
    int64_t start_ns, end_ns;
    bool
        cut; /* no run_end was recorded (known before its first query is handed over), or its samples
               * are missing */
    bool over;       /* a run_end is there, whether or not it counts */
    int64_t read_ns; /* by when every sensor had been read; INT64_MAX: it has no sensor */
    int64_t rows;    /* of samples that the file has */
    size_t n_queries;
    struct ipw_ledger_rules rules;
    enum ipw_share own_share; /* the rule that the run recorded, whatever it is computed by */
    struct ipw_balance balance[IPW_DOMAIN_COUNT]; /* total and idle; reasons point into rules */
    struct ipw_device_books devices;
};

struct ipw_recompute {
    struct ipw_recompute_segment **segments;
    size_t n_segments, cap_segments;
};

struct ipw_recompute_query { /* booked; the trace is released after the call */
    struct ipw_query_trace *trace;
    int segment;
    bool warmup;
    bool
        cut; /* its segment was killed before this query was booked, or the samples of its booking are
               * missing */
    const char *start; /* the data of its query_start, or NULL; with options.starts only */
};

struct ipw_recompute_options {
    /* In the order of the bookings.  A result other than 0 ends the reading. */
    int (*query)(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err);
    /* Before it is booked, while the ledger can still be asked about it; may be NULL. */
    void (*before)(void *ud, const struct ipw_ledger *ledger, int64_t ordinal,
                   const struct ipw_query_trace *trace);
    void *ud;
    const enum ipw_share *share; /* another rule than the run's; or NULL */
    bool starts;                 /* hand over each query's `start`, too */
};

int ipw_recompute_run(struct ipw_recompute *redone, const char *run,
                      const struct ipw_recompute_options *options, struct ipw_err *err);
void ipw_recompute_release(struct ipw_recompute *redone);

#endif
