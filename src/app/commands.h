/* app/commands.h: one function a command; main.c's table names them.
 *
 * argv[0] is the command's own name.  Each returns the process's exit code and prints what it has
 * to say: data on stdout, everything else on stderr. */
#ifndef IPW_APP_COMMANDS_H
#define IPW_APP_COMMANDS_H

#include "app/options.h"

int ipw_cmd_run(int argc, char **argv);
int ipw_cmd_resume(int argc, char **argv);
int ipw_cmd_serve(int argc, char **argv);
int ipw_cmd_replay(int argc, char **argv);
int ipw_cmd_score(int argc, char **argv);
int ipw_cmd_fetch(int argc, char **argv);
int ipw_cmd_export(int argc, char **argv);
int ipw_cmd_compare(int argc, char **argv);
int ipw_cmd_ledger(int argc, char **argv);
int ipw_cmd_validate(int argc, char **argv);
int ipw_cmd_repair(int argc, char **argv);
int ipw_cmd_meter(int argc, char **argv);
int ipw_cmd_telemetry(int argc, char **argv);
int ipw_cmd_calibrate(int argc, char **argv);
int ipw_cmd_list(int argc, char **argv);
int ipw_cmd_doctor(int argc, char **argv);
int ipw_cmd_show(int argc, char **argv);
int ipw_cmd_new(int argc, char **argv);
int ipw_cmd_check(int argc, char **argv);
int ipw_cmd_tool(int argc, char **argv);
int ipw_cmd_test(int argc, char **argv);
int ipw_cmd_repl(int argc, char **argv);

extern const struct ipw_command ipw_run_command;
/* The options of a run, with their full names, as a JSON object {args, cwd} for its
 * manifest; those of one session (--resume, --rerun, --force, --output) are left out.  Values that
 * may be secret are "***". */
char *ipw_run_command_json(const struct ipw_command *command, int argc, char **argv);
struct ipw_run_end;
/* Says how a run ended, the command that goes on with it last; frees what `end` holds. */
void ipw_run_tell_end(struct ipw_run_end *end, int exit_code);

#endif
