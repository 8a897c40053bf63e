/* run/resume_hint.h: the command that goes on with a run that stopped, as the last line that is printed.
 *
 * Said after a signal, a limit of the run, a server that did not come back, and a disk that failed;
 * by the signal's handler itself where a second signal, or one before the first query, ends the
 * program at once.  `--rerun failed` is part of it where queries failed by themselves, which a plain
 * resume leaves as they are. */
#ifndef IPW_RUN_RESUME_HINT_H
#define IPW_RUN_RESUME_HINT_H

#include <stdbool.h>

struct ipw_run;

/* "ipw-agent resume PATH", with PATH as a shell takes it; freed by the caller. */
char *ipw_go_on_command(const char *path, bool retry_failed);
/* From the making of the run's folder on. */
void ipw_go_on_ready(struct ipw_run *run);
/* A query failed by itself. */
void ipw_go_on_failed(void);
/* At the end: the command, when the run stopped before it was through (`stopped`), freed by the caller;
 * else NULL.  `path`: of its folder; NULL or gone: there is nothing to go on with. */
char *ipw_go_on(const struct ipw_run *run, const char *path, bool stopped);

#endif
