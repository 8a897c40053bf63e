/* What a Lua state held when it was closed: a state without finalizers goes with its arena, one
 * with them is closed in full.  Every test ends under ASan's count of leaks. */
#include <stdlib.h>

#include "unit/script/world.h"

#include "base/mem.h"
#include "script/task.h"
#include "unit/unit.h"

static int n_finalized;

static int finalize(lua_State *L)
{
    char **held = lua_touserdata(L, 1);

    free(*held);
    n_finalized++;
    return 0;
}

/* hold(): a userdata that owns memory outside of the arena. */
static int hold(lua_State *L)
{
    char **held = lua_newuserdatauv(L, sizeof *held, 0);

    *held = NULL;
    if (luaL_newmetatable(L, "test.held")) {
        lua_pushcfunction(L, finalize);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    *held = ipw_strdup("held");
    return 1;
}

/* Gives the script `hold` in place of its argument. */
static void run_with_hold(struct world *w, const char *script)
{
    lua_State *L = ipw_vm_lua(w->vm);
    struct ipw_task *task;

    w->over = false;
    lua_pushcfunction(L, world_compile);
    lua_pushlightuserdata(L, (void *)script);
    assert_int_equal(ipw_vm_call(w->vm, 1, 1, &w->err), 0);
    lua_pushcfunction(L, hold);
    assert_int_equal(ipw_task_start(&task, w->vm, 1, world_over, w, &w->err), 0);
    ipw_loop_run(w->loop);
    assert_true(w->over);
    if (w->end != IPW_TASK_DONE) fail_msg("%s", w->err.text);
}

static void finalizers_run_once_each(void **state)
{
    struct world w;

    (void)state;
    n_finalized = 0;
    world_open(&w, 0);
    run_with_hold(&w,
                  "local hold = ...\n"
                  "local kept = {}\n"
                  "for i = 1, 100 do kept[i] = hold() end\n"
                  "for i = 1, 100 do hold() end\n"
                  "local co = coroutine.wrap(function() local h = hold() coroutine.yield(h) end)\n"
                  "co()\n"
                  "string.kept, string.co = kept, co\n");
    world_close(&w);
    assert_int_equal(n_finalized, 201);
}

/* The only userdata was garbage and is gone; the state still says that there may be more. */
static void a_state_that_had_one(void **state)
{
    struct world w;

    (void)state;
    n_finalized = 0;
    world_open(&w, 0);
    run_with_hold(&w, "(...)()\n");
    lua_gc(ipw_vm_lua(w.vm), LUA_GCCOLLECT);
    assert_int_equal(n_finalized, 1);
    world_close(&w);
    assert_int_equal(n_finalized, 1);
}

/* Blocks of all sizes, grown and shrunk, in a state that nothing asks to be told of its end. */
static void large_blocks_go_with_the_arena(void **state)
{
    struct world w;

    (void)state;
    for (int i = 0; i < 3; i++) {
        world_open(&w, 0);
        world_run(&w, "local t, s = {}, {}\n"
                      "for i = 1, 5000 do t[i] = i; s['k' .. i] = ('x'):rep(i % 2000) end\n"
                      "for i = 1, 4990 do t[i] = nil; s['k' .. i] = nil end\n"
                      "t.co = coroutine.create(function() local big = ('y'):rep(9999) "
                      "coroutine.yield(big) end)\n"
                      "coroutine.resume(t.co)\n"
                      "string.kept = { t, s, table.concat({ ('z'):rep(70000), 'w' }) }\n");
        if (w.end != IPW_TASK_DONE) fail_msg("%s", w.err.text);
        if (i) lua_gc(ipw_vm_lua(w.vm), LUA_GCCOLLECT);
        world_close(&w);
    }
}

static void stop(void *loop) { ipw_loop_stop(loop); }

/* Closed in the midst: operations are in flight, branches wait, a <close> variable is pending, what
 * C had in a box was lost by a raise. */
static void closed_while_it_waits(void **state)
{
    static const char script[] =
        "local ipw, json = require 'ipw', require 'ipw.json'\n"
        "local _ <close> = setmetatable({}, { __close = function() end })\n"
        "pcall(json.encode, { ('x'):rep(5000), function() end })\n"
        "pcall(json.decode, '[' .. ('\"abc\",'):rep(999))\n"
        "ipw.map({ 1, 2, 3 }, function(x)\n"
        "  local big <close> = setmetatable({ ('q'):rep(3000) }, { __close = function() end })\n"
        "  ipw.sleep(1000)\n"
        "end)\n";
    static const char plain[] = "local ipw = require 'ipw'\n"
                                "ipw.map({ 1, 2, 3 }, function(x) ipw.sleep(1000) end)\n";

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct world w;
        struct ipw_task *task;

        world_open(&w, 0);
        assert_int_equal(world_start(&w, &task, i % 2 ? plain : script, &w.err), 0);
        while (!w.over && ipw_task_count(w.vm) < 4) {
            ipw_timer_start(w.loop, 1000000, stop, w.loop);
            ipw_loop_run(w.loop);
        }
        if (w.over) fail_msg("%s", w.err.text);
        if (i >= 2) {
            ipw_task_cancel(task, "the test");
            ipw_loop_run(w.loop);
        }
        world_close(&w);
    }
}

UNIT(close)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finalizers_run_once_each),
        cmocka_unit_test(a_state_that_had_one),
        cmocka_unit_test(large_blocks_go_with_the_arena),
        cmocka_unit_test(closed_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
