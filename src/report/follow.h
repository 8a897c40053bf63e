/* report/follow.h: prints a run while it goes on, event by event.
 *
 * The caller feeds the whole lines of events.jsonl as they arrive.  For each event the unit appends
 * what a person wants to know: the question, each reply with its tokens and seconds, each tool call
 * with its result, the end.  Joules are unknown until a query has ended, so they are not shown. */
#ifndef IPW_REPORT_FOLLOW_H
#define IPW_REPORT_FOLLOW_H

#include "report/timeline.h"

struct ipw_follow;

/* `id` NULL: all queries. */
struct ipw_follow *ipw_follow_new(const char *id, const struct ipw_timeline_options *options);
void ipw_follow_free(struct ipw_follow *follow); /* NULL is fine */
/* Returns true if the line ends the run (this session of it). */
bool ipw_follow_line(struct ipw_follow *follow, struct ipw_buf *out, const char *line, size_t n);

#endif
