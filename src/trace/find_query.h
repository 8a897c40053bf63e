/* trace/find_query.h: which query of a run a person means.
 *
 * In every command the same: an id; or, where no query has that id, "q0003", the dataset's record 3
 * from 0, which is the id that a record without one gets, whether or not there was a warm-up; or "3",
 * query_index 3; or the beginning of an id that only one has.  Of a query of the warm-up the record's
 * own is meant, which has the same id.  Pure but for the reading: it is told the names first. */
#ifndef IPW_TRACE_FIND_QUERY_H
#define IPW_TRACE_FIND_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "json/json.h"

struct ipw_query_names {
    struct ipw_query_name {
        char *id;
        int32_t index;
        int64_t record; /* in the dataset, from 0; -1: not known */
        int epoch;
        bool warmup;
    } * all;
    size_t n, cap;
};

/* A query of which nothing else is known. */
void ipw_query_names_add(struct ipw_query_names *names, const char *id, int32_t index);
/* Those of `more` whose index is not there. */
void ipw_query_names_join(struct ipw_query_names *names, const struct ipw_query_names *more);
/* A query_start: its event and data. */
struct ipw_event;
void ipw_query_names_start(struct ipw_query_names *names, const struct ipw_event *event,
                           const struct ipw_json *data);
void ipw_query_names_release(struct ipw_query_names *names);

/* *id is one of the names; *index is -1 when all queries of that id are meant (epochs share one).
 * IPW_ENOTFOUND offers near ones. */
int ipw_query_pick(const char **id, int32_t *index, const struct ipw_query_names *names,
                   const char *want, struct ipw_err *err);

/* Is it this one, as far as can be told while others are still to come? */
bool ipw_query_is_meant(const struct ipw_query_name *name, const char *want);

/* The names in RUN/events.jsonl. */
int ipw_query_names_read(struct ipw_query_names *names, const char *run, struct ipw_err *err);

#endif
