/* ledger/share.h: how the energy of a cell is shared among the queries in flight in it
 * (docs/method.md, "Sharing between queries").
 *
 * A cell is a piece of time in which no query begins, changes its phase, or ends.  Queries in the
 * same phase get the same part, so a rule gives a weight to each phase.  A rule is a row of the
 * table in share.c: add it there with its name, and describe it in docs/method.md.  Pure. */
#ifndef IPW_LEDGER_SHARE_H
#define IPW_LEDGER_SHARE_H

#include "ledger/phase.h"

/* E: the energy of the cell, n: the queries in flight.  I is the idle part, min(E, idle power times
 * length); each query gets I / n.  D = E - I goes
 *   equal: in equal parts
 *   model-time: in equal parts to the queries with a model call in progress, or to all while there
 *     is none
 *   phase: in proportion to the fitted power of the query's phase; equally while the fit does not
 *     know it yet.
 * In order of their names. */
enum ipw_share { IPW_SHARE_EQUAL, IPW_SHARE_MODEL_TIME, IPW_SHARE_PHASE, IPW_SHARE_COUNT };
const char *ipw_share_name(enum ipw_share share); /* "equal", "model-time", "phase" */

struct ipw_share_cell {
    int64_t uj, idle_uj;             /* its energy, and the idle part of it */
    int32_t count[IPW_PHASE_COUNT];  /* queries in flight, by phase */
    int64_t n;                       /* their sum, above 0 */
    const struct ipw_phase_fit *fit; /* the power of the phases on this device */
    /* In and out: the rest of the cells before, of this one; in 2^-32 microjoules. */
    unsigned __int128 rest;
};
/* The part of one query in each phase that has any, in 2^-32 microjoules.  All parts and the new
 * rest are exactly the cell's energy and the old rest. */
void ipw_share_out(struct ipw_share_cell *cell, enum ipw_share share,
                   unsigned __int128 part[IPW_PHASE_COUNT]);

#endif
