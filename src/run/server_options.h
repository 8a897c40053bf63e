/* run/server_options.h: how a run talks to its model servers.
 *
 * Owns the options of connections, deadlines, addresses and request bodies (a block of the run's
 * option table), and what is watched while the run goes on: the wait before a repeat is said aloud,
 * --adaptive sets how many requests are in flight, a forced length and a prompt that the server cut
 * short in silence are checked.  Each change of the limit and each remark is a note in
 * events.jsonl. */
#ifndef IPW_RUN_SERVER_OPTIONS_H
#define IPW_RUN_SERVER_OPTIONS_H

#include "base/option.h"
#include "llm/client.h"
#include "trace/event.h"

struct ipw_run;
struct ipw_query;

struct ipw_net_options {
    struct ipw_opt_list base_urls, headers;
    const char *body, *max_reply, *tokens_field, *cacert;
    int64_t connect_ns, first_token_ns, stall_ns, comment_ns, request_ns;
    int64_t max_connections, force_tokens;
    bool adaptive, retry_cut, insecure_key;
};

/* Rows of an option table, for a struct ipw_net_options. */
extern const struct ipw_opt ipw_net_option_rows[];

/* What a client's options borrow until the client is made. */
struct ipw_net_borrowed {
    struct ipw_http_header *headers;
    char **texts; /* of the headers */
    size_t n;
    bool secret; /* one came from the environment */
};
int ipw_net_fill(struct ipw_llm_options *out, struct ipw_net_borrowed *borrowed,
                 const struct ipw_net_options *options, struct ipw_err *err);
void ipw_net_release(struct ipw_net_borrowed *borrowed);

struct ipw_net; /* of a run */
struct ipw_net *ipw_net_new(struct ipw_run *run);
void ipw_net_free(struct ipw_net *net); /* NULL is fine */
/* Every event of a query passes here. */
void ipw_net_event(struct ipw_query *query, const struct ipw_event *event);
/* Lets the progress line say that the servers are away, or load their model. */
void ipw_net_watch(struct ipw_run *run);
/* Whether another query may begin now. */
bool ipw_net_room(const struct ipw_run *run);

#endif
