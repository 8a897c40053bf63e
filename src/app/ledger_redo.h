/* app/ledger_redo.h: a run's figures once more, from its files alone.
 *
 * Streams events.jsonl and power.jsonl side by side, after a look for the ends of the sessions, into
 * a new ledger and new turn builders, which are those of the live run.  Each query is handed over, booked, at the point of
 * the record where the run booked it (the "booked" note); by another sharing rule as soon as the
 * samples have passed its end.  Nothing is kept longer than the live run keeps it.
 *
 * A run that was resumed consists of segments, one a session, each with its own clock, sensors and
 * ledger; they are booked one after the other.  A segment that was killed (it has no run_end) ends
 * with the last instant at which every sensor had been read, and so do the queries that it had not
 * booked by then: they are handed over as `cut`.  So the books of every segment balance. */
#ifndef IPW_APP_LEDGER_REDO_H
#define IPW_APP_LEDGER_REDO_H

#include "app/ledger_facts.h"
#include "app/ledger_power.h"
#include "report/summary.h"
#include "trace/turn.h"

struct ipw_redo_segment {
    int number; /* from 0 */
    int64_t start_ns, end_ns;
    bool cut; /* no run_end was recorded; known before its first query is handed over */
    size_t n_queries;
    struct ipw_ledger_facts facts;
    struct ipw_balance balance[IPW_DOMAIN_COUNT]; /* total and idle; reasons point into facts */
    struct ipw_device_books devices;
};

struct ipw_redo {
    struct ipw_redo_segment **segments;
    size_t n_segments, cap_segments;
};

struct ipw_redo_query { /* booked; the trace is released after the call */
    struct ipw_query_trace *trace;
    int segment;
    bool warmup;
    bool cut; /* its segment was killed before this query was booked */
};

struct ipw_redo_options {
    /* In the order of the bookings.  A result other than 0 ends the reading. */
    int (*query)(void *ud, const struct ipw_redo_query *query, struct ipw_err *err);
    /* Before it is booked, while the ledger can still be asked about it; may be NULL. */
    void (*before)(void *ud, const struct ipw_ledger *ledger, int64_t ordinal,
                   const struct ipw_query_trace *trace);
    void *ud;
    const enum ipw_share *share; /* another rule than the run's; or NULL */
};

int ipw_redo_run(struct ipw_redo *redo, const char *run, const struct ipw_redo_options *options,
                 struct ipw_err *err);
void ipw_redo_release(struct ipw_redo *redo);

#endif
