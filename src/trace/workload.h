/* trace/workload.h: what was asked of a model and when, without the agent that asked it.
 *
 * A workload is a list of queries, each a list of requests: when it was sent (from the start of the
 * workload), how long after the reply before it, its messages or only their length, and how long
 * the reply was.  It comes out of a run's record or out of a file in the Mooncake line format
 * (timestamp in ms, input_length, output_length, hash_ids: one a block of 512 tokens of the prompt,
 * equal ids stand for equal text; and AIPerf's session_id and delay).  Requests without a text get
 * one of their length, made of common words; blocks of equal id get equal words, so that what could
 * be taken out of a prefix cache still can.  Owns everything that it gives out. */
#ifndef IPW_TRACE_WORKLOAD_H
#define IPW_TRACE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { IPW_WORKLOAD_BLOCK = 512 }; /* tokens */

struct ipw_workload_turn {
    int64_t at_ns;  /* sent, from the start of the workload */
    int64_t gap_ns; /* after the end of the reply before it; the first: after its query's start */
    int64_t input_tokens, output_tokens; /* -1: not known */
    bool tokens_estimated;
    const char **messages; /* JSON texts; none: only the length is known */
    size_t n_messages;
    char *rest; /* JSON object: the body's other members that are the request's own; or NULL */
    int64_t *blocks;
    size_t n_blocks, cap_blocks;
};

struct ipw_workload_query {
    char *id, *prompt; /* prompt: or NULL */
    int64_t at_ns;     /* began, from the start of the workload */
    int epoch;
    bool superseded; /* while reading */
    struct ipw_workload_turn *turns;
    size_t n, cap;
    char **texts; /* what `messages` point to */
    size_t n_texts, cap_texts;
};

struct ipw_workload {
    char *path;
    bool lines;                         /* out of a file of lines, not a run */
    struct ipw_workload_query *queries; /* by at_ns */
    size_t n, cap, n_turns;
};

/* `path`: the folder of a run, or a .jsonl file in the line format. */
int ipw_workload_open(struct ipw_workload **out, const char *path, struct ipw_err *err);
int ipw_workload_read_lines(struct ipw_workload *w, struct ipw_err *err); /* of w->path */
void ipw_workload_free(struct ipw_workload *workload);                    /* NULL is fine */
/* Keeps the first `limit` queries (0: all), or only those called `id` (NULL: all). */
int ipw_workload_keep(struct ipw_workload *workload, const char *id, size_t limit,
                      struct ipw_err *err);
/* A query more, empty; valid until the next is added. */
struct ipw_workload_query *ipw_workload_add(struct ipw_workload *workload);
struct ipw_workload_turn *ipw_workload_add_turn(struct ipw_workload_query *query);

/* Appends one message as JSON whose text has about that many tokens: the turn's blocks, then words
 * of its own, by `seed`. */
void ipw_workload_prompt(struct ipw_buf *out, const struct ipw_workload_turn *turn, uint64_t seed);

#endif
