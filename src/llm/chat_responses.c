/* Folds replies of /v1/responses.
 *
 * A whole reply lists its items in `output`.  A stream announces each item, sends its content in
 * pieces and then the whole item again; the last event has the whole reply with its usage.  Servers
 * leave out what they do not need (llama-server sends no output_index), so an item's pieces belong
 * to the item that was announced last.  Unknown events and items are passed over. */
#include "llm/chat_priv.h"

#include <string.h>

static bool ends_with(const char *word, const char *end)
{
    size_t n = strlen(word), m = strlen(end);

    return n >= m && strcmp(word + n - m, end) == 0;
}

/* The texts of a list of parts. */
static int gather_parts(struct ipw_chat_fold *fold, struct ipw_buf *to,
                        const struct ipw_json *parts, enum ipw_chat_seen kind, int *seen,
                        struct ipw_err *err)
{
    int rc = 0;

    for (const struct ipw_json *p = ipw_json_first(parts); p && !rc; p = ipw_json_next(p)) {
        const struct ipw_json *refusal = ipw_json_get(p, "refusal");

        rc = ipw_chat_gather_node(fold, to, refusal ? refusal : ipw_json_get(p, "text"), kind, seen,
                                  err);
    }
    return rc;
}

/* Calls that the client answers: "function_call", "custom_tool_call", "local_shell_call". Those
 * that the server answers itself (web_search_call) have no call_id. */
static bool is_call(const struct ipw_json *item)
{
    return ends_with(ipw_json_str(ipw_json_get(item, "type"), ""), "_call") &&
           ipw_json_str(ipw_json_get(item, "call_id"), NULL);
}

/* `whole`: with its arguments. */
static int fold_call(struct ipw_chat_fold *fold, const struct ipw_json *item, bool whole, int *seen,
                     struct ipw_err *err)
{
    const struct ipw_json *said = ipw_json_get(item, "arguments");
    const char *type = ipw_json_str(ipw_json_get(item, "type"), "");
    struct ipw_chat_call_delta delta = {
        .id = ipw_json_str(ipw_json_get(item, "call_id"), NULL),
        .name = ipw_json_str(ipw_json_get(item, "name"), type),
    };
    struct ipw_chat_call *call;
    int rc = ipw_chat_call_fold_one(fold, &delta, seen, err);

    if (rc || !whole) return rc;
    if (!said) said = ipw_json_get(item, "input");
    if (!said) said = ipw_json_get(item, "action");
    for (size_t i = fold->reply.n_calls; i-- > 0;) {
        call = &fold->reply.calls[i];
        if (!call->id || strcmp(call->id, delta.id)) continue;
        if (call->arguments.len) return 0; /* they came in pieces */
        if (ipw_json_kind(said) == IPW_JSON_STR)
            return ipw_chat_gather_node(fold, &call->arguments, said, IPW_SEEN_CALL, seen, err);
        delta.name = NULL;
        delta.object = said;
        return said ? ipw_chat_call_fold_one(fold, &delta, seen, err) : 0;
    }
    return 0;
}

static int fold_item(struct ipw_chat_fold *fold, const struct ipw_json *item, int *seen,
                     struct ipw_err *err)
{
    struct ipw_chat_reply *r = &fold->reply;
    const char *type = ipw_json_str(ipw_json_get(item, "type"), "");
    int rc;

    if (strcmp(type, "message") == 0)
        return gather_parts(fold, &r->text, ipw_json_get(item, "content"), IPW_SEEN_TEXT, seen,
                            err);
    if (is_call(item)) return fold_call(fold, item, true, seen, err);
    if (strcmp(type, "reasoning") != 0) return 0;
    rc = gather_parts(fold, &r->reasoning, ipw_json_get(item, "summary"), IPW_SEEN_REASONING, seen,
                      err);
    if (rc) return rc;
    return gather_parts(fold, &r->reasoning, ipw_json_get(item, "content"), IPW_SEEN_REASONING,
                        seen, err);
}

static void fold_usage(struct ipw_chat_fold *fold, const struct ipw_json *usage, int *seen)
{
    struct ipw_chat_usage *u = &fold->reply.usage;
    const struct ipw_json *in = ipw_json_get(usage, "input_tokens_details");

    if (ipw_json_kind(usage) != IPW_JSON_OBJ) return;
    *seen |= IPW_SEEN_USAGE;
    ipw_chat_keep_count(&u->prompt, ipw_json_get(usage, "input_tokens"));
    ipw_chat_keep_count(&u->completion, ipw_json_get(usage, "output_tokens"));
    ipw_chat_keep_count(&u->total, ipw_json_get(usage, "total_tokens"));
    ipw_chat_keep_count(&u->cached, ipw_json_get(in, "cached_tokens"));
    ipw_chat_keep_count(&u->written, ipw_json_get(in, "cache_write_tokens"));
    ipw_chat_keep_count(&u->reasoning, ipw_json_get(ipw_json_get(usage, "output_tokens_details"),
                                                    "reasoning_tokens"));
    ipw_chat_keep_cost(&fold->reply, ipw_json_get(usage, "cost"));
}

/* Status and reason of a reply that has ended, as one word. */
static void fold_end(struct ipw_chat_fold *fold, const struct ipw_json *response, int *seen)
{
    struct ipw_chat_reply *r = &fold->reply;
    enum ipw_chat_finish finish = IPW_FINISH_OTHER;
    const char *status = ipw_json_str(ipw_json_get(response, "status"), "completed");
    const char *reason =
        ipw_json_str(ipw_json_get(ipw_json_get(response, "incomplete_details"), "reason"), "");

    if (ipw_json_kind(ipw_json_get(response, "error")) == IPW_JSON_OBJ) {
        ipw_chat_fold_error(fold, response, seen);
        return;
    }
    *seen |= IPW_SEEN_FINISH;
    if (strcmp(status, "completed") == 0)
        finish = r->n_calls ? IPW_FINISH_TOOL_CALLS : IPW_FINISH_STOP;
    else if (strcmp(reason, "max_output_tokens") == 0)
        finish = IPW_FINISH_LENGTH;
    else if (strcmp(reason, "content_filter") == 0)
        finish = IPW_FINISH_FILTER;
    ipw_chat_set_finish(r, *reason ? reason : status, finish);
}

/* The whole reply, or the one inside an event of the stream. */
static int fold_response(struct ipw_chat_fold *fold, const struct ipw_json *response, bool ended,
                         int *seen, struct ipw_err *err)
{
    bool known = ipw_chat_has_content(fold);
    int rc = 0;

    ipw_chat_keep_first(&fold->reply.id, ipw_json_get(response, "id"));
    ipw_chat_keep_first(&fold->reply.model, ipw_json_get(response, "model"));
    fold_usage(fold, ipw_json_get(response, "usage"), seen);
    if (!ended) return 0;
    if (!known) {
        const struct ipw_json *item = ipw_json_first(ipw_json_get(response, "output"));

        for (; item && !rc; item = ipw_json_next(item)) rc = fold_item(fold, item, seen, err);
    }
    if (!rc) fold_end(fold, response, seen);
    return rc;
}

/* The pieces of a call's arguments go to the call that was announced last. */
static int fold_call_piece(struct ipw_chat_fold *fold, const struct ipw_json *delta, int *seen,
                           struct ipw_err *err)
{
    struct ipw_chat_reply *r = &fold->reply;

    if (!r->n_calls) return 0;
    return ipw_chat_gather_node(fold, &r->calls[r->n_calls - 1].arguments, delta, IPW_SEEN_CALL,
                                seen, err);
}

static int fold_piece(struct ipw_chat_fold *fold, const char *type, const struct ipw_json *root,
                      int *seen, struct ipw_err *err)
{
    static const char *const of_calls[] = {"response.function_call_arguments.delta",
                                           "response.custom_tool_call_input.delta",
                                           "response.shell_call_command.delta"};
    struct ipw_chat_reply *r = &fold->reply;
    const struct ipw_json *delta = ipw_json_get(root, "delta");

    if (strcmp(type, "response.output_text.delta") == 0 ||
        strcmp(type, "response.refusal.delta") == 0)
        return ipw_chat_gather_node(fold, &r->text, delta, IPW_SEEN_TEXT, seen, err);
    if (strncmp(type, "response.reasoning", 18) == 0)
        return ipw_chat_gather_node(fold, &r->reasoning, delta, IPW_SEEN_REASONING, seen, err);
    for (size_t i = 0; i < sizeof of_calls / sizeof *of_calls; i++)
        if (strcmp(type, of_calls[i]) == 0) return fold_call_piece(fold, delta, seen, err);
    return 0;
}

int ipw_chat_responses_event(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                             struct ipw_err *err)
{
    static const char *const ends[] = {"response.completed", "response.incomplete",
                                       "response.failed"};
    const char *type = ipw_json_str(ipw_json_get(root, "type"), "");
    const struct ipw_json *response = ipw_json_get(root, "response"),
                          *item = ipw_json_get(root, "item");
    bool ended = false;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) ended |= strcmp(type, ends[i]) == 0;
    if (response) return fold_response(fold, response, ended, seen, err);
    if (strcmp(type, "response.output_item.added") == 0 && is_call(item))
        return fold_call(fold, item, false, seen, err);
    if (strcmp(type, "response.output_item.done") == 0 && is_call(item))
        return fold_call(fold, item, true, seen, err);
    return ends_with(type, ".delta") ? fold_piece(fold, type, root, seen, err) : 0;
}

int ipw_chat_responses_whole(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                             struct ipw_err *err)
{
    const char *status = ipw_json_str(ipw_json_get(root, "status"), "completed");

    if (ipw_json_kind(ipw_json_get(root, "output")) != IPW_JSON_ARR) return 0;
    fold->whole = true;
    /* A reply in the background has only begun. */
    return fold_response(fold, root, strcmp(status, "queued") && strcmp(status, "in_progress"),
                         seen, err);
}
