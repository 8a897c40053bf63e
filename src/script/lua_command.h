/* script/lua_command.h: commands that are written in Lua.
 *
 * Opens a state and runs a function of the command's file (script/command_file.h) as a task on the
 * host's loop: run(io, o, args) with the options and the other words of the command line, or
 * total(io, o, results) with what `run` returned for each argument.  `io` has
 *
 *   say(text), warn(text)   a line for stdout, for stderr
 *   ask(prompt)             a line from the user, nil at the end; blocks
 *   draw(line)              in place of a terminal's last line; false: there is none
 *   saved{runs, output=, redact=}   the saved runs that ipw.core.export reads, and its output
 *   serve{address=}         an HTTP server, see lib_server.c
 *   call(name, text...)     a function of the application: a value, or it raises
 *   colour, width, input, program, version, folder, model   facts, see struct ipw_lua_facts
 *
 * and from lua/ipw/command.lua usage(text) and fail(text, status).  What the function returns is
 * the exit status.  At the end nothing may be left over: no task, no operation. */
#ifndef IPW_SCRIPT_LUA_COMMAND_H
#define IPW_SCRIPT_LUA_COMMAND_H

#include "base/buf.h"
#include "base/err.h"
#include "script/command_file.h"
#include "script/host.h"
#include "script/vm.h"

/* A function of the application for io.call: texts in, one JSON value out (nothing: nil). */
struct ipw_call {
    void *bench;             /* `ud` of the command */
    const char *const *args; /* NULL-terminated */
    size_t n;
    struct ipw_buf *out;
};
typedef int ipw_call_fn(const struct ipw_call *call, struct ipw_err *err);
struct ipw_lua_call {
    const char *name; /* NULL ends the list */
    ipw_call_fn *call;
    size_t least; /* texts */
};

struct ipw_lua_facts {
    bool colour; /* stdout takes colours */
    bool input;  /* stdin is a terminal */
    int width;   /* columns of the terminal on stdout; 0: it is none */
    const char *program, *version, *folder, *model; /* NULL: unknown, or none */
};

struct ipw_lua_command {
    struct ipw_vm_options vm; /* its host must have a loop */
    const struct ipw_command_file *file;
    const void *values; /* see ipw_command_file_values() */
    char *const *args;  /* of `run` */
    size_t n_args;
    const int64_t *results; /* of `total`, n_args of them; NULL: `run` is called */
    struct ipw_lua_facts facts;
    const struct ipw_lua_call *calls;
    bool (*say)(void *ud, const char *line);    /* false: it could not be written; errno */
    void (*warn)(void *ud, const char *line);   /* for stderr */
    bool (*draw)(void *ud, const char *line);   /* as io.draw; may be NULL */
    char *(*ask)(void *ud, const char *prompt); /* malloc'ed, or NULL at the end; may be NULL */
    void *ud;
};

/* 0, with *status from the function; else the reason why it ended: IPW_ELUA, IPW_ELIMIT. */
int ipw_lua_command_run(int64_t *status, const struct ipw_lua_command *entry, struct ipw_err *err);

#endif
