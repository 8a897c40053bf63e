/* Puts the parts of an event into the reply, for every protocol. */
#include "llm/chat_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const int64_t MOST_TOKENS = INT64_C(1000000000000); /* more is not a count of tokens */

bool ipw_chat_has_content(const struct ipw_chat_fold *fold)
{
    return fold->left < fold->max || fold->reply.n_calls > 0;
}

int ipw_chat_gather(struct ipw_chat_fold *fold, struct ipw_buf *to, const char *text, size_t n,
                    struct ipw_err *err)
{
    if (n == 0) return 0;
    if (n > fold->left || ipw_buf_add(to, text, n))
        return ipw_fail(err, IPW_ELIMIT, "the reply is larger than %zu bytes", fold->max);
    fold->left -= n;
    return 0;
}

int ipw_chat_gather_node(struct ipw_chat_fold *fold, struct ipw_buf *to,
                         const struct ipw_json *text, enum ipw_chat_seen kind, int *seen,
                         struct ipw_err *err)
{
    if (ipw_json_kind(text) != IPW_JSON_STR || !ipw_json_str_len(text)) return 0;
    *seen |= (int)kind;
    return ipw_chat_gather(fold, to, ipw_json_str(text, ""), ipw_json_str_len(text), err);
}

void ipw_chat_keep_first(char **slot, const struct ipw_json *node)
{
    const char *s = ipw_json_str(node, NULL);

    if (!*slot && s && *s) *slot = ipw_strdup(s);
}

/* Ignores an implausible count: unknown is not 0. */
void ipw_chat_keep_count(int64_t *slot, const struct ipw_json *node)
{
    int64_t n = ipw_json_int(node, -1);

    if (n >= 0 && n <= MOST_TOKENS) *slot = n;
}

/* OpenRouter's price of the call in USD. */
void ipw_chat_keep_cost(struct ipw_chat_reply *r, const struct ipw_json *cost)
{
    double usd = ipw_json_num(cost, -1);

    if (!(usd >= 0) || !isfinite(usd)) return;
    r->cost_told = true;
    r->cost_usd = usd;
}

enum ipw_chat_finish ipw_chat_finish_of(const char *word)
{
    if (strcmp(word, "stop") == 0) return IPW_FINISH_STOP;
    if (strcmp(word, "length") == 0) return IPW_FINISH_LENGTH;
    if (strcmp(word, "tool_calls") == 0) return IPW_FINISH_TOOL_CALLS;
    if (strcmp(word, "function_call") == 0) return IPW_FINISH_TOOL_CALLS;
    if (strcmp(word, "content_filter") == 0) return IPW_FINISH_FILTER;
    return IPW_FINISH_OTHER;
}

void ipw_chat_set_finish(struct ipw_chat_reply *reply, const char *word,
                         enum ipw_chat_finish finish)
{
    free(reply->finish_word);
    reply->finish_word = ipw_strdup(word);
    reply->finish = finish;
}

void ipw_chat_fold_error(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen)
{
    struct ipw_chat_error e;
    struct ipw_buf raw = IPW_BUF(16 * IPW_MIB);

    *seen |= IPW_SEEN_ERROR;
    if (fold->reply.error) return; /* the first error is the cause */
    if (!ipw_chat_error_read(&e, root)) {
        ipw_json_print(&raw, root);
        ipw_chat_line(e.text, sizeof e.text, ipw_buf_str(&raw), raw.len);
        ipw_buf_release(&raw);
    }
    fold->reply.error = ipw_strdup(e.text);
    if (*e.type) fold->reply.error_type = ipw_strdup(e.type);
    fold->reply.error_code = e.code;
}
