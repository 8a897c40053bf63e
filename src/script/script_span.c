#include "script/script_span.h"

#include "base/clock.h"
#include "script/host.h"
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
