/* run/merge/join_rows.h: the readings of several sessions of one boot, as those of one session.
 *
 * The sessions read the same devices, each with a sampler of its own.  For each sensor the readings
 * of one session lead.  When its readings end, another session's lead.  Readings of the others in
 * between are taken if they lie between the neighbouring readings of the leader (their stamps show
 * the time of the reading to some microseconds only), and if their counters have the same zero.  A
 * counter with another zero is shifted, when its session takes the lead, to continue where the
 * leader's ended.
 *
 * Owns the readers of power.jsonl.  Rows go to the caller in the order of time for each sensor. */
#ifndef IPW_RUN_MERGE_JOIN_ROWS_H
#define IPW_RUN_MERGE_JOIN_ROWS_H

#include "base/buf.h"
#include "ledger/power_reader.h"

struct ipw_join_rows;

struct ipw_join_row {
    size_t source, first, n;
    int64_t t_ns;
    const int64_t *values;
};

struct ipw_join_from { /* a session */
    const char *run;
    int session;
    int64_t end_ns;
};

/* A session without readings has no sensors.  All sessions have the same channels in their sums.
 * *at: the session with a file that cannot be read. */
int ipw_join_rows_open(struct ipw_join_rows **out, const struct ipw_join_from *from, size_t n,
                       size_t *at, struct ipw_err *err);
/* The time of the next reading of any session; INT64_MAX: there is none. */
int64_t ipw_join_rows_next_ns(const struct ipw_join_rows *r);
/* Takes that reading; calls fn for it, for earlier ones that waited, or not at all.  *at: the
 * session with a reading that cannot be used. */
int ipw_join_rows_take(struct ipw_join_rows *r,
                       void (*fn)(void *ud, const struct ipw_join_row *row), void *ud, size_t *at,
                       struct ipw_err *err);
/* After the last reading: those that still wait. */
void ipw_join_rows_flush(struct ipw_join_rows *r,
                         void (*fn)(void *ud, const struct ipw_join_row *row), void *ud);
/* Does this session lead the sensor with this channel? */
bool ipw_join_rows_leads(const struct ipw_join_rows *r, size_t session, const char *channel);
/* The channels of all sensors; and the header of power.jsonl for session `number` (with its
 * newline), empty if there is no sensor. */
struct ipw_channel *ipw_join_rows_channels(struct ipw_join_rows *r, size_t *n);
void ipw_join_rows_header(const struct ipw_join_rows *r, int number, struct ipw_buf *out);
void ipw_join_rows_close(struct ipw_join_rows *r); /* NULL is fine */

#endif
