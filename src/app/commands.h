/* app/commands.h: one function for each command; main.c's table has their names.
 *
 * argv[0] is the command's own name.  Each function returns the process's exit code.  It prints
 * data on stdout and everything else on stderr. */
#ifndef IPW_APP_COMMANDS_H
#define IPW_APP_COMMANDS_H

#include "app/options.h"

int ipw_cmd_run(int argc, char **argv);
int ipw_cmd_measure(int argc, char **argv);
int ipw_cmd_resume(int argc, char **argv);
int ipw_cmd_serve(int argc, char **argv);
int ipw_cmd_replay(int argc, char **argv);
int ipw_cmd_validate(int argc, char **argv);
int ipw_cmd_repair(int argc, char **argv);
int ipw_cmd_telemetry(int argc, char **argv);

extern const struct ipw_command ipw_run_command, ipw_measure_command;
/* The options of a run by their full names, as a JSON object {args, cwd} for its manifest.  Options
 * of one session (--resume, --rerun, --force, --output) are left out.  Values that may be secret
 * are "***". */
char *ipw_cmd_run_json(const struct ipw_command *command, int argc, char **argv);
/* Runs the Lua command of these n words on the folder, and flushes what it prints: messages follow.
 * `words` has room for 3 more.  Returns the exit code: 1 in place of 0 if the text could not be
 * printed. */
int ipw_cmd_run_ending(const char **words, int n, bool verbose, const char *folder);
struct ipw_run_end;
/* Prints the run's summary as a screen, and how it ended, with the command that continues it in the
 * last line; frees the members of `end`.  Returns the exit code. */
int ipw_cmd_run_tell_end(struct ipw_run_end *end, int exit_code, bool verbose);

#endif
