/* ledger/doubts.h: what must be known of a saved run before its energy is computed again.
 *
 * The sensors that it does not believe: a verdict of energy/trust.h that stays is an event,
 * IPW_NOTE_DOUBTED.  It holds for the whole session, also for what was booked before it.  And
 * whether a session has an end: queries are handed over before that is read. */
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
    size_t n, cap;
    struct ipw_doubts_session { /* in the order of the file */
        int segment;
        bool ended; /* it has a run_end */
    } * sessions;
    size_t n_sessions, cap_sessions;
};

/* Reads events.jsonl.  Errors name file and line. */
int ipw_doubts_read(struct ipw_doubts *d, const char *path, struct ipw_err *err);
void ipw_doubts_release(struct ipw_doubts *d);
/* The reason that such a note states in its data; NULL: it is none. */
const char *ipw_doubts_reason(const struct ipw_event *e, const struct ipw_json *data);

#endif
