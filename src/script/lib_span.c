/* ipw.core.span: spans that a script makes. */
#include <lauxlib.h>

#include "script/host.h"
#include "script/lib.h"
#include "script/script_span.h"
#include "script/vm.h"

/* start(name, json): the span's number. [-2, +1, e] */
static int span_start(lua_State *L)
{
    size_t n = 0;
    const char *name = luaL_checkstring(L, 1), *json = luaL_optlstring(L, 2, NULL, &n);
    int32_t span = ipw_script_span_start(L, "event", name, json, n);

    if (!span) return luaL_error(L, "more than %d events of a query's own", IPW_SCRIPT_SPANS_MAX);
    lua_pushinteger(L, span);
    return 1;
}

/* finish(span, name, outcome, error, json). [-5, 0, e] */
static int span_finish(lua_State *L)
{
    lua_Integer span = luaL_checkinteger(L, 1);
    const char *name = luaL_checkstring(L, 2), *outcome = luaL_checkstring(L, 3);
    struct ipw_script_span_end end = {.outcome = outcome, .result_bytes = -1};

    end.ok = outcome[0] == 'o' && outcome[1] == 'k' && !outcome[2];
    end.error = luaL_optstring(L, 4, NULL);
    end.json = luaL_optlstring(L, 5, NULL, &end.json_n);
    ipw_script_span_finish(ipw_vm_host(L), (int32_t)span, "event", name, &end);
    return 0;
}

int ipw_lib_span(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"start", span_start}, {"finish", span_finish}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
