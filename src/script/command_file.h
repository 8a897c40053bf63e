/* script/command_file.h: a command that is a Lua file.
 *
 * The file returns a table: `usage`, `about`, `more`, `args` = {least, most}, `options`, `run`, and
 * what it needs (docs/commands.md).  This unit finds the file (lua/ipw/command.lua does
 * that), reads all of it but `run`, and makes the rows that the option parser takes; it does not
 * parse and does not run (script/lua_command.h).  An option is a row on a line:
 *
 *     { "output", "string", "DIR", "write the files to this new folder", letter = "o" }
 *
 * with a kind of the table in command_file.c; a bare string names a block of rows that the
 * application has, such as "scripts", and {NAME, "block", HELP} is the block's one row with another
 * text.  A file is open from ipw_command_file_open() to ipw_command_file_close(), and its
 * texts live as long. */
#ifndef IPW_SCRIPT_COMMAND_FILE_H
#define IPW_SCRIPT_COMMAND_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/option.h"

struct lua_State; /* only script/ includes lua.h */
struct ipw_vm;

/* Rows that a file can name.  Their values lie at the beginning of the struct that is filled. */
struct ipw_command_block {
    const char *name; /* NULL ends the list */
    const struct ipw_opt *rows;
};

struct ipw_command_file {
    struct ipw_command command;
    const char *name;
    bool built_in;
    const char *model;        /* "named", "any" (see app/workbench.h); or NULL */
    int64_t cpu_ns;           /* of Lua between two waits; 0: the default */
    size_t memory_bytes;      /* of a Lua state; 0: as for a query */
    bool each;                /* `run` is called for each argument, in a state of its own */
    bool downloads, children; /* may use ipw.core.fetch; starts programs outside the sandbox */
    bool lines;               /* each line is written at once */
    bool beside;              /* scripts beside its first word are found */
    bool again;               /* `run` begins anew in a new state when a limit was passed */
    int failed;               /* the status of an error; -1: by its code */

    struct ipw_vm *vm; /* holds the texts */
    struct ipw_opt *rows;
    size_t n_rows, own_rows; /* own_rows: the first row of the file itself */
    size_t values_at;        /* where the values of its own options begin */
};

/* Opens the command `name`: a built-in one, or the user's commands/NAME.lua.  `values_at`: bytes
 * that the blocks' values take.  IPW_ENOTFOUND: there is no such file. */
int ipw_command_file_open(struct ipw_command_file *out, const char *name, bool built_in,
                          const struct ipw_command_block *blocks, size_t values_at,
                          struct ipw_err *err);
void ipw_command_file_close(struct ipw_command_file *f); /* zeroed is fine */

/* A struct for ipw_options_parse(), of which the first `values_at` bytes are zero and the rest says
 * that no option was given; and its end, without what the blocks own. */
void *ipw_command_file_values(const struct ipw_command_file *f);
void ipw_command_file_values_free(const struct ipw_command_file *f, void *values);
/* Pushes the given options as a table: names with '_' for '-', seconds for a time, lists always.
 * Options of a block that are 0 or hold a secret are left out. [0, +1, m] */
void ipw_command_file_push(struct lua_State *L, const struct ipw_command_file *f,
                           const void *values);

#endif
