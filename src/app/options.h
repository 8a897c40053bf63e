/* app/options.h: command-line options from one table, which also prints the help.
 *
 * A command declares its options once: name, letter, kind, where the value goes in its options
 * struct, and one line of help.  Parsing is getopt_long's; a misspelt option is answered with the
 * nearest right one.  Strings are borrowed from argv. */
#ifndef IPW_APP_OPTIONS_H
#define IPW_APP_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Exit codes (reference/ecosystem.md section 7). */
enum {
    IPW_EXIT_OK = 0,
    IPW_EXIT_FAILED = 1, /* a run-time failure: server down, nothing succeeded, disk full */
    IPW_EXIT_USAGE = 2,
    IPW_EXIT_INPUT = 3,    /* dataset, agent or configuration cannot be read */
    IPW_EXIT_DIVERGED = 4, /* a replay did not go as its record did */
    IPW_EXIT_INTERRUPTED = 130,
};

enum ipw_opt_kind {
    IPW_OPT_FLAG,     /* bool */
    IPW_OPT_STR,      /* const char * */
    IPW_OPT_INT,      /* int64_t within [min, max] */
    IPW_OPT_NUM,      /* double */
    IPW_OPT_DURATION, /* int64_t nanoseconds */
    IPW_OPT_JOULES,   /* double, more than zero */
    IPW_OPT_BYTES,    /* size_t within [min, max] */
    IPW_OPT_LIST,     /* struct ipw_opt_list: may be given several times */
};

/* What of an option's value must not be seen by others: on our command line, in our environment, in
 * anything that is written (app/conceal.h). */
enum ipw_opt_holds {
    IPW_HOLDS_NO_SECRET,
    IPW_HOLDS_KEY_NAME, /* the name of the variable that holds a key */
    IPW_HOLDS_HEADER,   /* 'Name: value', or 'Name: env:VAR' */
    IPW_HOLDS_JSON,     /* an object, whose members with a secret's name are secrets */
};

struct ipw_opt_list {
    const char **items; /* NULL-terminated once one was given; freed by the caller */
    size_t n, cap;
};

struct ipw_opt {
    const char *name; /* without dashes; NULL ends the table */
    char letter;      /* or 0 */
    enum ipw_opt_kind kind;
    size_t offset;   /* of the value in the options struct */
    const char *arg; /* what the help calls the value; NULL for flags */
    const char *help;
    int64_t min, max; /* of integers and bytes; of a duration `min` */
    enum ipw_opt_holds holds;
};

struct ipw_command {
    const char *name, *usage, *about; /* usage: the line behind "usage: " */
    const struct ipw_opt *options;
    const char *more;       /* text after the options, or NULL */
    int min_args, max_args; /* positional; max < 0: any number */
};

/* Fills *values.  Returns 0; 1 when help was asked for and has been printed on stdout; negative on
 * a usage error.  *args and *n_args receive the positional arguments (inside argv). */
int ipw_options_parse(const struct ipw_command *command, int argc, char **argv, void *values,
                      char ***args, int *n_args, struct ipw_err *err);
/* Calls fn for each option that is given, by its full name; arguments that are wrong are passed
 * over.  Returns where in argv, now in getopt's order, the positional arguments begin. */
int ipw_options_each(const struct ipw_command *command, int argc, char **argv,
                     void (*fn)(void *ud, const struct ipw_opt *option, const char *value),
                     void *ud);
void ipw_options_help(const struct ipw_command *command, FILE *out);

/* Prints "ipw-agent: message" on stderr and returns the exit code: `fallback`, or the usage code
 * with a pointer to the help when the error came from the options. */
int ipw_exit_with(const struct ipw_err *err, int exit_code);

#endif
