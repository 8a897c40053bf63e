/* Folds the events of a stream, or a whole answer, into one reply. */
#include "llm/chat_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct ipw_chat_fold *ipw_chat_fold_new(size_t reply_max_bytes)
{
    struct ipw_chat_fold *fold = ipw_calloc(1, sizeof *fold);

    fold->max = fold->left = reply_max_bytes;
    fold->reply.text = fold->reply.reasoning = fold->reply.logprobs = IPW_BUF(reply_max_bytes);
    fold->reply.usage = (struct ipw_chat_usage){-1, -1, -1, -1, -1, -1, -1};
    fold->timed_prompt = fold->timed_cached = fold->timed_predicted = fold->fresh = -1;
    return fold;
}

void ipw_chat_fold_free(struct ipw_chat_fold *fold)
{
    if (!fold) return;
    ipw_chat_reply_release(&fold->reply);
    free(fold);
}

void ipw_chat_fold_set_exact(struct ipw_chat_fold *fold, bool exact) { fold->exact = exact; }

const char *const ipw_chat_protocol_words[] = {"chat", "responses", "messages", "completions",
                                               NULL};

void ipw_chat_fold_set_protocol(struct ipw_chat_fold *fold, enum ipw_chat_protocol protocol)
{
    fold->protocol = protocol;
    if (protocol == IPW_CHAT_RESPONSES || protocol == IPW_CHAT_MESSAGES)
        ipw_chat_fold_set_exact(fold, true);
}

bool ipw_chat_fold_done(const struct ipw_chat_fold *fold) { return fold->reply.done_marker; }

void ipw_chat_reply_release(struct ipw_chat_reply *r)
{
    for (size_t i = 0; i < r->n_calls; i++) {
        free(r->calls[i].id);
        free(r->calls[i].name);
        ipw_buf_release(&r->calls[i].arguments);
    }
    free(r->calls);
    ipw_chat_more_release(r);
    ipw_buf_release(&r->text);
    ipw_buf_release(&r->reasoning);
    ipw_buf_release(&r->arrivals);
    free(r->finish_word);
    free(r->model);
    free(r->id);
    free(r->timings);
    free(r->error);
    free(r->error_type);
    *r = (struct ipw_chat_reply){.usage = {-1, -1, -1, -1, -1, -1, -1}};
}

/* Usage can come several times with growing counts; the last one is final. */
static bool fold_usage(struct ipw_chat_usage *u, const struct ipw_json *usage)
{
    if (ipw_json_kind(usage) != IPW_JSON_OBJ) return false;
    ipw_chat_keep_count(&u->prompt, ipw_json_get(usage, "prompt_tokens"));
    ipw_chat_keep_count(&u->completion, ipw_json_get(usage, "completion_tokens"));
    ipw_chat_keep_count(&u->total, ipw_json_get(usage, "total_tokens"));
    ipw_chat_keep_count(&u->cached, ipw_json_get(usage, "prompt_cache_hit_tokens")); /* DeepSeek */
    ipw_chat_keep_count(
        &u->cached, ipw_json_get(ipw_json_get(usage, "prompt_tokens_details"), "cached_tokens"));
    ipw_chat_keep_count(&u->written, ipw_json_get(ipw_json_get(usage, "prompt_tokens_details"),
                                                  "cache_write_tokens"));
    ipw_chat_keep_count(&u->reasoning, ipw_json_get(usage, "reasoning_tokens")); /* SGLang */
    ipw_chat_keep_count(
        &u->reasoning,
        ipw_json_get(ipw_json_get(usage, "completion_tokens_details"), "reasoning_tokens"));
    return true;
}

static void fold_timings(struct ipw_chat_fold *fold, const struct ipw_json *root)
{
    const struct ipw_json *timings = ipw_json_get(root, "timings");
    struct ipw_buf text = IPW_BUF(64 * IPW_KIB);

    if (ipw_json_kind(timings) == IPW_JSON_OBJ) {
        ipw_chat_keep_count(&fold->timed_prompt, ipw_json_get(timings, "prompt_n"));
        ipw_chat_keep_count(&fold->timed_cached, ipw_json_get(timings, "cache_n"));
        ipw_chat_keep_count(&fold->timed_predicted, ipw_json_get(timings, "predicted_n"));
    } else {
        timings = ipw_json_get(root, "metrics");
    }
    if (ipw_json_kind(timings) != IPW_JSON_OBJ) return;
    ipw_json_print(&text, timings);
    if (!text.failed) {
        free(fold->reply.timings);
        fold->reply.timings = ipw_buf_take(&text, NULL);
    }
    ipw_buf_release(&text);
}

/* Content is a string, or a list of parts; only text parts are used. */
static int fold_content(struct ipw_chat_fold *fold, const struct ipw_json *content, int *seen,
                        struct ipw_err *err)
{
    struct ipw_buf *text = &fold->reply.text;
    int rc = 0;

    if (ipw_json_kind(content) != IPW_JSON_ARR)
        return ipw_chat_gather_node(fold, text, content, IPW_SEEN_TEXT, seen, err);
    for (const struct ipw_json *part = ipw_json_first(content); part && rc == 0;
         part = ipw_json_next(part))
        rc = ipw_chat_gather_node(fold, text, ipw_json_get(part, "text"), IPW_SEEN_TEXT, seen, err);
    return rc;
}

/* Reasoning has two names; some servers send both. */
static int fold_reasoning(struct ipw_chat_fold *fold, const struct ipw_json *delta, int *seen,
                          struct ipw_err *err)
{
    const struct ipw_json *said = ipw_json_get(delta, "reasoning_content");

    if (!ipw_json_str_len(said)) said = ipw_json_get(delta, "reasoning");
    return ipw_chat_gather_node(fold, &fold->reply.reasoning, said, IPW_SEEN_REASONING, seen, err);
}

static int fold_delta(struct ipw_chat_fold *fold, const struct ipw_json *delta, int *seen,
                      struct ipw_err *err)
{
    const struct ipw_json *old = ipw_json_get(delta, "function_call");
    int rc = fold_reasoning(fold, delta, seen, err);

    if (rc == 0) rc = fold_content(fold, ipw_json_get(delta, "content"), seen, err);
    if (rc == 0) rc = ipw_chat_call_fold(fold, ipw_json_get(delta, "tool_calls"), seen, err);
    if (rc == 0 && ipw_json_kind(old) == IPW_JSON_OBJ)
        rc = ipw_chat_function_fold(fold, old, seen, err);
    return rc;
}

static int fold_choice(struct ipw_chat_fold *fold, const struct ipw_json *choice, int *seen,
                       struct ipw_err *err)
{
    const struct ipw_json *delta = ipw_json_get(choice, "delta");
    const char *word = ipw_json_str(ipw_json_get(choice, "finish_reason"), "");
    int64_t index = ipw_json_int(ipw_json_get(choice, "index"), 0);
    int rc = 0;

    if (ipw_json_kind(choice) != IPW_JSON_OBJ) return 0;
    if (index != 0) {
        fold->reply.ignored_choices++;
        return ipw_chat_other_fold(fold, choice, index, err);
    }
    if (ipw_json_kind(delta) == IPW_JSON_OBJ) {
        rc = fold_delta(fold, delta, seen, err);
    } else if (!ipw_chat_has_content(fold)) { /* a whole answer, or one sent as a single event */
        delta = ipw_json_get(choice, "message");
        if (ipw_json_kind(delta) == IPW_JSON_OBJ) rc = fold_delta(fold, delta, seen, err);
    }
    if (rc == 0 && fold->protocol == IPW_CHAT_PROMPT)
        rc = fold_content(fold, ipw_json_get(choice, "text"), seen, err);
    if (rc == 0) rc = ipw_chat_logprobs_fold(fold, choice, err);
    if (rc) return rc;
    if (*word) { /* after the delta, which can have the last text */
        *seen |= IPW_SEEN_FINISH;
        ipw_chat_set_finish(&fold->reply, word, ipw_chat_finish_of(word));
    }
    return 0;
}

static int fold_root(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                     struct ipw_err *err)
{
    const struct ipw_json *choices = ipw_json_get(root, "choices");

    ipw_chat_keep_first(&fold->reply.id, ipw_json_get(root, "id"));
    ipw_chat_keep_first(&fold->reply.model, ipw_json_get(root, "model"));
    if (ipw_json_kind(choices) == IPW_JSON_ARR) {
        for (const struct ipw_json *c = ipw_json_first(choices); c; c = ipw_json_next(c)) {
            int rc = fold_choice(fold, c, seen, err);
            if (rc) return rc;
        }
    }
    if (fold_usage(&fold->reply.usage, ipw_json_get(root, "usage"))) {
        ipw_chat_keep_cost(&fold->reply, ipw_json_get(ipw_json_get(root, "usage"), "cost"));
        *seen |= IPW_SEEN_USAGE;
    }
    fold_timings(fold, root);
    if (*seen & IPW_SEEN_TOKEN) fold->reply.chunks++;
    return 0;
}

/* Fails at once for an answer of another protocol.  Otherwise it would end as "cut". */
static int check_protocol(const struct ipw_chat_fold *fold, const struct ipw_json *root,
                          const char *what, struct ipw_err *err)
{
    bool prompt = fold->protocol == IPW_CHAT_PROMPT;
    const char *name = ipw_chat_has_content(fold) || prompt ? NULL : ipw_chat_foreign(root);

    if (!name) return 0;
    return ipw_fail(
        err, IPW_EPARSE,
        "this is %s %s %s, not chat completions; --base-url must name a server that speaks "
        "chat completions",
        strchr("AO", *name) ? "an" : "a", name, what);
}

/* The member of a whole answer that has its content. */
static const char *const content_keys[] = {[IPW_CHAT_COMPLETIONS] = "\"choices\"",
                                           [IPW_CHAT_RESPONSES] = "\"output\"",
                                           [IPW_CHAT_MESSAGES] = "\"content\"",
                                           [IPW_CHAT_PROMPT] = "\"choices\""};

static int take_event(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                      struct ipw_err *err)
{
    int rc;

    if (fold->protocol == IPW_CHAT_COMPLETIONS || fold->protocol == IPW_CHAT_PROMPT) {
        rc = check_protocol(fold, root, "stream", err);
        return rc ? rc : fold_root(fold, root, seen, err);
    }
    rc = fold->protocol == IPW_CHAT_RESPONSES ? ipw_chat_responses_event(fold, root, seen, err)
                                              : ipw_chat_messages_event(fold, root, seen, err);
    if (*seen & IPW_SEEN_TOKEN) fold->reply.chunks++;
    return rc;
}

static int take_whole(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                      struct ipw_err *err)
{
    int rc;

    if (fold->protocol == IPW_CHAT_RESPONSES)
        return ipw_chat_responses_whole(fold, root, seen, err);
    if (fold->protocol == IPW_CHAT_MESSAGES) return ipw_chat_messages_whole(fold, root, seen, err);
    rc = check_protocol(fold, root, "answer", err);
    if (!rc) rc = fold_root(fold, root, seen, err);
    fold->whole = ipw_json_count(ipw_json_get(root, "choices")) > 0;
    return rc;
}

static void trim(const char **data, size_t *n)
{
    while (*n && strchr(" \t\r\n", **data) && **data) {
        (*data)++;
        (*n)--;
    }
    while (*n && strchr(" \t\r\n", (*data)[*n - 1]) && (*data)[*n - 1]) (*n)--;
}

/* For an event named "error" that is not JSON, the text is the message. */
static int fold_error_text(struct ipw_chat_fold *fold, const char *data, size_t n)
{
    char line[512];

    ipw_chat_line(line, sizeof line, data, n);
    if (!fold->reply.error) fold->reply.error = ipw_strdup(line);
    return IPW_SEEN_ERROR;
}

int ipw_chat_fold_event(struct ipw_chat_fold *fold, const char *name, const char *data, size_t n,
                        struct ipw_err *err)
{
    bool named_error = name && strcmp(name, "error") == 0;
    struct ipw_json *root = NULL;
    size_t repairs = 0;
    int seen = 0, rc;

    if (fold->reply.done_marker) return 0; /* ignore everything after [DONE] */
    trim(&data, &n);
    if (n == 0) return 0;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        fold->reply.done_marker = true;
        return IPW_SEEN_DONE;
    }
    if (!fold->exact && !named_error && ipw_chat_scan(fold, data, n, &rc, err)) return rc;
    rc = ipw_json_parse(&root, data, n, &repairs, err);
    if (rc) {
        if (named_error) return fold_error_text(fold, data, n);
        ipw_err_prefix(err, "a stream event is not JSON");
        return rc;
    }
    fold->reply.repairs += (int64_t)repairs;
    if (named_error || ipw_chat_error_is(root)) ipw_chat_fold_error(fold, root, &seen);
    rc = take_event(fold, root, &seen, err);
    ipw_json_free(root);
    return rc ? rc : seen;
}

int ipw_chat_fold_whole(struct ipw_chat_fold *fold, const char *body, size_t n, struct ipw_err *err)
{
    struct ipw_json *root = NULL;
    size_t repairs = 0;
    char line[256];
    int seen = 0, rc;

    rc = ipw_json_parse(&root, body, n, &repairs, err);
    if (rc) {
        ipw_err_prefix(err, "the answer is not JSON");
        return rc;
    }
    fold->reply.repairs += (int64_t)repairs;
    if (ipw_chat_error_is(root)) ipw_chat_fold_error(fold, root, &seen);
    rc = take_whole(fold, root, &seen, err);
    ipw_json_free(root);
    if (rc) return rc;
    if (!fold->whole && !fold->reply.error) {
        ipw_chat_line(line, sizeof line, body, n);
        return ipw_fail(err, IPW_EPARSE, "the answer has no %s: %s", content_keys[fold->protocol],
                        line);
    }
    return seen;
}

/* Without usage, llama.cpp's timings have the counts.  prompt_n excludes cached tokens. */
static void usage_from_timings(struct ipw_chat_fold *fold)
{
    struct ipw_chat_usage *u = &fold->reply.usage;

    if (u->completion < 0) u->completion = fold->timed_predicted;
    if (u->prompt < 0 && fold->timed_prompt >= 0) {
        u->prompt = fold->timed_prompt + (fold->timed_cached > 0 ? fold->timed_cached : 0);
        if (u->cached < 0) u->cached = fold->timed_cached;
    }
}

int ipw_chat_fold_end(struct ipw_chat_fold *fold, struct ipw_chat_reply *out, struct ipw_err *err)
{
    struct ipw_chat_reply *r = &fold->reply;
    bool complete = r->finish != IPW_FINISH_NONE || r->done_marker || fold->whole;

    ipw_chat_call_finish(r);
    usage_from_timings(fold);
    *out = *r;
    *r = (struct ipw_chat_reply){.usage = {-1, -1, -1, -1, -1, -1, -1}};
    r->text = r->reasoning = r->logprobs = IPW_BUF(fold->max);
    fold->left = fold->max;
    if (out->error) {
        ipw_fail(err, IPW_EHTTP, "%s", *out->error ? out->error : "an error without a message");
        if (err) err->detail = out->error_code;
        return IPW_EHTTP;
    }
    if (!complete)
        return ipw_fail(err, IPW_ENET,
                        "the answer was cut: no finish reason after %lld events with content",
                        (long long)out->chunks);
    return 0;
}

const struct ipw_chat_reply *ipw_chat_fold_so_far(const struct ipw_chat_fold *fold)
{
    return &fold->reply;
}
