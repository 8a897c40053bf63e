/* ipw.core.child: child processes.
 *
 * A child is a number in a list of its state, which ends those that are left when it is closed.  It
 * stays and is talked to line by line, or it is *run*: its input is given at once, its output is
 * kept, and wait() takes both streams when it has ended.
 *
 * The lines of one that stays wait in a buffer until receive() takes them; a child that says more
 * waits itself.  Several tasks can wait for answers of one child (JSON-RPC): each line goes to the
 * one that waits for its number, every other line to the one that waits longest. */
#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/proc.h"
#include "json/json.h"
#include "script/fields.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/recorded_effect.h"
#include "script/task.h"
#include "script/tool_call.h"
#include "script/value.h"
#include "script/vm.h"

enum { MAX_ARGS = 256, MAX_STAYING = 32, SERVER_CPU_S = 3600 };
#define LINE_MAX_BYTES      (16 * IPW_MIB)
#define UNREAD_MAX_BYTES    (1 * IPW_MIB)     /* a longer line alone is still read */
#define SERVER_MEMORY_BYTES ((size_t)1 << 40) /* node reserves far more than it uses */
#define LIFE_NS             (100000000 * IPW_NS_PER_S)

struct receive_op;

struct child {
    struct ipw_proc *proc; /* NULL: it has ended */
    struct ipw_loop *loop;
    struct ipw_timer *look;  /* counts the workspace while the child runs */
    const char *folder;      /* the workspace; owned by the host */
    struct ipw_quota *quota; /* it knows of the child, and not yet of its end; or NULL */
    struct ipw_buf said;     /* from `taken` on: unread */
    size_t taken, searched;
    bool open, too_long;
    char *end;                  /* how it ended, for messages; of one that is run: its failure */
    struct receive_op *waiters; /* those that wait longest first */
    bool run;
    struct ipw_op *wait;           /* for its end; or NULL */
    struct ipw_proc_result result; /* of one that is run; its texts are ours */
};

struct children {
    struct child **list; /* a place is used again */
    size_t n, cap, staying;
};

/* ---- the child's side ---- */

struct receive_op {
    struct ipw_op op;
    struct child *child;
    struct ipw_timer *timer;
    int64_t effect;
    int64_t id; /* of the answer that is awaited; 0: any line */
    /* What came: a line, or why there is none and a word for it. */
    char *line, *why;
    const char *word;
    size_t n;
    struct receive_op *next;
};

/* The end of the next line, or NULL. */
static const char *line_end(struct child *c)
{
    const char *s = ipw_buf_str(&c->said), *hit;

    if (c->searched < c->taken) c->searched = c->taken;
    hit = memchr(s + c->searched, '\n', c->said.len - c->searched);
    if (!hit) c->searched = c->said.len;
    return hit;
}

/* Takes the operation from those that wait. */
static void leave(struct receive_op *op)
{
    struct receive_op **at = &op->child->waiters;

    while (*at && *at != op) at = &(*at)->next;
    if (*at) *at = op->next;
    ipw_timer_cancel(op->timer);
    op->timer = NULL;
}

static void wake(struct receive_op *op, const char *why, const char *word)
{
    leave(op);
    op->why = ipw_strdup(why);
    op->word = word;
    ipw_op_done(&op->op);
}

/* The one that waits for the answer in this line; or that waits longest. */
static struct receive_op *whose(struct child *c, const char *line, size_t n)
{
    struct receive_op *op = c->waiters;
    struct ipw_json *doc = NULL;
    int64_t id;

    if (!op->next || ipw_json_parse(&doc, line, n, NULL, NULL)) return op;
    id = ipw_json_get(doc, "method") ? 0 : ipw_json_int(ipw_json_get(doc, "id"), 0);
    ipw_json_free(doc);
    while (op && (!id || op->id != id)) op = op->next;
    return op ? op : c->waiters;
}

/* Gives the lines that came to those that wait.  Each runs on at once, and can end the child. */
static void deliver(struct child *c)
{
    const char *end;

    while (c->waiters && (end = line_end(c))) {
        const char *from = ipw_buf_str(&c->said) + c->taken;
        size_t n = (size_t)(end - from);
        struct receive_op *op = whose(c, from, n);

        c->taken += n + 1;
        op->n = n > 0 && from[n - 1] == '\r' ? n - 1 : n;
        op->line = ipw_memdup(from, op->n);
        if (c->proc && !c->too_long && c->said.len - c->taken < UNREAD_MAX_BYTES)
            ipw_proc_rest_output(c->proc, false);
        wake(op, NULL, NULL);
    }
    while (c->waiters && c->too_long) wake(c->waiters, "a line of more than 16 MiB", "too_long");
    while (c->waiters && !c->proc) wake(c->waiters, c->end, "gone");
}

static void on_output(void *ud, const char *bytes, size_t n)
{
    struct child *c = ud;

    if (c->too_long) return;
    if (c->taken) { /* makes room */
        memmove(c->said.data, c->said.data + c->taken, c->said.len - c->taken);
        c->said.len -= c->taken;
        c->searched -= c->searched < c->taken ? c->searched : c->taken;
        c->taken = 0;
    }
    if (ipw_buf_add(&c->said, bytes, n)) c->too_long = true;
    if (c->said.len > UNREAD_MAX_BYTES && (c->too_long || line_end(c)))
        ipw_proc_rest_output(c->proc, true);
    deliver(c);
}

static void leave_quota(struct child *c)
{
    ipw_timer_cancel(c->look);
    c->look = NULL;
    if (c->quota) ipw_quota_child_ended(c->quota);
    c->quota = NULL;
}

static void run_over(struct child *c)
{
    if (c->wait) ipw_op_done(c->wait);
    c->wait = NULL;
}

/* If the child has filled the workspace, this ends it and everything that it started. */
static void look(void *ud)
{
    struct child *c = ud;
    struct ipw_err err;
    int64_t again_ns;

    c->look = NULL;
    if (!ipw_quota_look(c->quota, c->folder, c->proc, &again_ns, &err)) {
        if (again_ns) c->look = ipw_timer_start(c->loop, again_ns, look, c);
        return;
    }
    ipw_proc_cancel(c->proc);
    c->proc = NULL;
    leave_quota(c);
    c->end = ipw_strdup(err.text);
    run_over(c);
    deliver(c);
}

static void on_run_done(void *ud, const struct ipw_proc_result *r)
{
    struct child *c = ud;

    c->proc = NULL;
    leave_quota(c);
    c->result = *r;
    c->result.out = ipw_memdup(r->out, r->out_len);
    c->result.err = ipw_memdup(r->err, r->err_len);
    run_over(c);
}

static void on_done(void *ud, const struct ipw_proc_result *r)
{
    struct child *c = ud;
    const char *said = r->err + r->err_len;

    while (said > r->err && said[-1] == '\n') said--;
    while (said > r->err && said[-1] != '\n' && r->err + r->err_len - said < 300) said--;
    c->proc = NULL;
    leave_quota(c);
    if (r->exec_errno)
        c->end = ipw_asprintf("it could not be started: %s", strerror(r->exec_errno));
    else if (r->no_sandbox)
        c->end = ipw_asprintf("its sandbox could not be made: see ipw-agent doctor");
    else if (r->term_signal)
        c->end = ipw_asprintf("it was ended by signal %d", r->term_signal);
    else
        c->end = ipw_asprintf("it ended with exit status %d", r->exit_code);
    if (*said) {
        char *whole = ipw_asprintf("%s: %.*s", c->end, (int)strcspn(said, "\n"), said);

        free(c->end);
        c->end = whole;
    }
    deliver(c);
}

/* ---- the list ---- */

static void close_child(struct children *all, struct child *c)
{
    if (c->proc) ipw_proc_cancel(c->proc);
    leave_quota(c);
    all->staying -= c->open && !c->run;
    free(c->end);
    free((void *)c->result.out);
    free((void *)c->result.err);
    ipw_buf_release(&c->said);
    *c = (struct child){0};
}

static int close_all(lua_State *L)
{
    struct children *all = lua_touserdata(L, 1);

    for (size_t i = 0; i < all->n; i++) {
        close_child(all, all->list[i]);
        free(all->list[i]);
    }
    free(all->list);
    *all = (struct children){0};
    return 0;
}

/* The state's list, which it owns. [0, 0, m] */
static struct children *children_of(lua_State *L)
{
    static const char key = 0;
    struct children *all;

    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) != LUA_TUSERDATA) {
        ipw_value_push_box(L, sizeof *all, "ipw.children", close_all);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
        lua_remove(L, -2);
    }
    all = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return all;
}

/* The open child of the number at 1; or NULL. */
static struct child *child_at(lua_State *L)
{
    lua_Integer number = luaL_checkinteger(L, 1);
    const struct children *all = children_of(L);
    struct child *c = number < 1 || (size_t)number > all->n ? NULL : all->list[number - 1];

    return c && c->open ? c : NULL;
}

/* A place in the list: *number counts from 1. */
static struct child *new_child(struct children *all, size_t *number)
{
    size_t i = 0;

    while (i < all->n && all->list[i]->open) i++;
    if (i == all->n) {
        IPW_GROW(all->list, all->cap, all->n + 1);
        all->list[all->n++] = ipw_calloc(1, sizeof **all->list);
    }
    *number = i + 1;
    return all->list[i];
}

/* ---- the calls ---- */

static int why(lua_State *L, const char *text)
{
    lua_pushnil(L);
    lua_pushstring(L, text);
    return 2;
}

/* The program and its arguments from the list at 1, as a NULL-terminated list in a userdata; the
 * strings stay in the table. [0, +1, e] */
static const char *const *push_argv(lua_State *L, const char *who)
{
    lua_Unsigned n = lua_rawlen(L, 1);
    const char **argv = lua_newuserdatauv(L, (MAX_ARGS + 1) * sizeof *argv, 0);

    luaL_argcheck(L, n >= 1 && n <= MAX_ARGS, 1, "expects a program and its arguments");
    for (lua_Unsigned i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, (lua_Integer)i);
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "%s: argument %d: expected a string, got %s", who, (int)i,
                       luaL_typename(L, -1));
        if (strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1))
            luaL_error(L, "%s: argument %d has a NUL in it", who, (int)i);
        argv[i - 1] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    argv[n] = NULL;
    return argv;
}

/* Of a program that is run.  Its input is left on the stack. [0, +1, e] */
static void take_run(lua_State *L, struct ipw_proc_request *r)
{
    r->wall_ns = ipw_s_to_ns(ipw_fields_number(L, 1, "proc.run", "seconds", 0, 0, 1e8));
    r->output_max_bytes = ipw_fields_bytes(L, 1, "proc.run", "output", 0, 0, SIZE_MAX);
    lua_getfield(L, 1, "sandbox");
    r->sandbox = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (lua_getfield(L, 1, "input") != LUA_TNIL && !lua_isstring(L, -1))
        luaL_error(L, "proc.run: input: expected a text, got %s", luaL_typename(L, -1));
    r->input = lua_tolstring(L, -1, &r->input_len);
}

/* A program of the script. [0, +2, e] */
static void take_own(lua_State *L, const struct ipw_host *host, struct ipw_proc_request *r,
                     bool run)
{
    static const char *const of_open[] = {"cpu", "memory", NULL};
    static const char *const of_run[] = {"cpu",     "input",   "memory", "output",
                                         "sandbox", "seconds", NULL};
    const char *who = run ? "proc.run" : "proc.open";

    ipw_fields_take(L, 1, who, run ? of_run : of_open, true);
    r->cpu_s = (int64_t)ceil(ipw_fields_number(L, 1, who, "cpu", 0, 0, 1e8));
    r->memory_bytes = ipw_fields_bytes(L, 1, who, "memory", 0, 0, SIZE_MAX);
    if (run) take_run(L, r);
    r->argv = push_argv(L, who);
    if (!host || !host->grants.may_start)
        luaL_error(L, "%s: %s", who,
                   host && host->grants.no_proc ? host->grants.no_proc : "not granted here");
    r->cwd = ipw_host_workspace(ipw_vm_host(L));
    r->sandbox = r->sandbox || host->grants.sandbox;
    r->reads = host->grants.readable;
}

/* The server of that number; raises if the run has none. [0, 0, e] */
static const struct ipw_host_server *server_at(lua_State *L, int idx)
{
    const struct ipw_host *host = ipw_vm_host(L);
    lua_Integer number = luaL_checkinteger(L, idx);

    if (!host || number < 1 || (size_t)number > host->grants.n_servers)
        luaL_error(L, "mcp:%I: this run has no such server (--mcp)", (LUAI_UACINT)number);
    return &host->grants.servers[number - 1];
}

/* A server of tools: it runs with the user's rights, as the user named it, in the folder of the
 * program.  It gets no key but those that its own settings name. */
static void take_server(lua_State *L, const struct ipw_host_server *s, struct ipw_proc_request *r)
{
    static const char mark[] = "${IPW_WORKSPACE}";
    const char *workspace = ipw_host_workspace(ipw_vm_host(L)), **env, **argv;
    size_t n = 0, n_env = 0;

    while (s->argv[n]) n++;
    while (s->env && s->env[n_env]) n_env++;
    argv = lua_newuserdatauv(L, (n + 1) * sizeof *argv, 0);
    env = lua_newuserdatauv(L, (n_env + 2) * sizeof *env, 0);
    luaL_checkstack(L, (int)(n + n_env) + 8, "too many arguments");
    for (size_t i = 0; i < n; i++)
        argv[i] = luaL_gsub(L, s->argv[i], mark, workspace ? workspace : ".");
    for (size_t i = 0; i < n_env; i++)
        env[i] = luaL_gsub(L, s->env[i], mark, workspace ? workspace : ".");
    env[n_env] = lua_pushfstring(L, "IPW_WORKSPACE=%s", workspace ? workspace : ".");
    argv[n] = env[n_env + 1] = NULL;
    r->argv = argv;
    r->env = env;
    r->cpu_s = SERVER_CPU_S;
    r->memory_bytes = SERVER_MEMORY_BYTES;
}

/* open{program, args..., cpu=, memory=}: the child's number; or nil and why it could not be
 * started.  A program that cannot be executed is reported by receive().  open(number): starts that
 * server of the user.  open({..., input=, output=, sandbox=, seconds=}, true): one that is run.
 * [-2, +(1|2), e] */
static int child_open(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);
    bool run = lua_toboolean(L, 2);
    struct ipw_proc_request request = {
        .wall_ns = LIFE_NS, .on_output = on_output, .output_max_bytes = 64 * IPW_KIB};
    struct children *all = children_of(L);
    struct ipw_quota *quota = NULL;
    struct ipw_err err;
    struct child *c;
    size_t number;
    int rc;

    if (run) request = (struct ipw_proc_request){0};
    lua_settop(L, 1);
    if (lua_isinteger(L, 1)) {
        const struct ipw_host_server *server = server_at(L, 1);

        luaL_argcheck(L, server->argv, 1, "no program");
        take_server(L, server, &request);
    } else {
        take_own(L, host, &request, run);
        quota = &host->grants.quota;
    }
    if (!run && all->staying == MAX_STAYING) return why(L, "more than 32 children are open");
    if (quota && ipw_quota_child_begins(quota, request.cwd, &request.file_bytes, &err))
        return why(L, err.text);
    c = new_child(all, &number);
    rc = ipw_proc_start(&c->proc, host->loop, &request, run ? on_run_done : on_done, c, &err);
    if (rc) {
        if (quota) ipw_quota_child_ended(quota);
        return why(L, err.text);
    }
    if (run)
        ipw_tool_call_child_starts(ipw_vm_of(L));
    else
        ipw_tool_call_child_stays(ipw_vm_of(L));
    all->staying += !run;
    c->quota = quota;
    c->open = true;
    c->run = run;
    c->loop = host->loop;
    c->folder = request.cwd;
    if (quota) c->look = ipw_timer_start(c->loop, IPW_QUOTA_LOOK_NS, look, c);
    ipw_buf_init(&c->said, LINE_MAX_BYTES);
    lua_pushinteger(L, (lua_Integer)number);
    return 1;
}

/* send(number, text): true; or nil and a reason. [-2, +(1|2), e] */
static int child_send(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 2, &n);
    struct child *c = child_at(L);
    struct ipw_err err;

    if (!c) return why(L, "it is closed");
    if (!c->proc) return why(L, c->end);
    ipw_tool_call_child_stays(ipw_vm_of(L));
    if (ipw_proc_write(c->proc, text, n, &err)) return why(L, err.text);
    lua_pushboolean(L, 1);
    return 1;
}

/* close(number): ends the child, if it is open. [-1, 0, e] */
static int child_close(lua_State *L)
{
    struct child *c = child_at(L);

    if (!c) return 0;
    if (c->waiters && !c->waiters->id)
        return luaL_error(L, "a child is closed while a line of it is awaited");
    while (c->waiters) wake(c->waiters, "it was ended", "gone");
    close_child(children_of(L), c);
    return 0;
}

static void receive_late(void *ud)
{
    struct receive_op *op = ud;

    op->timer = NULL;
    wake(op, "no line in time", "timeout");
}

static void receive_cancel(struct ipw_op *base) { leave((struct receive_op *)base); }

static void receive_release(struct ipw_op *base)
{
    struct receive_op *op = (struct receive_op *)base;

    free(op->line);
    free(op->why);
}

/* A line without its end; or nil, a reason and "timeout", "too_long" or "gone". */
static int receive_finish(lua_State *L, struct ipw_op *base)
{
    struct receive_op *op = (struct receive_op *)base;
    int n = op->line ? 1 : 3;

    if (op->line) {
        lua_pushlstring(L, op->line, op->n);
    } else {
        lua_pushnil(L);
        lua_pushstring(L, op->why);
        lua_pushstring(L, op->word);
    }
    ipw_recorded_effect_note(L, op->effect, "child.receive", n);
    return n;
}

/* receive(number, seconds[, id]): the next line; with `id` that answer, or a line that is none.
 * [-3, +(1|3), e] */
static int child_receive(lua_State *L)
{
    double seconds = luaL_checknumber(L, 2);
    lua_Integer id = luaL_optinteger(L, 3, 0);
    struct receive_op *op, **at;
    struct child *c;
    int64_t effect;
    int n;

    luaL_argcheck(L, seconds >= 0 && seconds <= 1e8, 2, "a time from 0");
    effect = ipw_recorded_effect_begin(L);
    if (ipw_recorded_effect_replayed(L, effect))
        return ipw_recorded_effect_wait(L, effect, "child.receive");
    c = child_at(L);
    if (c && c->run) return luaL_error(L, "a child that is run has no lines");
    if (!c || (c->waiters && !id)) {
        why(L, c ? "another task waits for its next line" : "it is closed");
        lua_pushstring(L, c ? "busy" : "gone");
        n = 3;
        ipw_recorded_effect_note(L, effect, "child.receive", n);
        return n;
    }
    op = ipw_op_new(L, sizeof *op, receive_cancel, receive_finish, receive_release);
    ipw_tool_call_child_stays(ipw_vm_of(L));
    op->child = c;
    op->effect = effect;
    op->id = id;
    at = &c->waiters;
    while (*at) at = &(*at)->next;
    *at = op;
    op->timer = ipw_timer_start(ipw_vm_host(L)->loop, ipw_s_to_ns(seconds), receive_late, op);
    deliver(c);
    return ipw_op_await(L);
}

/* ---- the end of one that is run ---- */

struct wait_op {
    struct ipw_op op;
    struct children *all;
    struct child *child;
    int64_t effect;
};

static void wait_cancel(struct ipw_op *base)
{
    struct child *c = ((struct wait_op *)base)->child;

    c->wait = NULL;
    if (c->proc) ipw_proc_cancel(c->proc);
    c->proc = NULL;
    leave_quota(c);
}

static void wait_release(struct ipw_op *base)
{
    struct wait_op *op = (struct wait_op *)base;

    close_child(op->all, op->child);
}

static void push_no_sandbox(lua_State *L, const struct ipw_proc_result *r)
{
    size_t line = 0;

    while (line < r->err_len && r->err[line] != '\n') line++;
    lua_pushfstring(L, "no program was started: the sandbox could not be made (");
    if (line)
        lua_pushlstring(L, r->err, line);
    else
        lua_pushfstring(L, "bwrap: %s",
                        r->exec_errno ? strerror(r->exec_errno) : "it said nothing");
    lua_pushstring(L, "): see ipw-agent doctor, or use --unsafe-tools");
    lua_concat(L, 3);
}

static int push_outcome(lua_State *L, const struct child *c)
{
    const struct ipw_proc_result *r = &c->result;

    if (c->end || r->exec_errno || r->no_sandbox) {
        lua_pushnil(L);
        if (c->end)
            lua_pushstring(L, c->end);
        else if (r->no_sandbox)
            push_no_sandbox(L, r);
        else
            lua_pushstring(L, strerror(r->exec_errno));
        lua_pushboolean(L, !c->end && !r->no_sandbox);
        return 3;
    }
    lua_createtable(L, 0, 8);
    if (r->exit_code >= 0) {
        lua_pushinteger(L, r->exit_code);
        lua_setfield(L, -2, "code");
    }
    if (r->term_signal) {
        lua_pushinteger(L, r->term_signal);
        lua_setfield(L, -2, "signal");
    }
    lua_pushlstring(L, r->out, r->out_len);
    lua_setfield(L, -2, "stdout");
    lua_pushlstring(L, r->err, r->err_len);
    lua_setfield(L, -2, "stderr");
    lua_pushboolean(L, r->timed_out);
    lua_setfield(L, -2, "timed_out");
    lua_pushinteger(L, (lua_Integer)(r->out_dropped + r->err_dropped));
    lua_setfield(L, -2, "dropped");
    lua_pushnumber(L, ipw_ns_to_s(r->end_ns - r->start_ns));
    lua_setfield(L, -2, "seconds");
    return 1;
}

static int wait_finish(lua_State *L, struct ipw_op *base)
{
    struct wait_op *op = (struct wait_op *)base;
    const struct ipw_proc_result *r = &op->child->result;
    struct ipw_vm *vm = ipw_vm_of(L);
    int n = push_outcome(L, op->child);

    if (r->no_sandbox) ipw_tool_call_refused(vm);
    if (!op->child->end) ipw_tool_call_child_ended(vm, r);
    ipw_tool_call_cut(vm, (int64_t)(r->out_dropped + r->err_dropped));
    ipw_recorded_effect_note(L, op->effect, "child.wait", n);
    return n;
}

/* wait(number): how the child that is run ended, and its output; or nil, a reason, and whether it
 * is about the program, which could not be executed.  Its number is free then. [-1, +(1|3), e] */
static int child_wait(lua_State *L)
{
    int64_t effect = ipw_recorded_effect_begin(L);
    struct wait_op *op;
    struct child *c;

    if (ipw_recorded_effect_replayed(L, effect))
        return ipw_recorded_effect_wait(L, effect, "child.wait");
    c = child_at(L);
    if (!c || !c->run || c->wait) return luaL_error(L, "no child that is run");
    op = ipw_op_new(L, sizeof *op, wait_cancel, wait_finish, wait_release);
    op->all = children_of(L);
    op->child = c;
    op->effect = effect;
    if (c->proc)
        c->wait = &op->op;
    else
        op->op.done = true;
    return ipw_op_await(L);
}

/* server(number): what the user wrote of it: its command or address, its name or nil, whether it is
 * an address, the limit of a call in seconds, and whether it works in the query's own folder.
 * [-1, +5, e] */
static int child_server(lua_State *L)
{
    const struct ipw_host_server *s = server_at(L, 1);
    struct ipw_buf where = IPW_BUF(64 * IPW_KIB);

    ipw_host_server_where(&where, s);
    lua_pushstring(L, ipw_buf_str(&where));
    ipw_buf_release(&where);
    lua_pushstring(L, s->name);
    lua_pushboolean(L, s->url != NULL);
    lua_pushnumber(L, s->seconds);
    lua_pushboolean(L, ipw_host_server_in_workspace(s));
    return 5;
}

static int recorded_open(lua_State *L)
{
    return ipw_recorded_effect_call(L, "child.open", child_open);
}

static int recorded_send(lua_State *L)
{
    return ipw_recorded_effect_call(L, "child.send", child_send);
}

int ipw_lib_child(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", recorded_open},
                                         {"send", recorded_send},
                                         {"receive", child_receive},
                                         {"close", child_close},
                                         {"server", child_server},
                                         {"wait", child_wait},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
