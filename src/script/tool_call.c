#include "script/tool_call.h"

#include <stdbool.h>
#include <string.h>

#include "script/task.h"
#include "script/vm_priv.h"

struct ipw_tool_call {
    int32_t span, outer;
    int64_t cut_bytes, cpu_ns, peak_bytes;
    int running; /* children that started and have not ended */
    bool refused, ended, unknown;
    struct ipw_tool_call *next;
};

static struct ipw_tool_call *find(const struct ipw_vm *vm, int32_t span)
{
    struct ipw_tool_call *call = span ? vm->tool_calls : NULL;

    while (call && call->span != span) call = call->next;
    return call;
}

static struct ipw_tool_call *running(const struct ipw_vm *vm)
{
    return find(vm, ipw_task_tool(vm));
}

/* ---- calls ---- */

bool ipw_tool_call_begin(struct ipw_vm *vm, int32_t span)
{
    struct ipw_tool_call *call = ipw_arena_resize(&vm->arena, NULL, 0, sizeof *call);

    if (!call) { /* as when Lua's allocator refuses a block */
        vm->over_memory = 1, vm->refused = true;
        return false;
    }
    *call =
        (struct ipw_tool_call){.span = span, .outer = ipw_task_tool(vm), .next = vm->tool_calls};
    vm->tool_calls = call;
    ipw_task_set_tool(vm, span);
    return true;
}

int32_t ipw_tool_call_end(struct ipw_vm *vm, int32_t span, struct ipw_tool_facts *facts)
{
    struct ipw_tool_call **at = &vm->tool_calls, *call;
    int32_t outer;

    while (*at && (*at)->span != span) at = &(*at)->next;
    call = *at;
    if (!call) return 0;
    outer = call->outer;
    facts->cut_bytes = call->cut_bytes;
    if (call->unknown || call->running) {
        facts->child_provenance = "unknown";
    } else if (call->ended) {
        facts->child_provenance = "rusage";
        facts->child_cpu_ns = call->cpu_ns;
        facts->child_peak_bytes = call->peak_bytes;
    }
    if (call->refused && !strcmp(facts->outcome, "error")) facts->outcome = "refused";
    *at = call->next;
    ipw_arena_resize(&vm->arena, call, sizeof *call, 0);
    ipw_task_set_tool(vm, outer);
    return outer;
}

void ipw_tool_call_cut(struct ipw_vm *vm, int64_t bytes)
{
    struct ipw_tool_call *call = running(vm);

    if (call && bytes > 0 && bytes < INT64_MAX - call->cut_bytes) call->cut_bytes += bytes;
}

void ipw_tool_call_refused(struct ipw_vm *vm)
{
    struct ipw_tool_call *call = running(vm);

    if (call) call->refused = true;
}

/* ---- children ---- */

void ipw_tool_call_child_starts(struct ipw_vm *vm)
{
    struct ipw_tool_call *call = running(vm);

    if (call) call->running++;
}

void ipw_tool_call_child_ended(struct ipw_vm *vm, const struct ipw_proc_result *result)
{
    struct ipw_tool_call *call = running(vm);

    if (!call) return;
    call->running--;
    if (result->exec_errno || result->no_sandbox) return; /* no program ran */
    call->ended = true;
    if (result->cpu_ns < 0) call->unknown = true;
    call->cpu_ns += result->cpu_ns;
    if (result->peak_bytes > call->peak_bytes) call->peak_bytes = result->peak_bytes;
}

void ipw_tool_call_child_stays(struct ipw_vm *vm)
{
    struct ipw_tool_call *call = running(vm);

    if (call) call->unknown = true;
}
