/* app/commands.h: one function a command; main.c's table names them.
 *
 * argv[0] is the command's own name.  Each returns the process's exit code and prints what it has
 * to say: data on stdout, everything else on stderr. */
#ifndef IPW_APP_COMMANDS_H
#define IPW_APP_COMMANDS_H

int ipw_cmd_run(int argc, char **argv);
int ipw_cmd_resume(int argc, char **argv);
int ipw_cmd_serve(int argc, char **argv);
int ipw_cmd_replay(int argc, char **argv);
int ipw_cmd_score(int argc, char **argv);
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

#endif
