/* run/merge/join_scopes.h: joined sessions that have different devices.
 *
 * For the ledger: the devices of each session, and the idle watts of each device.  For the
 * manifest: the description of each device.  A device's facts are those of the first session that
 * has it.  Owns nothing. */
#ifndef IPW_RUN_MERGE_JOIN_SCOPES_H
#define IPW_RUN_MERGE_JOIN_SCOPES_H

#include "run/merge/join.h"
#include "run/merge/join_rows.h"

struct ipw_join_scopes {
    const struct ipw_join *j;
    const struct ipw_join_rows *rows;
    const struct ipw_json *const *starts; /* the data of each member's run_start */
};

/* One for each member, for ipw_ledger_set_scopes(). */
struct ipw_ledger_scope *ipw_join_scopes_make(const struct ipw_join_scopes *s, size_t n_channels);
void ipw_join_scopes_free(struct ipw_ledger_scope *scopes, size_t n); /* NULL is fine */
/* Sets the idle watts of all channels, which are those of the joined session. */
void ipw_join_scopes_baselines(struct ipw_ledger_rules *rules, const struct ipw_join_scopes *s,
                               const struct ipw_channel *channels, size_t n);
/* Appends hardware.channels. */
void ipw_join_scopes_describe(struct ipw_buf *out, const struct ipw_join_scopes *s,
                              const struct ipw_channel *channels, size_t n);
/* The data of a note of one session, with the names and times of the joined one; appends nothing if
 * they are the same. */
void ipw_join_scopes_note(struct ipw_buf *out, struct ipw_join_rows *rows, size_t session,
                          const struct ipw_json *data, int64_t ahead_ns);

#endif
