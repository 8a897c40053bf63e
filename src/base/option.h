/* base/option.h: the rows of an option table, and the parts of a command.
 *
 * A module with options of its own has a table of rows for the struct that they fill; a command's
 * table includes it as a block.  The command line (app/options.h) parses the tables and prints the
 * help.  Plain values: strings are borrowed from argv. */
#ifndef IPW_BASE_OPTION_H
#define IPW_BASE_OPTION_H

#include <stddef.h>
#include <stdint.h>

enum ipw_opt_kind {
    IPW_OPT_FLAG,     /* bool */
    IPW_OPT_STR,      /* const char * */
    IPW_OPT_INT,      /* int64_t within [min, max] */
    IPW_OPT_NUM,      /* double, above zero where min is */
    IPW_OPT_DURATION, /* int64_t nanoseconds */
    IPW_OPT_JOULES,   /* double, above zero */
    IPW_OPT_BYTES,    /* size_t within [min, max] */
    IPW_OPT_URL,      /* const char *; `--name` alone: ""; `--name=URL`, `--name URL` */
    IPW_OPT_LIST,     /* struct ipw_opt_list: may be given several times */
    IPW_OPT_KEYS,     /* KEY=VALUE,...: each sets another option of the command, see `keys` */
    IPW_OPT_SECTION,  /* not an option: a title in the help for the rows below */
    IPW_OPT_BLOCK,    /* not an option: the rows of `rows`, whose struct lies at `offset` */
    IPW_OPT_GONE,     /* an option that there was: `help` says what to do instead */
};

/* The secret part of an option's value.  It is hidden on our command line, in our environment and
 * in everything that we write (run/conceal.h). */
enum ipw_opt_holds {
    IPW_HOLDS_NO_SECRET,
    IPW_HOLDS_KEY_NAME, /* the value names the variable that holds a key */
    IPW_HOLDS_HEADER,   /* 'Name: value', or 'Name: env:VAR' */
    IPW_HOLDS_JSON,     /* an object; its members with a secret's name are secrets */
};

struct ipw_opt_list {
    const char **items; /* NULL-terminated after the first item; freed by the caller */
    size_t n, cap;
};

struct ipw_opt_key {
    const char *key, *option; /* NULL ends the table */
};

struct ipw_opt {
    const char *name; /* without dashes; NULL ends the table */
    char letter;      /* or 0 */
    enum ipw_opt_kind kind;
    size_t offset;   /* offset of the value in the options struct */
    const char *arg; /* the value's name in the help; NULL for flags */
    const char *help;
    int64_t min, max; /* for integers and bytes; durations and numbers use only `min` */
    enum ipw_opt_holds holds;
    const struct ipw_opt *rows;     /* for a block */
    const struct ipw_opt_key *keys; /* for keys */
};
/* clang-format off */
#define IPW_OPT_END {NULL, 0, IPW_OPT_FLAG, 0, NULL, NULL}
/* clang-format on */

struct ipw_command {
    const char *name, *usage, *about; /* usage: the line behind "usage: " */
    const struct ipw_opt *options;
    const char *first;      /* names of the options that --help shows, " a b "; NULL: all */
    const char *more;       /* text after the options, or NULL */
    int min_args, max_args; /* positional; max < 0: any number */
};

#endif
