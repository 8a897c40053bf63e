/* run/progress.h: how far a run is, in figures, and as a line on stderr.
 *
 * On a terminal it is one line, redrawn at most a few times a second, within the terminal's width,
 * and each query that ends passes above it as a row.  Elsewhere it is a plain line every few
 * seconds; with --quiet there is none.  The joules are the run's so far, from any sensors; the
 * watts are those of the last second.  Owns a timer on the loop; it is never on the path of a
 * measurement. */
#ifndef IPW_RUN_PROGRESS_H
#define IPW_RUN_PROGRESS_H

#include <math.h>
#include <stdbool.h>

#include "io/loop.h"
#include "report/summary.h"
#include "trace/schema.h"

struct ipw_progress;

struct ipw_progress_state {
    size_t n_queries, n_done, ok, wrong, failed, stopped, turns, tools;
    double joules, watts;   /* so far; over the last second; NAN: not measured */
    double seconds, left_s; /* since the start; until the end, at the pace so far; NAN: unknown */
    double wait_s;          /* until the next attempt (<= 1: no wait) */
    char standstill[80];    /* why all queries wait, or "" */
};
/* One line of at most `width` columns: the fields that fit, after a bar if there is room.  Returns
 * its bytes. */
size_t ipw_progress_line(char *out, size_t size, const struct ipw_progress_state *state,
                         unsigned width);

/* The energy of the run so far; leaves the numbers as they are if it is unknown. */
typedef void ipw_progress_energy_fn(void *ud, double *joules, double *seconds);

/* `n_done`: queries of earlier sessions. */
struct ipw_progress *ipw_progress_new(struct ipw_loop *loop, size_t n_queries, size_t n_done,
                                      bool quiet);
void ipw_progress_free(struct ipw_progress *p); /* removes the line; NULL is fine */
void ipw_progress_measure(struct ipw_progress *p, ipw_progress_energy_fn *energy, void *ud);
void ipw_progress_event(struct ipw_progress *p, const struct ipw_event *event);
void ipw_progress_query(struct ipw_progress *p, const struct ipw_query_trace *trace,
                        const struct ipw_query_details *details);
/* Were rows of queries shown? */
bool ipw_progress_shows_rows(const struct ipw_progress *p);
/* The row of a query in at most `width` columns: how it ended, its id, what it took, its answer or
 * why it failed. */
void ipw_progress_row(struct ipw_buf *out, const struct ipw_query_trace *trace,
                      const struct ipw_query_details *details, unsigned width, bool colour);
/* Counts the queries that earlier sessions have finished. */
void ipw_progress_earlier(struct ipw_progress *p, const struct ipw_summary *earlier);
void ipw_progress_done(struct ipw_progress *p, size_t n_done);
/* Called for each line: why all queries wait, in a few words; "" if they do not. */
void ipw_progress_standstill(struct ipw_progress *p, void (*say)(void *ud, char *out, size_t size),
                             void *ud);
void ipw_progress_clear(struct ipw_progress *p);

#endif
