/* run/booking.h: writes the lines of finished queries.
 *
 * Owns the queries that have ended and wait for readings past their end.  When the sensors have
 * been read so far, the ledger computes the energy of the query's parts, and its line is written.
 * The owner is told of each line and of each batch of lines.  Borrows the folder, the sensors with
 * their ledger, the results that it adds to, and the reason why the run ends. */
#ifndef IPW_RUN_BOOKING_H
#define IPW_RUN_BOOKING_H

#include "run/query.h"
#include "run/results.h"

struct ipw_booking {
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
    void (*booked)(void *ud);                            /* queries left the list */
    void (*failed)(void *ud, const struct ipw_err *err); /* a line could not be written */
    void *ud;

    struct ipw_query *first, **tail;
    struct ipw_timer *wait; /* until the next check of the first query */
    unsigned looks;         /* number of checks so far */
};

void ipw_booking_add(struct ipw_booking *b, struct ipw_query *q);
/* Writes and frees the queries whose energy is known now. */
void ipw_booking_look(struct ipw_booking *b);
void ipw_booking_close(struct ipw_booking *b); /* its timer */

#endif
