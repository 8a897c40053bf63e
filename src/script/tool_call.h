/* script/tool_call.h: what the open tool calls of a Lua state have used.
 *
 * A call is open from tool.start to tool.finish (lib_tool.c).  Meanwhile libraries note for the
 * call around the running task: bytes that a cap left out, a wall that refused, child processes.
 * Of a call inside a call, the inner one is noted.  A child that ends within the call has its
 * rusage.  Of a child that stays, a call has the difference between two looks at /proc.  If two
 * calls talk to it at once, or a child was cancelled, what they used is unknown. */
#ifndef IPW_SCRIPT_TOOL_CALL_H
#define IPW_SCRIPT_TOOL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "io/proc.h"
#include "script/vm.h"
#include "trace/event.h"

/* Opens the call of that span; the running task is inside it.  false: there is no memory.  An open
 * call is memory of the state's arena: with a finalizer of its own every state would be closed
 * object by object. */
bool ipw_tool_call_begin(struct ipw_vm *vm, int32_t span);
/* Closes it, fills in what it used, and turns the outcome "error" of a call that was refused into
 * "refused".  Returns the span of the call around it, in which the running task is again; or 0. */
int32_t ipw_tool_call_end(struct ipw_vm *vm, int32_t span, struct ipw_tool_facts *facts);

/* For the call around the running task, if there is one. */
void ipw_tool_call_cut(struct ipw_vm *vm, int64_t bytes);
void ipw_tool_call_refused(struct ipw_vm *vm);
/* A child starts, and has ended.  If the second call does not come, its figures are unknown. */
void ipw_tool_call_child_starts(struct ipw_vm *vm);
void ipw_tool_call_child_ended(struct ipw_vm *vm, const struct ipw_proc_result *result);

/* A child of another state worked for the call; cpu_ns < 0: unknown. */
void ipw_tool_call_used(struct ipw_vm *vm, int64_t cpu_ns, int64_t peak_bytes);

/* A child that stays. */
struct ipw_tool_child {
    struct ipw_vm *vm;
    const struct ipw_proc *proc;
    int32_t span;   /* the call that talks to it; 0: none */
    int64_t cpu_ns; /* what it had used then */
    struct ipw_tool_child *next;
};
void ipw_tool_child_open(struct ipw_tool_child *child, struct ipw_vm *vm,
                         const struct ipw_proc *proc);
/* The call around the running task talks to it. */
void ipw_tool_child_use(struct ipw_tool_child *child);
/* It has ended, or (NULL) will be cancelled.  Does nothing the second time. */
void ipw_tool_child_close(struct ipw_tool_child *child, const struct ipw_proc_result *result);

#endif
