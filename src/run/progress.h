/* run/progress.h: telling a waiting person how far a run is, on stderr.
 *
 * On a terminal one line that is redrawn a few times a second at most, within the terminal's width;
 * elsewhere a plain line every few seconds; nothing when quiet.  The joules are the run's so far,
 * whatever the sensors are, and the watts their mean.  Owns a timer on the loop; never on the path of
 * a measurement. */
#ifndef IPW_RUN_PROGRESS_H
#define IPW_RUN_PROGRESS_H

#include <stdbool.h>

#include "io/loop.h"
#include "trace/schema.h"

struct ipw_progress;

struct ipw_progress_state {
    size_t n_queries, n_done, ok, wrong, failed, stopped, turns, tools;
    double joules, energy_s; /* so far, and the time that they were used in; NAN: not measured */
    double seconds, wait_s;  /* since the start; until the next attempt (<= 1: no wait) */
    char standstill[80];     /* what holds everything up, or "" */
};
/* One line of at most `width` columns: the fields that fit, after a bar if there is room.  Returns
 * its bytes. */
size_t ipw_progress_line(char *out, size_t size, const struct ipw_progress_state *state,
                         unsigned width);

/* What the run used so far; leaves the numbers alone when nothing is known. */
typedef void ipw_progress_energy_fn(void *ud, double *joules, double *seconds);

struct ipw_progress *ipw_progress_new(struct ipw_loop *loop, size_t n_queries, bool quiet);
void ipw_progress_free(struct ipw_progress *p); /* takes the line away; NULL is fine */
void ipw_progress_measure(struct ipw_progress *p, ipw_progress_energy_fn *energy, void *ud);
void ipw_progress_event(struct ipw_progress *p, const struct ipw_event *event);
void ipw_progress_query(struct ipw_progress *p, const struct ipw_query_trace *trace,
                        const struct ipw_query_record *record);
void ipw_progress_done(struct ipw_progress *p, size_t n_done);
/* Asked with each line for what holds everything up, in a few words; "" when nothing does. */
void ipw_progress_standstill(struct ipw_progress *p, void (*say)(void *ud, char *out, size_t size),
                             void *ud);
void ipw_progress_clear(struct ipw_progress *p);

#endif
