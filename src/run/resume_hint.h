/* run/resume_hint.h: the command that goes on with a run that stopped, as the last line that is printed.
 *
 * Said after a signal, a limit of the run, a server that did not come back, and a disk that failed;
 * by the signal's handler itself where a second signal, or one before the first query, ends the
 * program at once.  `--rerun failed` is part of it where queries failed by themselves, which a plain
 * resume leaves as they are. */
#ifndef IPW_RUN_RESUME_HINT_H
#define IPW_RUN_RESUME_HINT_H

#include "run/results.h"

/* From the making of the run's folder on; `earlier`: the results of the sessions before. */
void ipw_resume_hint_ready(const char *path, const struct ipw_results *earlier);
/* A query failed by itself. */
void ipw_resume_hint_failed(void);
/* At the end: the command, "ipw-agent resume PATH" with PATH as a shell takes it, freed by the caller.  `path`: of the run's folder; NULL, or gone: there is
 * nothing to go on with, and NULL is returned. */
char *ipw_resume_hint(const char *path, const struct ipw_results *results);

#endif
