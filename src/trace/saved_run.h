/* trace/saved_run.h: reads the files of a saved run, a query at a time.
 *
 * For a caller that asks for the next query rather than being called with it, and for the query's
 * events when it wants them.  Memory follows the longest line, plus 32 bytes for each query once
 * events were asked for.  With a redactor everything comes without its texts (trace/redact.h).  The
 * run may still be going on: what is whole is read, a torn last line is reported and left out. */
#ifndef IPW_TRACE_SAVED_RUN_H
#define IPW_TRACE_SAVED_RUN_H

#include <stdbool.h>

#include "energy/sampler.h"
#include "trace/redact.h"

struct ipw_saved_run;

/* `path`: a run's folder, or a file of traces.  `redactor` is borrowed; NULL: nothing is
 * redacted. */
int ipw_saved_run_open(struct ipw_saved_run **out, const char *path,
                       const struct ipw_redactor *redactor, struct ipw_err *err);
void ipw_saved_run_close(struct ipw_saved_run *run); /* NULL is fine */
/* manifest.json or summary.json, freed by the caller; *out NULL: the run has no such file (yet). */
int ipw_saved_run_document(struct ipw_json **out, const struct ipw_saved_run *run, const char *name,
                           struct ipw_err *err);

/* Both are valid until the next call. */
struct ipw_saved_line {
    const struct ipw_json *doc;
    const char *text; /* the line, without its newline */
    size_t n;
};
/* 1: the next query; 0: there is none (yet: of a run that goes on a later call may find one);
 * negative: an error that names file and line. */
int ipw_saved_run_query(struct ipw_saved_line *out, struct ipw_saved_run *run, struct ipw_err *err);
/* From now on ipw_saved_run_query() gives the lines of attempts.jsonl.  1: there are such; 0: the
 * run has none. */
int ipw_saved_run_attempts(struct ipw_saved_run *run, struct ipw_err *err);
/* A process writes it.  Ask before the query that may be the last. */
bool ipw_saved_run_goes_on(const struct ipw_saved_run *run);
bool ipw_saved_run_torn(const struct ipw_saved_run *run); /* a torn last line was left out */
/* Looks up the events of a query (of the last session in which it ran).  1: it has some, and
 * ipw_saved_run_event() gives them one by one, in the same way as queries; 0: it has none. */
int ipw_saved_run_events(struct ipw_saved_run *run, int64_t query_index, struct ipw_err *err);
int ipw_saved_run_event(struct ipw_saved_line *out, struct ipw_saved_run *run, struct ipw_err *err);
/* ipw_saved_run_each_event() begins with the run_start of this session (from 0), and
 * ipw_saved_run_power() with its header: lines of earlier sessions are passed over, without being
 * parsed.  Call it before both. */
void ipw_saved_run_since(struct ipw_saved_run *run, int64_t session);
/* All events in file order, and an event again by its place.  1: *out is it; 0: there is no more; a
 * torn last line ends them. */
int ipw_saved_run_each_event(struct ipw_saved_line *out, int64_t *offset, struct ipw_saved_run *run,
                             struct ipw_err *err);
int ipw_saved_run_event_at(struct ipw_saved_line *out, struct ipw_saved_run *run, int64_t offset,
                           struct ipw_err *err);
/* The next line of power.jsonl, from the first: a header (line->doc is set) or a row (it is
 * NULL). */
int ipw_saved_run_power(struct ipw_saved_line *line, struct ipw_sampler_row *row,
                        struct ipw_saved_run *run, struct ipw_err *err);

#endif
