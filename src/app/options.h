/* app/options.h: command-line options from one table, which also prints the help.
 *
 * A command declares each option once: name, letter, kind, the place of its value in the options
 * struct, and one line of help.  getopt_long parses them; for a misspelt option the message offers
 * the nearest one. Strings are borrowed from argv. */
#ifndef IPW_APP_OPTIONS_H
#define IPW_APP_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/exit.h"
#include "base/option.h"

/* Fills *values.  Returns 0; 1 after printing help on stdout; negative for wrong usage.  *args and
 * *n_args are the positional arguments (inside argv). */
int ipw_options_parse(const struct ipw_command *command, int argc, char **argv, void *values,
                      char ***args, int *n_args, struct ipw_err *err);
/* Calls fn for each given option, by its full name; wrong arguments are left out.  Returns the
 * index in argv (in getopt's order) of the first positional argument. */
int ipw_options_each(const struct ipw_command *command, int argc, char **argv,
                     void (*fn)(void *ud, const struct ipw_opt *option, const char *value),
                     void *ud);
/* Calls fn for each option of the command, by its table. */
void ipw_options_rows(const struct ipw_command *command,
                      void (*fn)(void *ud, const struct ipw_opt *option), void *ud);
/* The row of this name, or of the new name of a renamed option, and whether it takes a value;
 * false: there is no such option. */
bool ipw_option_named(struct ipw_opt *out, bool *takes_value, const struct ipw_command *command,
                      const char *name);

/* Prints the help.  group: NULL for the common options and the names of the groups, "all", or the
 * first word of a section; false: there is no such group. */
bool ipw_options_help(const struct ipw_command *command, const char *group, FILE *out);
/* Keeps options of a settings file: a list of "NAME" or "NAME=VALUE", in place of earlier ones. */
void ipw_options_keep(char *const *words, size_t n);
/* The command line with the kept options that the command has before its words, and its new length;
 * argv if there are none.  From there on they are options as any other, so that the manifest of a
 * run has them.  Kept until the process ends. */
char **ipw_options_before(const struct ipw_command *command, int *argc, char **argv);
/* Prints "ipw-agent: message" on stderr and returns the exit code: `fallback`, or the usage code
 * and a reference to the help if the error came from the options. */
int ipw_exit_with(const struct ipw_err *err, int exit_code);

#endif
