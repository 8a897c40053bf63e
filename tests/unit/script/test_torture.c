/* Row M-2, rule 3: every n-th allocation of Lua fails, once (with Lua's own second try after a
 * collection), and from then on: while a state is made, while a query with waits, branches and JSON
 * runs, while a tool is opened and called.  No crash, nothing left over; under ASan no leak.
 */
#include "unit/script/world.h"

#include "io/proc.h"
#include "script/task.h"

static struct rig {
    long calls, fail_at; /* fail_at < 0: none */
    bool for_good, tripped;
} rig = {.fail_at = -1};

void *__real_ipw_arena_resize(struct ipw_arena *a, void *ptr, size_t old_bytes, size_t new_bytes);
void *__wrap_ipw_arena_resize(struct ipw_arena *a, void *ptr, size_t old_bytes, size_t new_bytes);

/* The linker puts this in the place of the arena.  Shrinking and freeing never fail. */
void *__wrap_ipw_arena_resize(struct ipw_arena *a, void *ptr, size_t old_bytes, size_t new_bytes)
{
    if (new_bytes > (ptr ? old_bytes : 0)) {
        rig.calls++;
        if (rig.fail_at >= 0 && rig.calls >= rig.fail_at &&
            (rig.for_good || rig.calls <= rig.fail_at + 1)) {
            rig.tripped = true;
            return NULL;
        }
    }
    return __real_ipw_arena_resize(a, ptr, old_bytes, new_bytes);
}

static const char query[] =
    "local ipw, json = require 'ipw', require 'ipw.json'\n"
    "local llm = require 'ipw.llm'\n"
    "local _ <close> = setmetatable({}, { __close = function() ipw.sleep(0) end })\n"
    "local thread = { llm.system 'be brief', llm.user(('long '):rep(100)) }\n"
    "local ok, why = pcall(llm.chat, { messages = thread })\n"
    "assert(not ok and tostring(why):find 'no model')\n"
    "local text = json.encode { a = { 1, 2, { b = 'x' } }, c = json.list {}, d = json.null }\n"
    "assert(json.encode(json.decode(text)) == text)\n"
    "local co = coroutine.wrap(function(a) ipw.sleep(0) coroutine.yield(a) error 'inner' end)\n"
    "assert(co(1) == 1 and not pcall(co))\n"
    "local out = ipw.map({ 1, 2, 3 }, function(x) ipw.sleep(0) return ('%d %s'):format(x, {}) "
    "end)\n"
    "table.sort(out, function(x, y) return x > y end)\n"
    "local n = select(2, table.concat(out, ','):gsub('%a+', function(w) return w:upper() end))\n"
    "assert(not pcall(ipw.map, { 1, 2 }, function(x) ipw.sleep(0) error { code = 'c', message = "
    "'m' .. x } end))\n"
    "return n .. load('return 1 + 1')()\n";

static const char tool[] =
    "local tools = require 'ipw.tools'\n"
    "local kit <close> = tools.open { 'calculator', { name = 'mine', about = 'Mine.',\n"
    "  input = { { 'text', 'string', 'A text.' } },\n"
    "  run = function(args) require('ipw').sleep(0) return args.text:rep(3) end } }\n"
    "local out = kit:call_all { { id = 'a', name = 'calculator', arguments = "
    "'{\"expression\":\"1+2*3\"}' },\n"
    "  { id = 'b', name = 'mine', arguments = '{\"text\":\"ab\"}' },\n"
    "  { id = 'c', name = 'mine', arguments = '{broken' }, { id = 'd', name = 'nobody', arguments "
    "= '' } }\n"
    "return out[1].content .. out[2].content\n";

/* Runs the script with the rig armed; gives whether it was tripped. */
static bool one(const char *script, const char *answer, long fail_at, bool for_good)
{
    struct world w;
    struct ipw_task *task;
    struct ipw_err err = {0};

    world_open(&w, 0);
    rig = (struct rig){.fail_at = fail_at, .for_good = for_good};
    if (world_start(&w, &task, script, &err) == 0) {
        ipw_loop_run(w.loop);
        assert_true(w.over);
        if (!rig.tripped) assert_string_equal(w.answer, answer);
        if (w.end != IPW_TASK_DONE && w.end != IPW_TASK_MEMORY)
            fail_msg("n %ld: ended with %d: %s", fail_at, w.end, w.err.text);
    } else {
        assert_true(rig.tripped);
    }
    if (ipw_task_count(w.vm)) ipw_loop_run(w.loop); /* cancelled branches end in the next round */
    if (ipw_task_count(w.vm))
        fail_msg("n %ld: %zu tasks are left over: %s", fail_at, ipw_task_count(w.vm), w.err.text);
    rig.fail_at = -1;
    world_close(&w);
    return rig.tripped;
}

static void torture(const char *script, const char *answer)
{
    one(script, answer, -1, false); /* what a process keeps is kept now */
    for (int mode = 0; mode < 2; mode++)
        for (long n = 1; one(script, answer, n, mode); n++) continue;
}

static void M_2_a_query(void **state)
{
    (void)state;
    torture(query, "32");
}

static void M_2_a_tool_query(void **state)
{
    (void)state;
    torture(tool, "7ababab");
}

static void M_2_start_up(void **state)
{
    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        bool tripped = true;
        for (long n = 1; tripped; n++) {
            struct ipw_err err = {0};
            struct world w;
            int rc;
            rig = (struct rig){.fail_at = n, .for_good = mode};
            rc = world_try_open(&w, 0, &err);
            tripped = rig.tripped;
            if (rc) {
                assert_true(tripped);
                assert_true(err.text[0] != '\0');
            }
            rig.fail_at = -1;
            world_close(&w);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(M_2_start_up),
        cmocka_unit_test(M_2_a_query),
        cmocka_unit_test(M_2_a_tool_query),
    };

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    return cmocka_run_group_tests_name("torture", tests, NULL, NULL);
}
