/* ledger/query_tiles.h: what a query did when, as tiles that follow each other from its start to
 * its end.
 *
 * Made from a built trace (trace/turn.h), whose parts it lists.  Pure; the caller frees the
 * tiles. */
#ifndef IPW_LEDGER_QUERY_TILES_H
#define IPW_LEDGER_QUERY_TILES_H

#include "trace/turn.h"

/* A piece of a query that belongs to one part. */
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
/* Also lists the trace's parts, with their calls and seconds. */
void ipw_query_tiles_make(struct ipw_query_tiles *out, struct ipw_query_trace *q);
void ipw_query_tiles_free(struct ipw_query_tiles *tiles);
/* The parts to which a tile belongs, as indexes: one, or several tools.  Returns their number. */
size_t ipw_query_tile_parts(const size_t **out, const struct ipw_query_tiles *tiles,
                            const struct ipw_query_tile *tile);
/* Are prefill and decode two times of the turn?  Not if the reply came in one event, or in less
 * than half of the time that the server says it decoded: then the first token was held back, and
 * the time before it has the decoding in it.  A reply of one token is prefill alone. */
bool ipw_query_two_phases(const struct ipw_turn *turn);

#endif
