/* script/lua_command.h: commands that are written in Lua.
 *
 * Opens a state, requires a module that returns a function, and runs that function as a task on the
 * host's loop: f(io, args...) with io.say(text) (a line for stdout), io.warn(text) (for stderr), io.ask(prompt) (a line from the
 * user, nil at the end; blocks), io.draw(line) (in place of a terminal's last line; false: there is none).  What it returns is the exit status.  At the end nothing may be left
 * over: no task, no operation. */
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
    bool (*draw)(void *ud, const char *line);   /* as io.draw; may be NULL */
    char *(*ask)(void *ud, const char *prompt); /* malloc'ed, or NULL at the end; may be NULL */
    void *ud;
};

/* 0, with *status from the function; else the reason why it ended: IPW_ELUA, IPW_ELIMIT. */
int ipw_lua_command_run(int64_t *status, const struct ipw_lua_command *entry, struct ipw_err *err);

#endif
