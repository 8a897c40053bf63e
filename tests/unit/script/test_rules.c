/* The rules of tests/rules.txt that need C to be shown; lua/test_rules.lua has those
 * that a script can show.  The function names carry the rules' numbers. */
#include "unit/script/world.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/proc.h"
#include "script/stuck_watch.h"
#include "script/task.h"

/* ---- rule 4: the soft cap ---- */

/* Finding 2: under an allocator that refuses, Lua 5.4.4 frees the table that is being grown. */
static void rule_4_weak_metatable_at_2_MiB(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 2 << 20);
    world_run(&w, "local keep = {}\n"
                  "for i = 1, 1e7 do\n"
                  "  local t = setmetatable({}, setmetatable({ __newindex = function(t, k, v) "
                  "rawset(t, k, v) end },\n"
                  "    { __mode = 'v' }))\n"
                  "  t[i] = {} t[i + 1] = 'x' .. i keep[#keep + 1] = t\n"
                  "end");
    assert_int_equal(w.end, IPW_TASK_MEMORY);
    assert_true(ipw_vm_peak_bytes(w.vm) < 8 << 20);
    world_close(&w);
}

static void rule_4_bombs_stop_under_four_times_the_cap(void **state)
{
    static const char *const bombs[] = {
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t[#t + 1] = { #t } end",
        "while true do pcall(function() local t = {} while true do t[#t + 1] = { t } end end) end",
        "local s = ('x'):rep(1000) while true do s = s:gsub('x', 'xx') end",
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
        "local s = ('x'):rep(1 << 19) return s:gsub('.', s)",
        "local t = {} for i = 1, 1e6 do t[i] = ('x'):rep(100000) end return table.concat(t)",
        "local function f(...) return f(1, ...) end return f()",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "return string.pack('c2000000000', 'x')",
        "local json = require 'ipw.json' local t = {} while true do t = json.decode('[' .. "
        "json.encode(t) .. ',1]') end",
        "local t = setmetatable({}, { __index = function(t, k) return k .. k end }) local k = 'k' "
        "while true do k = t[k] end",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        struct world w;
        world_open(&w, 4 << 20);
        world_run(&w, bombs[i]);
        if (w.end == IPW_TASK_DONE || w.end == IPW_TASK_CANCELLED)
            fail_msg("%s: ended with %d", bombs[i], w.end);
        assert_true(ipw_vm_peak_bytes(w.vm) <= 16 << 20);
        world_close(&w);
    }
}

/* What matters is what the script keeps, not how much it throws away. */
static void rule_4_garbage_does_not_count(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 2 << 20);
    world_run(&w, "local keep = {}\n"
                  "for i = 1, 10 do keep[i] = ('x'):rep(100000) .. i end\n"
                  "for i = 1, 300 do local s = ('y'):rep(50000) .. i end\n"
                  "return keep[10]:sub(-2)");
    assert_int_equal(w.end, IPW_TASK_DONE);
    assert_string_equal(w.answer, "10");
    assert_true(ipw_vm_peak_bytes(w.vm) < 4 << 20);
    world_close(&w);
}

/* ---- rules 5 and 6: the CPU budget ---- */

static void rule_5_loops_stop_wherever_they_are(void **state)
{
    static const char *const loops[] = {
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "coroutine.wrap(function() coroutine.wrap(function() while true do end end)() end)()",
        "table.sort({ 3, 2, 1 }, function() while true do end end)",
        "local t = setmetatable({}, { __index = function() while true do end end }) return t.x",
        "local _ <close> = setmetatable({}, { __close = function() while true do end end }) error "
        "'x'",
        "return ('x'):rep(3000):gsub('x', function() while true do end end)",
        "local a = ('a'):rep(3000) while true do pcall(string.find, a, '.-.-.-.-b') end",
        "xpcall(function() while true do end end, function() while true do end end)",
        "local co co = coroutine.create(function() while true do end end) coroutine.close(co) "
        "coroutine.resume(co)\n"
        "while true do pcall(coroutine.resume, coroutine.create(function() while true do end end)) "
        "end",
        "local t = setmetatable({}, { __tostring = function() while true do end end }) return "
        "tostring(t)",
        "for _ in function() while true do end end do end",
    };

    (void)state;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        struct world w;
        world_open(&w, 0);
        w.vm->slice_ticks_max = 5; /* of 20 ms */
        world_run(&w, loops[i]);
        if (w.end != IPW_TASK_CPU) fail_msg("%s: ended with %d", loops[i], w.end);
        world_close(&w);
    }
}

static void use_up_a_minute(void *ud) { ((struct ipw_vm *)ud)->cpu_ns = 61 * IPW_NS_PER_S; }

/* A query has a minute in all; a command, which may last for as long as a run, has not. */
static void rule_6_all_slices_together(void **state)
{
    (void)state;
    for (int lasting = 0; lasting < 2; lasting++) {
        struct world w;
        world_open(&w, 0);
        w.vm->options.lasting = lasting;
        ipw_defer_start(w.loop, use_up_a_minute, w.vm); /* while it waits */
        world_run(&w, "require 'ipw'.sleep(0.01) return 1");
        assert_int_equal(w.end, lasting ? IPW_TASK_DONE : IPW_TASK_CPU);
        world_close(&w);
    }
}

/* ---- rules 3 and 15: nothing of a state outlives it, wherever it is closed ---- */

static const char waits[] =
    "local ipw = require 'ipw'\n"
    "local proc = require 'ipw.proc'\n"
    "local _ <close> = setmetatable({}, { __close = function() ipw.sleep(0.001) end })\n"
    "ipw.sleep(0.001)\n"
    "local co = coroutine.wrap(function() ipw.sleep(0.001) coroutine.yield(1) ipw.sleep(0) end)\n"
    "co() co()\n"
    "ipw.map({ 1, 2, 3 }, function(i)\n"
    "  ipw.map({ 1, 2 }, function() ipw.sleep(0.001) pcall(ipw.sleep, 0) end)\n"
    "  local _ <close> = setmetatable({}, { __close = function() ipw.sleep(0) end })\n"
    "  if i == 2 then proc.run { 'true' } end\n"
    "end)\n"
    "pcall(ipw.map, { 1, 2 }, function(i) if i == 2 then error 'x' end ipw.sleep(5) end)\n"
    "return 'end'\n";

struct closing {
    struct world *w;
    int left; /* rounds of the loop */
};

static void count_down(void *ud)
{
    struct closing *c = ud;

    if (c->left-- > 0 && !c->w->over)
        ipw_defer_start(c->w->loop, count_down, c);
    else
        ipw_loop_stop(c->w->loop);
}

static void rule_15_a_state_is_closed_at_each_await(void **state)
{
    bool ended = false;

    (void)state;
    for (int rounds = 0; !ended && rounds < 400; rounds++) {
        struct world w;
        struct closing c = {&w, rounds * 7};
        struct ipw_task *task;
        world_open(&w, 0);
        assert_int_equal(world_start(&w, &task, waits, &w.err), 0);
        ipw_defer_start(w.loop, count_down, &c);
        ipw_loop_run(w.loop);
        ended = w.over;
        if (ended) assert_string_equal(w.answer, "end");
        world_close(&w);
    }
}

static void rule_15_a_task_is_cancelled_at_each_await(void **state)
{
    bool ended = false;

    (void)state;
    for (int rounds = 0; !ended && rounds < 400; rounds++) {
        struct world w;
        struct closing c = {&w, rounds * 7};
        struct ipw_task *task;
        world_open(&w, 0);
        assert_int_equal(world_start(&w, &task, waits, &w.err), 0);
        ipw_defer_start(w.loop, count_down, &c);
        ipw_loop_run(w.loop);
        ended = w.over;
        if (!ended) {
            ipw_task_cancel(task, "stopped by the test");
            /* Told to stop already, when it is over at once: its branches end in later rounds. */
            for (int i = 0; i < 100 && (!w.over || ipw_task_count(w.vm)); i++) ipw_loop_run(w.loop);
            assert_int_equal(w.end, IPW_TASK_CANCELLED);
            assert_string_equal(w.err.text, "stopped by the test");
        }
        assert_int_equal(ipw_task_count(w.vm), 0);
        world_close(&w);
    }
}

/* Every later wait raises again, and <close> variables have run. */
static void rule_6_cancellation_is_sticky(void **state)
{
    struct world w;
    struct ipw_task *task;
    struct closing c = {&w, 3};

    (void)state;
    world_open(&w, 0);
    assert_int_equal(
        world_start(
            &w, &task,
            "local ipw = require 'ipw' closed, raised = 0, 0\n"
            "local _ <close> = setmetatable({}, { __close = function() closed = closed + 1 end })\n"
            "for _ = 1, 100 do\n"
            "  local ok, why = pcall(ipw.sleep, 60)\n"
            "  if not ok and why.code == 'cancelled' then raised = raised + 1 end\n"
            "end\n"
            "return 'not to be heard'",
            &w.err),
        0);
    ipw_defer_start(w.loop, count_down, &c);
    ipw_loop_run(w.loop);
    ipw_task_cancel(task, "interrupted");
    ipw_loop_run(w.loop); /* told to stop already, if it was over at once */
    assert_int_equal(w.end, IPW_TASK_CANCELLED);
    assert_string_equal(w.answer, "");
    world_run(&w, "return closed .. ' ' .. raised");
    assert_string_equal(w.answer, "1 100");
    world_close(&w);
}

/* ---- rule 11: error objects of every kind ---- */

static void rule_11_L_8_error_objects_become_one_printable_line(void **state)
{
    static const struct {
        const char *script, *text;
    } cases[] = {
        {"error(nil)", "the script raised a nil value"},
        {"error(true)", "the script raised a boolean value"},
        {"error(12.5)", "12.5"},
        {"error(print)", "the script raised a function value"},
        {"error(coroutine.create(print))", "the script raised a thread value"},
        {"error({})", "the script raised a table without a message"},
        {"error { message = {} }", "the script raised a table without a message"},
        {"error { code = 'mine', message = 'words' }", "words"},
        {"error(setmetatable({}, { __tostring = function() while true do end end }))",
         "the script raised a table without a message"},
        {"error(setmetatable({}, { __index = function() error 'again' end }))",
         "the script raised a table without a message"},
        {"error('a\\nb\\tc', 0)", "a b c"},
        {"error('', 0)", ""},
    };
    struct world w;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world_open(&w, 0);
        world_run(&w, cases[i].script);
        assert_int_equal(w.end, IPW_TASK_FAILED);
        assert_string_equal(w.err.text, cases[i].text);
        world_close(&w);
    }
    for (int code = -1; code >= IPW_CODE_LAST; code--) { /* each code comes back from its name */
        char script[80];

        snprintf(script, sizeof script, "error { code = '%s', message = 'x' }",
                 ipw_code_name((enum ipw_code)code));
        world_open(&w, 0);
        world_run(&w, script);
        assert_int_equal(w.err.code, code);
        world_close(&w);
    }
    assert_string_equal(ipw_code_name((enum ipw_code)(IPW_CODE_LAST - 1)), "unknown");
    world_open(&w, 0);
    world_run(&w, "error('\\27[31m\\0\\xff\\u{202e}' .. ('x'):rep(10 << 20), 0)");
    assert_int_equal(w.end, IPW_TASK_FAILED);
    assert_true(strlen(w.err.text) < 500 && strlen(w.err.text) > 100);
    for (const char *p = w.err.text; *p; p++) assert_true((unsigned char)*p >= 0x20);
    assert_null(strstr(w.err.text, "\xff"));
    world_close(&w);
}

/* ---- rule 12: the watch ---- */

struct alarm {
    atomic_int warned, gave_up;
    char who[64], where[160];
};

static void on_warn(void *ud, const struct ipw_stuck_watch_stall *stall)
{
    struct alarm *a = ud;

    snprintf(a->who, sizeof a->who, "%s", stall->who);
    snprintf(a->where, sizeof a->where, "%s", stall->where);
    atomic_fetch_add(&a->warned, 1);
}

static void on_give_up(void *ud, const struct ipw_stuck_watch_stall *stall)
{
    struct alarm *a = ud;

    (void)stall;
    atomic_fetch_add(&a->gave_up, 1);
}

/* Stands for whatever the other rules missed: C that does not come back. */
static int stuck(lua_State *L)
{
    struct alarm *a = lua_touserdata(L, lua_upvalueindex(1));

    while (!atomic_load(&a->gave_up)) usleep(1000);
    return 0;
}

static void rule_12_the_watch_notices_who_is_stuck_and_where(void **state)
{
    static struct alarm alarm;
    struct ipw_stuck_watch_options options = {.warn_ns = 40 * IPW_NS_PER_MS,
                                              .give_up_ns = 80 * IPW_NS_PER_MS,
                                              .on_warn = on_warn,
                                              .on_give_up = on_give_up,
                                              .ud = &alarm};
    struct ipw_stuck_watch *watch;
    struct ipw_err err = {0};
    struct world w;

    (void)state;
    world_open(&w, 0);
    lua_pushlightuserdata(ipw_vm_lua(w.vm), &alarm);
    lua_pushcclosure(ipw_vm_lua(w.vm), stuck, 1);
    lua_setglobal(ipw_vm_lua(w.vm), "stuck");
    assert_int_equal(ipw_stuck_watch_start(&watch, &options, &err), 0);
    /* Waiting is no stall, however long: the loop sleeps, no Lua runs. */
    world_run(&w, "require('ipw').sleep(0.2) return 'slept'");
    assert_string_equal(w.answer, "slept");
    world_run(&w, "local x = 1\nstuck()\nreturn 'came back'");
    ipw_stuck_watch_stop(watch);
    assert_string_equal(w.answer, "came back");
    assert_int_equal(alarm.gave_up, 1);
    assert_true(alarm.warned >= 1);
    assert_string_equal(alarm.who, "q1");
    assert_string_equal(alarm.where, "script:2");
    world_close(&w);
}

/* ---- rule 17: room on the C stack ---- */

static void rule_17_deep_recursion_is_an_error_at_8_MiB(void **state)
{
    static const char *const deep[] = {
        "local function f(s) return (s:gsub('.', f)) end return f('x')",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. "
        "'x'] end return t.x",
        "local function f() return table.concat(table.pack(pcall(f))) end error(f())",
        "local function co() return coroutine.wrap(co)() end co()",
        "return load(('('):rep(10000) .. '1' .. (')'):rep(10000))()",
        "local t = setmetatable({}, {}) getmetatable(t).__tostring = function() return tostring(t) "
        "end return tostring(t)",
        "local function f() table.sort({ 2, 1 }, f) end f()",
        "local x = setmetatable({}, {}) getmetatable(x).__close = function()\n"
        "  local y <close> = x end local z <close> = x",
    };

    (void)state;
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        struct world w;
        world_open(&w, 0);
        w.vm->slice_ticks_max = 10;
        world_run(&w, deep[i]);
        if (w.end == IPW_TASK_DONE) fail_msg("%s: done", deep[i]);
        world_close(&w);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_4_weak_metatable_at_2_MiB),
        cmocka_unit_test(rule_4_bombs_stop_under_four_times_the_cap),
        cmocka_unit_test(rule_4_garbage_does_not_count),
        cmocka_unit_test(rule_5_loops_stop_wherever_they_are),
        cmocka_unit_test(rule_6_all_slices_together),
        cmocka_unit_test(rule_6_cancellation_is_sticky),
        cmocka_unit_test(rule_11_L_8_error_objects_become_one_printable_line),
        cmocka_unit_test(rule_12_the_watch_notices_who_is_stuck_and_where),
        cmocka_unit_test(rule_15_a_state_is_closed_at_each_await),
        cmocka_unit_test(rule_15_a_task_is_cancelled_at_each_await),
        cmocka_unit_test(rule_17_deep_recursion_is_an_error_at_8_MiB),
    };

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
