/* run/resume/rebuild_files.h: whole files of a run, read and written again for
 * run/resume/rebuild.h.
 *
 * manifest.json and summary.json, and the messages about repairs. */
#ifndef IPW_RUN_RESUME_REBUILD_FILES_H
#define IPW_RUN_RESUME_REBUILD_FILES_H

#include "base/buf.h"
#include "json/json.h"
#include "report/summary.h"
#include "run/resume/rebuild.h"

IPW_PRINTF(2, 3) void ipw_rebuild_say(const struct ipw_rebuild *m, const char *fmt, ...);

/* The manifest with these sessions (text of an array) in place of its own. */
int ipw_rebuild_write_manifest(const char *run, const struct ipw_json *manifest,
                               const char *sessions, struct ipw_err *err);

/* manifest.json, from the run_start of each session; their ends are not in it.  IPW_EPARSE: the
 * events do not carry it. */
int ipw_rebuild_manifest(const struct ipw_rebuild *m, const char *run, struct ipw_err *err);
/* summary.json, from the manifest (the ends of its sessions are in it) and the queries.  `counted`:
 * has those of traces.jsonl already; NULL: they are read from there. */
int ipw_rebuild_summary(const char *run, struct ipw_summary *counted, struct ipw_err *err);
/* Renames summary.json to summary.json.damaged. */
int ipw_rebuild_set_summary_aside(const char *run, struct ipw_err *err);

#endif
