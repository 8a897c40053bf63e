/* run/booking.h: from finished queries to lines on disk.
 *
 * Owns the queries that are over and wait for samples past their end.  Once the sensors have been
 * read so far, the ledger says what a query's parts cost and its line is written; the owner is told
 * of each line, and after each batch of them.  Borrows the folder, the sensors with their ledger,
 * the results that it adds to, and why the run ends. */
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

    /* A line is written, not yet safe. */
    void (*wrote)(void *ud, const struct ipw_query_trace *trace,
                  const struct ipw_query_record *record);
    void (*booked)(void *ud);                            /* so many queries left the list */
    void (*failed)(void *ud, const struct ipw_err *err); /* a line could not be written */
    void *ud;

    struct ipw_query *first, **tail;
    struct ipw_timer *wait; /* until the first is looked at again */
    unsigned looks;         /* how often it was */
};

void ipw_booking_add(struct ipw_booking *b, struct ipw_query *q);
/* Writes and frees the queries that can be booked now. */
void ipw_booking_look(struct ipw_booking *b);
void ipw_booking_close(struct ipw_booking *b); /* its timer */

#endif
