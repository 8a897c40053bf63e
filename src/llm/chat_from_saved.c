/* Reads a reply from its JSON in a saved run: the reverse of ipw_chat_reply_json(). */
#include "llm/chat.h"

#include <string.h>

#include "base/mem.h"
#include "llm/chat_priv.h"

enum { MAX_BYTES = 512 * 1024 * 1024 };

static void take_text(struct ipw_buf *out, const struct ipw_json *node)
{
    ipw_buf_init(out, MAX_BYTES);
    ipw_buf_add(out, ipw_json_str(node, ""), ipw_json_str_len(node));
}

static char *copy(const struct ipw_json *object, const char *key)
{
    return ipw_strdup(ipw_json_str(ipw_json_get(object, key), NULL));
}

static char *copy_json(const struct ipw_json *node)
{
    struct ipw_buf text = IPW_BUF(MAX_BYTES);

    if (ipw_json_is_null(node)) return NULL;
    ipw_json_print(&text, node);
    return ipw_buf_take(&text, NULL);
}

static int64_t count(const struct ipw_json *object, const char *key, int64_t fallback)
{
    return ipw_json_int(ipw_json_get(object, key), fallback);
}

static void read_calls(struct ipw_chat_reply *r, const struct ipw_json *calls)
{
    for (const struct ipw_json *c = ipw_json_first(calls); c; c = ipw_json_next(c)) {
        IPW_GROW(r->calls, r->cap_calls, r->n_calls + 1);
        r->calls[r->n_calls] = (struct ipw_chat_call){.id = copy(c, "id"), .name = copy(c, "name")};
        if (!r->calls[r->n_calls].id) r->calls[r->n_calls].id = ipw_strdup("");
        take_text(&r->calls[r->n_calls].arguments, ipw_json_get(c, "arguments"));
        r->n_calls++;
    }
}

static void read_others(struct ipw_chat_reply *r, const struct ipw_json *others)
{
    for (const struct ipw_json *o = ipw_json_first(others); o; o = ipw_json_next(o)) {
        IPW_GROW(r->others, r->cap_others, r->n_others + 1);
        r->others[r->n_others] = (struct ipw_chat_choice){.index = count(o, "index", 0),
                                                          .finish_word = copy(o, "finish")};
        take_text(&r->others[r->n_others].text, ipw_json_get(o, "text"));
        r->n_others++;
    }
}

static void read_logprobs(struct ipw_chat_reply *r, const struct ipw_json *list)
{
    ipw_buf_init(&r->logprobs, MAX_BYTES);
    for (const struct ipw_json *e = ipw_json_first(list); e; e = ipw_json_next(e)) {
        if (r->logprobs.len) ipw_buf_addc(&r->logprobs, ',');
        ipw_json_print(&r->logprobs, e);
    }
}

void ipw_chat_reply_read(struct ipw_chat_reply *out, const struct ipw_json *data)
{
    const struct ipw_json *usage = ipw_json_get(data, "usage"), *cost = ipw_json_get(usage, "cost");

    *out = (struct ipw_chat_reply){
        .finish_word = copy(data, "finish"),
        .model = copy(data, "model"),
        .id = copy(data, "id"),
        .error = copy(data, "error"),
        .error_type = copy(data, "error_type"),
        .timings = copy_json(ipw_json_get(data, "timings")),
        .done_marker = ipw_json_bool(ipw_json_get(data, "done_marker"), false),
        .chunks = count(data, "chunks", 0),
        .repairs = count(data, "repairs", 0),
        .ignored_choices = count(data, "ignored_choices", 0),
        .usage = {.prompt = count(usage, "prompt", -1),
                  .completion = count(usage, "completion", -1),
                  .total = count(usage, "total", -1),
                  .cached = count(usage, "cached", -1),
                  .reasoning = count(usage, "reasoning", -1),
                  .written = count(usage, "written", -1),
                  .written_1h = count(usage, "written_1h", -1)},
        .cost_told = !ipw_json_is_null(cost),
        .cost_usd = ipw_json_num(cost, 0),
    };
    if (out->finish_word) out->finish = ipw_chat_finish_of(out->finish_word);
    take_text(&out->arrivals, ipw_json_get(data, "arrivals"));
    take_text(&out->text, ipw_json_get(data, "text"));
    take_text(&out->reasoning, ipw_json_get(data, "reasoning"));
    read_calls(out, ipw_json_get(data, "calls"));
    read_logprobs(out, ipw_json_get(data, "logprobs"));
    read_others(out, ipw_json_get(data, "others"));
}
