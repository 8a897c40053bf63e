#include "script/kept_servers.h"

#include <lauxlib.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "script/sandbox.h"
#include "script/task.h"
#include "script/value.h"

#define MEMORY_BYTES (1024 * IPW_MIB) /* answers of many calls at once */
#define MODULE       "ipw.mcp_kept"

struct ipw_kept_servers {
    struct ipw_host_kept face; /* for the queries */
    struct ipw_host host;
    struct ipw_vm *vm;
    struct ipw_kept_options o;
    bool over; /* open or close has ended, with this: */
    struct ipw_err err;
};

struct call {
    struct ipw_kept_servers *kept;
    struct ipw_task *task;
    size_t number;
    void (*done)(void *ud, const char *answer, size_t n,
                 const struct ipw_err *err); /* NULL: cancelled */
    void *ud;
};

/* A server is kept unless its settings name the query's own folder. */
static bool has(void *ud, size_t number)
{
    const struct ipw_kept_servers *kept = ud;

    return !kept->o.per_query && number >= 1 && number <= kept->host.grants.n_servers &&
           !ipw_host_server_in_workspace(&kept->host.grants.servers[number - 1]);
}

/* ---- what the state does ---- */

struct request {
    const char *name; /* of the function */
    size_t number;    /* 0: neither number nor text */
    const char *text; /* or NULL */
    size_t n;
};

/* push(request, ...): the function and its arguments. [-n, +m, e] */
static int push_request(lua_State *L)
{
    const struct request *r = lua_touserdata(L, 1);

    ipw_value_push_function(L, MODULE, r->name);
    lua_replace(L, 1);
    if (r->number) lua_pushinteger(L, (lua_Integer)r->number);
    if (r->text) lua_pushlstring(L, r->text, r->n);
    return lua_gettop(L);
}

/* Starts a task of the request's function, with the `nargs` values at the top as its first
 * arguments, which are popped. */
static int start(struct ipw_task **out, struct ipw_kept_servers *kept, const struct request *r,
                 int nargs, ipw_task_fn done, void *ud, struct ipw_err *err)
{
    lua_State *L = ipw_vm_lua(kept->vm);
    int before = lua_gettop(L) - nargs, rc;

    ipw_vm_renew_cpu(kept->vm); /* each call has its own CPU time */
    lua_pushcfunction(L, push_request);
    lua_pushlightuserdata(L, (void *)r);
    lua_rotate(L, before + 1, 2);
    rc = ipw_vm_call(kept->vm, nargs + 1, LUA_MULTRET, err);
    return rc ? rc : ipw_task_start(out, kept->vm, lua_gettop(L) - before - 1, done, ud, err);
}

static void set_up(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                   int nresults, const struct ipw_err *err)
{
    struct ipw_kept_servers *kept = ud;

    (void)task, (void)co, (void)nresults;
    if (end != IPW_TASK_DONE) kept->err = *err;
    kept->over = true;
    ipw_loop_stop(kept->o.loop);
}

/* Runs the function to its end. */
static int run(struct ipw_kept_servers *kept, const char *name, int nargs, struct ipw_err *err)
{
    struct ipw_task *task;
    int rc = start(&task, kept, &(struct request){.name = name}, nargs, set_up, kept, err);

    kept->over = false;
    while (!rc && !kept->over) ipw_loop_run(kept->o.loop);
    if (!rc && kept->err.code) {
        *err = kept->err;
        rc = err->code;
    }
    return rc;
}

/* ---- calls ---- */

static void told(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                 int nresults, const struct ipw_err *err)
{
    (void)ud, (void)task, (void)co, (void)nresults;
    if (end == IPW_TASK_FAILED) ipw_log(IPW_LOG_INFO, "an MCP server was not told: %s", err->text);
}

static void answered(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                     int nresults, const struct ipw_err *err)
{
    struct call *call = ud;
    const char *answer = NULL;
    struct ipw_err why;
    size_t n = 0;

    (void)task;
    if (end == IPW_TASK_DONE && nresults > 0) answer = lua_tolstring(co, -nresults, &n);
    if (call->done) {
        call->done(call->ud, answer, n, err);
    } else { /* cancelled: a task of its own can still send */
        struct request r = {.name = "tell_cancelled", .number = call->number};

        if (start(&task, call->kept, &r, 0, told, NULL, &why))
            ipw_log(IPW_LOG_INFO, "an MCP server was not told: %s", why.text);
    }
    free(call);
}

static void *ask(void *ud, size_t number, const char *request, size_t n,
                 void (*done)(void *ud, const char *answer, size_t n, const struct ipw_err *err),
                 void *done_ud)
{
    struct call *call = ipw_calloc(1, sizeof *call);
    struct request r = {.name = "call", .number = number, .text = request, .n = n};
    struct ipw_err err;

    *call = (struct call){.kept = ud, .number = number, .done = done, .ud = done_ud};
    if (!start(&call->task, ud, &r, 0, answered, call, &err)) return call;
    done(done_ud, NULL, 0, &err);
    free(call);
    return NULL;
}

static void cancel(void *ud)
{
    struct call *call = ud;

    call->done = NULL;
    ipw_task_cancel(call->task, "cancelled");
}

/* ---- the whole ---- */

int ipw_kept_servers_open(struct ipw_kept_servers **out, const struct ipw_kept_options *o,
                          struct ipw_err *err)
{
    struct ipw_kept_servers *kept = ipw_calloc(1, sizeof *kept);
    struct ipw_vm_options options = {.memory_bytes = MEMORY_BYTES,
                                     .late_libraries = true,
                                     .slice_cpu_ns = o->config->slice_cpu_ns,
                                     .paths = o->config->paths,
                                     .script_dir = o->agent->dir[0] ? o->agent->dir : NULL,
                                     .host = &kept->host};
    int rc;

    kept->face = (struct ipw_host_kept){has, ask, cancel, kept};
    kept->o = *o;
    kept->host = (struct ipw_host){.loop = o->loop,
                                   .name = "the MCP servers",
                                   .grants = *o->grants,
                                   .on = {.workspace = o->workspace, .ud = o->ud}};
    rc = ipw_sandbox_open(&kept->vm, &options, err);
    if (!rc) rc = ipw_agent_push_tools(kept->vm, o->agent, o->config, err);
    if (!rc) {
        lua_pushboolean(ipw_vm_lua(kept->vm), o->per_query);
        rc = run(kept, "open", 2, err);
    }
    if (!rc) *out = kept;
    if (rc) ipw_kept_servers_close(kept);
    return rc;
}

void ipw_kept_servers_close(struct ipw_kept_servers *kept)
{
    struct ipw_err err = {0};

    if (!kept) return;
    kept->err.code = 0;
    if (kept->vm && run(kept, "close", 0, &err))
        ipw_log(IPW_LOG_WARN, "the MCP servers were not closed in order: %s", err.text);
    ipw_sandbox_close(kept->vm);
    ipw_host_release(&kept->host);
    free(kept);
}

const struct ipw_host_kept *ipw_kept_servers_host(const struct ipw_kept_servers *kept)
{
    return &kept->face;
}
