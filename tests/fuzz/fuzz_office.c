/* The tool read_file and the readers below it (ipw.zip, ipw.xml, ipw.office), which are Lua: each
 * file ends as a text of bounded size or as a reason, and no reader raises.
 *
 * An input is a file as it is; or, if it begins with '=', the members of a zip file, each behind a
 * line "=NAME", so that a mutation reaches the XML and not only its checksum; or, if it begins with
 * '<', XML alone.  The members and the XML are small, so they must end within the instructions, the
 * CPU time and the memory of a script; a packed file can be a bomb, which these limits may end. */
#include <lauxlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "check.h"
#include "script/embedded.h"
#include "script/sandbox.h"
#include "script/vm.h"

enum { MAX_SIZE = 32 * 1024, COUNTERS = 8192, INSTRUCTIONS_PER_TICK = 10000, MAX_TICKS = 20000 };

/* libFuzzer sees only the branches of C.  It also takes counters from this section: one for each
 * line of Lua. */
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[COUNTERS];
static int ticks;

static const char script[] =
    "local tool = ...\n"
    "local xml = require 'ipw.xml'\n"
    "local file\n"
    "require('ipw.fs').read = function() return file end\n"
    "require('ipw.core.run').sleep = function() end\n" /* no loop runs here */
    "local function packed(text)\n"
    "  local out, list, at, n = {}, {}, 0, 0\n"
    "  for member in (text .. '\\n='):gmatch('=(.-)\\n%f[=]') do\n"
    "    local name, body = member:match('^([^\\n]*)\\n?(.*)$')\n"
    "    local head = string.pack('<I2I2I2I2I2I4I4I4I2I2', 20, 0, 0, 0, 0, 0, #body, #body,\n"
    "      #name, 0)\n"
    "    out[#out + 1] = 'PK\\3\\4' .. head .. name .. body\n"
    "    list[#list + 1] = 'PK\\1\\2\\0\\0' .. head .. string.pack('<I2I2I2I4I4', 0, 0, 0, 0, at) "
    ".. name\n"
    "    at, n = at + #out[#out], n + 1\n"
    "  end\n"
    "  local directory = table.concat(list)\n"
    "  return table.concat(out) .. directory ..\n"
    "    string.pack('<c4I2I2I2I2I4I4I2', 'PK\\5\\6', 0, 0, n, n, #directory, at, 0)\n"
    "end\n"
    "local function walk(text)\n"
    "  local step, size, open, close = xml.walk(text), 0, 0, 0\n"
    "  while true do\n"
    "    local kind, a, inside = step()\n"
    "    if not kind then break end\n"
    "    if kind == 'text' then size = size + #a\n"
    "    elseif kind == 'close' then close = close + 1\n"
    "    else\n"
    "      open = open + 1\n"
    "      for _, name in ipairs { 'r', 'Id', 'w:val', a } do\n"
    "        local value = xml.attribute(inside, name)\n"
    "        assert(not value or #value < #inside, 'an attribute has grown')\n"
    "      end\n"
    "    end\n"
    "  end\n"
    "  assert(size <= #text, 'the text has grown')\n"
    "  assert(3 * open <= #text and 3 * close <= #text, 'more tags than there are')\n"
    "end\n"
    "return function(text, way)\n"
    "  if way == '<' then return walk(text) end\n"
    "  file = way == '=' and packed(text) or text\n"
    "  for _, part in ipairs { false, '1', '2', 'a' } do\n"
    "    local said, why = tool.run { path = 'x.csv', start = 1, lines = 500, part = part or nil "
    "}\n"
    "    assert(said == nil and type(why) == 'string' or type(said) == 'string', 'no answer')\n"
    "    assert(#(said or why) < 300000, 'a long answer')\n"
    "  end\n"
    "end\n";

static struct ipw_vm *vm;

static void on_hook(lua_State *L, lua_Debug *ar)
{
    if (ar->event == LUA_HOOKCOUNT) {
        if (++ticks > MAX_TICKS) luaL_error(L, "the reader passed its instructions");
        return;
    }
    lua_getinfo(L, "Sl", ar);
    counters[((size_t)ar->currentline + 977 * ar->srclen) %
             COUNTERS]++; /* a file's name has its length */
}

static int prepare(lua_State *L)
{
    const struct ipw_embedded_file *tool = ipw_embedded_find("agents/tools/read_file.lua");

    if (luaL_loadstring(L, script) != LUA_OK) return lua_error(L);
    if (luaL_loadbuffer(L, tool->bytes, tool->n, "=read_file") != LUA_OK) return lua_error(L);
    lua_call(L, 0, 1);
    lua_call(L, 1, 1);
    return 1;
}

static void open_vm(void)
{
    struct ipw_vm_options options = {.memory_bytes = 64 * IPW_MIB,
                                     .slice_cpu_ns = 4 * IPW_NS_PER_S};
    struct ipw_err err = {0};

    if (ipw_sandbox_open(&vm, &options, &err)) IPW_BUG("%s", err.text);
    lua_pushcfunction(ipw_vm_lua(vm), prepare);
    if (ipw_vm_call(vm, 0, 1, &err)) IPW_BUG("%s", err.text);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    open_vm();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lua_State *L = ipw_vm_lua(vm);
    struct ipw_err err = {0};
    char way[2] = {size ? (char)data[0] : 0, 0};
    int rc;

    if (size > MAX_SIZE) return -1;
    lua_pushvalue(L, -1);
    lua_pushlstring(L, (const char *)data, size);
    lua_pushstring(L, way);
    ipw_vm_renew_cpu(vm);
    ticks = 0;
    lua_sethook(L, on_hook, LUA_MASKLINE | LUA_MASKCOUNT, INSTRUCTIONS_PER_TICK);
    rc = ipw_vm_call(vm, 2, 0, &err);
    lua_sethook(L, NULL, 0, 0);
    if ((rc == IPW_ELIMIT || ticks > MAX_TICKS) && way[0] == 'P') {
        ipw_sandbox_close(vm);
        open_vm();
        return 0;
    }
    if (rc || ticks > MAX_TICKS) IPW_BUG("%s", rc ? err.text : "it does not end");
    lua_gc(L, LUA_GCCOLLECT, 0); /* or libFuzzer takes garbage for a leak, and looks for it */
    return 0;
}
