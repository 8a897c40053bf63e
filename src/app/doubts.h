/* app/doubts.h: figures of a saved run that its own self-test speaks against.
 *
 * Runs that were written before a counter had to move knew 0 J of a dead one.  The manifest of such a
 * run says what its self-test found of each channel: where a counter of a domain's sum stood still, 0 J
 * of that domain are not believed (energy/belief.h has the rule). */
#ifndef IPW_APP_DOUBTS_H
#define IPW_APP_DOUBTS_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/turn.h"

struct ipw_doubts {
    bool stuck[IPW_DOMAIN_COUNT];
};
/* By the text of manifest.json.  An empty one, and one without a self-test, raises none. */
void ipw_doubts_load(struct ipw_doubts *d, const char *manifest, size_t n);
/* Takes the figures back that are not believed: the query's and its turns'. */
void ipw_doubts_apply(const struct ipw_doubts *d, struct ipw_query_trace *trace);

#endif
