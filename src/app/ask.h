/* app/ask.h: answers that a command in C gets from one in Lua: settings, which run is meant.
 *
 * The command gives them by io.call("answer", text). */
#ifndef IPW_APP_ASK_H
#define IPW_APP_ASK_H

#include <stddef.h>

/* Runs lua/ipw/cli/NAME.lua, NAME and its words being argv.  Returns its exit status; it has said
 * why on stderr if that is not 0.  The caller frees the answers and their list. */
int ipw_ask(char ***answers, size_t *n, int argc, char **argv);
/* Puts the path of the saved run that each word means in the word's place (lua/ipw/saved_runs.lua);
 * without a word the last run is the only one.  The paths are kept until the process ends.  Returns
 * an exit status, as ipw_ask(). */
int ipw_ask_runs(char ***args, int *n);

#endif
