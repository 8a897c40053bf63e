/* run/resume/script_hashes.h: the files that a run's scripts came from, for the run that goes on.
 *
 * The agent's file is one; the modules that it requires, its tools, a data set's script are others,
 * and most are read only when a query asks for them.  Those that were read before the run stand in
 * the manifest's config ("scripts"), later ones become a note of the run ("script") at once, so that
 * a kill loses none, and stand in the manifest too at the session's end.  A run that goes on is
 * refused when one of them is another file now.  Owned by struct ipw_run. */
#ifndef IPW_RUN_RESUME_SCRIPT_HASHES_H
#define IPW_RUN_RESUME_SCRIPT_HASHES_H

#include "json/write.h"
#include "script/file_hashes.h"

struct ipw_run;

struct ipw_scripts {
    struct ipw_file_hash *all; /* of earlier sessions and this one */
    size_t n, cap;
    size_t n_taken; /* of ipw_file_hashes_count() */
};

/* IPW_EINVAL, naming it, when a file of an earlier session has changed or is gone. */
int ipw_scripts_check(struct ipw_run *run, struct ipw_err *err);
/* Takes note of what was loaded since it was asked last. */
void ipw_scripts_note(struct ipw_run *run);
/* [{"path", "sha256"}, ...] */
void ipw_scripts_write(struct ipw_jw *w, const struct ipw_run *run);
void ipw_scripts_release(struct ipw_scripts *s);

#endif
