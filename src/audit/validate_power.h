/* audit/validate_power.h: what the readings of a run allow its figures to say.
 *
 * A counter that never moved in a session has measured nothing: no figure of its domain is known
 * there, unless the gauge of its device stands in for it, or says that the device sleeps.  Fed with
 * the rows of each session, then asked about each query's line.  Owns what it remembers. */
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
void ipw_still_begin(struct ipw_still_list *l, const struct ipw_power *p);
void ipw_still_row(struct ipw_still_list *l, const struct ipw_power *p);
void ipw_still_end(struct ipw_still_list *l, const struct ipw_power *p);
/* IPW_EPARSE, and the channel by name, when a query's line knows what no reading told. */
int ipw_still_check(const struct ipw_still_list *l, const struct ipw_json *query,
                    struct ipw_err *err);
void ipw_still_release(struct ipw_still_list *l);

#endif
