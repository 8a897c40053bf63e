/* app/ask.h: answers that a command in C gets from one in Lua: settings, which run is meant.
 *
 * The command gives them by io.call("answer", text). */
#ifndef IPW_APP_ASK_H
#define IPW_APP_ASK_H

#include <stddef.h>

/* Runs lua/ipw/cli/NAME.lua, NAME and its words being argv.  Returns its exit status; it has said
 * why on stderr if that is not 0.  The caller frees the answers and their list. */
int ipw_ask(char ***answers, size_t *n, int argc, char **argv);
/* The path of the saved run that a word means (lua/ipw/saved_runs.lua); NULL means the last run.
 * Returns an exit status, as ipw_ask().  *path is the caller's; NULL without one. */
int ipw_ask_run(char **path, const char *word);
/* Puts the path that each word means in the word's place; without a word the last run is the only
 * one.  The paths are kept until the process ends.  Returns the first status that is not 0. */
int ipw_ask_runs(char ***args, int *n);

#endif
