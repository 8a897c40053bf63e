/* llm/saved_replies_priv.h: the index of a record, shared by saved_replies.c (building it, reading
 * lines) and saved_replies_find.c (matching, and what to say when nothing matches). */
#ifndef IPW_LLM_SAVED_REPLIES_PRIV_H
#define IPW_LLM_SAVED_REPLIES_PRIV_H

#include "llm/saved_replies.h"

#define IPW_NO_REQUEST SIZE_MAX

struct ipw_saved_replies_message { /* one message */
    uint64_t hash, role;
};

struct ipw_asked { /* one attempt's request */
    size_t query;  /* in `queries` */
    int turn, attempt;
    int32_t span;
    int64_t start_at, end_at; /* offsets of its two lines in the file */
    size_t start_n, end_n;    /* end_n 0: its end is not in the record */
    size_t before;            /* the request before it in its query, or IPW_NO_REQUEST */
    size_t kept, n;           /* messages: so many of that one's come first; in all */
    struct ipw_saved_replies_message *own; /* the other n - kept */
    uint64_t messages, roles, rest;
    enum ipw_lm_outcome outcome;
    bool given;
};

struct ipw_saved_replies_query {
    int32_t index;
    char *id;
    size_t first, last; /* requests */
    int turns;
};

struct ipw_saved_replies {
    char *path;
    int fd;
    bool with_failures;
    uint64_t key; /* of the hashes: nobody can write a record for it */
    struct ipw_asked *asked;
    size_t n, cap;
    size_t *by_messages; /* `asked` by hash of the messages, then by place in the file */
    struct ipw_saved_replies_query *queries;
    size_t n_queries, cap_queries;
    size_t *live; /* queries that are going on at this line */
    size_t n_live, cap_live;
    char **models;
    size_t n_models, cap_models;
};

bool ipw_saved_replies_can_give(const struct ipw_saved_replies *r, const struct ipw_asked *a);
/* A line of the file, parsed. */
int ipw_saved_replies_line(struct ipw_json **doc, const struct ipw_saved_replies *r, int64_t at,
                           size_t n, struct ipw_err *err);
/* All messages of a request: `said` has room for a->n. */
void ipw_saved_replies_gather(struct ipw_saved_replies_message *said,
                              const struct ipw_saved_replies *r, const struct ipw_asked *a);

void ipw_saved_replies_hash_message(struct ipw_saved_replies_message *out,
                                    const struct ipw_saved_replies *r,
                                    const struct ipw_json *message);
/* Of the messages, and of their roles. */
void ipw_saved_replies_hash_all(uint64_t *messages, uint64_t *roles,
                                const struct ipw_saved_replies_message *said, size_t n);
/* Of what is in a request besides its messages and how it is to be sent. */
uint64_t ipw_saved_replies_hash_rest(const struct ipw_saved_replies *r,
                                     const struct ipw_json *request);

#endif
