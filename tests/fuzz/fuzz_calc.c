/* The calculator's expressions: any text gives a number or a reason, never a raise.  Sums and products of
 * short whole numbers are what Lua makes of them. */
#include <ctype.h>
#include <lauxlib.h>

#include "check.h"
#include "script/sandbox.h"
#include "script/vm.h"

static struct ipw_vm *vm;

static const char script[] =
    "local calc = require 'ipw.core.calc'\n"
    "return function(text, same)\n"
    "  local value, why = calc.eval(text)\n"
    "  if value == nil then\n"
    "    if type(why) ~= 'string' or why == '' then error 'neither a number nor a reason' end\n"
    "    return\n"
    "  end\n"
    "  if math.type(value) == nil then error 'a result that is not a number' end\n"
    "  if type(calc.format(value)) ~= 'string' then error 'a number without a text' end\n"
    "  local again = calc.eval(text)\n"
    "  if again ~= value and value == value then error 'another result the second time' end\n"
    "  local chunk = same and load('return ' .. text)\n"
    "  local good, lua\n"
    "  if chunk then good, lua = pcall(chunk) end\n"
    "  if good and lua ~= nil and lua ~= value then\n"
    "    error(('%q: %s, Lua %s'):format(text, value, lua), 0)\n"
    "  end\n"
    "end\n";

static int prepare(lua_State *L)
{
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

/* Digits, brackets and + - * that mean the same to Lua, too few to leave 64 bits. */
static bool means_the_same(const char *text, size_t n)
{
    size_t digits = 0;

    for (size_t i = 0; i < n; i++) {
        if (!strchr("0123456789()+-* ", text[i]) || !text[i]) return false;
        if (i && text[i] == '-' && text[i - 1] == '-') return false;
        digits += isdigit((unsigned char)text[i]) != 0;
    }
    return digits <= 15 && !strstr(text, "**");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lua_State *L = ipw_vm_lua(vm);
    struct ipw_err err = {0};
    char *text = exact_text(data, size);

    lua_pushvalue(L, -1);
    lua_pushlstring(L, text, size);
    lua_pushboolean(L, means_the_same(text, size));
    ipw_vm_renew_cpu(vm);
    if (ipw_vm_call(vm, 2, 0, &err)) IPW_BUG("%s", err.text);
    lua_gc(L, LUA_GCCOLLECT, 0); /* or libFuzzer takes garbage for a leak, and looks for it */
    free(text);
    return 0;
}
