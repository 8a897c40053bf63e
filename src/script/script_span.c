#include "script/script_span.h"

#include <lauxlib.h>

#include "base/clock.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/task.h"
#include "script/vm.h"

int32_t ipw_script_span_start(lua_State *L, const char *kind, const char *name, const char *json,
                              size_t json_n)
{
    struct ipw_host *host = ipw_vm_host(L);
    struct ipw_event event = {.kind = IPW_EV_SPAN_START, .t_ns = ipw_now_ns(), .query = -1};

    if (host->count.own_spans == IPW_SCRIPT_SPANS_MAX) return 0;
    host->count.own_spans++;
    event.span = ipw_host_next_span(host, ipw_task_in_tool(ipw_vm_of(L)));
    event.tool = (struct ipw_tool_facts){.name = name, .kind = kind};
    event.payload = json;
    event.payload_len = json_n;
    if (host->on.emit) host->on.emit(host->on.ud, &event);
    return event.span;
}

void ipw_script_span_finish(struct ipw_host *host, int32_t span, const char *kind, const char *name,
                            const struct ipw_script_span_end *end)
{
    struct ipw_event event = {.kind = IPW_EV_SPAN_END,
                              .t_ns = end->t_ns ? end->t_ns : ipw_now_ns(),
                              .query = -1,
                              .span = span,
                              .payload = end->json,
                              .payload_len = end->json_n};

    event.tool = (struct ipw_tool_facts){.name = name,
                                         .kind = kind,
                                         .ok = end->ok,
                                         .outcome = end->outcome,
                                         .error = end->error,
                                         .result_bytes = end->result_bytes};
    if (host->on.emit) host->on.emit(host->on.ud, &event);
}

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
