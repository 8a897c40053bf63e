/* trace/pick.h: which query of a run a person means.
 *
 * By its id; or, where no query has that id, by its number in the run ("q0003" or "3": query_index 3),
 * or by the beginning of an id that only one has.  Pure: it is told the names first. */
#ifndef IPW_TRACE_PICK_H
#define IPW_TRACE_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_query_names {
    struct ipw_query_name {
        char *id;
        int32_t index;
    } * all;
    size_t n, cap;
};

void ipw_query_names_add(struct ipw_query_names *names, const char *id, int32_t index);
void ipw_query_names_release(struct ipw_query_names *names);

/* *id is one of the names; *index is -1 when all queries of that id are meant (epochs share one).
 * IPW_ENOTFOUND offers near ones. */
int ipw_query_pick(const char **id, int32_t *index, const struct ipw_query_names *names,
                   const char *want, struct ipw_err *err);

/* The names in RUN/events.jsonl. */
int ipw_query_names_read(struct ipw_query_names *names, const char *run, struct ipw_err *err);

#endif
