/* What a script learns from the world: noted as it is, given back from a record as it was. */
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "json/json.h"
#include "llm/playback.h"
#include "script/recorded_effect.h"
#include "script/task.h"
#include "trace/event_reader.h"
#include "unit/script/world.h"

#include "unit/trace/folder.h"
#include "unit/unit.h"

static struct { /* of the last run */
    struct ipw_buf notes;
    int n;
    struct ipw_playback *replay;
    int n_diverged;
    char said[1024];
} seen;

static void on_emit(void *ud, struct ipw_event *event)
{
    (void)ud;
    seen.n++;
    if (event->payload) ipw_buf_add(&seen.notes, event->payload, event->payload_len);
    ipw_buf_addc(&seen.notes, '\n');
    if (seen.replay) ipw_playback_emit(seen.replay, event);
}

static void start(struct world *w)
{
    world_open(w, 64 * IPW_MIB);
    w->host.on.emit = on_emit;
    ipw_buf_release(&seen.notes);
    memset(&seen, 0, sizeof seen);
    seen.notes = IPW_BUF(64 * IPW_MIB);
}

static void stop(struct world *w)
{
    world_close(w);
    ipw_buf_release(&seen.notes);
}

/* ---- noting ---- */

static int give_values(lua_State *L)
{
    lua_pushliteral(L, "text \"quoted\" \xC3\xA4");
    lua_pushinteger(L, 3);
    lua_pushnumber(L, 2.5);
    lua_pushboolean(L, 1);
    lua_pushnil(L);
    lua_pushlstring(L, "\xFF\x00z", 3);
    luaL_loadstring(L, "return {b={1,'two'}, a=false}, {}, {7,8}");
    lua_call(L, 0, 3);
    return 9;
}

static int give_too_much(lua_State *L)
{
    luaL_Buffer b;
    const size_t n = 4 * 1024 * 1024 + 1;

    memset(luaL_buffinitsize(L, &b, n), 'x', n);
    luaL_pushresultsize(&b, n);
    return 1;
}

static int call_values(lua_State *L) { return ipw_recorded_effect_call(L, "values", give_values); }
static int call_too_much(lua_State *L)
{
    return ipw_recorded_effect_call(L, "much", give_too_much);
}

static void define(struct world *w)
{
    lua_State *L = ipw_vm_lua(w->vm);

    lua_register(L, "values", call_values);
    lua_register(L, "much", call_too_much);
}

#define VALUES                                                                                     \
    "[\"text \\\"quoted\\\" \xC3\xA4\",3,2.5,true,null,{\"hex\":\"ff007a\"},"                      \
    "{\"table\":{\"a\":false,\"b\":{\"list\":[1,\"two\"]}}},{\"list\":[]},{\"list\":[7,8]}]"

static const char use_values[] =
    "local s, i, x, b, none, bytes, t, empty, list = values()\n"
    "assert(s == 'text \"quoted\" \\u{e4}' and i == 3 and math.type(i) == 'integer' and x == 2.5)\n"
    "assert(b == true and none == nil and bytes == '\\xff\\0z' and t.a == false and t.b[2] == "
    "'two')\n"
    "assert(next(empty) == nil and #list == 2 and list[2] == 8)\n"
    "return 'fine'";

static void every_kind_of_value(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    define(&w);
    world_run(&w, use_values);
    if (w.end != IPW_TASK_DONE) fail_msg("%s", w.err.text);
    assert_string_equal(ipw_buf_str(&seen.notes),
                        "{\"id\":1,\"name\":\"effect\",\"of\":\"values\",\"value\":" VALUES "}\n");
    stop(&w);
}

static void numbered_and_limited(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    define(&w);
    world_run(&w, "much() values() return 'fine'");
    assert_string_equal(w.answer, "fine");
    assert_int_equal(seen.n, 2);
    assert_non_null(strstr(
        ipw_buf_str(&seen.notes),
        "{\"id\":1,\"name\":\"effect\",\"of\":\"much\",\"value\":[{\"left_out\":4194305}]}\n"));
    assert_non_null(
        strstr(ipw_buf_str(&seen.notes), "{\"id\":2,\"name\":\"effect\",\"of\":\"values\""));
    stop(&w);
    start(&w);
    w.host.on.emit = NULL; /* nobody takes notes: it works all the same */
    define(&w);
    world_run(&w, use_values);
    assert_string_equal(w.answer, "fine");
    assert_int_equal(seen.n, 0);
    assert_int_equal(w.host.count.effects, 0);
    stop(&w);
}

static int in_tool(lua_State *L)
{
    ipw_task_enter_tool(ipw_vm_of(L), 1);
    lua_call(L, 0, 0);
    ipw_task_enter_tool(ipw_vm_of(L), -1);
    return 0;
}

/* Inside a tool that is on record as a whole nothing is noted. */
static void inside_a_tool(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    define(&w);
    lua_register(ipw_vm_lua(w.vm), "in_tool", in_tool);
    world_run(&w, "in_tool(values) values() return 'fine'");
    assert_string_equal(w.answer, "fine");
    assert_int_equal(seen.n, 1);
    assert_non_null(strstr(ipw_buf_str(&seen.notes), "\"id\":1,"));
    stop(&w);
}

/* ---- answering ---- */

static void ignore_write(void *ud, struct ipw_event *event, const struct ipw_event_line *line)
{
    (void)ud, (void)event, (void)line;
}
static void ignore_stir(void *ud) { (void)ud; }
static void on_diverged(void *ud, const char *text)
{
    (void)ud;
    seen.n_diverged++;
    snprintf(seen.said, sizeof seen.said, "%s", text);
}

static int must_not_run(lua_State *L) { return luaL_error(L, "it was done again"); }
static int call_replayed(lua_State *L)
{
    return ipw_recorded_effect_call(L, "values", must_not_run);
}
static int call_other(lua_State *L) { return ipw_recorded_effect_call(L, "other", must_not_run); }

/* Runs the script against a record of one effect. */
static void answer_from(struct world *w, const char *note, const char *script)
{
    struct ipw_playback_options options = {.query = 0,
                                           .reach = 10,
                                           .write = ignore_write,
                                           .stir = ignore_stir,
                                           .diverged = on_diverged};
    struct ipw_event_reader *events;
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"data\":%s,\"event\":\"note\",\"query\":0,\"span\":0,\"t_ns\":5}\n", note);
    fclose(f);
    assert_int_equal(ipw_event_reader_open(&events, dir, NULL), 0);
    start(w);
    options.events = events;
    options.loop = w->loop;
    seen.replay = ipw_playback_new(&options);
    w->host.replay = seen.replay;
    lua_register(ipw_vm_lua(w->vm), "values", call_replayed);
    lua_register(ipw_vm_lua(w->vm), "other", call_other);
    world_run(w, script);
    ipw_playback_free(seen.replay);
    seen.replay = NULL;
    w->host.replay = NULL;
    ipw_event_reader_close(events);
}

static void given_back(void **state)
{
    static const char note[] =
        "{\"id\":1,\"name\":\"effect\",\"of\":\"values\",\"value\":" VALUES "}";
    struct world w;

    (void)state;
    answer_from(&w, note, use_values);
    if (w.end != IPW_TASK_DONE) fail_msg("%s", w.err.text);
    assert_string_equal(w.answer, "fine");
    assert_int_equal(seen.n_diverged, 0);
    /* the replay notes the very text of the record */
    assert_int_equal(strncmp(ipw_buf_str(&seen.notes), note, sizeof note - 1), 0);
    stop(&w);
}

static void not_in_the_run(void **state)
{
    struct world w;

    (void)state;
    answer_from(&w, "{\"id\":1,\"name\":\"effect\",\"of\":\"values\",\"value\":[1]}",
                "other() return 'fine'");
    assert_int_equal(w.end, IPW_TASK_FAILED);
    assert_int_equal(seen.n_diverged, 1);
    assert_non_null(strstr(seen.said, "saved   values\n    now     effect 1: other"));
    stop(&w);
    answer_from(&w, "{\"id\":1,\"name\":\"effect\",\"of\":\"values\",\"value\":[1]}",
                "values() values() return 'fine'");
    assert_int_equal(w.end, IPW_TASK_FAILED);
    assert_non_null(strstr(seen.said, "no effect of that number comes next"));
    stop(&w);
    answer_from(
        &w, "{\"id\":1,\"name\":\"effect\",\"of\":\"values\",\"value\":[{\"left_out\":5000000}]}",
        "values() return 'fine'");
    assert_int_equal(w.end, IPW_TASK_FAILED);
    assert_non_null(strstr(w.err.text, "the saved run left out 5000000 bytes"));
    stop(&w);
}

/* A record that somebody else wrote: whatever it holds is some value. */
static void odd_saved_runs(void **state)
{
    static const char *const values[] = {"[{\"hex\":\"zz!\"}]",
                                         "[{\"hex\":\"f\"}]",
                                         "{}",
                                         "7",
                                         "[{\"table\":[1]}]",
                                         "[{\"list\":{\"a\":1}}]",
                                         "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char note[256];
        struct world w;

        snprintf(note, sizeof note, "{\"id\":1,\"name\":\"effect\",\"of\":\"values\",\"value\":%s}",
                 values[i]);
        answer_from(&w, note, "return tostring(select('#', values()))");
        assert_true(w.over);
        if (w.end == IPW_TASK_DONE) assert_true(atoi(w.answer) <= 16);
        stop(&w);
    }
}

UNIT(recorded_effect)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value), cmocka_unit_test(numbered_and_limited),
        cmocka_unit_test(inside_a_tool),       cmocka_unit_test(given_back),
        cmocka_unit_test(not_in_the_run),      cmocka_unit_test(odd_saved_runs),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
