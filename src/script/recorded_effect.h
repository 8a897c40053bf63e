/* script/recorded_effect.h: what a script learns from the world besides models and tools.
 *
 * Clocks, files, children, joules: their values differ from run to run, and what an agent makes of
 * them reaches its requests.  So each is put on record when the agent (or a tool that is part of its
 * file) asks for it, as a note {"name":"effect","id","of","value"} whose value is the list of the
 * results, and a replay answers from there.  Inside a tool of a file of its own nothing is noted:
 * the tool's result is on record.
 *
 * A function that answers at once is called through ipw_recorded_effect_call().  One that waits asks
 * ipw_recorded_effect_begin() for a number; in a replay it then waits with ipw_recorded_effect_wait(), else it notes
 * its results with ipw_recorded_effect_note() when they are there. */
#ifndef IPW_SCRIPT_RECORDED_EFFECT_H
#define IPW_SCRIPT_RECORDED_EFFECT_H

#include <lua.h>

#include "script/host.h"
#include "script/task.h"

/* Calls fn with the arguments on the stack, or gives what it gave when it was recorded: ends a
 * lua_CFunction. [-all, +results, e] */
int ipw_recorded_effect_call(lua_State *L, const char *name, lua_CFunction fn);

/* The number of the effect that begins now; 0: it is not to be noted. */
int64_t ipw_recorded_effect_begin(lua_State *L);
/* Notes the n values at the top of the stack as the results of the effect. [0, 0, m] */
void ipw_recorded_effect_note(lua_State *L, int64_t id, const char *name, int n);
/* Does the record answer this effect? */
bool ipw_recorded_effect_replayed(lua_State *L, int64_t id);
/* Waits for the recorded results and ends the lua_CFunction with them; raises {code="replay"} when
 * the query goes another way meanwhile. */
int ipw_recorded_effect_wait(lua_State *L, int64_t id, const char *name);

#endif
