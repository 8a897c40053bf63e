/* ledger/recompute.h: computes a run's energy again, from its files alone.
 *
 * Finds the ends of the sessions, then streams events.jsonl and power.jsonl side by side into a new
 * ledger and new turn builders, the same code as in the live run.  Each query is handed over where
 * the run booked it (the "booked" note); under another sharing rule as soon as the samples have
 * passed its end.  Nothing is kept longer than the live run keeps it.
 *
 * A resumed run consists of segments, one for each session, each with its own clock, sensors and
 * ledger; they are computed one after the other.  A killed segment (without a run_end) ends at the
 * last instant at which every sensor had been read.  Its queries that were not booked end there too
 * and are handed over as `cut`.  So every segment balances.
 *
 * A power cut may keep the end of events.jsonl and lose the end of power.jsonl.  Each event states the
 * number of rows before it: a booking or a run_end with fewer rows in the file does not count. */
#ifndef IPW_LEDGER_RECOMPUTE_H
#define IPW_LEDGER_RECOMPUTE_H

#include "ledger/balance.h"
#include "ledger/power_reader.h"
#include "ledger/rules.h"
#include "trace/turn.h"

struct ipw_recompute_segment {
    int number; /* from 0 */
    int64_t start_ns, end_ns;
    /* No run_end (known before its first query is handed over), or its rows are missing. */
    bool cut;
    bool over;       /* it has a run_end, whether or not that counts */
    int64_t read_ns; /* every sensor had been read up to here; INT64_MAX: it has no sensor */
    int64_t rows;    /* in the file */
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
    /* Its segment was killed before it was booked, or the rows of its booking are missing. */
    bool cut;
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
    bool starts;                 /* also hand over each query's `start` */
};

int ipw_recompute_run(struct ipw_recompute *redone, const char *run,
                      const struct ipw_recompute_options *options, struct ipw_err *err);
void ipw_recompute_release(struct ipw_recompute *redone);

#endif
