/* run/server_options.h: the options of a run's model servers.
 *
 * The options of connections, deadlines, addresses and request bodies (a block of the run's option
 * table), and how they fill the options of a client.  Plain values. */
#ifndef IPW_RUN_SERVER_OPTIONS_H
#define IPW_RUN_SERVER_OPTIONS_H

#include "base/option.h"
#include "llm/client.h"

struct ipw_net_options {
    struct ipw_opt_list base_urls, headers;
    const char *body, *max_reply, *tokens_field, *cacert;
    int64_t connect_ns, first_token_ns, stall_ns, comment_ns, request_ns;
    int64_t max_connections, force_tokens;
    bool adaptive, retry_cut, insecure_key;
};

/* The model that scripts ask besides the run's (llm.chat's `sub_model`). */
struct ipw_sub_model_options {
    const char *model;   /* NULL: the run's */
    const char *url;     /* NULL: the run's server */
    const char *key_env; /* the variable with the key of `url`; NULL: no key */
};

struct ipw_connect_options { /* the server, and how long the run waits for it */
    const char *model;       /* NULL: the server's first */
    bool any_model;          /* programs name their models themselves; the server is not asked */
    const char *api_key_env; /* the variable with the key; NULL: OPENAI_API_KEY */
    struct ipw_net_options net;
    struct ipw_sub_model_options sub;
    int64_t max_retries, server_failures, server_wait_ns;
};

/* Rows of an option table, for a struct ipw_net_options. */
extern const struct ipw_opt ipw_net_option_rows[];

/* The same, for a struct ipw_sub_model_options. */
extern const struct ipw_opt ipw_sub_model_option_rows[];
/* IPW_EINVAL for an address without a model, or a key without an address. */
int ipw_sub_model_options_check(const struct ipw_sub_model_options *o, struct ipw_err *err);

/* Memory that a client's options borrow until the client is created. */
struct ipw_net_borrowed {
    struct ipw_http_header *headers;
    char **texts; /* of the headers */
    size_t n;
    bool secret; /* one of them came from the environment */
};
int ipw_net_fill(struct ipw_llm_options *out, struct ipw_net_borrowed *borrowed,
                 const struct ipw_net_options *options, struct ipw_err *err);
void ipw_net_release(struct ipw_net_borrowed *borrowed);

#endif
