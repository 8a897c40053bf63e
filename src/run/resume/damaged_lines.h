/* run/resume/damaged_lines.h: lines taken out of a file of a run.
 *
 * For those who repair a run (run/resume/repair.h) or put its files in order (run/resume/rebuild.h):
 * the lines are kept in FILE.damaged.  Holds nothing. */
#ifndef IPW_RUN_RESUME_DAMAGED_LINES_H
#define IPW_RUN_RESUME_DAMAGED_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Moves the lines with these numbers (ascending) from the file to PATH.damaged. */
int ipw_damaged_lines_take_out(const char *path, const int64_t *lines, size_t n,
                               struct ipw_err *err);

#endif
