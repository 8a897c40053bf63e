/* run/resume/repair.h: damaged lines of a run, taken out.
 *
 * A line that a reader of its file cannot take (no JSON, no query, no row of its header) is moved to
 * FILE.damaged, a torn tail to FILE.torn, and each is told of.  Nothing is thrown away and nothing
 * is invented.  Then the files are put in order by what the others say (run/resume/rebuild.h).  The run
 * is locked meanwhile; a file is written anew beside the old one, synced, renamed. */
#ifndef IPW_RUN_RESUME_REPAIR_H
#define IPW_RUN_RESUME_REPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_repair {
    size_t dropped, torn; /* lines, files */
    size_t queries; /* lines and tails of these that were, or may have been, those of a query */
    size_t mended;  /* of what run/resume/rebuild.h counts */
    /* Told of each, before it is done; may be NULL. */
    void (*say)(void *ud, const char *what);
    void *ud;
};

/* Is there a manifest that can be read?  Without one nothing else is asked of the folder. */
bool ipw_repair_has_manifest(const char *run);
int ipw_repair_run(struct ipw_repair *r, const char *run, struct ipw_err *err);

#endif
