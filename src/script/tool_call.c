#include "script/tool_call.h"

#include <stdbool.h>
#include <string.h>

#include "script/task.h"
#include "script/vm_priv.h"

struct ipw_tool_call {
    int32_t span, outer;
    int64_t cut_bytes, cpu_ns, peak_bytes;
    int running; /* children that started and have not ended */
    bool refused, ended, stays, unknown;
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

static void add(struct ipw_tool_call *call, int64_t cpu_ns, int64_t peak_bytes)
{
    if (cpu_ns < 0) call->unknown = true;
    call->cpu_ns += cpu_ns;
    if (peak_bytes > call->peak_bytes) call->peak_bytes = peak_bytes;
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

static void leave_children(struct ipw_vm *vm, struct ipw_tool_call *call)
{
    for (struct ipw_tool_child *child = vm->tool_children; child; child = child->next) {
        int64_t cpu_ns, peak_bytes;

        if (child->span != call->span) continue;
        child->span = 0;
        ipw_proc_used(child->proc, &cpu_ns, &peak_bytes);
        add(call, child->cpu_ns < 0 || cpu_ns < child->cpu_ns ? -1 : cpu_ns - child->cpu_ns,
            peak_bytes);
    }
}

int32_t ipw_tool_call_end(struct ipw_vm *vm, int32_t span, struct ipw_tool_facts *facts)
{
    struct ipw_tool_call **at = &vm->tool_calls, *call;
    int32_t outer;

    while (*at && (*at)->span != span) at = &(*at)->next;
    call = *at;
    if (!call) return 0;
    leave_children(vm, call);
    outer = call->outer;
    facts->cut_bytes = call->cut_bytes;
    if (call->unknown || call->running) {
        facts->child_provenance = "unknown";
    } else if (call->ended || call->stays) {
        facts->child_provenance = call->stays ? "proc" : "rusage";
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

/* ---- children that end ---- */

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
    add(call, result->cpu_ns, result->peak_bytes);
}

/* ---- children that stay ---- */

void ipw_tool_call_used(struct ipw_vm *vm, int64_t cpu_ns, int64_t peak_bytes)
{
    struct ipw_tool_call *call = running(vm);

    if (!call) return;
    call->stays = true;
    add(call, cpu_ns, peak_bytes);
}

void ipw_tool_child_open(struct ipw_tool_child *child, struct ipw_vm *vm,
                         const struct ipw_proc *proc)
{
    struct ipw_tool_call *call = running(vm);

    *child = (struct ipw_tool_child){.vm = vm, .proc = proc, .next = vm->tool_children};
    vm->tool_children = child;
    if (!call) return;
    child->span = call->span; /* its start is the call's, too */
    call->stays = true;
}

void ipw_tool_child_use(struct ipw_tool_child *child)
{
    struct ipw_tool_call *call = child->vm ? running(child->vm) : NULL, *other;
    int64_t peak_bytes;

    if (!call || child->span == call->span) return;
    call->stays = true;
    other = find(child->vm, child->span);
    if (other) {
        other->unknown = call->unknown = true;
        return;
    }
    child->span = call->span;
    ipw_proc_used(child->proc, &child->cpu_ns, &peak_bytes);
}

void ipw_tool_child_close(struct ipw_tool_child *child, const struct ipw_proc_result *result)
{
    struct ipw_tool_child **at;
    struct ipw_tool_call *call;
    int64_t cpu_ns, peak_bytes;

    if (!child->vm) return;
    call = find(child->vm, child->span);
    if (call) {
        if (result) {
            cpu_ns = result->cpu_ns;
            peak_bytes = result->peak_bytes;
        } else {
            ipw_proc_used(child->proc, &cpu_ns, &peak_bytes);
        }
        add(call, child->cpu_ns < 0 || cpu_ns < child->cpu_ns ? -1 : cpu_ns - child->cpu_ns,
            peak_bytes);
    }
    for (at = &child->vm->tool_children; *at != child; at = &(*at)->next) continue;
    *at = child->next;
    child->vm = NULL;
}
