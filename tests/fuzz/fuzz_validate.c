/* Arguments of a tool call against the tool's declaration: {"input": [...], "args": ...}.  Any
 * arguments are completed or refused with a sentence; completed ones are accepted a second time,
 * unchanged. */
#include <lauxlib.h>

#include "check.h"
#include "json/json.h"
#include "script/sandbox.h"
#include "script/value.h"
#include "script/vm.h"

static struct ipw_vm *vm;

static const char script[] =
    "local schema, json = require 'ipw.schema', require 'ipw.json'\n"
    "return function(case)\n"
    "  if type(case) ~= 'table' or type(case.input) ~= 'table' then return end\n"
    "  if not pcall(schema.declare, case.input) then return end\n"
    "  for _, field in ipairs(case.input) do if field.default ~= nil then return end end\n"
    "  local args = case.args\n"
    "  if args == nil then return end\n"
    "  local out, why = schema.validate(case.input, args)\n"
    "  if not out then\n"
    "    if type(why) ~= 'string' or why == '' then error 'neither arguments nor a reason' end\n"
    "    return\n"
    "  end\n"
    "  local again, wrong = schema.validate(case.input, out)\n"
    "  if not again then error('refused the second time: ' .. wrong, 0) end\n"
    "  if json.encode(again) ~= json.encode(out) then error('changed the second time', 0) end\n"
    "end\n";

struct text {
    const char *bytes;
    size_t n;
};

static int prepare(lua_State *L)
{
    if (luaL_loadstring(L, script) != LUA_OK) return lua_error(L);
    lua_call(L, 0, 1);
    return 1;
}

/* [1] the function, [2] the text */
static int run(lua_State *L)
{
    const struct text *text = lua_touserdata(L, 2);

    lua_pushvalue(L, 1);
    if (ipw_value_decode(L, text->bytes, text->n, NULL)) return 0;
    lua_call(L, 1, 0);
    return 0;
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
    struct text text = {(const char *)data, size};
    lua_State *L = ipw_vm_lua(vm);
    struct ipw_err err = {0};

    lua_pushcfunction(L, run);
    lua_pushvalue(L, -2);
    lua_pushlightuserdata(L, &text);
    ipw_vm_renew_cpu(vm);
    if (ipw_vm_call(vm, 2, 0, &err)) IPW_BUG("%s", err.text);
    lua_gc(L, LUA_GCCOLLECT, 0); /* or libFuzzer takes garbage for a leak, and looks for it */
    return 0;
}
