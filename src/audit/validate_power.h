/* audit/validate_power.h: checks that no energy value rests on a sensor that is not believed.
 *
 * Gives the rows of each session to energy/trust.h.  The domain of a sensor that is not believed
 * has no value there, unless the gauge of its device replaces a dead counter or says that the
 * device sleeps.  Then checks each query's line.  Owns its lists. */
#ifndef IPW_AUDIT_VALIDATE_POWER_H
#define IPW_AUDIT_VALIDATE_POWER_H

#include "energy/trust.h"
#include "json/json.h"
#include "ledger/power_reader.h"

struct ipw_still_list {
    struct ipw_still *items;
    size_t n, cap;
    struct ipw_trust *trust; /* of the session that is being read */
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
