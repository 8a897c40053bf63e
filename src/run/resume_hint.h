/* run/resume_hint.h: the command that continues a stopped run, as the last line of output.
 *
 * It is printed after a signal, a limit of the run, a lost server, and a disk error.  If a second
 * signal, or one before the first query, ends the program at once, the signal's handler prints it.
 * `--rerun failed` is part of it if queries failed by themselves, because a plain resume does not
 * run them again. */
#ifndef IPW_RUN_RESUME_HINT_H
#define IPW_RUN_RESUME_HINT_H

#include "run/results.h"

/* From the making of the run's folder on; `earlier`: the results of the sessions before. */
void ipw_resume_hint_ready(const char *path, const struct ipw_results *earlier);
/* A query failed by itself. */
void ipw_resume_hint_failed(void);
/* At the end: the command, "ipw-agent resume PATH" with PATH as a shell takes it, freed by the
 * caller.  `path`: of the run's folder; NULL, or gone: there is nothing to go on with, and NULL is
 * returned. */
char *ipw_resume_hint(const char *path, const struct ipw_results *results);

#endif
