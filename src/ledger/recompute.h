/* ledger/recompute.h: computes a run's energy again, from its files alone.
 *
 * Finds the ends of the sessions, then streams events.jsonl and power.jsonl side by side into a new
 * ledger and new turn builders, with the same code as the live run.  Each query is handed over
 * where the run filled its figures (the "booked" note).  Under another sharing rule it is handed
 * over as soon as the samples have passed its end.  Data is kept no longer than in the live run.
 *
 * A resumed run consists of several sessions (`segments`).  Each has its own clock, sensors and
 * ledger; they are computed one after the other.  A killed session (without a run_end) ends at the
 * last instant up to which every sensor had been read.  Its unfinished queries end there too and
 * are handed over as `cut`; what it tells of later counts as of that end.  So every session
 * balances.  To know that end, the readings of a run with a killed session are gone through
 * twice.
 *
 * A power cut may keep the end of events.jsonl and lose the end of power.jsonl.  Each event states
 * the number of rows before it.  A "booked" note or a run_end does not count if the file has fewer
 * rows. */
#ifndef IPW_LEDGER_RECOMPUTE_H
#define IPW_LEDGER_RECOMPUTE_H

#include "ledger/balance.h"
#include "ledger/power_reader.h"
#include "ledger/rules.h"
#include "trace/turn.h"

struct ipw_recompute_segment {
    int number; /* counted from 0 */
    int64_t start_ns, end_ns;
    /* The session has no run_end, or its rows are missing.  Known before its first query is handed
     * over. */
    bool cut;
    bool over;       /* it has a run_end, even if that does not count */
    bool started;    /* it has a run_start; else its rules are unknown */
    int64_t read_ns; /* up to here every sensor had been read; INT64_MAX: no sensor */
    int64_t rows;    /* readings so far */
    struct ipw_ledger_rules rules;
    /* The rule that the run used, even if this computation uses another. */
    enum ipw_share own_share;
    struct ipw_balance balance[IPW_DOMAIN_COUNT]; /* total and idle; reasons point into rules */
    struct ipw_device_list devices;
};

struct ipw_recompute {
    struct ipw_recompute_segment **segments;
    size_t n_segments, cap_segments;
    bool torn; /* the last line of events.jsonl is, and was left out */
};

struct ipw_recompute_query { /* a query with its figures; the trace is released after the call */
    struct ipw_query_trace *trace;
    int segment;
    bool warmup;
    /* Its session was killed before its figures were filled, or rows for them are missing. */
    bool cut;
    const char *start; /* the data of its query_start, or NULL; only with options.starts */
};

struct ipw_recompute_options {
    /* Called by ipw_recompute_run() for each line of events.jsonl before it counts; may be NULL.
     * `repairs`: see ipw_json_parse().  A result other than 0 ends the reading. */
    int (*event)(void *ud, const struct ipw_json *line, size_t repairs, struct ipw_err *err);
    /* Called in the order of the "booked" notes.  A result other than 0 ends the reading. */
    int (*query)(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err);
    void *ud;
    const enum ipw_share *share; /* another rule than the run's, or NULL */
    /* The events have no "booked" notes: a query is handed over once the readings have passed its
     * end. */
    bool covered;
    bool starts; /* also pass each query's `start` */
};

int ipw_recompute_run(struct ipw_recompute *redone, const char *run,
                      const struct ipw_recompute_options *options, struct ipw_err *err);
void ipw_recompute_release(struct ipw_recompute *redone);

/* The same for a caller that has the lines already: open, each line in the order of the file, end,
 * close.  Readings are those of `run`; NULL: the caller has them, too.  `ends`: an events.jsonl
 * that knows which sessions have a run_end, or NULL: none has.  After an error only close; *redone
 * is released separately. */
struct ipw_recompute_job;
int ipw_recompute_open(struct ipw_recompute_job **out, struct ipw_recompute *redone,
                       const char *run, const char *ends,
                       const struct ipw_recompute_options *options, struct ipw_err *err);
int ipw_recompute_line(struct ipw_recompute_job *job, const struct ipw_json *line,
                       struct ipw_err *err);
/* An event as it was read, with its number of rows and its data (NULL: none). */
int ipw_recompute_event(struct ipw_recompute_job *job, const struct ipw_event *event,
                        const struct ipw_json *data, struct ipw_err *err);
/* For a caller with readings: the channels of the session, before its run_start (borrowed until its
 * end); each row, in the order in which it counts; a channel that is not believed. */
void ipw_recompute_channels(struct ipw_recompute_job *job, struct ipw_channel *channels, size_t n);
int ipw_recompute_row(struct ipw_recompute_job *job, size_t first, size_t n, int64_t t_ns,
                      const int64_t *values, struct ipw_err *err);
void ipw_recompute_doubt(struct ipw_recompute_job *job, const char *channel, const char *reason);
/* Queries that have ended and were not handed over are handed over by this, without a "booked"
 * note. */
int ipw_recompute_end(struct ipw_recompute_job *job, struct ipw_err *err);
void ipw_recompute_close(struct ipw_recompute_job *job); /* NULL is fine */

#endif
