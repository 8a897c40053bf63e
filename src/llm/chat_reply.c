/* The parts of a reply that go back to the server, and the whole reply as JSON for events.jsonl. */
#include "llm/chat_priv.h"

#include <string.h>

#include "json/write.h"

/* Servers answer 400 or 500 to arguments in any other form, in each further turn. */
bool ipw_chat_history_arguments(struct ipw_buf *out, const struct ipw_chat_call *call)
{
    struct ipw_json *root = NULL;
    const char *text = ipw_buf_str(&call->arguments);
    size_t repairs = 0;
    bool good = ipw_json_parse(&root, text, call->arguments.len, &repairs, NULL) == 0 &&
                ipw_json_kind(root) == IPW_JSON_OBJ;

    if (!good)
        ipw_buf_adds(out, "{}");
    else if (repairs > 0)
        ipw_json_print(out, root);
    else
        ipw_buf_add(out, text, call->arguments.len);
    ipw_json_free(root);
    return good;
}

const char *ipw_chat_history_name(const struct ipw_chat_call *call)
{
    return call->name && *call->name ? call->name : "unknown";
}

static void write_usage(struct ipw_jw *w, const struct ipw_chat_reply *reply)
{
    const struct ipw_chat_usage *u = &reply->usage;

    ipw_jw_obj(w);
    ipw_jw_kcount(w, "cached", u->cached);
    ipw_jw_kcount(w, "completion", u->completion);
    if (reply->cost_told) ipw_jw_knum(w, "cost", reply->cost_usd);
    ipw_jw_kcount(w, "prompt", u->prompt);
    ipw_jw_kcount(w, "reasoning", u->reasoning);
    ipw_jw_kcount(w, "total", u->total);
    if (u->written >= 0) ipw_jw_kint(w, "written", u->written);
    if (u->written_1h >= 0) ipw_jw_kint(w, "written_1h", u->written_1h);
    ipw_jw_obj_end(w);
}

static void write_call(struct ipw_jw *w, const struct ipw_chat_call *call)
{
    ipw_jw_obj(w);
    ipw_jw_key(w, "arguments");
    ipw_jw_strn(w, ipw_buf_str(&call->arguments), call->arguments.len);
    ipw_jw_kstr(w, "id", call->id);
    ipw_jw_kstr(w, "name", call->name);
    ipw_jw_obj_end(w);
}

void ipw_chat_reply_json(struct ipw_buf *out, const struct ipw_chat_reply *reply)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    if (reply->arrivals.len) ipw_jw_kstr(&w, "arrivals", reply->arrivals.data);
    ipw_jw_key(&w, "calls");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < reply->n_calls; i++) write_call(&w, &reply->calls[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "chunks", reply->chunks);
    ipw_jw_kbool(&w, "done_marker", reply->done_marker);
    ipw_jw_kstr(&w, "error", reply->error);
    ipw_jw_kstr(&w, "error_type", reply->error_type);
    ipw_jw_kstr(&w, "finish", reply->finish_word);
    ipw_jw_kstr(&w, "id", reply->id);
    ipw_jw_kint(&w, "ignored_choices", reply->ignored_choices);
    ipw_chat_logprobs_json(&w, reply);
    ipw_jw_kstr(&w, "model", reply->model);
    ipw_chat_others_json(&w, reply);
    ipw_jw_key(&w, "reasoning");
    ipw_jw_strn(&w, ipw_buf_str(&reply->reasoning), reply->reasoning.len);
    ipw_jw_kint(&w, "repairs", reply->repairs);
    ipw_jw_key(&w, "text");
    ipw_jw_strn(&w, ipw_buf_str(&reply->text), reply->text.len);
    if (reply->timings)
        ipw_jw_kraw(&w, "timings", reply->timings, strlen(reply->timings));
    else
        ipw_jw_knull(&w, "timings");
    ipw_jw_key(&w, "usage");
    write_usage(&w, reply);
    ipw_jw_obj_end(&w);
}
