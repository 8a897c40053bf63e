/* report/follow.h: a run as it goes on, event by event, for a person who watches.
 *
 * Fed with the whole lines of events.jsonl as they come; appends what there is to say of each: the
 * question, each reply with its tokens and seconds, each tool call with its result, the end.
 * Joules are not known yet: they are booked when a query is over. */
#ifndef IPW_REPORT_FOLLOW_H
#define IPW_REPORT_FOLLOW_H

#include "report/timeline.h"

struct ipw_follow;

/* `id` NULL: all queries. */
struct ipw_follow *ipw_follow_new(const char *id, const struct ipw_timeline_options *options);
void ipw_follow_free(struct ipw_follow *follow); /* NULL is fine */
/* True when the line says that the run (this session of it) is over. */
bool ipw_follow_line(struct ipw_follow *follow, struct ipw_buf *out, const char *line, size_t n);

#endif
