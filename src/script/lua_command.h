/* script/lua_command.h: commands that are written in Lua.
 *
 * Opens a state, requires a module that returns a function, and runs that function as a task on the
 * host's loop: f(io, args...).  io.say(text) prints a line to stdout, io.warn(text) to stderr;
 * io.ask(prompt) reads a line from the user (nil at the end) and blocks.  The function returns the
 * exit status.  When it ends, no task and no operation may be left. */
#ifndef IPW_SCRIPT_LUA_COMMAND_H
#define IPW_SCRIPT_LUA_COMMAND_H

#include "base/err.h"
#include "script/host.h"
#include "script/vm.h"

struct ipw_lua_command {
    struct ipw_vm_options vm; /* its host must have a loop */
    const char *module;       /* "ipw.cli.test" */
    const char *const *args;  /* NULL-terminated */
    void (*say)(void *ud, const char *line);
    void (*warn)(void *ud, const char *line);   /* for stderr */
    char *(*ask)(void *ud, const char *prompt); /* malloc'ed, or NULL at the end; may be NULL */
    void *ud;
};

/* 0, with *status from the function; else the reason why it ended: IPW_ELUA, IPW_ELIMIT. */
int ipw_lua_command_run(int64_t *status, const struct ipw_lua_command *entry, struct ipw_err *err);

#endif
