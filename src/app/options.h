/* app/options.h: command-line options from one table, which also prints the help.
 *
 * A command declares its options once: name, letter, kind, where the value goes in its options
 * struct, and one line of help.  Parsing is getopt_long's; a misspelt option is answered with the
 * nearest right one.  Strings are borrowed from argv. */
#ifndef IPW_APP_OPTIONS_H
#define IPW_APP_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/exit.h"
#include "base/option.h"

/* Fills *values.  Returns 0; 1 when help was asked for and has been printed on stdout; negative on
 * a usage error.  *args and *n_args receive the positional arguments (inside argv). */
int ipw_options_parse(const struct ipw_command *command, int argc, char **argv, void *values,
                      char ***args, int *n_args, struct ipw_err *err);
/* Calls fn for each option that is given, by its full name; arguments that are wrong are passed
 * over.  Returns where in argv, now in getopt's order, the positional arguments begin. */
int ipw_options_each(const struct ipw_command *command, int argc, char **argv,
                     void (*fn)(void *ud, const struct ipw_opt *option, const char *value),
                     void *ud);
/* The row of this name, or of the one that took its place, and whether the name takes a value;
 * false: there is none. */
bool ipw_option_named(struct ipw_opt *out, bool *takes_value, const struct ipw_command *command,
                      const char *name);
void ipw_options_help(const struct ipw_command *command, FILE *out);

/* Prints "ipw-agent: message" on stderr and returns the exit code: `fallback`, or the usage code
 * with a pointer to the help when the error came from the options. */
int ipw_exit_with(const struct ipw_err *err, int exit_code);

#endif
