/* replay/divergences.h: the differences from the saved run, in the words of the report.
 *
 * Keeps the first twenty and counts the others.  Owns its texts; all zero is empty. */
#ifndef IPW_REPLAY_DIVERGENCES_H
#define IPW_REPLAY_DIVERGENCES_H

#include <stddef.h>
#include <stdint.h>

#include "json/write.h"

struct ipw_divergence { /* of one query */
    char *id, *text;
    int32_t index;
    int turn; /* 0: of none */
};

struct ipw_divergences {
    struct ipw_divergence *all;
    size_t n, cap, n_more;
};

void ipw_divergences_add(struct ipw_divergences *d, const char *id, int32_t index, int turn,
                         const char *text);
/* The members "divergences" and "divergences_left_out". */
void ipw_divergences_write(struct ipw_jw *w, const struct ipw_divergences *d);
void ipw_divergences_release(struct ipw_divergences *d);

#endif
