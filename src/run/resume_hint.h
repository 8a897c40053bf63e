/* run/resume_hint.h: the command that continues a stopped run, as the last line of output.
 *
 * It is printed after a signal, a limit of the run, a lost server, and a disk error.  If a second
 * signal, or one before the first query, ends the program at once, the signal's handler prints it.
 * `--rerun failed` is part of it if queries failed by themselves, because a plain resume does not
 * run them again. */
#ifndef IPW_RUN_RESUME_HINT_H
#define IPW_RUN_RESUME_HINT_H

#include <stdbool.h>

#include "run/results.h"

/* "ipw-agent resume PATH", with PATH quoted for a shell; freed by the caller. */
char *ipw_go_on_command(const char *path, bool retry_failed);
/* Call it when the run's folder has been created; `earlier`: the results of the sessions before. */
void ipw_go_on_ready(const char *path, const struct ipw_results *earlier);
/* A query failed by itself. */
void ipw_go_on_failed(void);
/* At the end: the command, freed by the caller; NULL if there is nothing to continue.  `path`: the
 * run's folder; NULL, or missing: there is nothing to continue. */
char *ipw_go_on(const char *path, const struct ipw_results *results);

#endif
