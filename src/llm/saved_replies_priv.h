/* llm/saved_replies_priv.h: the index of a saved run, shared by saved_replies.c (builds it, reads
 * lines) and saved_replies_find.c (finds a match, or describes the most similar request). */
#ifndef IPW_LLM_SAVED_REPLIES_PRIV_H
#define IPW_LLM_SAVED_REPLIES_PRIV_H

#include "llm/saved_replies.h"

#define IPW_NO_REQUEST SIZE_MAX

struct ipw_saved_replies_message {
    uint64_t hash, role;
};

struct ipw_asked { /* the request of one attempt */
    size_t query;  /* index in `queries` */
    int turn, attempt;
    int32_t span;
    int64_t start_at, end_at;              /* offsets of its two lines in the file */
    size_t start_n, end_n;                 /* end_n 0: the run has no end of it */
    size_t before;                         /* the query's request before it, or IPW_NO_REQUEST */
    size_t kept, n;                        /* messages shared with `before`; messages in all */
    struct ipw_saved_replies_message *own; /* the other messages: n - kept */
    uint64_t messages, roles, rest;
    enum ipw_lm_outcome outcome;
    bool given;
};

struct ipw_saved_replies_query {
    int32_t index;
    char *id;
    size_t first, last; /* its requests in `asked` */
    int turns;
};

struct ipw_saved_replies {
    char *path;
    int fd;
    bool with_failures;
    uint64_t key; /* random, so that no file can be made to collide */
    struct ipw_asked *asked;
    size_t n, cap;
    size_t *by_messages; /* `asked` sorted by hash of the messages, then by file order */
    struct ipw_saved_replies_query *queries;
    size_t n_queries, cap_queries;
    size_t *live; /* queries in flight at the current line */
    size_t n_live, cap_live;
    char **models;
    size_t n_models, cap_models;
};

bool ipw_saved_replies_can_give(const struct ipw_saved_replies *r, const struct ipw_asked *a);
/* Reads and parses a line of the file. */
int ipw_saved_replies_line(struct ipw_json **doc, const struct ipw_saved_replies *r, int64_t at,
                           size_t n, struct ipw_err *err);
/* Collects all messages of a request into said[a->n]. */
void ipw_saved_replies_gather(struct ipw_saved_replies_message *said,
                              const struct ipw_saved_replies *r, const struct ipw_asked *a);

void ipw_saved_replies_hash_message(struct ipw_saved_replies_message *out,
                                    const struct ipw_saved_replies *r,
                                    const struct ipw_json *message);
/* Hashes of all messages, and of their roles. */
void ipw_saved_replies_hash_all(uint64_t *messages, uint64_t *roles,
                                const struct ipw_saved_replies_message *said, size_t n);
/* A hash of the request without its messages and without the options of its transport. */
uint64_t ipw_saved_replies_hash_rest(const struct ipw_saved_replies *r,
                                     const struct ipw_json *request);

#endif
