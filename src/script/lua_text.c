#include "script/lua_text.h"

#include <lauxlib.h>
#include <lua.h>

#include "base/clock.h"
#include "script/sandbox.h"
#include "script/value.h"

#define HEAP_BYTES (UINT64_C(1) << 40) /* our own modules, over as much as a run has */
#define CPU_NS     (3600 * IPW_NS_PER_S)

struct making {
    const char *module;
    const char *const *texts; /* instead of the others */
    const size_t *lengths;
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

/* make_of(light userdata): likewise, of texts. */
static int make_of(lua_State *L)
{
    const struct making *m = lua_touserdata(L, 1);
    int n = 0;

    ipw_value_push_function(L, m->module, "text");
    for (; m->texts[n]; n++) lua_pushlstring(L, m->texts[n], m->lengths[n]);
    lua_call(L, n, 1);
    luaL_checktype(L, -1, LUA_TSTRING);
    return 1;
}

static int run(struct ipw_buf *out, struct making *m, struct ipw_vm_options options,
               struct ipw_err *err)
{
    struct ipw_vm *vm;
    const char *text;
    size_t n;
    int rc = ipw_sandbox_open(&vm, &options, err);

    if (rc) return rc;
    lua_pushcfunction(ipw_vm_lua(vm), m->texts ? make_of : make);
    lua_pushlightuserdata(ipw_vm_lua(vm), m);
    rc = ipw_vm_call(vm, 1, 1, err);
    if (!rc) {
        text = lua_tolstring(ipw_vm_lua(vm), -1, &n);
        ipw_buf_add(out, text, n);
    }
    ipw_sandbox_close(vm);
    return rc;
}

int ipw_lua_text(struct ipw_buf *out, const char *module, const struct ipw_buf *json,
                 const struct ipw_lua_text_style *style, struct ipw_err *err)
{
    struct making m = {.module = module, .json = json, .style = style};

    return run(out, &m, (struct ipw_vm_options){.memory_bytes = HEAP_BYTES, .slice_cpu_ns = CPU_NS},
               err);
}

int ipw_lua_text_of(struct ipw_buf *out, const char *module, const char *const *texts,
                    const size_t *lengths, struct ipw_err *err)
{
    struct making m = {.module = module, .texts = texts, .lengths = lengths};

    return run(
        out, &m,
        (struct ipw_vm_options){.memory_bytes = 512 * IPW_MIB, .slice_cpu_ns = 4 * IPW_NS_PER_S},
        err);
}
