/* export/export_jsonl.h: a run's traces as JSON lines, for other programs.
 *
 * Copies RUN/traces.jsonl (or the file itself) line by line, each parsed and checked first, so that
 * what comes out is whole.  A torn last line (the writer was killed inside it) is left out and
 * reported through *torn; a damaged line within is an error that names file and line, and what came
 * before it has been written. */
#ifndef IPW_EXPORT_EXPORT_JSONL_H
#define IPW_EXPORT_EXPORT_JSONL_H

#include <stdio.h>

#include "base/err.h"

/* `torn` may be NULL. */
int ipw_export_jsonl(const char *run, FILE *out, int *torn, struct ipw_err *err);

#endif
