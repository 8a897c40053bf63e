/* run/resume/script_hashes.h: the files that a run's scripts came from, for the run that goes on.
 *
 * The agent's file is one; the modules that it requires, its tools, a dataset's script are others,
 * and most are read only when a query asks for them.  Those that were read before the run stand in
 * the manifest's config ("scripts"), later ones become a note of the run ("script") at once, so that
 * a kill loses none, and stand in the manifest too at the session's end.  A run that goes on is
 * refused when one of them is another file now. */
#ifndef IPW_RUN_RESUME_SCRIPT_HASHES_H
#define IPW_RUN_RESUME_SCRIPT_HASHES_H

#include "json/write.h"
#include "run/resume/same_run.h"
#include "run/resume/sessions.h"
#include "script/file_hashes.h"
#include "trace/rundir.h"

struct ipw_scripts {
    struct ipw_file_hash *all; /* of earlier sessions and this one */
    size_t n, cap;
    size_t n_taken; /* of ipw_file_hashes_count() */
};

/* A file of an earlier session that has changed or is gone is a difference; the agent's own file,
 * which the configuration has the hash of, is not looked at.  `path`: of the run's folder. */
int ipw_scripts_check(struct ipw_scripts *s, const struct ipw_history *h, const char *path,
                      const char *agent_path, struct ipw_differences *d, struct ipw_err *err);
/* Takes note of what was loaded since it was asked last; `n_rows`: of samples so far. */
void ipw_scripts_note(struct ipw_scripts *s, struct ipw_rundir *dir, int64_t n_rows);
/* [{"path", "sha256"}, ...] */
void ipw_scripts_write(struct ipw_jw *w, const struct ipw_scripts *s);
void ipw_scripts_release(struct ipw_scripts *s);

#endif
