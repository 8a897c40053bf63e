/* app/ask.h: answers that a command in C gets from a module in Lua: settings, which run is meant.
 *
 * The module is a function(io, text...) that gives its answers by io.call("answer", text...); it
 * has a second of processor time and little memory. */
#ifndef IPW_APP_ASK_H
#define IPW_APP_ASK_H

#include <stddef.h>

#include "base/err.h"

struct ipw_ask {
    const char *module;
    const char *const *texts; /* NULL-terminated */
    void (*answer)(void *ud, const char *const *texts, size_t n);
    void *ud;
};
/* Negative: it could not be asked.  Else the exit status that the module returned; it has said why
 * on stderr if that is not 0. */
int ipw_ask(const struct ipw_ask *ask, struct ipw_err *err);
/* Puts the path of the saved run that each word means in the word's place (lua/ipw/saved_runs.lua);
 * without a word the last run is the only one.  The paths are kept until the process ends. */
int ipw_ask_runs(char ***args, int *n, struct ipw_err *err);

#endif
