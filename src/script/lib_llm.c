/* ipw.core.llm, which is most of ipw.llm: chat, and the messages.
 *
 * chat(request) encodes each message once, sends the request through llm/client, writes a pair of
 * events for every attempt, and returns the reply as a table.  Of each request events.jsonl has
 * only the messages that the query's previous request did not have. */
#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "json/write.h"
#include "script/conversation.h"
#include "script/fields.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/message.h"
#include "script/task.h"
#include "script/value.h"
#include "script/vm_priv.h"

enum { MAX_REQUEST_BYTES = 64 * 1024 * 1024, MAX_MESSAGES = 100000 };

struct chat_op {
    struct ipw_op op;
    struct ipw_host *host;
    struct ipw_llm_call *call;
    struct ipw_conversation conversation; /* the request's messages */
    struct ipw_chat_text messages;        /* their text; NULL: only the body has it, at `from` */
    size_t from;                          /* the member "messages" of the sent body */
    struct ipw_buf text;                  /* every other piece, one after the other */
    struct ipw_chat_request request;
    const char *tools; /* as JSON.  NULL: at tools_at */
    size_t tools_at, choice_at, format_at, stop_at, extra_at, model_at; /* + 1; 0: none */
    int32_t span;
    bool inside; /* inside a tool that is recorded as a whole */
    bool sub;    /* asks the sub-model */
    int code;    /* of the end */
    bool retryable;
    struct ipw_err err;
    struct ipw_chat_reply reply;
    bool has_reply;
    /* For on_text: the received pieces that were not passed on, and how much of the reply was
     * taken. */
    bool streams, over, again;
    bool seals; /* reply.message is JSON at once */
    struct ipw_buf pieces, thoughts;
    size_t n_text, n_reasoning;
    struct ipw_defer *flush;
};

/* ---- the request ---- */

static const char *const fields[] = {"on_text",
                                     "extra",
                                     "force_output_tokens",
                                     "max_tokens",
                                     "messages",
                                     "model",
                                     "seal",
                                     "seed",
                                     "stop",
                                     "response_format",
                                     "send_at",
                                     "sub_model",
                                     "temperature",
                                     "tool_choice",
                                     "tools",
                                     "top_p",
                                     NULL};

/* Encodes the field, if there is one, after the other pieces; returns its offset + 1. [0, 0, v] */
static size_t encode_field(lua_State *L, struct chat_op *op, const char *name)
{
    struct ipw_err err;
    size_t at = op->text.len;

    lua_getfield(L, 1, name);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return 0;
    }
    if (ipw_value_encode(L, -1, &op->text, &err))
        luaL_error(L, "llm.chat: %s%s%s", name,
                   err.text[0] == '.' || err.text[0] == '[' ? "" : ": ", err.text);
    ipw_buf_add(&op->text, "\0", 1);
    lua_pop(L, 1);
    return at + 1;
}

static const char *piece(const struct chat_op *op, size_t at)
{
    return at ? op->text.data + at - 1 : NULL;
}

static void take_messages(lua_State *L, struct chat_op *op)
{
    struct ipw_err err = {0};
    lua_Unsigned n;

    lua_getfield(L, 1, "messages");
    if (!lua_istable(L, -1) || (n = lua_rawlen(L, -1)) == 0 || n > MAX_MESSAGES)
        luaL_error(L, "llm.chat: messages: expected a list of at least one message");
    if (ipw_conversation_take(&op->conversation, L, -1, &err))
        luaL_error(L, "llm.chat: %s", err.text);
    lua_pop(L, 1);
    op->messages.json = op->conversation.text.data;
    op->messages.n = op->conversation.text.len;
}

static void build_request(lua_State *L, struct chat_op *op)
{
    const struct ipw_host *host = op->host;
    struct ipw_chat_request *r = &op->request;
    const char *model;
    double at_s;
    size_t n;

    take_messages(L, op);
    op->tools = ipw_value_raw(L, 2, &n);
    if (!op->tools) op->tools_at = encode_field(L, op, "tools");
    op->choice_at = encode_field(L, op, "tool_choice");
    op->format_at = encode_field(L, op, "response_format");
    op->stop_at = encode_field(L, op, "stop");
    op->extra_at = encode_field(L, op, "extra");
    model = ipw_fields_text(L, 1, "llm.chat", "model", &n);
    if (model) {
        op->model_at = op->text.len + 1;
        ipw_buf_add(&op->text, model, n + 1);
    }
    r->temperature = ipw_fields_number(L, 1, "llm.chat", "temperature", host->model.temperature,
                                       -INFINITY, INFINITY);
    r->top_p = ipw_fields_number(L, 1, "llm.chat", "top_p", NAN, -INFINITY, INFINITY);
    r->seed = ipw_fields_integer(L, 1, "llm.chat", "seed", host->model.seed);
    r->max_tokens = ipw_fields_integer(L, 1, "llm.chat", "max_tokens", host->model.max_tokens);
    r->force_tokens = ipw_fields_integer(L, 1, "llm.chat", "force_output_tokens", 0);
    if (r->force_tokens < 0)
        luaL_error(L, "llm.chat: force_output_tokens: expected a number above zero");
    if (op->text.failed) luaL_error(L, "llm.chat: the request is larger than 64 MiB");

    ipw_buf_fit(&op->text);
    /* The buffer does not move any more: offsets become pointers. */
    r->messages = &op->messages;
    r->n_messages = 1;
    r->model = host->model.name;
    if (op->sub && host->model.sub_name) r->model = host->model.sub_name;
    if (op->model_at) r->model = piece(op, op->model_at);
    r->tools = op->tools ? op->tools : piece(op, op->tools_at);
    if (r->tools && (strcmp(r->tools, "[]") == 0 || strcmp(r->tools, "{}") == 0)) r->tools = NULL;
    r->tool_choice = piece(op, op->choice_at);
    r->response_format = piece(op, op->format_at);
    r->stop = piece(op, op->stop_at);
    r->extra = piece(op, op->extra_at);
    at_s = ipw_fields_number(L, 1, "llm.chat", "send_at", NAN, -1e8, 1e8);
    if (!isnan(at_s)) r->not_before_ns = host->start_ns + ipw_s_to_ns(at_s);
    r->stream = true;
    r->include_usage = true;
}

/* ---- events ---- */

/* How many of the first messages the query's previous request also had; remembers this one. */
static size_t messages_kept(struct ipw_host *host, const struct ipw_conversation *c)
{
    size_t kept = 0;

    IPW_GROW(host->sent.hashes, host->sent.cap, c->n);
    while (kept < c->n && kept < host->sent.n && host->sent.hashes[kept] == c->messages[kept].hash)
        kept++;
    for (size_t i = kept; i < c->n; i++) host->sent.hashes[i] = c->messages[i].hash;
    host->sent.n = c->n;
    return kept;
}

static const char messages_key[] = "\"messages\":[";
enum { KEY_BYTES = sizeof messages_key - 1 };

/* Whether the member "messages" of the body is at op->from. */
static bool messages_are_at(const struct chat_op *op, const char *body, size_t n)
{
    const char *text = body + op->from + KEY_BYTES, *end = text + op->messages.n;

    if (op->from > n || n - op->from < KEY_BYTES + op->messages.n + 2) return false;
    return memcmp(body + op->from, messages_key, KEY_BYTES) == 0 && end[0] == ']' &&
           end[1] == ',' &&
           (!op->messages.json || memcmp(text, op->messages.json, op->messages.n) == 0);
}

/* Finds that member in the sent body, where it is the texts of this request.  False if it is not
 * there as expected (`extra` can replace it). */
static bool find_messages(struct chat_op *op, const char *body, size_t n)
{
    const char *at = body;

    if (!op->messages.json && messages_are_at(op, body, n))
        return true; /* as in the last attempt */
    while ((at = memmem(at, n - (size_t)(at - body), messages_key, KEY_BYTES))) {
        op->from = (size_t)(at - body);
        if (messages_are_at(op, body, n)) return true;
        at += KEY_BYTES;
    }
    return false;
}

static void on_attempt(void *ud, int attempt, int64_t t_ns, const char *body, size_t n)
{
    struct chat_op *op = ud;
    struct ipw_host *host = op->host;
    struct ipw_buf data = IPW_BUF(2 * (size_t)MAX_REQUEST_BYTES);
    struct ipw_event event = {.kind = IPW_EV_LM_START, .t_ns = t_ns};
    struct ipw_jw w;
    size_t kept, before, from = 0, to = 0, start;
    const char *messages = op->messages.json;

    if (op->n_text ||
        op->n_reasoning) { /* a repeated request: the earlier pieces no longer count */
        op->again = true;
        op->n_text = op->n_reasoning = 0;
        ipw_buf_clear(&op->pieces);
        ipw_buf_clear(&op->thoughts);
    }
    op->span = ipw_host_next_span(host, op->inside);
    ipw_op_rest(&op->op, false);
    if (!host->on.emit) return;
    before = host->sent.n;
    /* Requests inside a tool are not part of the agent's thread, and a replay does not see them. */
    if (op->inside) host->sent.n = 0;
    kept = messages_kept(host, &op->conversation);
    if (op->inside) host->sent.n = 0;
    host->sent.extended = before > 0 && kept == before;
    if (find_messages(op, body, n)) {
        from = op->from;
        messages = body + from + KEY_BYTES;
        to = from + KEY_BYTES + op->messages.n + 2;
    }
    start = ipw_conversation_start(&op->conversation, kept);
    ipw_buf_expect(&data, op->messages.n - start + n - (to - from) + 100);
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "messages");
    ipw_jw_arr(&w);
    if (messages && kept < op->conversation.n)
        ipw_jw_raw(&w, messages + start, op->messages.n - start);
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "messages_kept", (int64_t)kept);
    /* The sent body, without the messages. */
    ipw_jw_key(&w, "request");
    start = data.len;
    ipw_jw_raw(&w, body, from);
    ipw_buf_add(&data, body + to, n - to);
    for (char *p = data.failed ? NULL : memchr(data.data + start, '\n', data.len - start); p;
         p = memchr(p, '\n', (size_t)(data.data + data.len - p)))
        *p = ' '; /* between two parts of the JSON text, which is stored as one line */
    ipw_jw_obj_end(&w);
    event.span = op->span;
    event.lm.attempt = attempt;
    event.lm.held_ns = ipw_llm_held_ns(op->call);
    event.lm.due_ns = op->request.not_before_ns;
    event.lm.model = op->request.model;
    ipw_host_emit(host, &event, &data);
    /* The body has the messages too, and is all that a repeated request needs.  A replay can make
     * another body. */
    if (to && !host->replay) {
        ipw_buf_release(&op->conversation.text);
        op->messages.json = NULL;
    }
}

static void on_attempt_end(void *ud, int64_t t_ns, const struct ipw_lm_facts *facts,
                           const struct ipw_chat_reply *reply, int64_t next_try_ns)
{
    struct chat_op *op = ud;
    struct ipw_host *host = op->host;
    struct ipw_event event = {.kind = IPW_EV_LM_END, .t_ns = t_ns};

    if (host->on.emit) {
        struct ipw_buf data = IPW_BUF(2 * (size_t)MAX_REQUEST_BYTES);

        if (reply) {
            ipw_buf_expect(&data, 1000);
            ipw_chat_reply_json(&data, reply);
        }
        event.span = op->span;
        event.lm = *facts;
        event.lm.asked = op->request.model;
        if (next_try_ns > 0) event.lm.retry_wait_ns = next_try_ns;
        ipw_host_emit(host, &event, &data);
    }
    if (facts->will_retry) ipw_op_rest(&op->op, true);
}

static void on_first_token(void *ud, int64_t t_ns)
{
    const struct chat_op *op = ud;

    if (op->host->on.first_token) op->host->on.first_token(op->host->on.ud, t_ns);
}

static void on_held(void *ud, int64_t t_ns)
{
    struct chat_op *op = ud;

    if (op->host->on.held) op->host->on.held(op->host->on.ud, t_ns);
    ipw_op_rest(&op->op, true);
}

/* In the next round: Lua must not be entered from the network's callback. */
static void flush(void *ud)
{
    struct chat_op *op = ud;

    op->flush = NULL;
    if (!op->over) ipw_op_done(&op->op);
}

static void take_new(struct ipw_buf *to, size_t *taken, const struct ipw_buf *from)
{
    if (from->len <= *taken) return;
    ipw_buf_add(to, from->data + *taken, from->len - *taken);
    *taken = from->len;
}

static void on_text(void *ud, const struct ipw_chat_reply *so_far)
{
    struct chat_op *op = ud;

    take_new(&op->pieces, &op->n_text, &so_far->text);
    take_new(&op->thoughts, &op->n_reasoning, &so_far->reasoning);
    if (!op->flush) op->flush = ipw_defer_start(op->host->loop, flush, op);
}

static void on_done(void *ud, int code, struct ipw_chat_reply *reply, const struct ipw_err *err,
                    bool retryable)
{
    struct chat_op *op = ud;

    op->call = NULL;
    op->code = code;
    op->retryable = retryable;
    if (err) op->err = *err;
    if (code == 0 && reply) {
        op->reply = *reply; /* taken over: the client releases an empty one */
        memset(reply, 0, sizeof *reply);
        op->has_reply = true;
        if (op->streams) { /* of an answer that came whole */
            take_new(&op->pieces, &op->n_text, &op->reply.text);
            take_new(&op->thoughts, &op->n_reasoning, &op->reply.reasoning);
        }
    }
    op->over = true;
    ipw_defer_cancel(op->flush);
    op->flush = NULL;
    ipw_op_done(&op->op);
}

/* ---- the reply ---- */

/* Calls on_text(piece, kind) of the request at 1.  It cannot wait. [0, 0, e] */
static void hand_piece(lua_State *L, struct ipw_buf *piece, const char *kind)
{
    lua_getfield(L, 1, "on_text");
    lua_pushlstring(L, ipw_buf_str(piece), piece->len);
    ipw_buf_clear(piece);
    lua_pushstring(L, kind);
    lua_call(L, 2, 0);
}

static void hand_on(lua_State *L, struct chat_op *op)
{
    struct ipw_buf none = IPW_BUF(1);

    if (op->again) {
        op->again = false;
        hand_piece(L, &none, "again");
    }
    if (op->thoughts.len) hand_piece(L, &op->thoughts, "reasoning");
    if (op->pieces.len) hand_piece(L, &op->pieces, "text");
}

static int chat_finish(lua_State *L, struct ipw_op *base)
{
    struct chat_op *op = (struct chat_op *)base;

    luaL_checkstack(L, 10, NULL);
    if (op->streams) {
        hand_on(L, op);
        if (!op->over) return ipw_op_again(L, base);
    }
    if (!op->has_reply) {
        ipw_value_push_error(L, ipw_code_name((enum ipw_code)op->code), op->err.text,
                             op->retryable);
        if (op->err.detail) {
            lua_pushinteger(L, op->err.detail);
            lua_setfield(L, -2, "status");
        }
        return lua_error(L);
    }
    ipw_message_push_reply(L, &op->reply, op->seals);
    return 1;
}

static void chat_cancel(struct ipw_op *base)
{
    struct chat_op *op = (struct chat_op *)base;

    if (op->call) ipw_llm_cancel(op->call);
    op->call = NULL;
    ipw_defer_cancel(op->flush);
    op->flush = NULL;
}

static void chat_release(struct ipw_op *base)
{
    struct chat_op *op = (struct chat_op *)base;

    chat_cancel(base); /* on_text raised, or the query was cancelled inside it */
    ipw_buf_release(&op->pieces);
    ipw_buf_release(&op->thoughts);
    if (op->has_reply) ipw_chat_reply_release(&op->reply);
    ipw_buf_release(&op->text);
    ipw_conversation_release(&op->conversation);
}

/* chat(request): the reply as a table; or raises {code, message, status, retryable}. [-1, +1, e] */
static int llm_chat(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);
    const struct ipw_llm_callbacks callbacks_of = {on_attempt, on_attempt_end, on_done,
                                                   NULL,       on_first_token, on_held};
    struct ipw_llm_callbacks callbacks = callbacks_of;
    struct chat_op *op;

    lua_settop(L, 1);
    ipw_fields_take(L, 1, "llm.chat", fields, false);
    if (!host || !host->model.llm) return luaL_error(L, "llm.chat: there is no model");
    op = ipw_op_new(L, sizeof *op, chat_cancel, chat_finish, chat_release);
    op->host = host;
    op->inside = ipw_task_in_tool(ipw_vm_of(L));
    op->op.recorded = host->replay != NULL;
    lua_getfield(L, 1, "sub_model");
    op->sub = lua_toboolean(L, -1);
    lua_getfield(L, 1, "seal");
    op->seals = lua_toboolean(L, -1);
    lua_settop(L, 1);
    lua_getfield(L, 1, "tools"); // request tools: mostly json.raw, whose text lives as long
    ipw_buf_init(&op->text, MAX_REQUEST_BYTES);
    build_request(L, op);
    callbacks.ud = op;
    ipw_buf_init(&op->pieces, MAX_REQUEST_BYTES);
    ipw_buf_init(&op->thoughts, MAX_REQUEST_BYTES);
    lua_getfield(L, 1, "on_text");
    if (!lua_isnil(L, -1) && !lua_isfunction(L, -1))
        return luaL_error(L, "llm.chat: on_text: expected a function, got %s",
                          luaL_typename(L, -1));
    op->streams = lua_isfunction(L, -1);
    lua_settop(L, 2);
    if (op->streams) callbacks.on_text = on_text;
    if (host->on.admit && !host->on.admit(host->on.ud))
        return ipw_op_await(L); /* until it is cancelled */
    op->code =
        ipw_llm_start(&op->call, op->sub && host->model.sub ? host->model.sub : host->model.llm,
                      &op->request, &callbacks, &op->err);
    if (op->code)
        op->op.done = op->over = true;
    else
        ipw_vm_tidy(ipw_vm_of(L));
    return ipw_op_await(L);
}

int ipw_lib_llm(lua_State *L)
{
    static const luaL_Reg functions[] = {{"chat", llm_chat},
                                         {"system", ipw_message_system},
                                         {"user", ipw_message_user},
                                         {"assistant", ipw_message_assistant},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
