/* audit/validate_events.h: events.jsonl for ipw-agent validate: each line against the table of its
 * event, and their order: sessions count up, a query begins before anything happens in it and ends
 * once, a span's end follows its start, time does not go back within a session.  Holds the
 * queries of a session and the spans without an end. */
#ifndef IPW_AUDIT_VALIDATE_EVENTS_H
#define IPW_AUDIT_VALIDATE_EVENTS_H

#include "base/buf.h"
#include "base/table.h"
#include "json/json.h"

struct ipw_event_check {
    int segment;               /* the session that is being read; -1: none yet */
    bool over;                 /* its run_end was seen */
    int64_t t_ns;              /* of the last event other than a note of the run */
    int64_t rows;              /* rows of power.jsonl, so far */
    struct ipw_table by_query; /* how far each query of the session came, by its index */
    struct ipw_open_span {
        int64_t query, span;
    } * open;
    size_t n_open, cap_open;
    struct ipw_table by_span; /* indices of `open` */
};

#define IPW_EVENT_CHECK ((struct ipw_event_check){.segment = -1})

/* One line, in the order of the file.  A line that fails counts as if it were not there: what comes
 * behind it is held to the lines before it. */
int ipw_event_check_line(struct ipw_event_check *c, const struct ipw_json *event,
                         struct ipw_err *err);
void ipw_event_check_release(struct ipw_event_check *c);

#endif
