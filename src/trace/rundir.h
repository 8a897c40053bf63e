/* trace/rundir.h: the folder of a run and its files (docs/trace-format.md).
 *
 * Creates runs/<agent>_<model>_<dataset>_<time>/ (mode 0700) or a named folder, and refuses a
 * folder that already contains a run.  It takes the lock and writes the files (mode 0600): manifest
 * and summary atomically; events, power rows and traces by appending whole lines.  Events and power
 * rows are collected in memory; ipw_rundir_flush() writes them, and the loop calls it before it
 * sleeps.  A finished query's line is written at once, after a flush of its events.  After a failed
 * write every further call returns that first error: the run has to stop. */
#ifndef IPW_TRACE_RUNDIR_H
#define IPW_TRACE_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "energy/sampler.h"
#include "json/jsonl.h"
#include "trace/event.h"

struct ipw_rundir;

struct ipw_rundir_names { /* parts of the default name */
    const char *agent, *model, *dataset;
    int64_t wall_ns;
};

/* `path` NULL: makes a new folder under ./runs by `names`, with -2, -3, ... appended if it exists.
 * A named folder is created with its parents, or used if it contains none of a run's files. */
int ipw_rundir_create(struct ipw_rundir **out, const char *path,
                      const struct ipw_rundir_names *names, struct ipw_err *err);
/* Opens the folder of a run to resume, or to start if it has none.  Locks the folder before it
 * reads anything in it, moves torn tails to side files (NAME.torn), and appends to all files.  If
 * the folder has no run, or its run was killed before it wrote anything, the result is as of
 * ipw_rundir_create(): then there is no manifest. */
int ipw_rundir_open(struct ipw_rundir **out, const char *path, struct ipw_err *err);
/* Does the folder contain any of a run's files? */
bool ipw_rundir_holds_run(const char *path);
bool ipw_rundir_has_manifest(const struct ipw_rundir *dir);
struct ipw_rundir_torn {
    const char *file; /* its name within the folder */
    struct ipw_jsonl_cut cut;
};
size_t ipw_rundir_torn(const struct ipw_rundir *dir, const struct ipw_rundir_torn **out);
/* From now on appends go to the files that have the names now: others may have replaced the old
 * ones. */
int ipw_rundir_reopen(struct ipw_rundir *dir, struct ipw_err *err);
/* The text of an owner that ended without releasing the lock; or "". */
const char *ipw_rundir_stale_owner(const struct ipw_rundir *dir);
void ipw_rundir_set_segment(struct ipw_rundir *dir, int segment);
void ipw_rundir_set_sync(struct ipw_rundir *dir, bool sync); /* sync at all?  True by default */
const char *ipw_rundir_path(const struct ipw_rundir *dir);
int ipw_rundir_write_manifest(struct ipw_rundir *dir, const char *json, size_t n,
                              struct ipw_err *err);
int ipw_rundir_write_summary(struct ipw_rundir *dir, const char *json, size_t n,
                             struct ipw_err *err);
/* power.jsonl: the header line names the channels; then one row per reading (trace/power.h). */
void ipw_rundir_power_header(struct ipw_rundir *dir, const struct ipw_source_set *set,
                             int64_t interval_ns);
void ipw_rundir_power_row(struct ipw_rundir *dir, const struct ipw_sampler_row *row);
/* A header or a row that is a line already (n bytes, with its newline). */
void ipw_rundir_power_line(struct ipw_rundir *dir, const char *line, size_t n);
/* From now on events and traces are written without their texts (trace/redact.h); borrowed. */
struct ipw_redactor;
void ipw_rundir_set_redactor(struct ipw_rundir *dir, const struct ipw_redactor *redactor);
void ipw_rundir_event(struct ipw_rundir *dir, const struct ipw_event *event);
/* Writes an event that is a line already (n bytes, without its newline). */
void ipw_rundir_event_line(struct ipw_rundir *dir, const char *line, size_t n);
int ipw_rundir_flush(struct ipw_rundir *dir, struct ipw_err *err);
/* Appends `line` (without newline) to traces.jsonl. */
int ipw_rundir_trace(struct ipw_rundir *dir, const char *line, size_t n, struct ipw_err *err);
/* Appends to warmup.jsonl, for queries that are not counted; the file is made with its first
 * line. */
int ipw_rundir_warmup(struct ipw_rundir *dir, const char *line, size_t n, struct ipw_err *err);
/* Appends to attempts.jsonl, for earlier attempts of queries that are run again. */
int ipw_rundir_attempt(struct ipw_rundir *dir, const char *line, size_t n, struct ipw_err *err);
/* Flushes and waits for the disk; all data appended so far is then safe. */
int ipw_rundir_sync(struct ipw_rundir *dir, struct ipw_err *err);
/* Rewrites traces.jsonl line by line: `edit` adds the line to `out` as it shall be, without a
 * newline, and returns 1 (0: it is left out; negative: an error, and nothing changes).  Writes a
 * new file, syncs, renames.  Waits for the disk. */
typedef int ipw_rundir_edit_fn(void *ud, const char *line, size_t n, struct ipw_buf *out,
                               struct ipw_err *err);
int ipw_rundir_edit_traces(struct ipw_rundir *dir, ipw_rundir_edit_fn *edit, void *ud,
                           struct ipw_err *err);
/* Descriptors to sync, in this order, for the caller's writer thread.  Valid until the next call
 * that does more than append. */
enum { IPW_RUNDIR_FDS = 4 };
size_t ipw_rundir_fds(const struct ipw_rundir *dir, int fds[IPW_RUNDIR_FDS]);
/* The disk lost written data: every further call returns this error. */
void ipw_rundir_failed(struct ipw_rundir *dir, const struct ipw_err *err);
/* Flushes, syncs, releases the lock.  Returns the first error that ever happened. */
int ipw_rundir_close(struct ipw_rundir *dir, struct ipw_err *err);

/* The error for a folder without traces.jsonl (errnum: why it cannot be read); it names a run if
 * the folder holds some. */
int ipw_rundir_no_run(const char *folder, int errnum, struct ipw_err *err);
/* Reads a run: calls fn for each query of RUN/traces.jsonl (RUN may also be the file itself).  A
 * torn last line (no newline) is skipped and reported through *torn, which may be NULL.  The query
 * is released after fn.  To keep it, fn copies the struct and clears the original (memset 0).  A
 * result other than 0 ends the reading and is returned.  A damaged line is an error that names file
 * and line. */
struct ipw_query_loaded;
int ipw_rundir_each_query(const char *run,
                          int (*fn)(void *ud, struct ipw_query_loaded *query, struct ipw_err *err),
                          void *ud, int *torn, struct ipw_err *err);

#endif
