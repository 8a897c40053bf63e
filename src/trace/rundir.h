/* trace/rundir.h: the folder of a run and its files (docs/trace-format.md).
 *
 * Creates runs/<agent>_<model>_<dataset>_<time>/ (mode 0700) or the folder that was named, refuses
 * one that already contains a run, takes the lock, and writes the files: manifest and summary
 * atomically, events, power rows and traces by appending whole lines.  Events and power rows are
 * gathered in memory and written by ipw_rundir_flush(), which the loop calls before it sleeps; a
 * finished query's line is written at once, after a flush of its events.  After a failed write
 * every further call returns that first error: the run has to stop.  Files are 0600. */
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

/* `path` NULL: a new folder under ./runs by `names`, -2, -3, ... appended when it is taken.  A
 * named folder is created with its parents, or used if it holds none of a run's files. */
int ipw_rundir_create(struct ipw_rundir **out, const char *path,
                      const struct ipw_rundir_names *names, struct ipw_err *err);
/* For a run that goes on, or may have to begin: the folder is locked before anything in it is read,
 * torn tails are moved to side files (NAME.torn), and everything is appended to.  A folder without
 * a run, or with one that was killed before it had written anything, is as ipw_rundir_create()
 * leaves it: then there is no manifest. */
int ipw_rundir_open(struct ipw_rundir **out, const char *path, struct ipw_err *err);
/* Is any of a run's files there? */
bool ipw_rundir_holds_run(const char *path);
bool ipw_rundir_has_manifest(const struct ipw_rundir *dir);
struct ipw_rundir_torn {
    const char *file; /* its name in the folder */
    struct ipw_jsonl_cut cut;
};
size_t ipw_rundir_torn(const struct ipw_rundir *dir, const struct ipw_rundir_torn **out);
/* Appends go to the files that bear the names now: others may have been put in their place. */
int ipw_rundir_reopen(struct ipw_rundir *dir, struct ipw_err *err);
/* Who held the lock and went without giving it back; or "". */
const char *ipw_rundir_stale_owner(const struct ipw_rundir *dir);
void ipw_rundir_set_segment(struct ipw_rundir *dir, int segment);
void ipw_rundir_set_sync(struct ipw_rundir *dir, bool sync); /* at all; true from the start */
const char *ipw_rundir_path(const struct ipw_rundir *dir);
int ipw_rundir_write_manifest(struct ipw_rundir *dir, const char *json, size_t n,
                              struct ipw_err *err);
int ipw_rundir_write_summary(struct ipw_rundir *dir, const char *json, size_t n,
                             struct ipw_err *err);
/* power.jsonl: the header line names the channels; then a row a reading (trace/power.h). */
void ipw_rundir_power_header(struct ipw_rundir *dir, const struct ipw_source_set *set,
                             int64_t interval_ns);
void ipw_rundir_power_row(struct ipw_rundir *dir, const struct ipw_sampler_row *row);
/* From now on events and traces are written without their texts (trace/redact.h); borrowed. */
struct ipw_redactor;
void ipw_rundir_set_redactor(struct ipw_rundir *dir, const struct ipw_redactor *redactor);
void ipw_rundir_event(struct ipw_rundir *dir, const struct ipw_event *event);
/* The same of an event that is a line already (n bytes, without its newline). */
void ipw_rundir_event_line(struct ipw_rundir *dir, const char *line, size_t n);
int ipw_rundir_flush(struct ipw_rundir *dir, struct ipw_err *err);
/* `line` without newline. */
int ipw_rundir_trace(struct ipw_rundir *dir, const char *line, size_t n, struct ipw_err *err);
/* The same into warmup.jsonl, for queries that do not count; the file is made with its first line. */
int ipw_rundir_warmup(struct ipw_rundir *dir, const char *line, size_t n, struct ipw_err *err);
/* Into attempts.jsonl, for earlier attempts at queries that are run again. */
int ipw_rundir_attempt(struct ipw_rundir *dir, const char *line, size_t n, struct ipw_err *err);
/* Flushes; what was appended to any file is safe afterwards.  Waits for the disk. */
int ipw_rundir_sync(struct ipw_rundir *dir, struct ipw_err *err);
/* traces.jsonl again, with only the lines that `keep` answers 1 for (0: left out; negative: an
 * error, and nothing is changed): written, synced, renamed.  Waits for the disk. */
int ipw_rundir_sift_traces(struct ipw_rundir *dir,
                           int (*keep)(void *ud, const char *line, size_t n, struct ipw_err *err),
                           void *ud, struct ipw_err *err);
/* Descriptors to sync, in this order, for the caller's writer thread.  Valid until the next call
 * that is not one of appending. */
enum { IPW_RUNDIR_FDS = 4 };
size_t ipw_rundir_fds(const struct ipw_rundir *dir, int fds[IPW_RUNDIR_FDS]);
/* The disk did not keep what was written: every further call returns this error. */
void ipw_rundir_failed(struct ipw_rundir *dir, const struct ipw_err *err);
/* Flushes, syncs, releases the lock.  The error is the first that ever happened. */
int ipw_rundir_close(struct ipw_rundir *dir, struct ipw_err *err);

/* Reading a run: calls fn for each query of RUN/traces.jsonl (RUN may also be the file itself).  A
 * torn last line (no newline ended it) is passed over and reported through *torn, which may be
 * NULL. The query is released after fn, which may take it by copying the struct and clearing the
 * original (memset 0); a result other than 0 ends the reading and is returned.  A damaged line is
 * an error that names file and line. */
struct ipw_query_loaded;
int ipw_rundir_each_query(const char *run,
                          int (*fn)(void *ud, struct ipw_query_loaded *query, struct ipw_err *err),
                          void *ud, int *torn, struct ipw_err *err);

#endif
