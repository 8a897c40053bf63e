/* trace/find_query.h: finds the query of a run that the user names.
 *
 * All commands accept the same names, in this order.  An id.  If no query has that id: "q0003",
 * task 3 of the dataset counted from 0 (which is the id of a task without one), whether or not
 * there was a warm-up; or "3", query_index 3; or the beginning of an id that only one query has.
 * A warm-up query has the same id as the task's counted query; the counted one is found.  A
 * beginning may end with the ellipsis that screens cut ids with, and an end may follow or stand
 * alone.  Pure except for the functions that take a run; other callers add the names first. */
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
        int64_t task; /* task number in the dataset, from 0; -1: unknown */
        int epoch;
        bool warmup;
    } * all;
    size_t n, cap;
};

/* Adds a query of which nothing else is known. */
void ipw_query_names_add(struct ipw_query_names *names, const char *id, int32_t index);
/* Adds the names of `more` whose index is new. */
void ipw_query_names_join(struct ipw_query_names *names, const struct ipw_query_names *more);
/* Adds the query of a query_start, given its event and data. */
struct ipw_event;
void ipw_query_names_start(struct ipw_query_names *names, const struct ipw_event *event,
                           const struct ipw_json *data);
void ipw_query_names_release(struct ipw_query_names *names);

/* *id is one of the names; *index is -1 if all queries of that id are meant (epochs share an id).
 * IPW_ENOTFOUND suggests similar ids. */
int ipw_find_query_pick(const char **id, int32_t *index, const struct ipw_query_names *names,
                        const char *want, struct ipw_err *err);

/* The same of a saved run: RUN is a folder, or a file of its lines.  *id is the caller's. */
int ipw_find_query_of_run(char **id, int32_t *index, const char *run, const char *want,
                          struct ipw_err *err);

/* The names in RUN/events.jsonl. */
int ipw_query_names_read(struct ipw_query_names *names, const char *run, struct ipw_err *err);

#endif
