/* unit/script/world.h: a loop, a host and a Lua state in it, for the tests of script/; and tasks
 * run to their end.  world_close() counts what is left over. */
#ifndef IPW_TEST_SCRIPT_WORLD_H
#define IPW_TEST_SCRIPT_WORLD_H

#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "io/loop.h"
#include "script/host.h"
#include "script/sandbox.h"
#include "script/task.h"
#include "script/vm_priv.h"

struct world {
    struct ipw_loop *loop;
    struct ipw_host host;
    struct ipw_vm *vm;
    /* of the last task */
    bool over;
    enum ipw_task_end end;
    struct ipw_err err;
    char answer[200];
};

static inline int world_try_open(struct world *w, size_t memory_bytes, struct ipw_err *err)
{
    struct ipw_vm_options options = {.memory_bytes = memory_bytes, .host = &w->host};

    memset(w, 0, sizeof *w);
    assert_int_equal(ipw_loop_new(&w->loop, err), 0);
    w->host = (struct ipw_host){.loop = w->loop,
                                .name = "q1",
                                .grants.may_start = true,
                                .model.seed = INT64_MIN,
                                .model.max_tokens = -1,
                                .model.temperature = NAN,
                                .start_ns = ipw_now_ns(),
                                .on.ud = w};
    return ipw_sandbox_open(&w->vm, &options, err);
}

static inline void world_close(struct world *w)
{
    ipw_sandbox_close(w->vm);
    ipw_host_release(&w->host);
    assert_int_equal(ipw_loop_leftovers(w->loop), 0);
    ipw_loop_run(w->loop);
    ipw_loop_free(w->loop);
}

static inline void world_open(struct world *w, size_t memory_bytes)
{
    struct ipw_err err = {0};

    if (world_try_open(w, memory_bytes, &err)) fail_msg("%s", err.text);
}

static int world_compile(lua_State *L)
{
    const char *text = lua_touserdata(L, 1);

    if (luaL_loadbufferx(L, text, strlen(text), "=script", "t") != LUA_OK) return lua_error(L);
    return 1;
}

static inline void world_over(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                              int nresults, const struct ipw_err *err)
{
    struct world *w = ud;

    (void)task;
    w->over = true;
    w->end = end;
    if (err) w->err = *err;
    w->answer[0] = '\0';
    if (end == IPW_TASK_DONE && nresults > 0 && lua_type(co, -nresults) == LUA_TSTRING)
        snprintf(w->answer, sizeof w->answer, "%s", lua_tostring(co, -nresults));
    ipw_loop_stop(w->loop);
}

static inline int world_start(struct world *w, struct ipw_task **task, const char *script,
                              struct ipw_err *err)
{
    lua_State *L = ipw_vm_lua(w->vm);
    int rc;

    w->over = false;
    lua_pushcfunction(L, world_compile);
    lua_pushlightuserdata(L, (void *)script);
    rc = ipw_vm_call(w->vm, 1, 1, err);
    return rc ? rc : ipw_task_start(task, w->vm, 0, world_over, w, err);
}

/* Runs the script as a task to its end. */
static inline void world_run(struct world *w, const char *script)
{
    struct ipw_task *task;

    if (world_start(w, &task, script, &w->err)) fail_msg("%s", w->err.text);
    ipw_loop_run(w->loop);
    assert_true(w->over);
    assert_int_equal(ipw_task_count(w->vm), 0);
}

#endif
