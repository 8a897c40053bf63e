/* trace/workload.h: the requests of a run, with their times, without the agent that made them.
 *
 * A workload is a list of queries, each a list of requests.  A request has its time (from the start
 * of the workload), its delay after the reply before it, its messages or only their length, and the
 * length of its reply.  A workload is read from a saved run or from a file in the Mooncake line
 * format: timestamp in ms, input_length, output_length, and hash_ids, one per block of 512 prompt
 * tokens (equal ids stand for equal text); and AIPerf's session_id and delay.
 *
 * Opening reads and checks the whole file once and keeps an index of about 40 bytes per request.
 * Texts and blocks are read again when a query is taken, request by request.  So memory depends on
 * the number of queries taken at once, not on the length of the file.  The file must not change
 * meanwhile.  (workload_prompt.h makes a text if only its length is known.) */
#ifndef IPW_TRACE_WORKLOAD_H
#define IPW_TRACE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { IPW_WORKLOAD_BLOCK = 512 }; /* tokens */

struct ipw_workload_turn { /* a request of a taken query; valid until the next is read */
    int64_t at_ns;         /* send time, from the start of the workload */
    /* Delay after the end of the reply before it; for the first: after its query's start. */
    int64_t gap_ns;
    int64_t input_tokens, output_tokens; /* -1: unknown */
    bool tokens_estimated;
    char **messages; /* JSON texts; none if only the length is known */
    size_t n_messages, cap_messages;
    /* JSON object: the request's other members, without those that the client sets; or NULL. */
    char *rest;
    int64_t *blocks;
    size_t n_blocks, cap_blocks;
};
void ipw_workload_turn_release(struct ipw_workload_turn *turn);

struct ipw_workload;

/* `path`: a run folder, or a .jsonl file in the line format. */
int ipw_workload_open(struct ipw_workload **out, const char *path, struct ipw_err *err);
/* NULL is fine; all queries must have been dropped. */
void ipw_workload_free(struct ipw_workload *workload);
/* Keeps the first `limit` queries (0: all), or only the queries that `want` means
 * (trace/find_query.h; NULL: all). */
int ipw_workload_keep(struct ipw_workload *workload, const char *want, size_t limit,
                      struct ipw_err *err);
const char *ipw_workload_path(const struct ipw_workload *workload);
/* true: a file of lines; false: a run. */
bool ipw_workload_is_lines(const struct ipw_workload *workload);
/* Number of queries, which are in order of time. */
size_t ipw_workload_count(const struct ipw_workload *workload);
size_t ipw_workload_requests(const struct ipw_workload *workload);
/* Time of its first request. */
int64_t ipw_workload_at(const struct ipw_workload *workload, size_t i);
/* Valid until the next call. */
const char *ipw_workload_id(struct ipw_workload *workload, size_t i);
int ipw_workload_epoch(const struct ipw_workload *workload, size_t i); /* its epoch */

struct ipw_workload_query { /* a taken query */
    char *id, *prompt;      /* prompt may be NULL */
    size_t n;               /* number of requests */
    int epoch;
    struct ipw_workload_turn turn; /* the last request that was read */
    /* private: */
    struct ipw_workload *workload;
    size_t next; /* entry in the index */
    size_t n_read;
};

int ipw_workload_take(struct ipw_workload_query **out, struct ipw_workload *workload, size_t i,
                      struct ipw_err *err);
void ipw_workload_drop(struct ipw_workload_query *query); /* NULL is fine */
/* Reads its next request into query->turn: 1; 0: there is none; negative: the file changed. */
int ipw_workload_next(struct ipw_workload_query *query, struct ipw_err *err);

/* Parses one row of the line format.  at_ns is the row's own, or -1: the row has no time stamp and
 * comes gap_ns after the one before it.  Release the turn in any case.  *session is the row's
 * session_id as text (free it), or NULL. */
int ipw_workload_row(struct ipw_workload_turn *turn, char **session, const char *text, size_t n,
                     struct ipw_err *err);

#endif
