/* run/resume/script_hashes.h: the files of a run's scripts, which `resume` compares.
 *
 * These are the agent's file, the modules that it requires, its tools, and a dataset's script.
 * Most are read only when a query needs them.  Files read before the run are in the manifest's
 * config ("scripts"). For each later file a note of the run ("script") is written at once, so that
 * a kill loses none, and the manifest has it at the session's end.  A run is not resumed if one of
 * these files has changed. */
#ifndef IPW_RUN_RESUME_SCRIPT_HASHES_H
#define IPW_RUN_RESUME_SCRIPT_HASHES_H

#include "json/write.h"
#include "run/resume/same_run.h"
#include "run/resume/sessions.h"
#include "script/file_hashes.h"
#include "trace/rundir.h"

struct ipw_scripts {
    struct ipw_file_hash *all; /* of earlier sessions and of this one */
    size_t n, cap;
    size_t n_taken; /* how many of ipw_file_hashes_count() were taken */
};

/* A file of an earlier session that has changed or is missing is a difference.  The agent's own
 * file is not compared here, because the configuration has its hash.  `path`: of the run's
 * folder. */
int ipw_scripts_check(struct ipw_scripts *s, const struct ipw_history *h, const char *path,
                      const char *agent_path, struct ipw_differences *d, struct ipw_err *err);
/* Takes the files that were read since the last call; `n_rows`: number of readings so far. */
void ipw_scripts_note(struct ipw_scripts *s, struct ipw_rundir *dir, int64_t n_rows);
/* [{"path", "sha256"}, ...] */
void ipw_scripts_write(struct ipw_jw *w, const struct ipw_scripts *s);
void ipw_scripts_release(struct ipw_scripts *s);

#endif
