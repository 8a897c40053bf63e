/* app/repair.h: damaged lines of a run, taken out.
 *
 * A line that a reader of its file cannot take (no JSON, no query, no row of its header) is moved to
 * FILE.damaged, a torn tail to FILE.torn, and each is told of.  Nothing is thrown away and nothing
 * is invented: what a lost event meant for a query's figures stays for validate to name.  The run
 * is locked meanwhile; a file is written anew beside the old one, synced, renamed. */
#ifndef IPW_APP_REPAIR_H
#define IPW_APP_REPAIR_H

#include <stddef.h>

#include "base/err.h"

struct ipw_repair {
    size_t dropped, torn; /* lines, files */
    size_t queries; /* lines and tails of these that were, or may have been, those of a query */
    /* Told of each, before it is done; may be NULL. */
    void (*say)(void *ud, const char *what);
    void *ud;
};

int ipw_repair_run(struct ipw_repair *r, const char *run, struct ipw_err *err);

#endif
