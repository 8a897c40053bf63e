/* run/resume/damaged_lines.h: removes lines from a file of a run.
 *
 * Used to repair a run (run/resume/repair.h) and to put its files in order (run/resume/rebuild.h).
 * The lines are kept in FILE.damaged.  Owns nothing. */
#ifndef IPW_RUN_RESUME_DAMAGED_LINES_H
#define IPW_RUN_RESUME_DAMAGED_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Moves the lines with these numbers (ascending) from the file to PATH.damaged. */
int ipw_damaged_lines_take_out(const char *path, const int64_t *lines, size_t n,
                               struct ipw_err *err);

#endif
