/* report/timeline_events.h: the texts of a run's events, for a timeline.
 *
 * Reads RUN/events.jsonl once and keeps the beginning of each reply, argument list and result, by
 * query and span.  For a missing or damaged file it keeps what it could read, and a remark.  Owns
 * its texts. */
#ifndef IPW_REPORT_TIMELINE_EVENTS_H
#define IPW_REPORT_TIMELINE_EVENTS_H

#include <stddef.h>
#include <stdint.h>

enum ipw_said_kind { IPW_SAID_REASONING, IPW_SAID_REPLY, IPW_SAID_ARGUMENTS, IPW_SAID_RESULT };

struct ipw_said {
    int32_t query, span;
    enum ipw_said_kind kind;
    size_t order; /* if an attempt was run again, the later text counts */
    char *text;
};

struct ipw_said_book {
    struct ipw_said *all;
    size_t n, cap;
    char remark[400]; /* "", or why texts may be missing */
};

#define IPW_SAID_ALL INT32_MIN

/* `query`: the query to read, or IPW_SAID_ALL.  `path` NULL: without texts. */
void ipw_said_load(struct ipw_said_book *book, const char *path, int32_t query);
const char *ipw_said_find(const struct ipw_said_book *book, int32_t query, int32_t span,
                          enum ipw_said_kind kind); /* NULL when there is none */
void ipw_said_release(struct ipw_said_book *book);

#endif
