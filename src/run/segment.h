/* run/segment.h: a session's object in the manifest: the members about its end.
 *
 * Written when a session ends (run/manifest.h), and when a later session books one that was killed
 * (run/resume/rebuild.h).  Pure: from facts to JSON. */
#ifndef IPW_RUN_SEGMENT_H
#define IPW_RUN_SEGMENT_H

#include "base/clock.h"
#include "json/write.h"
#include "ledger/balance.h"

/* The members "end", "end_ns" and "ended_at"; NULL and 0: the session has not ended. */
void ipw_segment_put_end(struct ipw_jw *w, const char *end, int64_t end_ns,
                         const struct ipw_anchor *anchor);
/* The member "ledger"; NULL: no ledger of the session has been computed yet. */
void ipw_segment_put_balances(struct ipw_jw *w, const struct ipw_balance *balances,
                              const struct ipw_device_list *devices);
/* The member "host": this machine's name, and the id of its boot, which is the same in all of its
 * containers.  Sessions of one boot share the clock and the devices' counters. */
void ipw_segment_put_host(struct ipw_jw *w);
/* A member that is an instant; 0: null. */
void ipw_segment_put_time(struct ipw_jw *w, const char *key, int64_t t_ns);
/* The end of a session as its files show it, as members of its object; 0 and NULL: it never
 * began. */
void ipw_segment_write_end(struct ipw_buf *out, const char *end, int64_t start_ns, int64_t end_ns,
                           const struct ipw_anchor *anchor, const struct ipw_balance *balances,
                           const struct ipw_device_list *devices);

#endif
