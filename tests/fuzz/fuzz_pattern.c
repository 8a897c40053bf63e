/* Lua patterns: ours find, match and replace what the stock library's do, with the same errors.
 * The input is a pattern, a replacement and a subject, a line each; the subject goes to the end.
 * At most three repeats in a pattern, because the stock matcher cannot be stopped. */
#include <lauxlib.h>
#include <lualib.h>

#include "check.h"
#include "script/sandbox.h"
#include "script/vm.h"

enum { MAX_PATTERN = 40, MAX_SUBJECT = 40, MAX_REPEATS = 3 };

static const char script[] =
    "local stock, ours = stock, string\n"
    "local function show(...)\n"
    "  local t = table.pack(...)\n"
    "  for i = 1, t.n do\n"
    "    t[i] = math.type(t[i]) == 'integer' and '#' .. t[i] or stock.format('%q', t[i])\n"
    "  end\n"
    "  return table.concat(t, ',')\n"
    "end\n"
    "local function all(lib, s, p, init)\n"
    "  local t = {}\n"
    "  for a, b in lib.gmatch(s, p, init) do t[#t + 1] = show(a, b) end\n"
    "  return table.concat(t, ';')\n"
    "end\n"
    "return function(s, p, r, at)\n"
    "  local function both(what, f)\n"
    "    local x, y = show(pcall(f, stock)), show(pcall(f, ours))\n"
    "    if x ~= y then error(stock.format('%s: %q in %q: %s, stock %s', what, p, s, y, x), 0) "
    "end\n"
    "  end\n"
    "  both('find', function(lib) return lib.find(s, p, at) end)\n"
    "  both('plain', function(lib) return lib.find(s, p, at, true) end)\n"
    "  both('match', function(lib) return lib.match(s, p, at) end)\n"
    "  both('gmatch', function(lib) return all(lib, s, p, at) end)\n"
    "  both('gsub', function(lib) return lib.gsub(s, p, r) end)\n"
    "  both('gsub', function(lib) return lib.gsub(s, p, function(a) return a ~= s and a end, at) "
    "end)\n"
    "end\n";

static struct ipw_vm *vm;

static int prepare(lua_State *L)
{
    lua_pushcfunction(L, luaopen_string);
    lua_call(L, 0, 1);
    lua_setglobal(L, "stock");
    if (luaL_loadstring(L, script) != LUA_OK) return lua_error(L);
    lua_call(L, 0, 1);
    return 1;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct ipw_vm_options options = {0};
    struct ipw_err err = {0};

    (void)argc, (void)argv;
    if (ipw_sandbox_open(&vm, &options, &err)) IPW_BUG("%s", err.text);
    lua_pushcfunction(ipw_vm_lua(vm), prepare);
    if (ipw_vm_call(vm, 0, 1, &err)) IPW_BUG("%s", err.text);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = text + size;
    const char *first = size ? memchr(text, '\n', size) : NULL;
    const char *second = first ? memchr(first + 1, '\n', (size_t)(end - first - 1)) : NULL;
    lua_State *L = ipw_vm_lua(vm);
    struct ipw_err err = {0};
    size_t repeats = 0;

    if (!second || first - text > MAX_PATTERN || end - second > MAX_SUBJECT ||
        second - first > MAX_PATTERN)
        return -1;
    for (const char *p = text; p < first; p++) repeats += strchr("*+-?", *p) != NULL && *p;
    if (repeats > MAX_REPEATS) return -1;
    lua_pushvalue(L, -1);
    lua_pushlstring(L, second + 1, (size_t)(end - second - 1));
    lua_pushlstring(L, text, (size_t)(first - text));
    lua_pushlstring(L, first + 1, (size_t)(second - first - 1));
    lua_pushinteger(L, size % 5 == 0 ? -(lua_Integer)(size % 7) : (lua_Integer)(size % 7));
    ipw_vm_renew_cpu(vm);
    if (ipw_vm_call(vm, 4, 0, &err)) IPW_BUG("%s", err.text);
    lua_gc(L, LUA_GCCOLLECT, 0); /* or libFuzzer takes garbage for a leak, and looks for it */
    return 0;
}
