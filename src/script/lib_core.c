/* ipw.core.run: waiting, time, the log, notes, and parallel branches. */
#include <lauxlib.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/recorded_effect.h"
#include "script/task.h"
#include "script/tostring.h"
#include "script/value.h"
#include "script/vm_priv.h"

enum { MAX_MAP_DEPTH = 100 }; /* the end of one ends those above it, on the C stack */

/* ---- sleep ---- */

struct sleep_op {
    struct ipw_op op;
    struct ipw_timer *timer;
    int64_t effect;
};

static void sleep_over(void *ud)
{
    struct sleep_op *op = ud;

    op->timer = NULL;
    ipw_op_done(&op->op);
}

static void sleep_cancel(struct ipw_op *base)
{
    struct sleep_op *op = (struct sleep_op *)base;

    ipw_timer_cancel(op->timer);
    op->timer = NULL;
}

static int sleep_finish(lua_State *L, struct ipw_op *base)
{
    struct sleep_op *op = (struct sleep_op *)base;

    ipw_recorded_effect_note(L, op->effect, "sleep", 0);
    return 0;
}

/* sleep(seconds): suspends the calling task. [-1, 0, e] */
static int run_sleep(lua_State *L)
{
    double seconds = luaL_checknumber(L, 1);
    struct sleep_op *op;
    int64_t effect;

    luaL_argcheck(L, seconds >= 0 && seconds < 1e8, 1, "expects seconds, zero or more");
    effect = ipw_recorded_effect_begin(L);
    if (ipw_recorded_effect_replayed(L, effect))
        return ipw_recorded_effect_wait(L, effect, "sleep");
    op = ipw_op_new(L, sizeof *op, sleep_cancel, sleep_finish, NULL);
    op->effect = effect;
    op->timer = ipw_timer_start(ipw_vm_host(L)->loop, ipw_s_to_ns(seconds), sleep_over, op);
    return ipw_op_await(L);
}

/* ---- now, log, note ---- */

static int now_value(lua_State *L)
{
    lua_pushnumber(L, ipw_ns_to_s(ipw_now_ns() - ipw_vm_host(L)->start_ns));
    return 1;
}

/* now(): seconds since the query began, by the monotonic clock. [0, +1, e] */
static int run_now(lua_State *L) { return ipw_recorded_effect_call(L, "now", now_value); }

/* trace(): the run's folder, when it began (ns since 1970), the numbers of session and query, the
 * query's id; nothing outside of a run. [0, +(0|5), m] */
static int run_trace(lua_State *L)
{
    const struct ipw_host *host = ipw_vm_host(L);

    if (!host || !host->trace.folder) return 0;
    lua_pushstring(L, host->trace.folder);
    lua_pushinteger(L, host->trace.wall_ns);
    lua_pushinteger(L, host->trace.session);
    lua_pushinteger(L, host->trace.query);
    lua_pushstring(L, host->name);
    return 5;
}

/* log(text): a line on stderr under --verbose. [-1, 0, e] */
static int run_log(lua_State *L)
{
    ipw_log(IPW_LOG_INFO, "%s", ipw_tostring_push(L, 1));
    return 0;
}

/* note(name, json, bytes or nil): writes the script's own event. [-3, 0, e] */
static int run_note(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    struct ipw_host *host = ipw_vm_host(L);
    struct ipw_event event = {.kind = IPW_EV_NOTE, .query = -1};

    event.tool.name = name;
    if (ipw_task_in_tool(ipw_vm_of(L))) event.span = ipw_host_next_span(host, true);
    event.payload = luaL_optlstring(L, 2, NULL, &event.payload_len);
    event.tool.result_bytes = luaL_optinteger(L, 3, 0);
    if (host->on.emit) host->on.emit(host->on.ud, &event);
    return 0;
}

/* ---- map ---- */

struct map_op;
struct map_child {
    struct map_op *map;
    struct ipw_task *task; /* NULL once it has ended */
    lua_Integer slot;
};

struct map_op {
    struct ipw_op op;
    struct ipw_vm *vm;
    struct map_child *children;
    size_t n, alive;
    int results; /* registry reference of the result list, whose slots exist */
    bool failed, cancelling;
};

static void map_child_done(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                           int nresults, const struct ipw_err *err)
{
    struct map_child *child = ud;
    struct map_op *map = child->map;
    lua_State *L = map->vm->L;

    (void)task, (void)err;
    child->task = NULL;
    map->alive--;
    if (end != IPW_TASK_DONE && map->failed) nresults = 0; /* the first error is raised */
    if (end == IPW_TASK_DONE && nresults > 1) lua_pop(co, nresults - 1);
    if (nresults > 0) {
        /* The slot exists, so this cannot raise. */
        lua_rawgeti(L, LUA_REGISTRYINDEX, map->results);
        lua_xmove(co, L, 1);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            lua_pushboolean(L, 0);
        }
        lua_rawseti(L, -2, end == IPW_TASK_DONE ? child->slot : (lua_Integer)map->n + 1);
        lua_pop(L, 1);
    }
    if (end != IPW_TASK_DONE && !map->failed) {
        map->failed = true;
        map->cancelling = true; /* the last branch must not free the map inside this loop */
        for (size_t i = 0; i < map->n; i++)
            if (map->children[i].task)
                ipw_task_cancel(map->children[i].task, "another branch of ipw.map failed");
        map->cancelling = false;
    }
    if (map->alive == 0 && !map->op.done && !map->cancelling) ipw_op_done(&map->op);
}

static void map_cancel(struct ipw_op *base)
{
    struct map_op *map = (struct map_op *)base;

    map->op.done = true; /* the last branch must not wake the task; its canceller does */
    map->failed = true;
    for (size_t i = 0; i < map->n; i++)
        if (map->children[i].task) ipw_task_cancel(map->children[i].task, "cancelled");
}

static void map_release(struct ipw_op *base)
{
    struct map_op *map = (struct map_op *)base;

    for (size_t i = 0; i < map->n; i++)
        if (map->children[i].task) ipw_task_orphan(map->children[i].task);
    luaL_unref(map->vm->L, LUA_REGISTRYINDEX, map->results);
    free(map->children);
}

static int map_finish(lua_State *L, struct ipw_op *base)
{
    struct map_op *map = (struct map_op *)base;

    lua_rawgeti(L, LUA_REGISTRYINDEX, map->results); // results
    if (!map->failed) {
        lua_pushboolean(L, 0);
        lua_rawseti(L, -2, (lua_Integer)map->n + 1);
        lua_pushnil(L);
        lua_rawseti(L, -2, (lua_Integer)map->n + 1);
        return 1;
    }
    lua_rawgeti(L, -1, (lua_Integer)map->n + 1);
    return lua_error(L);
}

/* map(list, fn): fn(item, index) for all items in parallel; results in the list's order.  The first
 * error cancels the others, waits for them, and is raised again. [-2, +1, e] */
static int run_map(lua_State *L)
{
    struct ipw_vm *vm = ipw_vm_of(L);
    struct map_op *map;
    lua_Integer n;

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    n = (lua_Integer)lua_rawlen(L, 1);
    luaL_argcheck(L, n <= 10000, 1, "has more than 10000 items");
    if (ipw_task_depth(vm) >= MAX_MAP_DEPTH)
        return luaL_error(L, "ipw.map inside ipw.map, more than %d deep", MAX_MAP_DEPTH);
    lua_settop(L, 2);
    lua_createtable(L, (int)n + 1, 0); // list fn results
    for (lua_Integer i = 1; i <= n + 1; i++) {
        lua_pushboolean(L, 0);
        lua_rawseti(L, 3, i);
    }
    map = ipw_op_new(L, sizeof *map, map_cancel, map_finish, map_release);
    map->op.recorded = map->op.rests = true; /* its branches end it */
    map->vm = vm;
    map->results = LUA_NOREF;
    map->children = ipw_calloc((size_t)n, sizeof *map->children);
    lua_pushvalue(L, 3);
    map->results = luaL_ref(L, LUA_REGISTRYINDEX);
    for (lua_Integer i = 1; i <= n; i++) {
        struct map_child *child = &map->children[map->n];
        lua_pushvalue(L, 2);
        lua_rawgeti(L, 1, i);
        lua_pushinteger(L, i); // fn item index
        child->map = map;
        child->slot = i;
        child->task = ipw_task_new(L, vm, 2, map_child_done, child);
        map->n++;
        map->alive++;
    }
    if (n == 0) map->op.done = true;
    return ipw_op_await(L);
}

int ipw_lib_core(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"sleep", run_sleep}, {"now", run_now},     {"log", run_log}, {"note", run_note},
        {"map", run_map},     {"trace", run_trace}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
