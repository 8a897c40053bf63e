/* script/tool_call.h: what the open tool calls of a Lua state have used.
 *
 * A call is open from tool.start to tool.finish (lib_tool.c).  Meanwhile libraries note for the
 * call around the running task: bytes that a cap left out, a wall that refused, child processes.
 * Of a call inside a call, the inner one is noted.  A child that ends within the call has its
 * rusage.  What a child that stays used for one call is unknown, as of one that was cancelled. */
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

/* The call talks to a child that stays. */
void ipw_tool_call_child_stays(struct ipw_vm *vm);

#endif
