/* run/resume/line_changes.h: changes single lines of a file of a run.
 *
 * Used to repair a run (run/resume/repair.h) and to put its files in order (run/resume/rebuild.h).
 * The file is written beside the old one, synced and renamed.  Lines that are taken out are kept in
 * FILE.damaged. */
#ifndef IPW_RUN_RESUME_LINE_CHANGES_H
#define IPW_RUN_RESUME_LINE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_line_change {
    int64_t number; /* of the line, from 1 */
    char *text;     /* without a newline; NULL: the line is taken out */
    bool behind;    /* the text is a new line behind this one, which stays */
};

struct ipw_line_changes {
    struct ipw_line_change *all;
    size_t n, cap;
    size_t n_out; /* of those, lines that are taken out */
};

/* `text` is the list's from here on. */
void ipw_line_changes_add(struct ipw_line_changes *c, struct ipw_line_change change);
/* Makes the changes, in any order of their numbers; one to a line. */
int ipw_line_changes_write(struct ipw_line_changes *c, const char *path, struct ipw_err *err);
void ipw_line_changes_release(struct ipw_line_changes *c);

#endif
