/* run/merge/join_rows.h: the readings of several sessions, as those of one session.
 *
 * The sessions read the same sensors, or some of them, each with a sampler of its own.  For each
 * sensor the readings of one session count, of its leader.  When the leader's readings end, another
 * session's count.  A counter with another zero is shifted, when its session takes the lead, to
 * continue where the leader's ended.
 *
 * A stream brings the readings of a far process to all sessions, each with stamps by its own
 * alignment of the clocks.  A new leader goes on behind the last of them, which its counters tell.
 *
 * Where sessions have different devices, a source is divided into one sensor for each device.  A
 * device is known by its domain and its own id: a GPU's UUID, whatever its number in a session.
 * Devices of the same name get their id behind it (gpu0@GPU-3f29ab10).
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
    int64_t end_ns;        /* on the clock of the joined session */
    int64_t ahead_ns;      /* is added to its stamps, for the same */
    const char *host;      /* its clock and local devices: a boot id, or NULL */
    const char *host_name; /* for a person */
    size_t n_added;        /* this many of its last sources are not its own: a meter's */
};

/* A session without readings has no sensors.  `divided`: their devices may differ.  *at: the
 * session with a file that cannot be read. */
int ipw_join_rows_open(struct ipw_join_rows **out, const struct ipw_join_from *from, size_t n,
                       bool divided, size_t *at, struct ipw_err *err);
/* The time of the next reading of any session; INT64_MAX: there is none. */
int64_t ipw_join_rows_next_ns(const struct ipw_join_rows *r);
/* Takes that reading; calls fn for each sensor that it counts for.  *at: the session with a reading
 * that cannot be used. */
int ipw_join_rows_take(struct ipw_join_rows *r,
                       void (*fn)(void *ud, const struct ipw_join_row *row), void *ud, size_t *at,
                       struct ipw_err *err);
/* Did the session read its next reading itself?  And how many of those were taken: the `rows` of an
 * event tells its place among them. */
bool ipw_join_rows_next_is_own(const struct ipw_join_rows *r, size_t session);
int64_t ipw_join_rows_own_taken(const struct ipw_join_rows *r, size_t session);
/* Does this session lead the sensor with this channel of the joined session? */
bool ipw_join_rows_leads(const struct ipw_join_rows *r, size_t session, size_t channel);
/* The session's own channels, and which of the joined session's each of them is; SIZE_MAX: none. */
const struct ipw_channel *ipw_join_rows_own(const struct ipw_join_rows *r, size_t session,
                                            const size_t **joined, size_t *n);
/* The place of a session's own channel among them; SIZE_MAX: it is not there. */
size_t ipw_join_rows_joined(const struct ipw_join_rows *r, size_t session, const char *own_name);
/* The channels of all sensors; and the header of power.jsonl for session `number` (with its
 * newline), empty if there is no sensor. */
struct ipw_channel *ipw_join_rows_channels(struct ipw_join_rows *r, size_t *n);
void ipw_join_rows_header(const struct ipw_join_rows *r, int number, struct ipw_buf *out);
void ipw_join_rows_close(struct ipw_join_rows *r); /* NULL is fine */

#endif
