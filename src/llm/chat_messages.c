/* Folds replies of Anthropic messages.
 *
 * A message is a list of blocks; in a stream each block is announced and comes in pieces.  The
 * counts of `message_delta` are sums: they replace those before them, and can have the input's side
 * too.  `input_tokens` leaves out what was read from or written to the cache; the prompt is the sum
 * of the three.  The first count of output is a placeholder (1), so it is no count. */
#include "llm/chat_priv.h"

#include <string.h>

static const char *type_of(const struct ipw_json *node)
{
    return ipw_json_str(ipw_json_get(node, "type"), "");
}

/* The input of a block that is announced is {} and comes in pieces. */
static int fold_block(struct ipw_chat_fold *fold, const struct ipw_json *block, bool whole,
                      int *seen, struct ipw_err *err)
{
    struct ipw_chat_reply *r = &fold->reply;
    const char *type = type_of(block);

    fold->in_call = strcmp(type, "tool_use") == 0;
    if (strcmp(type, "text") == 0)
        return ipw_chat_gather_node(fold, &r->text, ipw_json_get(block, "text"), IPW_SEEN_TEXT,
                                    seen, err);
    if (strcmp(type, "thinking") == 0)
        return ipw_chat_gather_node(fold, &r->reasoning, ipw_json_get(block, "thinking"),
                                    IPW_SEEN_REASONING, seen, err);
    if (fold->in_call) {
        const struct ipw_chat_call_delta delta = {
            .id = ipw_json_str(ipw_json_get(block, "id"), NULL),
            .name = ipw_json_str(ipw_json_get(block, "name"), NULL),
            .object = whole ? ipw_json_get(block, "input") : NULL};

        return ipw_chat_call_fold_one(fold, &delta, seen, err);
    }
    return 0; /* a server's own tool, or something new */
}

static int fold_piece(struct ipw_chat_fold *fold, const struct ipw_json *delta, int *seen,
                      struct ipw_err *err)
{
    struct ipw_chat_reply *r = &fold->reply;
    const char *type = type_of(delta);

    if (strcmp(type, "text_delta") == 0)
        return ipw_chat_gather_node(fold, &r->text, ipw_json_get(delta, "text"), IPW_SEEN_TEXT,
                                    seen, err);
    if (strcmp(type, "thinking_delta") == 0)
        return ipw_chat_gather_node(fold, &r->reasoning, ipw_json_get(delta, "thinking"),
                                    IPW_SEEN_REASONING, seen, err);
    if (strcmp(type, "input_json_delta") == 0 && fold->in_call && r->n_calls)
        return ipw_chat_gather_node(fold, &r->calls[r->n_calls - 1].arguments,
                                    ipw_json_get(delta, "partial_json"), IPW_SEEN_CALL, seen, err);
    return 0;
}

/* `begins`: the usage of message_start, whose count of output is a placeholder. */
static void fold_usage(struct ipw_chat_fold *fold, const struct ipw_json *usage, bool begins,
                       int *seen)
{
    struct ipw_chat_usage *u = &fold->reply.usage;

    if (ipw_json_kind(usage) != IPW_JSON_OBJ) return;
    *seen |= IPW_SEEN_USAGE;
    ipw_chat_keep_count(&fold->fresh, ipw_json_get(usage, "input_tokens"));
    ipw_chat_keep_count(&u->cached, ipw_json_get(usage, "cache_read_input_tokens"));
    ipw_chat_keep_count(&u->written, ipw_json_get(usage, "cache_creation_input_tokens"));
    ipw_chat_keep_count(&u->written_1h, ipw_json_get(ipw_json_get(usage, "cache_creation"),
                                                     "ephemeral_1h_input_tokens"));
    ipw_chat_keep_count(&u->reasoning, ipw_json_get(ipw_json_get(usage, "output_tokens_details"),
                                                    "thinking_tokens"));
    if (!begins) ipw_chat_keep_count(&u->completion, ipw_json_get(usage, "output_tokens"));
    ipw_chat_keep_cost(&fold->reply, ipw_json_get(usage, "cost"));
    if (fold->fresh >= 0)
        u->prompt =
            fold->fresh + (u->cached > 0 ? u->cached : 0) + (u->written > 0 ? u->written : 0);
    if (u->prompt >= 0 && u->completion >= 0) u->total = u->prompt + u->completion;
}

static void fold_stop(struct ipw_chat_fold *fold, const struct ipw_json *reason, int *seen)
{
    static const struct {
        const char *word;
        enum ipw_chat_finish finish;
    } words[] = {{"end_turn", IPW_FINISH_STOP},
                 {"stop_sequence", IPW_FINISH_STOP},
                 {"max_tokens", IPW_FINISH_LENGTH},
                 {"tool_use", IPW_FINISH_TOOL_CALLS},
                 {"refusal", IPW_FINISH_FILTER}};
    enum ipw_chat_finish finish = IPW_FINISH_OTHER;
    const char *word = ipw_json_str(reason, NULL);

    if (!word) return;
    *seen |= IPW_SEEN_FINISH;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i].word) == 0) finish = words[i].finish;
    ipw_chat_set_finish(&fold->reply, word, finish);
}

static int fold_message(struct ipw_chat_fold *fold, const struct ipw_json *message, bool begins,
                        int *seen, struct ipw_err *err)
{
    const struct ipw_json *block = ipw_json_first(ipw_json_get(message, "content"));
    int rc = 0;

    ipw_chat_keep_first(&fold->reply.id, ipw_json_get(message, "id"));
    ipw_chat_keep_first(&fold->reply.model, ipw_json_get(message, "model"));
    for (; block && !rc; block = ipw_json_next(block))
        rc = fold_block(fold, block, true, seen, err);
    fold_usage(fold, ipw_json_get(message, "usage"), begins, seen);
    fold_stop(fold, ipw_json_get(message, "stop_reason"), seen);
    return rc;
}

int ipw_chat_messages_event(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                            struct ipw_err *err)
{
    const char *type = type_of(root);

    if (strcmp(type, "message_start") == 0)
        return fold_message(fold, ipw_json_get(root, "message"), true, seen, err);
    if (strcmp(type, "content_block_start") == 0)
        return fold_block(fold, ipw_json_get(root, "content_block"), false, seen, err);
    if (strcmp(type, "content_block_delta") == 0)
        return fold_piece(fold, ipw_json_get(root, "delta"), seen, err);
    if (strcmp(type, "message_delta") == 0) {
        fold_usage(fold, ipw_json_get(root, "usage"), false, seen);
        fold_stop(fold, ipw_json_get(ipw_json_get(root, "delta"), "stop_reason"), seen);
    } else if (strcmp(type, "message_stop") == 0) {
        *seen |= IPW_SEEN_DONE;
        fold->reply.done_marker = true;
    }
    return 0;
}

int ipw_chat_messages_whole(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                            struct ipw_err *err)
{
    if (ipw_json_kind(ipw_json_get(root, "content")) != IPW_JSON_ARR) return 0;
    fold->whole = true;
    return fold_message(fold, root, false, seen, err);
}
