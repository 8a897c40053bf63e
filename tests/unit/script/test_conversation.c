/* script/conversation: the texts of a request's messages, where each begins, and their hashes. */
#include "unit/script/world.h"

#include "script/conversation.h"
#include "unit/unit.h"

/* Leaves the script's value on the stack. */
static void push(struct world *w, const char *script)
{
    struct ipw_err err = {0};
    lua_State *L = ipw_vm_lua(w->vm);

    lua_pushcfunction(L, world_compile);
    lua_pushlightuserdata(L, (void *)(uintptr_t)script);
    assert_int_equal(ipw_vm_call(w->vm, 1, 1, &err), 0);
    if (ipw_vm_call(w->vm, 0, 1, &err)) fail_msg("%s", err.text);
}

static void test_texts_places_and_hashes(void **state)
{
    static const char *const texts[] = {"{\"content\":\"be brief\",\"role\":\"system\"}",
                                        "{\"b\":[1,2.0],\"content\":null}", "{\"sealed\":true}",
                                        "{\"sealed\":true}"};
    struct ipw_conversation c = {0};
    struct ipw_err err = {0};
    struct world w;
    lua_State *L;

    (void)state;
    world_open(&w, 0);
    L = ipw_vm_lua(w.vm);
    push(&w, "local json = require 'ipw.json'\n"
             "return { { role = 'system', content = 'be brief' }, { content = json.null, b = { 1, "
             "2.0 } }, json.seal { sealed = true }, { sealed = true } }");
    if (ipw_conversation_take(&c, L, -1, &err)) fail_msg("%s", err.text);
    assert_int_equal(c.n, 4);
    for (size_t i = 0; i < c.n; i++) {
        size_t at = ipw_conversation_start(&c, i);

        assert_int_equal(c.messages[i].end - at, strlen(texts[i]));
        assert_memory_equal(c.text.data + at, texts[i], strlen(texts[i]));
        if (i) assert_int_equal(c.text.data[at - 1], ',');
        for (size_t k = 0; k < i; k++)
            assert_int_equal(c.messages[k].hash == c.messages[i].hash, !strcmp(texts[k], texts[i]));
    }
    assert_int_equal(ipw_conversation_start(&c, c.n), c.text.len);
    ipw_conversation_release(&c);
    assert_int_equal(lua_gettop(L), 1);
    lua_pop(L, 1);
    world_close(&w);
}

static void test_the_message_at_fault_is_named(void **state)
{
    struct ipw_err err = {0};
    struct ipw_conversation c = {0};
    struct world w;

    (void)state;
    world_open(&w, 0);
    push(&w, "return { { role = 'user' }, { content = { 1, print } } }");
    assert_int_equal(ipw_conversation_take(&c, ipw_vm_lua(w.vm), -1, &err), IPW_EINVAL);
    assert_string_equal(err.text, "messages[2].content[2]: a function is not a JSON value");
    ipw_conversation_release(&c);
    lua_pop(ipw_vm_lua(w.vm), 1);
    world_close(&w);
}

UNIT(conversation)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_places_and_hashes),
        cmocka_unit_test(test_the_message_at_fault_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
