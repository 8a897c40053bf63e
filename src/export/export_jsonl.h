/* export/export_jsonl.h: a run's traces as JSON lines, for other programs.
 *
 * Copies RUN/traces.jsonl (or the file itself) line by line, after it has parsed and checked each
 * line. A torn last line (the writer was killed inside it) is left out and reported through *torn.
 * A damaged line is an error that names file and line; the lines before it have been written. */
#ifndef IPW_EXPORT_EXPORT_JSONL_H
#define IPW_EXPORT_EXPORT_JSONL_H

#include <stdio.h>

#include "base/err.h"

/* `torn` can be NULL. */
int ipw_export_jsonl(const char *run, FILE *out, int *torn, struct ipw_err *err);

#endif
