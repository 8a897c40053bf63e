/* audit/validate_power.h: checks that no energy value rests on a counter that never moved.
 *
 * A counter that never moved in a session has measured nothing.  Its domain has no value there,
 * unless the gauge of its device replaces it or says that the device sleeps.  Gets the rows of each
 * session, then checks each query's line.  Owns its lists. */
#ifndef IPW_AUDIT_VALIDATE_POWER_H
#define IPW_AUDIT_VALIDATE_POWER_H

#include "json/json.h"
#include "ledger/power_reader.h"

struct ipw_still_list {
    struct ipw_still *items;
    size_t n, cap;
    struct ipw_channel_seen *seen; /* of the channels of the session that is being read */
};

/* A session's header was read; each of its rows; and their end. */
void ipw_still_begin(struct ipw_still_list *l, const struct ipw_power_reader *p);
void ipw_still_row(struct ipw_still_list *l, const struct ipw_power_reader *p);
void ipw_still_end(struct ipw_still_list *l, const struct ipw_power_reader *p);
/* IPW_EPARSE, with the name of the channel, when a query has a value without a reading. */
int ipw_still_check(const struct ipw_still_list *l, const struct ipw_json *query,
                    struct ipw_err *err);
void ipw_still_release(struct ipw_still_list *l);

#endif
