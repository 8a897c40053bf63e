/* app/settings.h: options that files keep (lua/ipw/settings.lua, docs/settings.md). */
#ifndef IPW_APP_SETTINGS_H
#define IPW_APP_SETTINGS_H

/* Reads ipw-agent.lua of the current folder and of the user's configuration folder for a command,
 * if there is one of them: main() does so before the command runs.  Returns the exit status, after
 * a message if it is not 0. */
int ipw_settings_open(char *command);

#endif
