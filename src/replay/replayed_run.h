/* replay/replayed_run.h: the saved run that a replay repeats: manifest, events, selected queries.
 *
 * Owns the manifest and a reader of events.jsonl (trace/event_reader.h); borrows the path.  Open it
 * once, then read the events in file order. */
#ifndef IPW_REPLAY_REPLAYED_RUN_H
#define IPW_REPLAY_REPLAYED_RUN_H

#include "base/clock.h"
#include "json/json.h"
#include "trace/event_reader.h"

struct ipw_replayed_run {
    const char *path; /* its folder */
    struct ipw_json *manifest;
    const struct ipw_json *config; /* of the manifest */
    struct ipw_anchor clock;
    struct ipw_event_reader *events;
    struct ipw_query_starts starts; /* where each query was last begun, if requested */
    char *query_id;                 /* the only query to be replayed, or NULL: all are */
    int32_t query_index;            /* of that query; -1: any of that id */
};

/* `query`: the query that --query names, or NULL.  `starts`: also find where each query was last
 * begun.  Fails if the run was saved without its texts. */
int ipw_replayed_run_open(struct ipw_replayed_run *r, const char *path, const char *query,
                          bool starts, struct ipw_err *err);
void ipw_replayed_run_release(struct ipw_replayed_run *r);

/* A member of the configuration.  If it is missing: NULL, `fallback` or false. */
const char *ipw_replayed_run_text(const struct ipw_replayed_run *r, const char *key);
int64_t ipw_replayed_run_int(const struct ipw_replayed_run *r, const char *key, int64_t fallback);
bool ipw_replayed_run_flag(const struct ipw_replayed_run *r, const char *key);

/* Whether this query_start belongs to a query to replay. */
bool ipw_replayed_run_wants(const struct ipw_replayed_run *r, const struct ipw_event_line *start);
/* Whether a later session began the query again.  Then only the later start is replayed. */
bool ipw_replayed_run_begun_again(const struct ipw_replayed_run *r,
                                  const struct ipw_event_line *start);

#endif
