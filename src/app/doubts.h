/* app/doubts.h: removes energy values of a saved run that its own self-test contradicts.
 *
 * Older versions wrote 0 J for a dead counter.  The manifest of such a run has a self-test of each
 * channel.  If it says that a counter of a domain's sum did not move, 0 J of this domain are not
 * believed (energy/belief.h has the rule). */
#ifndef IPW_APP_DOUBTS_H
#define IPW_APP_DOUBTS_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/turn.h"

struct ipw_doubts {
    bool stuck[IPW_DOMAIN_COUNT];
};
/* Reads the text of manifest.json.  Without a self-test there are no doubts. */
void ipw_doubts_load(struct ipw_doubts *d, const char *manifest, size_t n);
/* Makes the doubted energy values of the query and of its turns unknown. */
void ipw_doubts_apply(const struct ipw_doubts *d, struct ipw_query_trace *trace);

#endif
