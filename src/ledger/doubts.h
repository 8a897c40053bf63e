/* ledger/doubts.h: the sensors that a saved run does not believe, from its events.
 *
 * A verdict of energy/trust.h that stays is an event, IPW_NOTE_DOUBTED.  It holds for the whole
 * session, also for what was booked before it, so whoever computes the energy of a session again
 * must know it before the first query. */
#ifndef IPW_LEDGER_DOUBTS_H
#define IPW_LEDGER_DOUBTS_H

#include "ledger/feed.h"

struct ipw_doubt_note {
    size_t session; /* by its place in the file, from 0 */
    int segment;    /* its number */
    char channel[64];
    const char *reason; /* static text */
};

struct ipw_doubts {
    struct ipw_doubt_note *notes;
    size_t n, cap, n_sessions;
    int segment;
};

/* A line of events.jsonl, in the order of the file. */
int ipw_doubts_line(struct ipw_doubts *d, const char *text, size_t n, struct ipw_err *err);
int ipw_doubts_read(struct ipw_doubts *d, const char *path, struct ipw_err *err);
void ipw_doubts_release(struct ipw_doubts *d);
/* The reason that such a note states; NULL: it is none. */
const char *ipw_doubts_reason(const struct ipw_event *e, const struct ipw_json *line);

#endif
