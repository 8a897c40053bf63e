/* app/run_screen.h: screens of commands in C over a saved run, which are written in Lua.
 *
 * Opens a workbench, hands the run to the script (ipw.core.export), and calls the function that a
 * module of lua/ipw/cli returns, with `io` and texts.  Owns nothing after the call. */
#ifndef IPW_APP_RUN_SCREEN_H
#define IPW_APP_RUN_SCREEN_H

#include <stdbool.h>

#include "base/err.h"

/* Returns the exit status; an error of the script itself is in err, and the result negative. */
int ipw_run_screen(const char *module, const char *run, const char *const *texts, bool verbose,
                   struct ipw_err *err);

#endif
