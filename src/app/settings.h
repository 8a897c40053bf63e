/* app/settings.h: options that files keep (lua/ipw/settings.lua, docs/settings.md).
 *
 * main() opens the settings before a command runs.  A command that takes them puts them before the
 * words of its command line; from there on they are options as any other, so that the manifest of
 * a run has them. An option that the command line has, too, is left out. Kept until the process
 * ends. */
#ifndef IPW_APP_SETTINGS_H
#define IPW_APP_SETTINGS_H

#include "app/options.h"

/* Reads ipw-agent.lua of the current folder and of the user's configuration folder for a command,
 * if there is one of them.  Returns the exit code, after a message if it is not 0. */
int ipw_settings_open(const char *command);
/* `resume`: the saved command line has the settings of its time. */
void ipw_settings_drop(void);
/* The command line with the settings before its words, and its new length; argv if there are none.
 */
char **ipw_settings_before(const struct ipw_command *command, int *argc, char **argv);

#endif
