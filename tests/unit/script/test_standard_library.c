/* A state that opens libraries late has, for every text that it loads, what a full state has. */
#include "script/stock.h"
#include "unit/script/world.h"
#include "unit/unit.h"

static unsigned named(const char *text) { return ipw_stock_named(text, strlen(text)); }

static void words_name_libraries(void **state)
{
    unsigned math = named("return math.pi"), all = math | named("utf8") | named("coroutine()");

    (void)state;
    all |= named("-- os\n");
    assert_int_equal(all, IPW_STOCK_ALL_LATE);
    assert_int_equal(math & (math - 1), 0);
    assert_int_not_equal(math, 0);
    assert_int_equal(named(""), 0);
    assert_int_equal(named("maths a_math math1 _math string.table Os _G1 os_"), 0);
    assert_int_equal(named("x=math"), math);
    assert_int_equal(named("string.rep(_G[k])"), all);
    assert_int_equal(named("_ENV"), all);
    assert_int_equal(ipw_stock_named("os", 1), 0); /* ends inside of the word */
}

static bool has(struct ipw_vm *vm, const char *global)
{
    lua_State *L = ipw_vm_lua(vm);
    bool found = lua_getglobal(L, global) != LUA_TNIL;

    lua_pop(L, 1);
    return found;
}

/* load(text)() as text, by the load of scripts. */
static int answer(lua_State *L)
{
    lua_getglobal(L, "load");
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    lua_call(L, 0, 1);
    luaL_tolstring(L, -1, NULL);
    return 1;
}

static void run(char *out, size_t size, struct ipw_vm *vm, const char *text)
{
    lua_State *L = ipw_vm_lua(vm);
    struct ipw_err err;

    lua_pushcfunction(L, answer);
    lua_pushstring(L, text);
    if (ipw_vm_call(vm, 1, 1, &err)) fail_msg("%s: %s", text, err.text);
    snprintf(out, size, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
}

static void late_is_as_full(void **state)
{
    static const char *const texts[] = {
        "return ('x'):rep(3) .. table.concat({1, 2}, ',')",
        "return math.random(1000000) .. ' ' .. math.type(1)",
        "return utf8.char(228) .. tostring(os.time {year = 2020, month = 1, day = 1, hour = 12})",
        "local n = 0 for i in coroutine.wrap(function() coroutine.yield(7) end) do n = n + i end "
        "return n",
        "local list = {} for name, lib in pairs(_G) do list[#list + 1] = name "
        "for key in pairs(type(lib) == 'table' and lib ~= _G and lib or {}) do "
        "list[#list + 1] = name .. '.' .. key end end table.sort(list) "
        "return table.concat(list, ' ')",
    };
    struct ipw_vm_options options = {.seed = 5};
    struct ipw_vm *full, *late;
    struct ipw_err err;
    char a[4000], b[4000];

    (void)state;
    assert_int_equal(ipw_sandbox_open(&full, &options, &err), 0);
    options.late_libraries = true;
    for (size_t first = 0; first < sizeof texts / sizeof *texts; first++) {
        assert_int_equal(ipw_sandbox_open(&late, &options, &err), 0);
        assert_false(has(late, "math") || has(late, "utf8") || has(late, "coroutine") ||
                     has(late, "os"));
        ipw_sandbox_close(full);
        options.late_libraries = false;
        assert_int_equal(ipw_sandbox_open(&full, &options, &err), 0);
        options.late_libraries = true;
        for (size_t i = first; i < sizeof texts / sizeof *texts; i++) {
            run(a, sizeof a, full, texts[i]);
            run(b, sizeof b, late, texts[i]);
            assert_string_equal(a, b);
            assert_true(*a);
        }
        ipw_sandbox_close(late);
    }
    ipw_sandbox_close(full);
}

static void only_the_named_one_opens(void **state)
{
    struct ipw_vm_options options = {.late_libraries = true};
    struct ipw_vm *vm;
    struct ipw_err err;
    char text[100];

    (void)state;
    assert_int_equal(ipw_sandbox_open(&vm, &options, &err), 0);
    run(text, sizeof text, vm, "return math.floor(2.5)");
    assert_string_equal(text, "2");
    assert_true(has(vm, "math"));
    assert_false(has(vm, "os"));
    run(text, sizeof text, vm, "math.own = 3 return math.own"); /* it is not opened twice */
    run(text, sizeof text, vm, "return math.own");
    assert_string_equal(text, "3");
    ipw_sandbox_close(vm);
}

UNIT(standard_library)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_name_libraries),
        cmocka_unit_test(late_is_as_full),
        cmocka_unit_test(only_the_named_one_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
