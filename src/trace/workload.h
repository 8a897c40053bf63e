/* trace/workload.h: what was asked of a model and when, without the agent that asked it.
 *
 * A workload is a list of queries, each a list of requests: when it was sent (from the start of the
 * workload), how long after the reply before it, its messages or only their length, and how long
 * the reply was.  It comes out of a run's record or out of a file in the Mooncake line format
 * (timestamp in ms, input_length, output_length, hash_ids: one a block of 512 tokens of the prompt,
 * equal ids stand for equal text; and AIPerf's session_id and delay).
 *
 * Opening reads the file once, checks all of it, and keeps an index: where each request stands, some
 * 40 bytes of it.  Texts and blocks are read again when a query is taken, request by request, so
 * that memory follows how many queries are taken at once, not the length of the file.  The file must
 * stay as it is meanwhile.  (workload_prompt.h makes a text where only its length is known.) */
#ifndef IPW_TRACE_WORKLOAD_H
#define IPW_TRACE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { IPW_WORKLOAD_BLOCK = 512 }; /* tokens */

struct ipw_workload_turn { /* of a taken query: valid until its next is read */
    int64_t at_ns;         /* sent, from the start of the workload */
    int64_t gap_ns; /* after the end of the reply before it; the first: after its query's start */
    int64_t input_tokens, output_tokens; /* -1: not known */
    bool tokens_estimated;
    char **messages; /* JSON texts; none: only the length is known */
    size_t n_messages, cap_messages;
    char *rest; /* JSON object: the body's other members that are the request's own; or NULL */
    int64_t *blocks;
    size_t n_blocks, cap_blocks;
};
void ipw_workload_turn_release(struct ipw_workload_turn *turn);

struct ipw_workload;

/* `path`: the folder of a run, or a .jsonl file in the line format. */
int ipw_workload_open(struct ipw_workload **out, const char *path, struct ipw_err *err);
void ipw_workload_free(struct ipw_workload *workload); /* NULL is fine; none is taken any more */
/* Keeps the first `limit` queries (0: all), or only the one that `want` means (trace/find_query.h; NULL: all). */
int ipw_workload_keep(struct ipw_workload *workload, const char *want, size_t limit,
                      struct ipw_err *err);
const char *ipw_workload_path(const struct ipw_workload *workload);
bool ipw_workload_is_lines(const struct ipw_workload *workload); /* not a run */
size_t ipw_workload_count(const struct ipw_workload *workload);  /* of queries, by their time */
size_t ipw_workload_requests(const struct ipw_workload *workload);
int64_t ipw_workload_at(const struct ipw_workload *workload, size_t i); /* its first request */
/* Valid until the next call. */
const char *ipw_workload_id(struct ipw_workload *workload, size_t i);
int ipw_workload_epoch(const struct ipw_workload *workload, size_t i); /* which repetition of it */

struct ipw_workload_query { /* taken */
    char *id, *prompt;      /* prompt: or NULL */
    size_t n;               /* requests */
    int epoch;
    struct ipw_workload_turn turn; /* the one that was read last */
    /* private */
    struct ipw_workload *workload;
    size_t next; /* entry of the index */
    size_t n_read;
};

int ipw_workload_take(struct ipw_workload_query **out, struct ipw_workload *workload, size_t i,
                      struct ipw_err *err);
void ipw_workload_drop(struct ipw_workload_query *query); /* NULL is fine */
/* Reads its next request into query->turn: 1; 0: there is none; negative: the file changed. */
int ipw_workload_next(struct ipw_workload_query *query, struct ipw_err *err);

/* One row of the line format; its at_ns is that of the row, or -1: the row has no time stamp, and
 * comes gap_ns after the one before it.  The turn is to be released in any case.  *session is the
 * row's session_id as text, to be freed, or NULL. */
int ipw_workload_row(struct ipw_workload_turn *turn, char **session, const char *text, size_t n,
                     struct ipw_err *err);

#endif
