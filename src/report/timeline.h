/* report/timeline.h: a saved query as a timeline for a person.
 *
 * Turn by turn it shows each span with its start, duration, tokens and joules (with their
 * provenance), and the tool calls with shortened arguments and results.  It reads traces.jsonl.
 * The texts of replies and results come from events.jsonl; without that file they are left out. */
#ifndef IPW_REPORT_TIMELINE_H
#define IPW_REPORT_TIMELINE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "report/rank.h"
#include "trace/schema.h"

struct ipw_timeline_options {
    unsigned width; /* 0 or less than 80: 80 */
    bool colour;
    enum ipw_rank_by sort; /* of a whole run */
    size_t limit;          /* queries of a whole run at most; 0: all */
};

/* One loaded query.  `events`: path of an events.jsonl, or NULL.  A damaged or missing events file
 * is a remark in the timeline, not an error. */
void ipw_timeline_query(struct ipw_buf *out, const struct ipw_query_loaded *query,
                        const char *events, const struct ipw_timeline_options *options);

/* The queries of RUN (a folder, or a traces.jsonl): the query with this `id`, or all if NULL.  Each
 * is passed to `emit` as text, in the order of the file or of the options.  IPW_ENOTFOUND if there
 * is no such id; the message offers near ones. */
int ipw_timeline_run(const char *run, const char *id, const struct ipw_timeline_options *options,
                     int (*emit)(void *ud, const char *text, size_t n, struct ipw_err *err),
                     void *ud, struct ipw_err *err);

#endif
