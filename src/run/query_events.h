/* run/query_events.h: the events with which a query begins and ends, and its line.
 *
 * The one writer of all three, for a run and for a replay.  The event borrows the buffer: it is
 * handed on before the buffer is released.  A payload that is too large is left out. */
#ifndef IPW_RUN_QUERY_EVENTS_H
#define IPW_RUN_QUERY_EVENTS_H

#include "script/dataset.h"
#include "trace/event.h"
#include "trace/rundir.h"
#include "trace/schema.h"

#define IPW_QUERY_EVENT_BUF IPW_BUF(64 * IPW_MIB)

void ipw_query_start_event(struct ipw_event *out, struct ipw_buf *data, const struct ipw_case *c,
                           int epoch, bool warmup);

struct ipw_query_end_facts {
    struct ipw_query_facts q;
    const char *answer; /* the extracted answer, or NULL; answer_len bytes */
    size_t answer_len;
    const char *answer_source, *response; /* or NULL */
    int resolved;                         /* 1, 0, or -1: not scored */
    int64_t lua_cpu_ns, lua_peak_bytes;
    bool never_ran, stopped; /* the agent was not started; it was stopped by another part */
};
void ipw_query_end_event(struct ipw_event *out, struct ipw_buf *data,
                         const struct ipw_query_end_facts *facts);

/* Writes a query's line: a warm-up query into warmup.jsonl, a superseded one (in `details`) into
 * attempts.jsonl, any other into traces.jsonl. */
int ipw_query_write_line(struct ipw_rundir *dir, const struct ipw_query_trace *trace,
                         const struct ipw_query_details *details, const struct ipw_anchor *clock,
                         bool warmup, struct ipw_err *err);
/* The same of a line that is written already. */
int ipw_query_put_line(struct ipw_rundir *dir, const struct ipw_buf *line,
                       const struct ipw_query_details *details, bool warmup, struct ipw_err *err);

#endif
