/* script/lib_column: what a way leads to, and what is not known; rows, limits, texts. */
#include "unit/script/world.h"

#include "script/lib_column.h"
#include "unit/unit.h"

/* A state with the functions by their names in ipw.core.export; 1 is the columns. */
static lua_State *state(void)
{
    lua_State *L = luaL_newstate();

    lua_register(L, "columns", ipw_columns_new);
    lua_register(L, "cells", ipw_columns_cells);
    lua_register(L, "set", ipw_columns_set);
    lua_register(L, "rows", ipw_columns_rows);
    return L;
}

/* The first result of a text of Lua, or its error. */
static const char *result(lua_State *L, const char *script)
{
    lua_settop(L, 1);
    (void)(luaL_loadbuffer(L, script, strlen(script), "=t") || lua_pcall(L, 0, 1, 0));
    return luaL_tolstring(L, -1, NULL);
}

/* Columns of the paths, a list in Lua, as 1 and as the global c. */
static void open_columns(lua_State *L, const char *paths)
{
    lua_settop(L, 0);
    assert_int_equal(luaL_loadstring(L, paths) || lua_pcall(L, 0, 1, 0), 0);
    lua_pushvalue(L, 1);
    lua_setglobal(L, "c");
}

static void take(lua_State *L, const char *text)
{
    struct ipw_json *doc;
    struct ipw_err err;

    assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, &err), 0);
    ipw_columns_take(L, 1, doc);
    ipw_json_free(doc);
}

static void ways_and_kinds(void **ignored)
{
    static const struct {
        const char *path, *object, *cell;
    } rows[] = {
        {"a", "{\"a\":3}", "3"},
        {"a", "{\"a\":1,\"a\":2}", "2"},
        {"a", "{\"ab\":1}", "nil"},
        {"ab", "{\"a\":1}", "nil"},
        {"a", "{\"a\":2.5}", "2.5"},
        {"a", "{\"a\":null}", "nil"},
        {"a", "{\"a\":\"3\"}", "nil"},
        {"a", "{\"a\":true}", "nil"},
        {"a", "[1]", "nil"},
        {"", "{\"a\":1}", "nil"},
        {"a.b", "{\"a\":{\"b\":-1}}", "-1"},
        {"a.b", "{\"a\":1}", "nil"},
        {"a.b.c", "{\"a\":{\"b\":{\"c\":7}}}", "7"},
        {"a.b|c.d|e", "{\"a\":{\"b\":1},\"c\":{\"d\":2},\"e\":3}", "1"},
        {"a.b|c.d|e", "{\"a\":{\"b\":null},\"c\":{\"d\":2},\"e\":3}", "2"},
        {"a.b|c.d|e", "{\"a\":{\"b\":\"1\"},\"e\":3}", "3"},
        {"a|b.c", "{\"b\":{\"c\":4}}", "4"},
        {"a|", "{\"b\":1}", "nil"},
        {"s/x.v", "{\"s\":[{\"kind\":\"x\",\"v\":1},{\"kind\":\"y\",\"v\":2}]}", "1"},
        {"s/x.v", "{\"s\":[{\"kind\":\"x\",\"v\":1},{\"kind\":\"x\",\"v\":2}]}", "2"},
        {"s/x.v", "{\"s\":[{\"kind\":\"xy\",\"v\":1},{\"kind\":3},4,{}]}", "nil"},
        {"s/x.v", "{\"s\":{\"kind\":\"x\",\"v\":1}}", "nil"},
        {"s/x.v", "{}", "nil"},
        {"a$", "{\"a\":\"t\"}", "t"},
        {"a$", "{\"a\":\"\"}", ""},
        {"a$", "{\"a\":1}", "nil"},
        {"a$", "{\"a\":[\"gpu\",\"cpu\"]}", "gpu cpu "},
        {"a$", "{\"a\":[]}", ""},
        {"a$", "{\"a\":[1,\"x\"]}", " x "},
        {"a.b|c$", "{\"a\":{\"b\":1},\"c\":\"t\"}", "t"},
        {"a?", "{\"a\":true}", "1"},
        {"a?", "{\"a\":false}", "0"},
        {"a?", "{\"a\":1}", "nil"},
    };
    lua_State *L = state();

    (void)ignored;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lua_pushstring(L, rows[i].path);
        lua_setglobal(L, "path");
        open_columns(L, "return columns { path }");
        take(L, rows[i].object);
        assert_string_equal(result(L, "return (cells(c, 1, 1))"), rows[i].cell);
        assert_string_equal(result(L, "return rows(c)"), "1");
    }
    lua_close(L);
}

/* Columns whose ways begin alike share the walk; each has its own value. */
static void neighbours(void **ignored)
{
    lua_State *L = state();

    (void)ignored;
    open_columns(L, "return columns { 'a.b', 'a.c', 'ab.c', 'd', 'e', 'a.d.e|d', 'a.d.f' }");
    take(L, "{\"a\":{\"b\":1,\"c\":2,\"d\":{\"e\":6,\"f\":7}},\"ab\":{\"c\":3},\"d\":4,\"e\":5}");
    take(L, "{\"d\":4}");
    assert_string_equal(
        result(L, "local text = '' for row = 1, 2 do "
                  "local cell = { cells(c, row, 1, 2, 3, 4, 5, 6, 7) } "
                  "for i = 1, 7 do text = text .. (cell[i] or '-') end end return text"),
        "1234567---4-4-");
    assert_string_equal(result(L, "return cells(c, 1)"), "nil");
    lua_close(L);
}

/* A value that comes late leaves the rows before it unknown; so does one after which none comes. */
static void rows_without_a_value(void **ignored)
{
    lua_State *L = state();

    (void)ignored;
    open_columns(L, "return columns { 'a', 'b$' }");
    for (int i = 1; i <= 100; i++) take(L, i == 50 ? "{\"a\":50,\"b\":\"x\"}" : "{}");
    take(L, "{\"b\":\"x\"}");
    take(L, "{\"b\":\"y\"}");
    assert_string_equal(result(L,
                               "for row = 1, 102 do local a, b = cells(c, row, 1, 2) "
                               "if a ~= (row == 50 and 50 or nil) then return row end "
                               "if b ~= ((row == 50 or row == 101) and 'x' or row == 102 and 'y' "
                               "or nil) then return row end end return 'right'"),
                        "right");
    lua_close(L);
}

static void set_changes_a_cell(void **ignored)
{
    static const struct {
        const char *script, *result;
    } rows[] = {
        {"return cells(c, 1, 1)", "3"},
        {"set(c, 1, 1, 4) return cells(c, 1, 1)", "4"},
        {"set(c, 1, 1, nil) return cells(c, 1, 1)", "nil"},
        {"set(c, 1, 1) return cells(c, 1, 1)", "nil"},
        {"set(c, 2, 1, 5) return cells(c, 2, 1)", "5"},
        {"set(c, 2, 2, nil) return cells(c, 2, 2)", "nil"},
        {"set(c, 2, 2, 1) return cells(c, 2, 2)", "1"},
        {"set(c, 1, 1, 0.5) return cells(c, 1, 1)", "0.5"},
        {"return cells(c, 2, 1)", "5.0"}, /* of the column one value is no integer */
        {"set(c, 3, 1, 5)", "t:1: bad argument #2 to 'set' (there is no such row)"},
        {"set(c, 0, 1, 5)", "t:1: bad argument #2 to 'set' (there is no such row)"},
        {"set(c, 1, 4, 5)", "t:1: bad argument #3 to 'set' (there is no such column)"},
        {"set(c, 1, 3, 1e300)", "t:1: bad argument #3 to 'set' (a column of texts)"},
        {"return cells(c, 1, 3)", "t"},
        {"return cells(c, 1, 1, 0)", "t:1: bad argument #4 to 'cells' (there is no such column)"},
        {"return cells({}, 1)",
         "t:1: bad argument #1 to 'cells' (ipw.export.columns expected, got table)"},
    };
    lua_State *L = state();

    (void)ignored;
    open_columns(L, "return columns { 'a', 'b?', 't$' }");
    take(L, "{\"a\":3,\"t\":\"t\"}");
    take(L, "{}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(result(L, rows[i].script), rows[i].result);
    lua_close(L);
}

static void as_many_columns_as_are_allowed(void **ignored)
{
    static const char script[] = "local list = {} for i = 1, n do list[i] = 'k' .. i end "
                                 "c = columns(list) return 'right'";
    static const struct {
        int n;
        const char *result;
    } rows[] = {
        {0, "t:1: bad argument #1 to 'columns' (expects 1 to 120 paths)"},
        {1, "right"},
        {120, "right"},
        {121, "t:1: bad argument #1 to 'columns' (expects 1 to 120 paths)"},
    };
    lua_State *L = state();

    (void)ignored;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lua_pushinteger(L, rows[i].n);
        lua_setglobal(L, "n");
        assert_string_equal(result(L, script), rows[i].result);
    }
    /* The columns before a path that is none are not lost. */
    assert_non_null(strstr(result(L, "columns { 'a', {} }"), "string expected, got table"));
    lua_close(L);
}

UNIT(lib_column)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_and_kinds),
        cmocka_unit_test(neighbours),
        cmocka_unit_test(rows_without_a_value),
        cmocka_unit_test(set_changes_a_cell),
        cmocka_unit_test(as_many_columns_as_are_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
