#include "app/options.h"

#include <ctype.h>
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

/* The name of a section for --help=NAME: its first word. */
static void group_name(char *out, size_t size, const char *title)
{
    size_t n = strcspn(title, " (");

    snprintf(out, size, "%.*s", (int)n, title);
    for (char *c = out; *c; c++) *c = (char)tolower((unsigned char)*c);
}

static bool is_group(const char *title, const char *group)
{
    char name[32];

    group_name(name, sizeof name, title);
    return strcmp(name, group) == 0;
}

/* Does the short help show the row?  Not what scripts may do: few need it, and it is long. */
static bool is_first(const struct ipw_command *command, const struct ipw_opt *row,
                     const char *section)
{
    char name[64];

    if (!command->first) return strcmp(section, "Scripts and safety") != 0;
    snprintf(name, sizeof name, " %s ", row->name);
    return strstr(command->first, name) != NULL;
}

/* A line for each section with options that the short help leaves out. */
static void put_groups(const struct tables *t, const struct ipw_command *command, FILE *out)
{
    const char *section = "";
    bool any = false, told = true;

    for (size_t i = 0; i < t->n; i++) {
        const struct ipw_opt *row = &t->rows[i];
        char name[32];

        if (row->kind == IPW_OPT_SECTION) {
            section = row->name;
            told = false;
        }
        if (told || !is_listed(row) || is_first(command, row, section)) continue;
        if (!any) fputs("\nMore options, by group (--help=all: all of them)\n", out);
        told = any = true;
        group_name(name, sizeof name, section);
        fprintf(out, "      --help=%-14s %s\n", name, section);
    }
}

bool ipw_options_help(const struct ipw_command *command, const char *group, FILE *out)
{
    unsigned width = ipw_terminal_width(fileno(out));
    const char *section = "Options";
    bool all = group && !strcmp(group, "all"), titled = false, found = !group || all;
    struct tables t = {0};

    lay_out(&t, command->options, 0);
    for (size_t i = 0; i < t.n && !found; i++)
        found = is_group(t.rows[i].kind == IPW_OPT_SECTION ? t.rows[i].name : section, group);
    if (!found) return false;
    fprintf(out, "usage: ipw-agent %s\n\n%s\n", command->usage, command->about);
    for (size_t i = 0; i < t.n; i++) {
        const struct ipw_opt *row = &t.rows[i];

        if (row->kind == IPW_OPT_SECTION) {
            section = command->first && !group ? "Options" : row->name;
            titled &= command->first && !group;
        }
        if (!is_listed(row) || (group && !all && !is_group(section, group)) ||
            (!group && !is_first(command, row, section)))
            continue;
        if (!titled) fprintf(out, "\n%s\n", section);
        titled = true;
        help_row(row, out, width);
    }
    if (!group || all) fprintf(out, "%-*s%s\n", HELP_COLUMN, "  -h, --help", "print this help");
    if (!group) put_groups(&t, command, out);
    if (command->more && (!group || all)) fprintf(out, "\n%s\n", command->more);
    return true;
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
    case IPW_OPT_KEYS:
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
    t->longs[t->n].has_arg = optional_argument;
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

void ipw_options_rows(const struct ipw_command *command,
                      void (*fn)(void *ud, const struct ipw_opt *option), void *ud)
{
    struct tables t = {0};

    lay_out(&t, command->options, 0);
    for (size_t i = 0; i < t.n; i++)
        if (is_listed(&t.rows[i])) fn(ud, &t.rows[i]);
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

static int fail_key(const struct ipw_opt *o, const char *part, struct ipw_err *err)
{
    struct ipw_buf keys = IPW_BUF(4 * IPW_KIB);
    int rc;

    for (const struct ipw_opt_key *k = o->keys; k->key; k++)
        ipw_buf_addf(&keys, "%s%s", keys.len ? ", " : "", k->key);
    rc = ipw_fail(err, IPW_EINVAL, "--%s '%.60s': expected KEY=VALUE, with one of the keys %s",
                  o->name, part, ipw_buf_str(&keys));
    ipw_buf_release(&keys);
    return rc;
}

/* One KEY=VALUE; cut in two. */
static int set_key(const struct tables *t, const struct ipw_opt *o, void *values, char *part,
                   struct ipw_err *err)
{
    const struct ipw_opt_key *k = o->keys;
    char *equals = strchr(part, '=');
    size_t i = 0;

    if (!equals) return fail_key(o, part, err);
    *equals = '\0';
    while (k->key && strcmp(k->key, part)) k++;
    if (!k->key) return fail_key(o, part, err);
    while (i < t->n && strcmp(t->rows[i].name, k->option)) i++;
    if (i == t->n) IPW_BUG("--%s: no option %s", o->name, k->option);
    return set_value(&t->rows[i], values, equals + 1, err);
}

/* KEY=VALUE,...: sets the options that the keys name.  None of them keeps a text. */
static int set_keys(const struct tables *t, const struct ipw_opt *o, void *values, const char *text,
                    struct ipw_err *err)
{
    char *copy = ipw_strdup(text), *rest = copy, *part;
    int rc = 0;

    while (!rc && (part = strsep(&rest, ","))) rc = set_key(t, o, values, part, err);
    free(copy);
    return rc;
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

        if (c == 'h' && ipw_options_help(command, value, stdout)) return 1;
        if (c == 'h')
            return ipw_fail(err, IPW_EINVAL, "%s: --help=%.40s: no group has this name; %s",
                            command->name, value,
                            "--help lists the groups, --help=all all options");
        if (c == '?') return fail_unknown(command, &t, argv[optind - 1], err);
        if (c == ':')
            return ipw_fail(err, IPW_EINVAL, "%s: option '%s' needs a value", command->name,
                            argv[optind - 1]);
        o = option_of(&t, c, which);
        if (o->kind == IPW_OPT_GONE)
            return ipw_fail(err, IPW_EINVAL, "%s: there is no --%s any more: %s", command->name,
                            o->name, o->help);
        if (value) ipw_conceal_option(o, value);
        rc = o->kind == IPW_OPT_KEYS ? set_keys(&t, o, values, value, err)
                                     : set_value(o, values, value, err);
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

/* ---- options of a settings file ---- */

static struct {
    struct kept {
        char *word, *option, *value; /* --option; value: NULL for a flag */
    } * list;
    size_t n, cap;
    char ***lines; /* command lines with them */
    size_t n_lines, cap_lines;
} settings;

void ipw_options_keep(char *const *words, size_t n)
{
    for (size_t i = 0; i < settings.n; i++) {
        free(settings.list[i].word);
        free(settings.list[i].value);
    }
    settings.n = 0;
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(words[i], '=');
        size_t name = equals ? (size_t)(equals - words[i]) : strlen(words[i]);

        IPW_GROW(settings.list, settings.cap, settings.n + 1);
        settings.list[settings.n] = (struct kept){
            .word = ipw_asprintf("--%.*s", (int)name, words[i]),
            .value = equals ? ipw_strdup(equals + 1) : NULL,
        };
        settings.list[settings.n].option = settings.list[settings.n].word + 2;
        settings.n++;
    }
}

struct given {
    const char *option;
    char server[32]; /* the option of the server whose key it names, or "" */
    bool found;
};

/* An option of the command line replaces the setting.  A key of the settings is not sent to a
 * server that the command line names, and the demo model needs no server. */
static void look(void *ud, const struct ipw_opt *o, const char *value)
{
    struct given *given = ud;
    bool is_demo = !strcmp(o->name, "model") && value && !strcmp(value, "demo");

    given->found |= !strcmp(o->name, given->option) || !strcmp(o->name, given->server) ||
                    (!strcmp(o->name, "upstream") && !strcmp(given->server, "base-url")) ||
                    (is_demo && !strcmp(given->option, "base-url"));
}

/* "judge-key-env" is the key of "judge-url", "api-key-env" of "base-url". */
static void server_of(char *out, size_t size, const char *option)
{
    const char *key = strstr(option, "-key-env");

    out[0] = '\0';
    if (key && !strncmp(option, "api", 3))
        snprintf(out, size, "base-url");
    else if (key)
        snprintf(out, size, "%.*s-url", (int)(key - option), option);
}

/* Whether the command has the option, and its command line leaves it open. */
static bool is_wanted(const struct ipw_command *command, int argc, char **argv,
                      const struct kept *s)
{
    struct given given = {.option = s->option};
    struct ipw_opt row;
    bool takes_value;

    if (!ipw_option_named(&row, &takes_value, command, s->option) || takes_value != !!s->value)
        return false;
    server_of(given.server, sizeof given.server, s->option);
    ipw_options_each(command, argc, argv, look, &given);
    return !given.found;
}

char **ipw_options_before(const struct ipw_command *command, int *argc, char **argv)
{
    char **words, **copy;
    int n = 1;

    if (!settings.n) return argv;
    words = ipw_calloc((size_t)*argc + 2 * settings.n + 1, sizeof *words);
    copy = ipw_calloc((size_t)*argc + 1, sizeof *copy); /* getopt changes the order */
    words[0] = argv[0];
    for (size_t i = 0; i < settings.n; i++) {
        memcpy(copy, argv, (size_t)*argc * sizeof *copy);
        if (!is_wanted(command, *argc, copy, &settings.list[i])) continue;
        words[n++] = settings.list[i].word;
        if (settings.list[i].value) words[n++] = settings.list[i].value;
    }
    memcpy(words + n, argv + 1, (size_t)(*argc - 1) * sizeof *words);
    *argc += n - 1;
    free(copy);
    IPW_GROW(settings.lines, settings.cap_lines, settings.n_lines + 1);
    settings.lines[settings.n_lines++] = words;
    return words;
}

int ipw_exit_with(const struct ipw_err *err, int exit_code)
{
    ipw_say("%s", err->text);
    if (exit_code == IPW_EXIT_USAGE)
        fprintf(stderr, "ipw-agent: see ipw-agent %s%s--help\n", parsed, parsed[0] ? " " : "");
    return exit_code;
}
