/* app/cmd_lua.h: runs the commands that are Lua files (lua/ipw/cli, and the user's own).
 *
 * Owns what one of them needs: the rows of options that a file can name, the workbench, and the
 * functions of the program that it can call (app/calls.h). */
#ifndef IPW_APP_CMD_LUA_H
#define IPW_APP_CMD_LUA_H

#include <stdbool.h>

/* argv[0] is the command's name.  Returns the exit status; -1: the user has no command of this name
 * (never for a built-in one). */
int ipw_cmd_lua(int argc, char **argv, bool built_in);

#endif
