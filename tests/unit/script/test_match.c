/* Our patterns against the stock library's (rule 10): random patterns over random subjects, results
 * and error messages alike.  IPW_MATCH_CASES sets how many (a long run: 5000000), IPW_MATCH_SEED
 * where they begin. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "script/sandbox.h"
#include "script/vm.h"
#include "unit/unit.h"

static const char script[] =
    "local stock, ours = stock, string\n"
    "local pieces = { 'a', 'b', 'c', '.', '%a', '%A', '%d', '%s', '%w', '%W', '%x', '%z', '%%', "
    "'%.',\n"
    "  '[abc]', '[^a]', '[a-c]', '[^%d]', '[%w_]', '[]]', '[^]]', '[a-]', '[%a-z]', '[a', '[', "
    "'[^',\n"
    "  '(', ')', '()', '(a)', '(.-)', '(.*)', '*', '+', '-', '?', '^', '$', '%1', '%2', '%0', "
    "'%b()', '%bab',\n"
    "  '%b', '%f[%w]', '%f[^a]', '%f', '%f[', '%', '\\0', ' ', '1', '%g', '%p', '%c', '%u', '%L', "
    "'[%z%s]',\n"
    "  '[%]', '[%', ']', '%]', '[b-a]', '[--/]', '(()', '%q', '\\200', '[\\128-\\255]' }\n"
    "local letters = { 'a', 'b', 'c', 'a', 'b', '(', ')', ' ', '1', '2', '.', '%', '_', 'A', "
    "'\\0', '\\200', '-', ']' }\n"
    "local repls = { 'x', '%0', '%1', '%2', '<%1>', '%', '%%', '%9', '', '%x', 'a%0b%1' }\n"
    "local function text(of, most)\n"
    "  local t = {}\n"
    "  for i = 1, math.random(0, most) do t[i] = of[math.random(#of)] end\n"
    "  return table.concat(t)\n"
    "end\n"
    "local function show(...)\n"
    "  local t = table.pack(...)\n"
    "  for i = 1, t.n do t[i] = math.type(t[i]) == 'integer' and '#' .. t[i] or stock.format('%q', "
    "t[i]) end\n"
    "  return table.concat(t, ',')\n"
    "end\n"
    "local function all(lib, s, p, init)\n"
    "  local t = {}\n"
    "  for a, b in lib.gmatch(s, p, init) do\n"
    "    t[#t + 1] = show(a, b)\n"
    "    if #t > 60 then break end\n"
    "  end\n"
    "  return table.concat(t, ';')\n"
    "end\n"
    "local function reverse(...) return (...) ~= 'a' and ((...) .. '!') end\n"
    "local swap = setmetatable({ a = 'b', ab = 1, b = false }, { __index = function(_, k) return k "
    "== 'c' and {} or nil end })\n"
    "local init = { 1, 2, 3, 0, -1, -2, 20, -20, 13 }\n"
    "return function(seed, n)\n"
    "  math.randomseed(seed)\n"
    "  for case = 1, n do\n"
    "    local s, p = text(letters, 14), text(pieces, 7)\n"
    "    if math.random(3) == 1 then p = '^' .. p end\n"
    "    local at, r, plain = init[math.random(#init)], repls[math.random(#repls)], math.random(8) "
    "== 1\n"
    "    local most = math.random(4) == 1 and math.random(-1, 3) or nil\n"
    "    local function both(what, f)\n"
    "      local x, y = show(pcall(f, stock)), show(pcall(f, ours))\n"
    "      if x ~= y then\n"
    "        error(stock.format('%s: subject %q pattern %q init %s replacement %q\\nstock "
    "%s\\nours  %s', what, s, p,\n"
    "          at, r, x, y), 0)\n"
    "      end\n"
    "    end\n"
    "    both('find', function(lib) return lib.find(s, p, at, plain) end)\n"
    "    both('match', function(lib) return lib.match(s, p, at) end)\n"
    "    both('gmatch', function(lib) return all(lib, s, p, at) end)\n"
    "    both('gsub', function(lib) return lib.gsub(s, p, r, most) end)\n"
    "    both('gsub function', function(lib) return lib.gsub(s, p, reverse) end)\n"
    "    both('gsub table', function(lib) return lib.gsub(s, p, swap) end)\n"
    "  end\n"
    "end\n";

static lua_Integer number(const char *name, lua_Integer otherwise)
{
    const char *text = getenv(name);

    return text ? strtoll(text, NULL, 10) : otherwise;
}

static int prepare(lua_State *L)
{
    lua_pushcfunction(L, luaopen_string);
    lua_call(L, 0, 1);
    lua_setglobal(L, "stock");
    if (luaL_loadstring(L, script) != LUA_OK) return lua_error(L);
    lua_call(L, 0, 1);
    return 1;
}

static void rule_10_same_as_the_stock_matcher(void **state)
{
    enum { AT_ONCE = 500 };
    lua_Integer n = number("IPW_MATCH_CASES", 20000), seed = number("IPW_MATCH_SEED", 1);
    struct ipw_vm_options options = {0};
    struct ipw_err err = {0};
    struct ipw_vm *vm;
    lua_State *L;

    (void)state;
    assert_int_equal(ipw_sandbox_open(&vm, &options, &err), 0);
    L = ipw_vm_lua(vm);
    lua_pushcfunction(L, prepare);
    if (ipw_vm_call(vm, 0, 1, &err)) fail_msg("%s", err.text);
    for (lua_Integer done = 0; done < n; done += AT_ONCE) {
        lua_pushvalue(L, -1);
        lua_pushinteger(L, seed + done);
        lua_pushinteger(L, AT_ONCE);
        if (ipw_vm_call(vm, 2, 0, &err)) fail_msg("%s", err.text);
    }
    ipw_sandbox_close(vm);
}

UNIT(match)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rule_10_same_as_the_stock_matcher)};

    return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
