/* script/message: the sealed message of a reply is the JSON of the table that it is otherwise,
 * whatever the model wrote; and the calls whose arguments were replaced are marked in both. */
#include "unit/script/world.h"

#include "script/message.h"
#include "script/value.h"
#include "unit/unit.h"

enum { ROUNDS = 5000, MOST = 40 };

static uint64_t x = 88172645463325252ULL;

static size_t number(size_t below)
{
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (size_t)(x % below);
}

/* Texts that mutate: JSON, quotes, control characters, UTF-8 and what is none. */
static void write_text(struct ipw_buf *out)
{
    static const char *const pieces[] = {
        "{\"a\":1}", "{}",       "[1]",     "{ }", "\"",   "\\",      "\n",
        "\x01",      "\x7f",     "/",       "42",  "null", "",        "\xc3\xa9",
        "\xff",      "\xe2\x82", "{\"a\":", "}",   "text", "\\ud800", "{\"b\":\"\\ud800\"}",
    };

    for (size_t n = number(4); n > 0; n--)
        ipw_buf_adds(out, pieces[number(sizeof pieces / sizeof *pieces)]);
    if (number(20) == 0) ipw_buf_add(out, "\0", 1);
}

static void write_reply(struct ipw_chat_reply *reply, struct ipw_chat_call *calls)
{
    static char *const names[] = {NULL, "", "add", "na\"me"};

    *reply = (struct ipw_chat_reply){.text = IPW_BUF(MOST * 100), .reasoning = IPW_BUF(MOST)};
    write_text(&reply->text);
    reply->calls = calls;
    reply->n_calls = number(4);
    for (size_t i = 0; i < reply->n_calls; i++) {
        calls[i] = (struct ipw_chat_call){.id = number(2) ? "call_1" : "\xc3\xa9\n",
                                          .name = names[number(4)]};
        ipw_buf_init(&calls[i].arguments, MOST * 100);
        write_text(&calls[i].arguments);
    }
}

static void release(struct ipw_chat_reply *reply)
{
    ipw_buf_release(&reply->text);
    for (size_t i = 0; i < reply->n_calls; i++) ipw_buf_release(&reply->calls[i].arguments);
}

/* Whether call i of the reply at idx is marked. */
static bool is_broken(lua_State *L, int idx, size_t i)
{
    bool broken;

    lua_getfield(L, idx, "calls");
    lua_rawgeti(L, -1, (lua_Integer)i + 1);
    lua_getfield(L, -1, "broken");
    broken = lua_toboolean(L, -1);
    lua_pop(L, 3);
    return broken;
}

static void sealed_is_the_json_of_the_table(void **state)
{
    struct ipw_buf json = IPW_BUF(IPW_MIB);
    struct ipw_chat_call calls[4];
    struct ipw_chat_reply reply;
    size_t n_broken = 0, n_whole = 0;
    struct world w;
    lua_State *L;

    (void)state;
    world_open(&w, 0);
    L = ipw_vm_lua(w.vm);
    for (int round = 0; round < ROUNDS; round++) {
        const char *sealed;
        size_t n;

        write_reply(&reply, calls);
        ipw_message_push_reply(L, &reply, false);
        ipw_message_push_reply(L, &reply, true);
        lua_getfield(L, 1, "message");
        lua_getfield(L, 2, "message");
        ipw_buf_clear(&json);
        assert_true(lua_istable(L, 3));
        assert_int_equal(ipw_value_encode(L, 3, &json, NULL), 0);
        sealed = ipw_value_raw(L, 4, &n);
        assert_non_null(sealed);
        assert_int_equal(n, json.len);
        assert_memory_equal(sealed, json.data, n);
        for (size_t i = 0; i < reply.n_calls; i++) {
            bool broken = is_broken(L, 1, i);

            assert_int_equal(broken, is_broken(L, 2, i));
            *(broken ? &n_broken : &n_whole) += 1;
        }
        lua_settop(L, 0);
        release(&reply);
    }
    assert_true(n_broken > 100 && n_whole > 100);
    ipw_buf_release(&json);
    world_close(&w);
}

static void arguments_that_are_no_object_are_marked(void **state)
{
    static const struct {
        const char *arguments, *sent;
        bool broken;
    } rows[] = {
        {"{}", "\"{}\"", false},     {"{\"a\": 1}", "\"{\\\"a\\\": 1}\"", false},
        {"{\"a\":", "\"{}\"", true}, {"[1]", "\"{}\"", true},
        {"", "\"{}\"", true},
    };
    struct world w;
    lua_State *L;

    (void)state;
    world_open(&w, 0);
    L = ipw_vm_lua(w.vm);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_chat_call call = {.id = "c", .name = "f", .arguments = IPW_BUF(MOST)};
        struct ipw_chat_reply reply = {.text = IPW_BUF(MOST), .calls = &call, .n_calls = 1};
        char expected[200];

        ipw_buf_adds(&call.arguments, rows[i].arguments);
        ipw_message_push_reply(L, &reply, true);
        snprintf(expected, sizeof expected,
                 "{\"content\":null,\"role\":\"assistant\",\"tool_calls\":[{\"function\":"
                 "{\"arguments\":%s,\"name\":\"f\"},\"id\":\"c\",\"type\":\"function\"}]}",
                 rows[i].sent);
        lua_getfield(L, 1, "message");
        assert_string_equal(luaL_tolstring(L, -1, NULL), expected);
        assert_int_equal(is_broken(L, 1, 0), rows[i].broken);
        lua_settop(L, 0);
        ipw_buf_release(&call.arguments);
    }
    world_close(&w);
}

UNIT(message)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_is_the_json_of_the_table),
        cmocka_unit_test(arguments_that_are_no_object_are_marked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
