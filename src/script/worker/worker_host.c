#include "script/worker/worker_host.h"

#include <lauxlib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/confined.h"
#include "json/jsonl.h"
#include "script/file_hashes.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/sandbox.h"
#include "script/search.h"
#include "script/task.h"
#include "script/value.h"
#include "script/vm_priv.h"
#include "script/worker/worker_codec.h"

enum { MAX_CALLS = 20000, MAX_SCRIPT_BYTES = 4 * 1024 * 1024, CPU_S = 65 };
#define GRACE_NS      (2 * IPW_NS_PER_S)
#define ADDRESS_BYTES (1024 * IPW_MIB) /* besides the heap: the binary, its libraries, messages */

struct call {
    struct ipw_worker_host *host;
    struct ipw_task *task; /* NULL once it has ended */
    uint32_t number;
    bool forgotten; /* the worker no longer wants the answer */
    struct call *prev, *next;
};

struct ipw_worker_host {
    struct ipw_loop *loop;
    struct ipw_vm *vm;
    struct ipw_confined *worker; /* NULL once it has ended */
    struct ipw_timer *grace;
    struct call *calls;
    size_t n_calls;
    struct ipw_buf said;
    bool has_said;
    const char *refused; /* why it was killed: static text */
    void (*on_end)(void *ud, const struct ipw_worker_host_end *end);
    void *ud;
};

/* Addresses serve as registry keys, which are unique. */
static const char functions_key, granted_key;

/* ---- calls that a worker can make ---- */

/* Lets the worker read this script. [0, 0, m] */
static void grant(lua_State *L, const char *path)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &granted_key);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, path);
    lua_pop(L, 1);
}

/* module(name): its path. */
static int script_module(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    char path[1024];
    enum ipw_found found = ipw_search_module(&ipw_vm_of(L)->options, name, path, sizeof path);

    if (!found) return ipw_search_fail(L, name);
    if (found == IPW_FOUND_NATIVE)
        return luaL_error(L, "module '%s' is native code, which is not for untrusted scripts",
                          name);
    grant(L, path);
    lua_pushstring(L, path);
    return 1;
}

struct text_box {
    struct ipw_buf text;
};

static int text_box_release(lua_State *L)
{
    ipw_buf_release(&((struct text_box *)lua_touserdata(L, 1))->text);
    return 0;
}

/* source(path): the text of a script that was found for the worker before. */
static int script_source(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct text_box *box;
    struct ipw_err err;

    lua_rawgetp(L, LUA_REGISTRYINDEX, &granted_key);
    if (lua_getfield(L, -1, path) != LUA_TBOOLEAN)
        return luaL_error(L, "%s: not a script that was looked for", path);
    box = ipw_value_push_box(L, sizeof *box, "ipw.text_box", text_box_release);
    ipw_buf_init(&box->text, MAX_SCRIPT_BYTES);
    if (ipw_file_read(&box->text, path, &err)) return luaL_error(L, "%s", err.text);
    ipw_file_hashes_note(path, ipw_buf_str(&box->text), box->text.len);
    lua_pushlstring(L, ipw_buf_str(&box->text), box->text.len);
    ipw_buf_release(&box->text);
    return 1;
}

/* Whether the file is below the folder, after links are resolved. */
static bool is_below(const char *path, const char *folder)
{
    char *real = realpath(path, NULL), *root = folder ? realpath(folder, NULL) : NULL;
    size_t n = root ? strlen(root) : 0;
    bool is = real && root && strncmp(real, root, n) == 0 && (real[n] == '/' || n == 1);

    free(real);
    free(root);
    return is;
}

/* A name is only looked up in the folders of scripts.  A path can lead to any file, such as a file
 * of keys, so it must be a path of the command line, or a script below these folders. */
static bool may_read(lua_State *L, const char *name, const char *path, const char *const *tools)
{
    const struct ipw_vm_options *o = &ipw_vm_of(L)->options;
    size_t n = strlen(path);
    bool below;

    if (!strchr(name, '/') || strncmp(path, "builtin:", 8) == 0) return true;
    for (; tools && *tools; tools++)
        if (strcmp(*tools, name) == 0) return true;
    if (n < 4 || strcmp(path + n - 4, ".lua")) return false;
    below = o->script_dir && is_below(path, o->script_dir);
    for (size_t i = 0; !below && o->paths && o->paths[i]; i++) below = is_below(path, o->paths[i]);
    return below;
}

/* tool.find; the worker can then read the file. Upvalues: the function itself, the tools of the
 * command line. */
static int tool_find(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1), *path;

    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 2); // name... path why
    path = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
    if (path && !may_read(L, name, path, lua_touserdata(L, lua_upvalueindex(2)))) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s: no script below the folders of this one", name);
    } else if (path) {
        grant(L, path);
    }
    return 2;
}

/* Adds the functions of one module to the table at the top, as "module.name". [0, 0, e] */
static void add_module(lua_State *L, const char *module, const char *names,
                       const char *const *tools)
{
    lua_getglobal(L, "require");
    lua_pushfstring(L, "ipw.core.%s", module);
    lua_call(L, 1, 1); // functions module
    for (const char *at = names; *at; at += strspn(at, "* ")) {
        size_t n = strcspn(at, "* ");
        lua_pushlstring(L, at, n);
        lua_pushfstring(L, "%s.%s", module, lua_tostring(L, -1)); // functions module name full
        lua_insert(L, -2);
        lua_rawget(L, -3); // functions module full function
        if (strcmp(lua_tostring(L, -2), "tool.find") == 0) {
            lua_pushlightuserdata(L, (void *)tools);
            lua_pushcclosure(L, tool_find, 2);
        }
        lua_rawset(L, -4); // functions module
        at += n;
    }
    lua_pop(L, 1);
}

/* open(light userdata: the host's options) */
static int open_protected(lua_State *L)
{
    const struct ipw_worker_host_options *options = lua_touserdata(L, 1);
    static const char *const clocks[] = {"time", "clock", "date"};
    const char *module, *names;

    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &granted_key);
    grant(L, options->path);
    lua_newtable(L); // functions
    for (size_t k = 0; (names = ipw_worker_codec_forwarded(k, &module)); k++)
        add_module(L, module, names, options->tools);
    lua_getglobal(L, "os");
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        lua_getfield(L, -1, clocks[i]);
        lua_pushfstring(L, "os.%s", clocks[i]);
        lua_insert(L, -2);
        lua_rawset(L, -4); // functions os
    }
    lua_pop(L, 1);
    lua_pushcfunction(L, script_module);
    lua_setfield(L, -2, "script.module");
    lua_pushcfunction(L, script_source);
    lua_setfield(L, -2, "script.source");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &functions_key);
    return 0;
}

/* ---- calls ---- */

static void send(struct ipw_worker_host *w, const struct ipw_buf *message)
{
    if (w->worker) ipw_confined_send(w->worker, message->data, message->len);
}

static void send_text(struct ipw_worker_host *w, enum ipw_worker_message kind, uint32_t call,
                      const char *text)
{
    struct ipw_buf message = IPW_BUF(64 * IPW_KIB);

    ipw_worker_codec_begin(&message, kind, call);
    if (kind == IPW_WORKER_CODEC_ERROR)
        ipw_worker_codec_add_text(&message, text, strlen(text));
    else
        ipw_buf_adds(&message, text);
    send(w, &message);
    ipw_buf_release(&message);
}

static void call_over(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                      int nresults, const struct ipw_err *err)
{
    struct call *call = ud;
    struct ipw_worker_host *w = call->host;
    struct ipw_buf message = IPW_BUF(IPW_WORKER_CODEC_MAX);
    struct ipw_err why = {0};

    (void)task;
    if (!call->forgotten) {
        ipw_worker_codec_begin(
            &message, end == IPW_TASK_DONE ? IPW_WORKER_CODEC_RESULT : IPW_WORKER_CODEC_ERROR,
            call->number);
        if (nresults == 0 && end != IPW_TASK_DONE)
            send_text(w, IPW_WORKER_CODEC_ERROR, call->number, err->text);
        else if (ipw_worker_codec_add(co, lua_gettop(co) - nresults + 1, nresults, &message, &why))
            send_text(w, IPW_WORKER_CODEC_ERROR, call->number, why.text);
        else
            send(w, &message);
    }
    ipw_buf_release(&message);
    if (call->prev)
        call->prev->next = call->next;
    else
        w->calls = call->next;
    if (call->next) call->next->prev = call->prev;
    w->n_calls--;
    free(call);
}

struct incoming {
    const char *name, *values;
    size_t n;
    struct call *call;
};

/* on_text(piece, kind) on this side.  Upvalue: the call; it lives as long as its task, which calls
 * this function. */
static int send_piece(lua_State *L)
{
    struct call *call = lua_touserdata(L, lua_upvalueindex(1));
    struct ipw_buf message = IPW_BUF(IPW_WORKER_CODEC_MAX);
    struct ipw_err err = {0};
    int rc;

    ipw_worker_codec_begin(&message, IPW_WORKER_CODEC_PIECE, call->number);
    rc = ipw_worker_codec_add(L, 1, lua_gettop(L), &message, &err);
    if (!rc && !call->forgotten) send(call->host, &message);
    ipw_buf_release(&message);
    return rc ? luaL_error(L, "%s", err.text) : 0;
}

/* The worker sends `true` for an on_text, because a function cannot be sent. */
static void answer_in_pieces(lua_State *L, int request, struct call *call)
{
    if (!lua_istable(L, request)) return;
    lua_pushliteral(L, "on_text");
    if (lua_rawget(L, request) == LUA_TBOOLEAN && lua_toboolean(L, -1)) {
        lua_pushliteral(L, "on_text");
        lua_pushlightuserdata(L, call);
        lua_pushcclosure(L, send_piece, 1);
        lua_rawset(L, request);
    }
    lua_pop(L, 1);
}

/* prepare(light userdata): leaves the function and its arguments. */
static int prepare_call(lua_State *L)
{
    const struct incoming *in = lua_touserdata(L, 1);
    int n;

    lua_settop(L, 0);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &functions_key);
    if (lua_getfield(L, -1, in->name) != LUA_TFUNCTION)
        return luaL_error(L, "%s: no such function", in->name);
    lua_remove(L, 1);
    n = ipw_worker_codec_push(L, in->values, in->n);
    if (n && strcmp(in->name, "llm.chat") == 0) answer_in_pieces(L, 2, in->call);
    return 1 + n;
}

/* Ends a worker that broke the protocol, without an answer. */
static void refuse(struct ipw_worker_host *w)
{
    if (w->refused) return;
    w->refused = "the worker broke the protocol";
    ipw_timer_cancel(w->grace);
    w->grace = NULL;
    ipw_worker_host_cancel(w, w->refused);
}

/* A call's message: whether it is inside of a tool that is recorded as a whole, the span of the
 * tool call around it (worker_main.c), the function's name, its arguments. */
static void start_call(struct ipw_worker_host *w, uint32_t number, const char *bytes, size_t n)
{
    int32_t tool = 0;
    const size_t head = 1 + sizeof tool;
    const char *name = bytes + head;
    size_t name_n = n > head ? strnlen(name, n - head) : 0;
    lua_State *L = ipw_vm_lua(w->vm);
    int top = lua_gettop(L), nargs;
    struct ipw_err err = {0};
    struct call *call;
    struct incoming in;

    if (n <= head || name_n == n - head || w->n_calls == MAX_CALLS) {
        refuse(w);
        return;
    }
    memcpy(&tool, bytes + 1, sizeof tool);
    call = ipw_calloc(1, sizeof *call);
    call->host = w;
    call->number = number;
    in = (struct incoming){name, name + name_n + 1, n - head - name_n - 1, call};
    lua_pushcfunction(L, prepare_call);
    lua_pushlightuserdata(L, &in);
    if (ipw_vm_call(w->vm, 1, LUA_MULTRET, &err)) {
        send_text(w, IPW_WORKER_CODEC_ERROR, number, err.text);
        free(call);
        return;
    }
    nargs = lua_gettop(L) - top - 1;
    if (ipw_task_start(&call->task, w->vm, nargs, call_over, call, &err)) {
        send_text(w, IPW_WORKER_CODEC_ERROR, number, err.text);
        free(call);
        return;
    }
    ipw_task_place(call->task, tool, bytes[0] != 0);
    call->next = w->calls;
    if (w->calls) w->calls->prev = call;
    w->calls = call;
    w->n_calls++;
}

static void cancel_call(struct ipw_worker_host *w, uint32_t number)
{
    for (struct call *c = w->calls; c; c = c->next) {
        if (c->number != number || c->forgotten) continue;
        c->forgotten = true;
        ipw_task_cancel(c->task,
                        "cancelled"); /* this can end the task and remove it from the list */
        return;
    }
}

/* Each call can end at once and leave the list. */
static void cancel_calls(struct ipw_worker_host *w, const char *reason)
{
    for (struct call *c = w->calls, *next; c; c = next) {
        next = c->next;
        ipw_task_cancel(c->task, reason);
    }
}

/* ---- the worker ---- */

static void grace_over(void *ud);

static void on_message(void *ud, const char *bytes, size_t n)
{
    struct ipw_worker_host *w = ud;
    uint32_t call;
    int kind = ipw_worker_codec_head(bytes, n, &call);

    if (w->has_said || w->refused) return;
    bytes += IPW_WORKER_CODEC_HEAD;
    n -= IPW_WORKER_CODEC_HEAD;
    switch (kind) {
    case IPW_WORKER_CODEC_CALL: start_call(w, call, bytes, n); break;
    case IPW_WORKER_CODEC_CANCEL: cancel_call(w, call); break;
    case IPW_WORKER_CODEC_LOG: {
        struct ipw_buf line = IPW_BUF(64 * IPW_KIB);
        ipw_text_printable(&line, bytes, n, 0);
        ipw_log(IPW_LOG_INFO, "%s", ipw_buf_str(&line));
        ipw_buf_release(&line);
        break;
    }
    case IPW_WORKER_CODEC_DONE:
        w->has_said = true;
        ipw_buf_add(&w->said, bytes, n);
        if (!w->grace) w->grace = ipw_timer_start(w->loop, GRACE_NS, grace_over, w);
        break;
    default: refuse(w);
    }
}

static void on_exit_(void *ud, int exit_code, int term_signal, int64_t cpu_ns)
{
    struct ipw_worker_host *w = ud;
    struct ipw_worker_host_end end = {.cpu_ns = cpu_ns, .cpu = term_signal == SIGXCPU};
    char error[160];

    w->worker = NULL;
    ipw_timer_cancel(w->grace);
    w->grace = NULL;
    cancel_calls(w, "cancelled");
    if (w->refused)
        snprintf(error, sizeof error, "%s", w->refused);
    else if (end.cpu)
        snprintf(error, sizeof error, "the script passed its CPU limit");
    else if (term_signal)
        snprintf(error, sizeof error, "the script's process was ended by signal %d (%s)",
                 term_signal, strsignal(term_signal));
    else
        snprintf(error, sizeof error, "the script's process ended by itself with status %d",
                 exit_code);
    if (w->has_said && !w->refused) {
        end.said = ipw_buf_str(&w->said);
        end.said_n = w->said.len;
    } else {
        end.error = error;
    }
    w->on_end(w->ud, &end);
}

/* The script did not end by itself in time. */
static void grace_over(void *ud)
{
    struct ipw_worker_host *w = ud;

    w->grace = NULL;
    ipw_confined_kill(w->worker);
    on_exit_(w, -1, SIGKILL, -1);
}

void ipw_worker_host_cancel(struct ipw_worker_host *w, const char *reason)
{
    if (!w->worker || w->grace) return;
    w->grace = ipw_timer_start(w->loop, w->refused ? 0 : GRACE_NS, grace_over, w);
    send_text(w, IPW_WORKER_CODEC_STOP, 0, reason); /* before the answers: it is sticky */
    cancel_calls(w, reason);
}

int ipw_worker_host_start(struct ipw_worker_host **out,
                          const struct ipw_worker_host_options *options, struct ipw_err *err)
{
    const struct ipw_host *host = options->vm->host;
    size_t heap = options->vm->memory_bytes ? options->vm->memory_bytes : 64 * IPW_MIB;
    struct ipw_worker_host *w = ipw_calloc(1, sizeof *w);
    struct ipw_buf message = IPW_BUF(IPW_WORKER_CODEC_MAX);
    lua_State *L;
    int rc;

    w->loop = host->loop;
    w->on_end = options->on_end;
    w->ud = options->ud;
    ipw_buf_init(&w->said, IPW_WORKER_CODEC_MAX);
    rc = ipw_sandbox_open(&w->vm, options->vm, err);
    if (rc) goto fail;
    L = ipw_vm_lua(w->vm);
    lua_pushcfunction(L, open_protected);
    lua_pushlightuserdata(L, (void *)options);
    rc = ipw_vm_call(w->vm, 1, 0, err);
    if (rc) goto fail;
    rc =
        ipw_confined_start(&w->worker, w->loop,
                           &(struct ipw_confined_options){.memory_bytes = 4 * heap + ADDRESS_BYTES,
                                                          .cpu_s = CPU_S,
                                                          .message_max_bytes = IPW_WORKER_CODEC_MAX,
                                                          .on_message = on_message,
                                                          .on_exit = on_exit_,
                                                          .ud = w},
                           err);
    if (rc) goto fail;
    ipw_worker_codec_begin(&message, IPW_WORKER_CODEC_START, 0);
    ipw_buf_add(&message, options->start, options->start_n);
    send(w, &message);
    ipw_buf_release(&message);
    *out = w;
    return 0;
fail:
    ipw_sandbox_close(w->vm);
    free(w);
    return rc;
}

void ipw_worker_host_free(struct ipw_worker_host *w)
{
    if (!w) return;
    ipw_confined_kill(w->worker);
    w->worker = NULL;
    ipw_timer_cancel(w->grace);
    for (struct call *c = w->calls, *next; c; c = next) {
        next = c->next;
        ipw_task_orphan(c->task);
        free(c);
    }
    ipw_sandbox_close(w->vm);
    ipw_buf_release(&w->said);
    free(w);
}
