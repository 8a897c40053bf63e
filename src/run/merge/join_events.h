/* run/merge/join_events.h: the events of a session that is joined with others.
 *
 * Reads events.jsonl from the session's run_start to the line before the next one, one event at a
 * time, on the clock of the joined session (run/merge/join_clock.h).  Says when the next event is
 * due; the caller (run/merge/join.c) decides which session is next, and gives queries their
 * numbers.
 *
 * A session that was killed has no run_end.  It ends with its newest reading, as its own books do
 * (ledger/recompute.h): nothing was measured later, so that its queries could have no joules
 * there, but a total that ends a little later would have those of before. */
#ifndef IPW_RUN_MERGE_JOIN_EVENTS_H
#define IPW_RUN_MERGE_JOIN_EVENTS_H

#include "json/jsonl.h"
#include "run/merge/join_clock.h"
#include "run/merge/shard_run.h"
#include "trace/schema.h"

struct ipw_join_events {
    const struct ipw_shard_run *run;
    int session;
    struct ipw_join_clock clock;
    struct ipw_jsonl_reader *events;
    struct ipw_jsonl_line line; /* the next event */
    struct ipw_json *doc;       /* NULL: there is none */
    struct ipw_event event;
    bool ended, cut; /* it has a run_end; it was killed, and the caller has ended its queries */
    int64_t now_ns;  /* the time of its last event, which the caller sets */
    /* The caller's: by its own number the query's number in the joined session; -1: none. */
    int64_t *numbers;
    size_t n, cap;
};

/* Goes to the session's run_start. */
int ipw_join_events_open(struct ipw_join_events *m, const struct ipw_shard_run *run, int session,
                         int64_t ahead_ns, struct ipw_err *err);
void ipw_join_events_close(struct ipw_join_events *m);
/* The next event, or none.  `inside`: the run_start was read. */
int ipw_join_events_next(struct ipw_join_events *m, bool inside, struct ipw_err *err);
/* Is the next event a note of the run, not of a query? */
bool ipw_join_events_at_note(const struct ipw_join_events *m);
/* It has no further event and no run_end: its queries in flight end, and when. */
bool ipw_join_events_is_cut(const struct ipw_join_events *m);
int64_t ipw_join_events_cut_ns(const struct ipw_join_events *m);
/* When its next event is due, or its cut: a note of the run is due at once. */
int64_t ipw_join_events_due_ns(const struct ipw_join_events *m);

#endif
