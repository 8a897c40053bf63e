/* app/progress.h: telling a waiting person how far a run is, on stderr.
 *
 * On a terminal one line that is redrawn a few times a second at most; elsewhere a plain line every
 * few seconds; nothing when quiet.  Owns a timer on the loop; never on the path of a measurement. */
#ifndef IPW_APP_PROGRESS_H
#define IPW_APP_PROGRESS_H

#include <stdbool.h>

#include "io/loop.h"
#include "trace/schema.h"

struct ipw_progress;

struct ipw_progress *ipw_progress_new(struct ipw_loop *loop, size_t n_queries, bool quiet);
void ipw_progress_free(struct ipw_progress *p); /* takes the line away; NULL is fine */
void ipw_progress_event(struct ipw_progress *p, const struct ipw_event *event);
void ipw_progress_query(struct ipw_progress *p, const struct ipw_query_trace *trace,
                        const struct ipw_query_record *record);
void ipw_progress_done(struct ipw_progress *p, size_t n_done);
void ipw_progress_clear(struct ipw_progress *p);

/* Whether to colour what goes to this descriptor: a terminal, no NO_COLOR, TERM not "dumb". */
bool ipw_use_colour(int fd);
/* Columns of the terminal behind fd; 0 when it is none. */
unsigned ipw_terminal_width(int fd);

#endif
