/* run/query_events.h: writes the events at the start and end of a query.
 *
 * The one writer of their members.  The event borrows the buffer, so it must be emitted before the
 * buffer is released.  A payload over its limit is left out. */
#ifndef IPW_RUN_QUERY_EVENTS_H
#define IPW_RUN_QUERY_EVENTS_H

#include "script/dataset.h"
#include "trace/event.h"

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

#endif
