/* llm/record_lookup_priv.h: the index of a record, shared by record_lookup.c (building it, reading
 * lines) and record_lookup_find.c (matching, and what to say when nothing matches). */
#ifndef IPW_LLM_RECORD_LOOKUP_PRIV_H
#define IPW_LLM_RECORD_LOOKUP_PRIV_H

#include "llm/record_lookup.h"

#define IPW_RECORDED_NO SIZE_MAX

struct ipw_record_lookup_message { /* one message */
    uint64_t hash, role;
};

struct ipw_asked { /* one attempt's request */
    size_t query;  /* in `queries` */
    int turn, attempt;
    int32_t span;
    int64_t start_at, end_at; /* offsets of its two lines in the file */
    size_t start_n, end_n;    /* end_n 0: its end is not in the record */
    size_t before;            /* the request before it in its query, or IPW_RECORDED_NO */
    size_t kept, n;           /* messages: so many of that one's come first; in all */
    struct ipw_record_lookup_message *own; /* the other n - kept */
    uint64_t messages, roles, rest;
    enum ipw_lm_outcome outcome;
    bool given;
};

struct ipw_record_lookup_query {
    int32_t index;
    char *id;
    size_t first, last; /* requests */
    int turns;
};

struct ipw_record_lookup {
    char *path;
    int fd;
    bool with_failures;
    uint64_t key; /* of the hashes: nobody can write a record for it */
    struct ipw_asked *asked;
    size_t n, cap;
    size_t *by_messages; /* `asked` by hash of the messages, then by place in the file */
    struct ipw_record_lookup_query *queries;
    size_t n_queries, cap_queries;
    size_t *live; /* queries that are going on at this line */
    size_t n_live, cap_live;
    char **models;
    size_t n_models, cap_models;
};

bool ipw_record_lookup_can_give(const struct ipw_record_lookup *r, const struct ipw_asked *a);
/* A line of the file, parsed. */
int ipw_record_lookup_line(struct ipw_json **doc, const struct ipw_record_lookup *r, int64_t at,
                           size_t n, struct ipw_err *err);
/* All messages of a request: `said` has room for a->n. */
void ipw_record_lookup_gather(struct ipw_record_lookup_message *said,
                              const struct ipw_record_lookup *r, const struct ipw_asked *a);

void ipw_record_lookup_hash_message(struct ipw_record_lookup_message *out,
                                    const struct ipw_record_lookup *r,
                                    const struct ipw_json *message);
/* Of the messages, and of their roles. */
void ipw_record_lookup_hash_all(uint64_t *messages, uint64_t *roles,
                                const struct ipw_record_lookup_message *said, size_t n);
/* Of what is in a request besides its messages and how it is to be sent. */
uint64_t ipw_record_lookup_hash_rest(const struct ipw_record_lookup *r,
                                     const struct ipw_json *request);

#endif
