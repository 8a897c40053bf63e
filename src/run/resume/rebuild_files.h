/* run/resume/rebuild_files.h: whole files of a run, read and written again for
 * run/resume/rebuild.h.
 *
 * manifest.json and summary.json, and the messages about repairs. */
#ifndef IPW_RUN_RESUME_REBUILD_FILES_H
#define IPW_RUN_RESUME_REBUILD_FILES_H

#include "base/buf.h"
#include "json/json.h"
#include "run/resume/rebuild.h"

IPW_PRINTF(2, 3) void ipw_mend_say(const struct ipw_mend *m, const char *fmt, ...);

/* Writes the manifest with these sessions (text of an array) instead of its own. */
int ipw_mend_write_manifest(const char *run, const struct ipw_json *manifest, const char *sessions,
                            struct ipw_err *err);

/* Writes manifest.json from the run_start of each session, without the sessions' ends.  IPW_EPARSE:
 * the events do not have it. */
int ipw_mend_manifest(const struct ipw_mend *m, const char *run, struct ipw_err *err);
/* Writes summary.json from the manifest (which has the sessions' ends) and the queries. */
int ipw_mend_summary(const char *run, struct ipw_err *err);
/* Renames RUN/NAME to NAME.damaged. */
int ipw_mend_set_aside(const char *run, const char *name, struct ipw_err *err);

#endif
