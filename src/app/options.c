#include "app/options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/terminal.h"
#include "base/text.h"
#include "run/conceal.h"

enum { MAX_OPTIONS = 128, HELP_COLUMN = 28 };

/* Breaks text at spaces for a terminal; in a file each option is one line. */
static void put_words(FILE *out, const char *words, unsigned width)
{
    struct ipw_buf text = IPW_BUF(4 * IPW_KIB);

    ipw_text_wrapped(&text, words, HELP_COLUMN, HELP_COLUMN,
                     width > HELP_COLUMN + 20 ? width : SIZE_MAX);
    fprintf(out, "%s\n", ipw_buf_str(&text));
    ipw_buf_release(&text);
}

/* A command's table with its blocks laid out, and the tables of getopt_long. */
struct tables {
    struct ipw_opt rows[MAX_OPTIONS + 1];
    size_t n;
    struct option longs[MAX_OPTIONS + 2];
    char shorts[2 * MAX_OPTIONS + 4];
};

static void lay_out(struct tables *t, const struct ipw_opt *rows, size_t offset)
{
    for (const struct ipw_opt *o = rows; o && o->name; o++) {
        if (o->kind == IPW_OPT_BLOCK) {
            lay_out(t, o->rows, offset + o->offset);
            continue;
        }
        if (t->n == MAX_OPTIONS) IPW_BUG("more than %d options", MAX_OPTIONS);
        t->rows[t->n] = *o;
        t->rows[t->n++].offset += offset;
    }
}

/* Is it an option that this version has under this name? */
static bool is_listed(const struct ipw_opt *o)
{
    return o->kind != IPW_OPT_SECTION && o->kind != IPW_OPT_GONE;
}

static void help_row(const struct ipw_opt *o, FILE *out, unsigned width)
{
    char left[80];
    int n;

    if (o->kind == IPW_OPT_SECTION) {
        fprintf(out, "\n%s\n", o->name);
        return;
    }
    if (o->letter)
        n = snprintf(left, sizeof left, "  -%c, --%s", o->letter, o->name);
    else
        n = snprintf(left, sizeof left, "      --%s", o->name);
    if (o->arg) n += snprintf(left + n, sizeof left - (size_t)n, " %s", o->arg);
    if (n > HELP_COLUMN - 2)
        fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
    else
        fprintf(out, "%-*s", HELP_COLUMN, left);
    put_words(out, o->help, width);
}

void ipw_options_help(const struct ipw_command *command, FILE *out)
{
    unsigned width = ipw_terminal_width(fileno(out));
    struct tables t = {0};

    lay_out(&t, command->options, 0);
    fprintf(out, "usage: ipw-agent %s\n\n%s\n", command->usage, command->about);
    if (t.n && t.rows[0].kind != IPW_OPT_SECTION) fputs("\nOptions\n", out);
    for (size_t i = 0; i < t.n; i++) {
        if (t.rows[i].kind == IPW_OPT_SECTION || is_listed(&t.rows[i]))
            help_row(&t.rows[i], out, width);
    }
    fprintf(out, "%-*s%s\n", HELP_COLUMN, "  -h, --help", "print this help");
    if (command->more) fprintf(out, "\n%s\n", command->more);
}

static int set_value(const struct ipw_opt *o, void *values, const char *text, struct ipw_err *err)
{
    char *at = (char *)values + o->offset;
    int rc = 0;

    switch (o->kind) {
    case IPW_OPT_FLAG: *(bool *)at = true; break;
    case IPW_OPT_STR: *(const char **)at = text; break;
    case IPW_OPT_URL: *(const char **)at = text ? text : ""; break;
    case IPW_OPT_INT: rc = ipw_parse_int((int64_t *)at, text, o->min, o->max, err); break;
    case IPW_OPT_NUM:
        rc = ipw_parse_double((double *)at, text, err);
        if (!rc && o->min > 0 && !(*(double *)at > 0))
            rc = ipw_fail(err, IPW_EINVAL, "'%s' is not a number above 0", text);
        break;
    case IPW_OPT_DURATION:
        rc = ipw_parse_duration_ns((int64_t *)at, text, err);
        if (!rc && *(int64_t *)at < o->min)
            rc = ipw_fail(err, IPW_EINVAL, "'%s' is too short: the time must be greater than 0",
                          text);
        break;
    case IPW_OPT_JOULES: rc = ipw_parse_joules((double *)at, text, err); break;
    case IPW_OPT_BYTES:
        rc = ipw_parse_bytes((size_t *)at, text, err);
        if (!rc && (*(size_t *)at < (size_t)o->min || *(size_t *)at > (size_t)o->max))
            rc = ipw_fail(err, IPW_EINVAL, "'%s' is not between %" PRId64 "K and %" PRId64 "M",
                          text, o->min / 1024, o->max / (1024 * 1024));
        break;
    case IPW_OPT_LIST: {
        struct ipw_opt_list *list = (struct ipw_opt_list *)at;
        IPW_GROW(list->items, list->cap, list->n + 2);
        list->items[list->n++] = text;
        list->items[list->n] = NULL;
        break;
    }
    case IPW_OPT_SECTION:
    case IPW_OPT_BLOCK:
    case IPW_OPT_GONE: break;
    }
    return rc ? ipw_err_prefix(err, "--%s", o->name) : 0;
}

static int fail_unknown(const struct ipw_command *command, const struct tables *t,
                        const char *given, struct ipw_err *err)
{
    const char *names[MAX_OPTIONS + 2], *near;
    char name[64];
    size_t n = 0;

    snprintf(name, sizeof name, "%s", given + strspn(given, "-"));
    name[strcspn(name, "=")] = '\0';
    for (size_t i = 0; i < t->n; i++) {
        if (is_listed(&t->rows[i])) names[n++] = t->rows[i].name;
    }
    names[n++] = "help";
    names[n] = NULL;
    near = ipw_nearest(name, names);
    return ipw_fail(err, IPW_EINVAL, "%s: unknown option '%.60s'%s%s%s", command->name, given,
                    near ? " (did you mean '--" : "", near ? near : "", near ? "'?)" : "");
}

static void fill_tables(struct tables *t, const struct ipw_command *command)
{
    size_t s = 2;

    *t = (struct tables){.shorts = ":h"};
    lay_out(t, command->options, 0);
    for (size_t i = 0; i < t->n; i++) {
        const struct ipw_opt *o = &t->rows[i];

        t->longs[i].name = o->kind == IPW_OPT_SECTION ? "" : o->name;
        t->longs[i].has_arg = o->kind == IPW_OPT_URL || o->kind == IPW_OPT_GONE ? optional_argument
                              : o->arg                                          ? required_argument
                                                                                : no_argument;
        t->longs[i].val = 1000;
        if (o->letter) {
            t->shorts[s++] = o->letter;
            if (o->arg) t->shorts[s++] = ':';
        }
    }
    t->longs[t->n].name = "help";
    t->longs[t->n].val = 'h';
    t->shorts[s] = '\0';
}

/* The given option. */
static const struct ipw_opt *option_of(const struct tables *t, int c, int which)
{
    for (size_t i = 0; c != 1000 && i < t->n; i++) {
        if (t->rows[i].letter == c) return &t->rows[i];
    }
    if (c != 1000) IPW_BUG("option letter %d", c);
    return &t->rows[which];
}

bool ipw_option_named(struct ipw_opt *out, bool *takes_value, const struct ipw_command *command,
                      const char *name)
{
    struct tables t = {0};

    lay_out(&t, command->options, 0);
    for (size_t i = 0; i < t.n; i++) {
        if (t.rows[i].kind == IPW_OPT_SECTION || strcmp(t.rows[i].name, name)) continue;
        *takes_value = t.rows[i].arg != NULL;
        *out = t.rows[i];
        return true;
    }
    return false;
}

/* The next option, as getopt_long.  A value that may be left out is also taken from the next word,
 * if that is a URL. */
static int next_option(int argc, char **argv, const struct tables *t, int *which)
{
    int c = getopt_long(argc, argv, t->shorts, t->longs, which);

    if (c == 1000 && t->rows[*which].kind == IPW_OPT_URL && !optarg && optind < argc &&
        strstr(argv[optind], "://"))
        optarg = argv[optind++];
    return c;
}

/* The command whose options were parsed last; wrong usage refers to its help. */
static const char *parsed = "";

int ipw_options_parse(const struct ipw_command *command, int argc, char **argv, void *values,
                      char ***args, int *n_args, struct ipw_err *err)
{
    struct tables t;
    int c, which = 0;

    parsed = command->name;
    fill_tables(&t, command);
    optind = 0; /* from the start, after any earlier parse */
    opterr = 0;
    while ((c = next_option(argc, argv, &t, &which)) != -1) {
        const char *value = optarg;
        const struct ipw_opt *o;
        int rc;

        if (c == 'h') {
            ipw_options_help(command, stdout);
            return 1;
        }
        if (c == '?') return fail_unknown(command, &t, argv[optind - 1], err);
        if (c == ':')
            return ipw_fail(err, IPW_EINVAL, "%s: option '%s' needs a value", command->name,
                            argv[optind - 1]);
        o = option_of(&t, c, which);
        if (o->kind == IPW_OPT_GONE)
            return ipw_fail(err, IPW_EINVAL, "%s: there is no --%s any more: %s", command->name,
                            o->name, o->help);
        if (value) ipw_conceal_option(o, value);
        rc = set_value(o, values, value, err);
        if (rc) return rc;
    }
    *args = argv + optind;
    *n_args = argc - optind;
    if (*n_args < command->min_args)
        return ipw_fail(err, IPW_EINVAL, "%s: an argument is missing (usage: ipw-agent %s)",
                        command->name, command->usage);
    if (command->max_args >= 0 && *n_args > command->max_args)
        return ipw_fail(err, IPW_EINVAL, "%s: unexpected argument '%.60s' (usage: ipw-agent %s)",
                        command->name, (*args)[command->max_args], command->usage);
    return 0;
}

int ipw_options_each(const struct ipw_command *command, int argc, char **argv,
                     void (*fn)(void *ud, const struct ipw_opt *option, const char *value),
                     void *ud)
{
    struct tables t;
    int c, which = 0;

    fill_tables(&t, command);
    optind = opterr = 0;
    while ((c = next_option(argc, argv, &t, &which)) != -1) {
        const char *value = optarg;
        const struct ipw_opt *o;

        if (c == '?' || c == ':' || c == 'h') continue;
        o = option_of(&t, c, which);
        if (o->kind != IPW_OPT_GONE) fn(ud, o, value);
    }
    return optind;
}

int ipw_exit_with(const struct ipw_err *err, int exit_code)
{
    ipw_say("%s", err->text);
    if (exit_code == IPW_EXIT_USAGE)
        fprintf(stderr, "ipw-agent: see ipw-agent %s%s--help\n", parsed, parsed[0] ? " " : "");
    return exit_code;
}
