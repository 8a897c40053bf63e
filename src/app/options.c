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
#include "report/format.h"
#include "run/conceal.h"

enum { MAX_OPTIONS = 96, HELP_COLUMN = 28 };

/* Broken at spaces for a terminal; a file gets each option's words on one line. */
static void put_words(FILE *out, const char *words, unsigned width)
{
    struct ipw_buf text = IPW_BUF(4 * IPW_KIB);

    if (width > HELP_COLUMN + 20)
        ipw_format_wrapped(&text, words, HELP_COLUMN, HELP_COLUMN, width);
    else
        ipw_buf_addf(&text, "%s\n", words);
    fputs(ipw_buf_str(&text), out);
    ipw_buf_release(&text);
}

void ipw_options_help(const struct ipw_command *command, FILE *out)
{
    unsigned width = ipw_terminal_width(fileno(out));

    fprintf(out, "usage: ipw-agent %s\n\n%s\n", command->usage, command->about);
    if (command->options && command->options->name) fputs("\noptions:\n", out);
    for (const struct ipw_opt *o = command->options; o && o->name; o++) {
        char left[80];
        int n;

        if (o->letter)
            n = snprintf(left, sizeof left, "  -%c, --%s%s%s", o->letter, o->name,
                         o->arg ? " " : "", o->arg ? o->arg : "");
        else
            n = snprintf(left, sizeof left, "      --%s%s%s", o->name, o->arg ? " " : "",
                         o->arg ? o->arg : "");
        if (n > HELP_COLUMN - 2)
            fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
        else
            fprintf(out, "%-*s", HELP_COLUMN, left);
        put_words(out, o->help, width);
    }
    fprintf(out, "%-*s%s\n", HELP_COLUMN, "  -h, --help", "show this help");
    if (command->more) fprintf(out, "\n%s\n", command->more);
}

static int set_value(const struct ipw_opt *o, void *values, const char *text, struct ipw_err *err)
{
    char *at = (char *)values + o->offset;
    int rc = 0;

    switch (o->kind) {
    case IPW_OPT_FLAG: *(bool *)at = true; break;
    case IPW_OPT_STR: *(const char **)at = text; break;
    case IPW_OPT_INT: rc = ipw_parse_int((int64_t *)at, text, o->min, o->max, err); break;
    case IPW_OPT_NUM: rc = ipw_parse_double((double *)at, text, err); break;
    case IPW_OPT_DURATION:
        rc = ipw_parse_duration_ns((int64_t *)at, text, err);
        if (!rc && *(int64_t *)at < o->min)
            rc = ipw_fail(err, IPW_EINVAL, "'%s' is no time at all", text);
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
    }
    return rc ? ipw_err_prefix(err, "--%s", o->name) : 0;
}

static int fail_unknown(const struct ipw_command *command, const char *given, struct ipw_err *err)
{
    const char *names[MAX_OPTIONS + 2], *near;
    char name[64];
    size_t n = 0;

    snprintf(name, sizeof name, "%s", given + strspn(given, "-"));
    name[strcspn(name, "=")] = '\0';
    for (const struct ipw_opt *o = command->options; o && o->name; o++) names[n++] = o->name;
    names[n++] = "help";
    names[n] = NULL;
    near = ipw_nearest(name, names);
    return ipw_fail(err, IPW_EINVAL, "%s: unknown option '%.60s'%s%s%s", command->name, given,
                    near ? " (is '--" : "", near ? near : "", near ? "' meant?)" : "");
}

struct tables { /* for getopt_long */
    struct option longs[MAX_OPTIONS + 2];
    char shorts[2 * MAX_OPTIONS + 4];
};

static void fill_tables(struct tables *t, const struct ipw_command *command)
{
    size_t n = 0, s = 2;

    *t = (struct tables){.shorts = ":h"};
    for (const struct ipw_opt *o = command->options; o && o->name; o++, n++) {
        if (n == MAX_OPTIONS) IPW_BUG("more than %d options", MAX_OPTIONS);
        t->longs[n].name = o->name;
        t->longs[n].has_arg = o->arg ? required_argument : no_argument;
        t->longs[n].val = 1000;
        if (o->letter) {
            t->shorts[s++] = o->letter;
            if (o->arg) t->shorts[s++] = ':';
        }
    }
    t->longs[n].name = "help";
    t->longs[n].val = 'h';
    t->shorts[s] = '\0';
}

static const struct ipw_opt *option_of(const struct ipw_command *command, int c, int which)
{
    if (c == 1000) return &command->options[which];
    for (const struct ipw_opt *o = command->options; o && o->name; o++) {
        if (o->letter == c) return o;
    }
    IPW_BUG("option letter %d", c);
}

/* Whose options were parsed last: wrong usage points to its help. */
static const char *parsed = "";

int ipw_options_parse(const struct ipw_command *command, int argc, char **argv, void *values,
                      char ***args, int *n_args, struct ipw_err *err)
{
    struct tables t;
    int c, which = 0;

    parsed = command->name;
    fill_tables(&t, command);
    optind = 0; /* from the start, whatever was parsed before */
    opterr = 0;
    while ((c = getopt_long(argc, argv, t.shorts, t.longs, &which)) != -1) {
        int rc;

        if (c == 'h') {
            ipw_options_help(command, stdout);
            return 1;
        }
        if (c == '?') return fail_unknown(command, argv[optind - 1], err);
        if (c == ':')
            return ipw_fail(err, IPW_EINVAL, "%s: option '%s' needs a value", command->name,
                            argv[optind - 1]);
        if (optarg) ipw_conceal_option(option_of(command, c, which), optarg);
        rc = set_value(option_of(command, c, which), values, optarg, err);
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
    while ((c = getopt_long(argc, argv, t.shorts, t.longs, &which)) != -1) {
        if (c != '?' && c != ':' && c != 'h') fn(ud, option_of(command, c, which), optarg);
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
