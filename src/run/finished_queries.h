/* run/finished_queries.h: writes the lines of finished queries.
 *
 * Owns the queries that have ended but have no energy yet.  A query's energy is known when the
 * sensors were read after its end.  Then the ledger computes the energy of the query's parts, and
 * its line is written.  The owner hears of each line and of each batch of lines through callbacks.
 * Borrows the folder, the sensors with their ledger, the results and the reason why the run
 * ends. */
#ifndef IPW_RUN_FINISHED_QUERIES_H
#define IPW_RUN_FINISHED_QUERIES_H

#include "run/query.h"
#include "run/results.h"

struct ipw_finished_queries {
    struct ipw_loop *loop;
    struct ipw_rundir *dir;
    struct ipw_sensors *sensors;
    const struct ipw_session *session;
    const struct ipw_ending *ending;
    struct ipw_results *results;
    const char *model;

    /* A line was written, but is not yet synced. */
    void (*wrote)(void *ud, const struct ipw_query_trace *trace,
                  const struct ipw_query_details *details);
    void (*left)(void *ud);                              /* queries left the list */
    void (*failed)(void *ud, const struct ipw_err *err); /* a line could not be written */
    void *ud;

    struct ipw_query *first, **tail;
    struct ipw_timer *wait; /* until the next check of the first query */
    unsigned checks;        /* number of checks so far */
};

void ipw_finished_queries_add(struct ipw_finished_queries *f, struct ipw_query *q);
/* Writes and frees the queries whose energy is known now. */
void ipw_finished_queries_check(struct ipw_finished_queries *f);
void ipw_finished_queries_close(struct ipw_finished_queries *f); /* its timer */

#endif
