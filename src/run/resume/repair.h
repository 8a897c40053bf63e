/* run/resume/repair.h: removes damaged lines of a run.
 *
 * A line that cannot be read (not JSON, not a query, not a row of its header) is moved to
 * FILE.damaged, a torn tail to FILE.torn, and each is reported.  Nothing is lost.  An event that
 * cannot stand without a lost one goes too.  Then the files are put in order by the content of the
 * others (run/resume/rebuild.h).  The run is locked meanwhile.  A file is written beside the old
 * one, synced and renamed. */
#ifndef IPW_RUN_RESUME_REPAIR_H
#define IPW_RUN_RESUME_REPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_repair {
    size_t dropped, torn; /* lines, files */
    size_t queries; /* of these lines and tails, those that were, or may have been, of a query */
    size_t mended;  /* repairs of run/resume/rebuild.h */
    /* Called for each before it is done; can be NULL. */
    void (*say)(void *ud, const char *what);
    void *ud;
};

/* Whether there is a readable manifest.  Without one the folder cannot be repaired. */
bool ipw_repair_has_manifest(const char *run);
int ipw_repair_run(struct ipw_repair *r, const char *run, struct ipw_err *err);

#endif
