/* script/recorded_effect.h: what a script learns from the world besides models and tools.
 *
 * The values of clocks, files, child processes and joules differ from run to run, and an agent's
 * requests depend on them.  So each value is recorded when the agent (or a tool that is part of its
 * file) asks for it, as a note {"name":"effect","id","of","value"} with the list of results.  A
 * replay answers from the note.  A tool with a file of its own writes no notes: its result is
 * recorded as a whole.
 *
 * A function that answers at once is called through ipw_recorded_effect_call().  A function that
 * waits gets a number from ipw_recorded_effect_begin().  In a replay it then waits with
 * ipw_recorded_effect_wait(); else it writes its results with ipw_recorded_effect_note(). */
#ifndef IPW_SCRIPT_RECORDED_EFFECT_H
#define IPW_SCRIPT_RECORDED_EFFECT_H

#include <lua.h>

#include "script/host.h"
#include "script/task.h"
#include "trace/event_reader.h"

/* Calls fn with the arguments on the stack, or returns its recorded results: ends a lua_CFunction.
 * [-all, +results, e] */
int ipw_recorded_effect_call(lua_State *L, const char *name, lua_CFunction fn);

/* The number of the effect that begins now; 0: it is not recorded. */
int64_t ipw_recorded_effect_begin(lua_State *L);
/* Records the n values at the top of the stack as the results of the effect. [0, 0, m] */
void ipw_recorded_effect_note(lua_State *L, int64_t id, const char *name, int n);
/* Whether a replay has the results of this effect. */
bool ipw_recorded_effect_replayed(lua_State *L, int64_t id);
/* Waits for the recorded results and ends the lua_CFunction with them.  Raises {code="replay"} if
 * the query diverges meanwhile. */
int ipw_recorded_effect_wait(lua_State *L, int64_t id, const char *name);

/* The same for any saved line (`id`: see ipw_playback_wait()): `push` gives the values for it.
 * Without a line the query has diverged meanwhile. */
typedef int ipw_saved_fn(lua_State *L, struct ipw_host *host, const char *name,
                         const struct ipw_event_line *line);
int ipw_recorded_wait(lua_State *L, int64_t id, const char *name, ipw_saved_fn *push);

#endif
