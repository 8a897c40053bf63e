/* script/conversation: the texts of a request's messages are those that the encoder makes of every
 * message anew, however a script edits, drops, copies and adds messages between two requests. */
#include "unit/script/world.h"

#include "script/conversation.h"
#include "script/value.h"
#include "unit/unit.h"

/* A thread, and a step that changes it in one of many ways by the number that it gets. */
static const char script[] =
    "local json = require 'ipw.json'\n"
    "local long = ('a long text with \\n and \\u{e9} '):rep(3)\n"
    "local thread\n"
    "local function tools(i) return { role = 'assistant', content = json.null, tool_calls = {\n"
    "  { id = 'call_' .. i, type = 'function', ['function'] = { name = 'f', arguments = long .. i "
    "} } } }\n"
    "end\n"
    "local function copy(v)\n"
    "  if type(v) ~= 'table' then return v end\n"
    "  local out = {}\n"
    "  for k, x in pairs(v) do out[k] = copy(x) end\n"
    "  return out\n"
    "end\n"
    "local ways = {\n"
    "  function(m) m.content = (m.content or '') .. ' more' end,\n"
    "  function(m) m.content = long .. #thread; collect() end,\n"
    "  function(m) m.content = nil; collect() m.content = long .. 'x' end,\n"
    "  function(m) m.content = 1 end,\n"
    "  function(m) m.content = 1.0 end,\n"
    "  function(m) m.content = true end,\n"
    "  function(m) m.content = {} end,\n"
    "  function(m) m.content = json.list {} end,\n"
    "  function(m) m.content = { 'a', { b = long } } end,\n"
    "  function(m) m.content = json.raw('{\"z\":' .. #thread .. '}') end,\n"
    "  function(m) m.content = json.null end,\n"
    "  function(m) m.role, m.name = m.name or 'user', m.role end,\n"
    "  function(m) m.role, m[m.role or 'x'] = nil, 'role' end,\n"
    "  function(m) if m.tool_calls then m.tool_calls[1]['function'].arguments = '{}' end end,\n"
    "  function(m) if m.tool_calls then m.tool_calls[2] = { id = long } end end,\n"
    "  function(_, i) thread[i] = copy(thread[i]) end,\n"
    "  function(_, i) thread[i] = thread[#thread] end,\n"
    "  function(_, i) thread[i] = json.raw('{\"role\":\"' .. i .. '\"}') end,\n"
    "  function(_, i) if #thread > 1 then table.remove(thread, i) end end,\n"
    "  function(_, i) table.insert(thread, i, { role = 'user', content = long }) end,\n"
    "  function() thread = { thread[1], thread[2] } end,\n"
    "  function() thread = copy(thread); collect() end,\n"
    "  function(_, i) thread[i] = json.seal(thread[i]) end,\n"
    "  function(m) local p = m.content; if type(p) == 'table' and type(p[2]) == 'table' then "
    "p[2].b = "
    "'part ' .. #thread end end,\n"
    "  function(m) rawset(m, 'added', #thread) end,\n"
    "  function(_, i) thread[i], thread[#thread] = thread[#thread], thread[i] end,\n"
    "  function(m) local n = 0; local t = m; while n < 40 do t.d = {}; t = t.d; n = n + 1 end "
    "end,\n"
    "}\n"
    "return function(seed)\n"
    "  if seed == 0 then\n"
    "    thread = { { role = 'system', content = 'be brief' } }\n"
    "    return thread\n"
    "  end\n"
    "  local way = seed % 64 // 1\n"
    "  if ways[way] then\n"
    "    local i = seed // 64 % #thread + 1\n"
    "    local m = thread[i]\n"
    "    if type(m) == 'table' or way > 15 and way < 23 then\n"
    "      local ok, why = pcall(ways[way], m, i)\n"
    "      if not ok and not why:find 'concatenate' then error(why) end\n"
    "    end\n"
    "  else\n"
    "    thread[#thread + 1] = seed % 3 == 0 and tools(seed) or\n"
    "      { role = 'user', content = seed % 3 == 1 and long .. seed or 'short' }\n"
    "  end\n"
    "  return thread\n"
    "end\n";

static int collect(lua_State *L) { return lua_gc(L, LUA_GCCOLLECT); }

static void push_step(struct world *w)
{
    struct ipw_err err = {0};
    lua_State *L = ipw_vm_lua(w->vm);

    lua_register(L, "collect", collect);
    lua_pushcfunction(L, world_compile);
    lua_pushlightuserdata(L, (void *)(uintptr_t)script);
    assert_int_equal(ipw_vm_call(w->vm, 1, 1, &err), 0);
    if (ipw_vm_call(w->vm, 0, 1, &err)) fail_msg("%s", err.text);
}

/* Leaves the thread at the top. */
static void step(struct world *w, lua_Integer seed)
{
    struct ipw_err err = {0};
    lua_State *L = ipw_vm_lua(w->vm);

    lua_pushvalue(L, 1);
    lua_pushinteger(L, seed);
    if (ipw_vm_call(w->vm, 1, 1, &err)) fail_msg("%s", err.text);
}

static void encode_all(lua_State *L, struct ipw_buf *out)
{
    struct ipw_err err = {0};

    for (lua_Unsigned i = 1; i <= lua_rawlen(L, -1); i++) {
        if (i > 1) ipw_buf_addc(out, ',');
        lua_rawgeti(L, -1, (lua_Integer)i);
        if (ipw_value_encode(L, -1, out, &err)) fail_msg("%s", err.text);
        lua_pop(L, 1);
    }
}

static struct ipw_conversation *take(lua_State *L)
{
    struct ipw_err err = {0};
    struct ipw_conversation *c = NULL;
    int top = lua_gettop(L);

    if (ipw_conversation_take(&c, &ipw_vm_of(L)->conversations, L, -1, &err))
        fail_msg("%s", err.text);
    assert_int_equal(lua_gettop(L), top);
    return c;
}

static void check(lua_State *L, const struct ipw_conversation *c, uint64_t seed)
{
    struct ipw_buf whole = IPW_BUF(1 << 24);

    encode_all(L, &whole);
    if (strcmp(ipw_buf_str(&whole), ipw_buf_str(&c->text)) != 0)
        fail_msg("step %llu:\n%s\nis not\n%s", (unsigned long long)seed, c->text.data, whole.data);
    assert_int_equal(c->n, lua_rawlen(L, -1));
    assert_int_equal(ipw_conversation_start(c, c->n), c->text.len);
    for (size_t i = 1; i < c->n; i++)
        assert_int_equal(c->text.data[ipw_conversation_start(c, i) - 1], ',');
    ipw_buf_release(&whole);
}

static void test_every_edit_is_noticed(void **state)
{
    uint64_t x = 88172645463325252ULL;

    (void)state;
    for (int round = 0; round < 60; round++) {
        struct world w;
        lua_State *L;

        world_open(&w, 0);
        L = ipw_vm_lua(w.vm);
        push_step(&w);
        for (int i = 0; i < 120; i++) {
            struct ipw_conversation *c;

            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            step(&w, i ? (lua_Integer)(x % 100000) : 0);
            c = take(L);
            check(L, c, x % 100000);
            ipw_conversation_give_back(c);
            lua_pop(L, 1);
        }
        world_close(&w);
    }
}

static void test_an_unchanged_message_is_not_encoded_again(void **state)
{
    struct world w;
    lua_State *L;
    struct ipw_conversation *c, *again;

    (void)state;
    world_open(&w, 0);
    L = ipw_vm_lua(w.vm);
    push_step(&w);
    step(&w, 0);
    for (int i = 1; i < 40; i++) {
        lua_pop(L, 1);
        step(&w, 64 * i); /* adds one */
    }
    c = take(L);
    assert_int_equal(c->n, 40);
    c->text.data[c->text.len - 2] = '!'; /* a mark that only a new encoding would take away */
    ipw_conversation_give_back(c);
    again = take(L);
    assert_ptr_equal(again, c);
    assert_int_equal(c->text.data[c->text.len - 2], '!');
    ipw_conversation_give_back(c);
    lua_pop(L, 1);
    world_close(&w);
}

static void test_a_short_text_can_be_dropped(void **state)
{
    struct world w;
    lua_State *L;
    struct ipw_conversation *c;

    (void)state;
    world_open(&w, 0);
    L = ipw_vm_lua(w.vm);
    push_step(&w);
    step(&w, 0);
    for (int i = 1; i < 40; i++) {
        size_t n = lua_rawlen(L, -1), end;

        c = take(L);
        check(L, c, 0);
        end = ipw_conversation_start(c, n);
        assert_int_equal(ipw_conversation_drop_text(c), n < 12); /* a longer one is used again */
        assert_int_equal(c->text.len, n < 12 ? 0 : end);
        assert_int_equal(ipw_conversation_start(c, n), end); /* a repeated request asks for it */
        ipw_conversation_give_back(c);
        lua_pop(L, 1);
        step(&w, 64 * i); /* adds one */
    }
    lua_pop(L, 1);
    world_close(&w);
}

/* Two requests in flight at once: neither touches the text of the other. */
static void test_one_that_is_taken_is_left_alone(void **state)
{
    struct world w;
    lua_State *L;
    struct ipw_conversation *first, *second;

    (void)state;
    world_open(&w, 0);
    L = ipw_vm_lua(w.vm);
    push_step(&w);
    step(&w, 0);
    first = take(L);
    second = take(L);
    assert_ptr_not_equal(first, second);
    assert_string_equal(first->text.data, second->text.data);
    ipw_conversation_give_back(first);
    ipw_conversation_give_back(second);
    ipw_conversation_give_back(NULL);
    lua_pop(L, 1);
    world_close(&w);
}

static void test_the_message_at_fault_is_named(void **state)
{
    static const char bad[] = "return { { role = 'user' }, { content = { 1, print } } }";
    struct ipw_err err = {0};
    struct ipw_conversation *c = NULL;
    struct world w;
    lua_State *L;

    (void)state;
    world_open(&w, 0);
    L = ipw_vm_lua(w.vm);
    lua_pushcfunction(L, world_compile);
    lua_pushlightuserdata(L, (void *)(uintptr_t)bad);
    assert_int_equal(ipw_vm_call(w.vm, 1, 1, &err), 0);
    assert_int_equal(ipw_vm_call(w.vm, 0, 1, &err), 0);
    assert_int_equal(ipw_conversation_take(&c, &ipw_vm_of(L)->conversations, L, -1, &err),
                     IPW_EINVAL);
    assert_string_equal(err.text, "messages[2].content[2]: a function is not a JSON value");
    assert_null(c);
    lua_pushnil(L);
    lua_rawseti(L, -2, 2);
    c = take(L);
    assert_string_equal(c->text.data, "{\"role\":\"user\"}");
    ipw_conversation_give_back(c);
    lua_pop(L, 1);
    world_close(&w);
}

UNIT(conversation)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_edit_is_noticed),
        cmocka_unit_test(test_an_unchanged_message_is_not_encoded_again),
        cmocka_unit_test(test_a_short_text_can_be_dropped),
        cmocka_unit_test(test_one_that_is_taken_is_left_alone),
        cmocka_unit_test(test_the_message_at_fault_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
