#include "script/worker/worker_main.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/confined.h"
#include "json/json.h"
#include "json/write.h"
#include "script/agent.h"
#include "script/host.h"
#include "script/installed.h"
#include "script/task.h"
#include "script/vm.h"
#include "script/worker/worker_codec.h"

/* Modules that only compute.  The kernel refuses the functions of `data` and `script` that open
 * files. */
static const char *const computing[] = {"json", "data", "script", "text", "stats", "compute", NULL};

/* ---- calls ---- */

/* A call in progress; its answer is kept until it is read. */
struct pending {
    uint32_t number;
    int kind; /* of the answer; 0: it has not come */
    struct ipw_buf answer;
    struct ipw_buf pieces; /* received before the answer: each a length and values */
    struct ipw_op *op;     /* the operation that waits for it; or NULL */
    struct pending *next;
};

struct worker {
    struct ipw_host host; /* first: the states' host is a pointer to it */
    struct ipw_loop *loop;
    struct ipw_message_channel *channel;
    uint32_t last_call;
    struct pending *pending;
    struct ipw_buf answer; /* of the last blocking call */
    /* the agent */
    struct ipw_json *start;
    struct ipw_agent *agent;
    struct ipw_case query;
    struct ipw_agent_info info;
    struct ipw_agent_config config;
    const char **tools;
    char *stop_reason;
};

static struct worker *worker_of(lua_State *L) { return (struct worker *)ipw_vm_host(L); }

static void unlink_pending(struct worker *r, struct pending *p)
{
    for (struct pending **at = &r->pending; *at; at = &(*at)->next) {
        if (*at != p) continue;
        *at = p->next;
        return;
    }
}

static void expect(struct worker *r, struct pending *p, struct ipw_op *op)
{
    *p = (struct pending){.number = ++r->last_call, .op = op, .next = r->pending};
    ipw_buf_init(&p->answer, IPW_WORKER_CODEC_MAX);
    ipw_buf_init(&p->pieces, 2 * (size_t)IPW_WORKER_CODEC_MAX);
    r->pending = p;
}

static void take_answer(struct worker *r, int kind, uint32_t number, const char *bytes, size_t n)
{
    for (struct pending *p = r->pending; p; p = p->next) {
        if (p->number != number || p->kind) continue;
        if (kind == IPW_WORKER_CODEC_PIECE) {
            ipw_buf_add(&p->pieces, &n, sizeof n);
            ipw_buf_add(&p->pieces, bytes, n);
        } else {
            p->kind = kind;
            ipw_buf_add(&p->answer, bytes, n);
        }
        if (p->op) ipw_op_done(p->op);
        return;
    }
}

/* Sends the message and waits for its answer in r->answer; returns the answer's kind. */
static int ask(struct worker *r, struct pending *p, const struct ipw_buf *message)
{
    ipw_message_channel_send(r->channel, message->data, message->len);
    while (!p->kind)
        if (!ipw_message_channel_wait(r->channel)) _exit(1); /* the core has ended */
    unlink_pending(r, p);
    ipw_buf_release(&r->answer);
    r->answer = p->answer;
    return p->kind;
}

static int push_answer(lua_State *L, int kind, const struct ipw_buf *answer)
{
    int n = ipw_worker_codec_push(L, ipw_buf_str(answer), answer->len);

    if (kind == IPW_WORKER_CODEC_RESULT) return n;
    if (n == 0) lua_pushliteral(L, "the core refused");
    if (lua_type(L, -1) == LUA_TSTRING) { /* as luaL_error() adds the place */
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

/* ---- those that wait ---- */

struct call_op {
    struct ipw_op op;
    struct worker *worker;
    struct pending pending;
    bool sent, streams; /* streams: the request at 1 has an on_text */
};

static void call_cancel(struct ipw_op *base)
{
    struct call_op *op = (struct call_op *)base;
    struct ipw_buf message = IPW_BUF(64);

    if (!op->sent || op->pending.kind) return;
    op->sent = false;
    ipw_worker_codec_begin(&message, IPW_WORKER_CODEC_CANCEL, op->pending.number);
    ipw_message_channel_send(op->worker->channel, message.data, message.len);
    ipw_buf_release(&message);
}

/* Calls on_text with the received pieces, also with those that arrive meanwhile. [0, 0, e] */
static void hand_on(lua_State *L, struct call_op *op)
{
    struct ipw_buf *pieces = &op->pending.pieces;
    size_t at = 0, n;

    while (at < pieces->len) {
        memcpy(&n, pieces->data + at, sizeof n);
        at += sizeof n;
        lua_getfield(L, 1, "on_text");
        lua_call(L, ipw_worker_codec_push(L, pieces->data + at, n), 0);
        at += n;
    }
    ipw_buf_clear(pieces);
}

static int call_finish(lua_State *L, struct ipw_op *base)
{
    struct call_op *op = (struct call_op *)base;

    if (op->streams) {
        luaL_checkstack(L, 10, NULL);
        hand_on(L, op);
        if (!op->pending.kind) return ipw_op_again(L, base);
    }
    return push_answer(L, op->pending.kind, &op->pending.answer);
}

static void call_release(struct ipw_op *base)
{
    struct call_op *op = (struct call_op *)base;

    call_cancel(base); /* on_text raised */
    unlink_pending(op->worker, &op->pending);
    ipw_buf_release(&op->pending.answer);
    ipw_buf_release(&op->pending.pieces);
}

/* Enters or leaves a tool that is recorded as a whole: calls inside it are not recorded. */
static void note_tool(lua_State *L, const char *name)
{
    if (strcmp(name, "tool.start") == 0 && lua_toboolean(L, 4))
        ipw_task_enter_tool(ipw_vm_of(L), 1);
    if (strcmp(name, "tool.finish") == 0 && lua_toboolean(L, 8))
        ipw_task_enter_tool(ipw_vm_of(L), -1);
}

/* Pushes the request at 1 in the form to send: `true` in place of the function on_text. [0, +1,
 * m] */
static void mark_request(lua_State *L)
{
    lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "on_text");
}

static bool has_on_text(lua_State *L, const char *name)
{
    int type;

    if (strcmp(name, "llm.chat") || !lua_istable(L, 1)) return false;
    type = lua_getfield(L, 1, "on_text");
    if (type != LUA_TNIL && type != LUA_TFUNCTION)
        luaL_error(L, "llm.chat: on_text: expected a function, got %s", luaL_typename(L, -1));
    lua_pop(L, 1);
    return type == LUA_TFUNCTION;
}

/* How a call to the core begins (start_call() in worker_host.c reads it). */
static void begin_call(struct ipw_buf *message, uint32_t number, bool in_tool, int32_t tool,
                       const char *function)
{
    ipw_worker_codec_begin(message, IPW_WORKER_CODEC_CALL, number);
    ipw_buf_addc(message, in_tool);
    ipw_buf_add(message, &tool, sizeof tool);
    ipw_buf_add(message, function, strlen(function) + 1);
}

static int call(lua_State *L, const char *name, bool waits)
{
    struct worker *r = worker_of(L);
    struct ipw_buf message = IPW_BUF(IPW_WORKER_CODEC_MAX);
    struct pending blocking, *p = &blocking;
    struct call_op *op = NULL;
    struct ipw_err err;
    bool streams = has_on_text(L, name);
    int n = lua_gettop(L), first = 1;
    struct ipw_vm *vm = ipw_vm_of(L);

    if (streams) { /* the copy is sent, the request itself stays at 1 */
        lua_settop(L, n = 1);
        mark_request(L);
        first = 2;
    }
    if (waits) {
        op = ipw_op_new(L, sizeof *op, call_cancel, call_finish, call_release);
        op->worker = r;
        op->streams = streams;
        p = &op->pending;
    }
    expect(r, p, op ? &op->op : NULL);
    begin_call(&message, p->number, ipw_task_in_tool(vm), ipw_task_tool(vm), name);
    if (ipw_worker_codec_add(L, first, n, &message, &err)) {
        ipw_buf_release(&message);
        if (!op) unlink_pending(r, p);
        return luaL_error(L, "%s: %s", name, err.text);
    }
    if (op) {
        ipw_message_channel_send(r->channel, message.data, message.len);
        op->sent = true;
        ipw_buf_release(&message);
        return ipw_op_await(L);
    }
    n = ask(r, p, &message);
    ipw_buf_release(&message);
    if (n == IPW_WORKER_CODEC_RESULT) note_tool(L, name);
    lua_settop(L, 0);
    n = push_answer(L, n, &r->answer);
    /* Both return the tool call that the task is in from now on. */
    if (strcmp(name, "tool.start") == 0 || strcmp(name, "tool.finish") == 0)
        ipw_task_set_tool(vm, (int32_t)lua_tointeger(L, 1));
    return n;
}

/* A function of the core.  Upvalues: its name, whether it waits. */
static int call_core(lua_State *L)
{
    return call(L, lua_tostring(L, lua_upvalueindex(1)), lua_toboolean(L, lua_upvalueindex(2)));
}

static int link_call(lua_State *L, const char *name) { return call(L, name, false); }

static void link_open(lua_State *L, const char *module)
{
    const char *m, *names;

    for (size_t i = 0; computing[i]; i++)
        if (strcmp(computing[i], module) == 0) return;
    for (size_t k = 0; (names = ipw_worker_codec_forwarded(k, &m)); k++) {
        if (strcmp(m, module)) continue;
        for (const char *at = names; *at; at += strspn(at, "* ")) {
            size_t n = strcspn(at, "* ");
            lua_pushlstring(L, at, n);
            lua_pushfstring(L, "%s.%s", module, lua_tostring(L, -1));
            lua_pushboolean(L, at[n] == '*');
            lua_pushcclosure(L, call_core, 2);
            lua_rawset(L, -3);
            at += n;
        }
        return;
    }
    luaL_error(L, "ipw.core.%s is not for untrusted scripts", module);
}

/* ---- scripts and the log ---- */

/* Requests a text by name from the core. */
static int ask_text(struct worker *r, const char *function, const char *name, struct ipw_buf *out,
                    struct ipw_err *err)
{
    struct ipw_buf message = IPW_BUF(64 * IPW_KIB);
    struct pending p;
    const char *at;
    uint32_t n;

    expect(r, &p, NULL);
    begin_call(&message, p.number, false, 0, function);
    ipw_worker_codec_add_text(&message, name, strlen(name));
    ask(r, &p, &message);
    ipw_buf_release(&message);
    at = ipw_buf_str(&r->answer);
    if (r->answer.len >= 5 && at[0] == 's') {
        memcpy(&n, at + 1, sizeof n);
        if (n > r->answer.len - 5) n = (uint32_t)(r->answer.len - 5);
        if (p.kind == IPW_WORKER_CODEC_RESULT) return ipw_buf_add(out, at + 5, n);
        return ipw_fail(err, IPW_ENOTFOUND, "%.*s", (int)n, at + 5);
    }
    return ipw_fail(err, IPW_ENOTFOUND, "%s: the core refused", name);
}

static void link_module(lua_State *L, const char *name, char *path, size_t size)
{
    struct ipw_buf text = IPW_BUF(4 * IPW_KIB);
    struct ipw_err err = {0};
    int rc = ask_text(worker_of(L), "script.module", name, &text, &err);

    snprintf(path, size, "%s", ipw_buf_str(&text));
    ipw_buf_release(&text);
    if (rc) luaL_error(L, "%s", err.text);
}

static int link_source(lua_State *L, const char *path, struct ipw_buf *out, struct ipw_err *err)
{
    return ask_text(worker_of(L), "script.source", path, out, err);
}

static void link_log(lua_State *L, const char *text)
{
    struct ipw_buf message = IPW_BUF(64 * IPW_KIB);

    ipw_worker_codec_begin(&message, IPW_WORKER_CODEC_LOG, 0);
    ipw_buf_add(&message, text, strnlen(text, 32 * IPW_KIB));
    ipw_message_channel_send(worker_of(L)->channel, message.data, message.len);
    ipw_buf_release(&message);
}

static const struct ipw_host_worker link_to_core = {link_call, link_open, link_module, link_source,
                                                    link_log};

/* ---- the life of a worker ---- */

static void send_end(struct worker *r, const struct ipw_buf *json)
{
    struct ipw_buf message = IPW_BUF(IPW_WORKER_CODEC_MAX);

    ipw_worker_codec_begin(&message, IPW_WORKER_CODEC_DONE, 0);
    ipw_buf_add(&message, json->data, json->len);
    ipw_message_channel_send(r->channel, message.data, message.len);
    ipw_message_channel_flush(r->channel);
    ipw_buf_release(&message);
    _exit(0); /* there is nothing to clean up */
}

static void agent_over(void *ud, const struct ipw_agent_result *result)
{
    struct ipw_buf json = IPW_BUF(IPW_WORKER_CODEC_MAX - 64);
    struct ipw_jw w;

    ipw_jw_init(&w, &json);
    ipw_jw_obj(&w);
    ipw_jw_kbool(&w, "completed", result->completed);
    ipw_jw_kint(&w, "cpu_ns", result->lua_cpu_ns);
    ipw_jw_kstr(&w, "error", result->error);
    ipw_jw_kstr(&w, "outcome", result->outcome);
    ipw_jw_kint(&w, "peak_bytes", (int64_t)result->lua_peak_bytes);
    ipw_jw_kstr(&w, "response", result->response);
    ipw_jw_kstr(&w, "source", result->source);
    ipw_jw_kstr(&w, "traceback", result->traceback);
    ipw_jw_obj_end(&w);
    send_end(ud, &json);
}

static void fail(struct worker *r, const struct ipw_err *err)
{
    agent_over(r, &(struct ipw_agent_result){.outcome = "error", .error = err->text});
}

static void inspect(struct worker *r)
{
    struct ipw_buf json = IPW_BUF(64 * IPW_KIB);
    struct ipw_err err = {0};
    struct ipw_jw w;

    if (ipw_agent_read(&r->info, &r->host, &err)) fail(r, &err);
    ipw_jw_init(&w, &json);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "about", r->info.about);
    ipw_jw_kint(&w, "max_turns", r->info.max_turns);
    ipw_jw_kstr(&w, "name", r->info.name);
    ipw_jw_obj_end(&w);
    send_end(r, &json);
}

static char *text_of(const struct ipw_json *object, const char *name)
{
    return (char *)ipw_json_str(ipw_json_get(object, name), NULL);
}

static void read_start(struct worker *r, const struct ipw_json *doc)
{
    const struct ipw_json *tools = ipw_json_get(doc, "tools"), *files = ipw_json_get(doc, "files");
    size_t n = 0;

    snprintf(r->info.path, sizeof r->info.path, "%s", text_of(doc, "path"));
    snprintf(r->info.name, sizeof r->info.name, "%s", text_of(doc, "name"));
    r->config = (struct ipw_agent_config){
        .max_turns = ipw_json_int(ipw_json_get(doc, "max_turns"), 0),
        .temperature = ipw_json_num(ipw_json_get(doc, "temperature"), NAN),
        .seed = ipw_json_int(ipw_json_get(doc, "seed"), INT64_MIN),
        .max_tokens = ipw_json_int(ipw_json_get(doc, "max_tokens"), -1),
        .memory_bytes = (size_t)ipw_json_int(ipw_json_get(doc, "memory_bytes"), 0),
        .slice_cpu_ns = ipw_json_int(ipw_json_get(doc, "slice_cpu_ns"), 0)};
    if (tools) {
        r->tools = ipw_calloc(ipw_json_count(tools) + 1, sizeof *r->tools);
        for (const struct ipw_json *t = ipw_json_first(tools); t; t = ipw_json_next(t))
            r->tools[n++] = ipw_json_str(t, "");
        r->config.tools = r->tools;
    }
    r->query = (struct ipw_case){.id = text_of(doc, "id"),
                                 .prompt = text_of(doc, "prompt"),
                                 .system = text_of(doc, "system"),
                                 .level = text_of(doc, "level"),
                                 .metadata = text_of(doc, "metadata"),
                                 .number = ipw_json_int(ipw_json_get(doc, "number"), 0)};
    if (!files) return;
    r->query.files = ipw_calloc(ipw_json_count(files) + 1, sizeof *r->query.files);
    for (const struct ipw_json *f = ipw_json_first(files); f; f = ipw_json_next(f))
        r->query.files[r->query.n_files++].name = (char *)ipw_json_str(f, "");
}

static void start(struct worker *r, const char *bytes, size_t n)
{
    struct ipw_err err = {0};

    if (r->start) return;
    if (ipw_json_parse(&r->start, bytes, n, NULL, &err)) {
        fail(r, &err);
        return;
    }
    read_start(r, r->start);
    if (ipw_json_bool(ipw_json_get(r->start, "inspect"), false)) inspect(r);
    if (ipw_agent_start(&r->agent, &r->info, &r->config, &r->query, &r->host, agent_over, r, &err))
        fail(r, &err);
}

static void on_message(void *ud, const char *bytes, size_t n)
{
    struct worker *r = ud;
    uint32_t number;
    int kind = ipw_worker_codec_head(bytes, n, &number);

    bytes += IPW_WORKER_CODEC_HEAD;
    n -= IPW_WORKER_CODEC_HEAD;
    if (kind == IPW_WORKER_CODEC_START) start(r, bytes, n);
    if (kind == IPW_WORKER_CODEC_STOP && r->agent && !r->stop_reason) {
        r->stop_reason = ipw_memdup(bytes, n);
        ipw_agent_cancel(r->agent, r->stop_reason);
    }
    if (kind == IPW_WORKER_CODEC_RESULT || kind == IPW_WORKER_CODEC_ERROR ||
        kind == IPW_WORKER_CODEC_PIECE)
        take_answer(r, kind, number, bytes, n);
}

static void on_close(void *ud, const char *why)
{
    (void)ud, (void)why;
    _exit(1);
}

int ipw_worker_main(int fd)
{
    struct worker r = {.host.model = {.seed = INT64_MIN, .max_tokens = -1, .temperature = NAN}};
    struct ipw_err err = {0};

    clearenv();
    ipw_installed_off(); /* the core says which files the scripts get */
    if (ipw_loop_new(&r.loop, &err)) return 1;
    r.host.loop = r.loop;
    r.host.name = "worker";
    r.host.worker = &link_to_core;
    r.channel =
        ipw_message_channel_open(r.loop, fd, IPW_WORKER_CODEC_MAX,
                                 &(struct ipw_message_channel_callbacks){on_message, on_close, &r});
    ipw_log_set_level(IPW_LOG_ERROR);
    if (ipw_confined_enter(&err)) fail(&r, &err);
    ipw_loop_run(r.loop);
    return 0;
}
