/* report/rank.h: orders the queries of a saved run by energy, time or tokens, largest first.
 *
 * Energy is that of the machine's own meter if the run has one, else the sum of the measured
 * devices. Queries with an unknown value come last.  Queries with equal values keep the order of
 * the file. */
#ifndef IPW_REPORT_RANK_H
#define IPW_REPORT_RANK_H

#include <stddef.h>

#include "base/err.h"

enum ipw_rank_by { IPW_RANK_NOT, IPW_RANK_ENERGY, IPW_RANK_TIME, IPW_RANK_TOKENS };

/* "energy", "time" or "tokens"; NULL is IPW_RANK_NOT. */
int ipw_rank_parse(enum ipw_rank_by *out, const char *text, struct ipw_err *err);

#define IPW_RANK_NONE ((size_t)-1)

struct ipw_ranks {
    size_t *of;      /* of the i-th query of the file: 0 is the largest; IPW_RANK_NONE: left out */
    size_t n;        /* queries of the file */
    size_t n_ranked; /* those that have a rank: n, or the limit */
};

/* `limit` 0: all. */
int ipw_rank_queries(struct ipw_ranks *out, const char *run, enum ipw_rank_by by, size_t limit,
                     struct ipw_err *err);
void ipw_ranks_release(struct ipw_ranks *ranks);

#endif
