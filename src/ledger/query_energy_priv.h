/* ledger/query_energy_priv.h: shared by query_energy.c (the figures of a query), query_parts.c
 * (what it did when) and query_energy_account.c (its accounts).  Owns nothing but its tiles. */
#ifndef IPW_LEDGER_QUERY_ENERGY_PRIV_H
#define IPW_LEDGER_QUERY_ENERGY_PRIV_H

#include "ledger/query_energy.h"

/* The ledger's index of a device within its domain. */
size_t ipw_query_energy_device(const struct ipw_ledger *ledger, const struct ipw_device *device);
/* Does the model run on the domain's devices? */
bool ipw_query_energy_of_model(const struct ipw_query_trace *trace, enum ipw_domain domain);
/* Are prefill and decode two times of the turn?  Not if the reply came in one event, or in less
 * than half of the time that the server says it decoded: then the first token was held back, and
 * the time before it has the decoding in it.  A reply of one token is prefill alone. */
bool ipw_query_energy_two_phases(const struct ipw_turn *turn);
/* A piece of a query that belongs to one part.  The tiles of a query follow each other from its
 * start to its end. */
struct ipw_query_tile {
    int64_t from, to;
    enum ipw_part_kind kind;
    bool waste;            /* in an attempt that failed, or whose reply could not be used */
    size_t tools, n_tools; /* of IPW_PART_TOOL: the first of its parts in the list `tools` */
};
struct ipw_query_tiles {
    struct ipw_query_tile *all;
    size_t n, cap;
    size_t *tools; /* indexes of parts */
    size_t n_tools, cap_tools;
};
/* Also lists the trace's parts, without their time. */
void ipw_query_tiles_make(struct ipw_query_tiles *out, struct ipw_query_trace *q);
void ipw_query_tiles_free(struct ipw_query_tiles *tiles);

/* Fills the accounts of every domain and device; call it after the figures. */
void ipw_query_energy_accounts(struct ipw_query_trace *q, const struct ipw_ledger *ledger,
                               int64_t query, const struct ipw_query_tiles *tiles);
/* Fills time and energy of the parts, and leaves out those that did not happen. */
void ipw_query_energy_parts(struct ipw_query_trace *q, const struct ipw_ledger *ledger,
                            int64_t query, const struct ipw_query_tiles *tiles);

#endif
