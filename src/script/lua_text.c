#include "script/lua_text.h"

#include <lauxlib.h>
#include <lua.h>

#include "base/clock.h"
#include "script/sandbox.h"
#include "script/value.h"

#define CPU_NS (60 * IPW_NS_PER_S)

struct making {
    const char *module;
    const struct ipw_buf *json;
    const struct ipw_lua_text_style *style;
};

/* make(light userdata): the module's text. */
static int make(lua_State *L)
{
    const struct making *m = lua_touserdata(L, 1);
    struct ipw_err err;

    ipw_value_push_function(L, m->module, "text");
    if (ipw_value_decode(L, m->json->data, m->json->len, &err))
        return luaL_error(L, "%s", err.text);
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, m->style->width);
    lua_setfield(L, -2, "width");
    lua_pushboolean(L, m->style->colour);
    lua_setfield(L, -2, "colour");
    lua_pushboolean(L, m->style->brief);
    lua_setfield(L, -2, "brief");
    lua_call(L, 2, 1);
    luaL_checktype(L, -1, LUA_TSTRING);
    return 1;
}

int ipw_lua_text(struct ipw_buf *out, const char *module, const struct ipw_buf *json,
                 const struct ipw_lua_text_style *style, struct ipw_err *err)
{
    struct ipw_vm_options options = {.memory_bytes = 512 * IPW_MIB, .slice_cpu_ns = CPU_NS};
    struct making m = {module, json, style};
    struct ipw_vm *vm;
    const char *text;
    size_t n;
    int rc = ipw_sandbox_open(&vm, &options, err);

    if (rc) return rc;
    lua_pushcfunction(ipw_vm_lua(vm), make);
    lua_pushlightuserdata(ipw_vm_lua(vm), &m);
    rc = ipw_vm_call(vm, 1, 1, err);
    if (!rc) {
        text = lua_tolstring(ipw_vm_lua(vm), -1, &n);
        ipw_buf_add(out, text, n);
    }
    ipw_sandbox_close(vm);
    return rc;
}
