/* The option table: kinds, letters, positions, help, and answers to slips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "app/options.h"
#include "unit/unit.h"

struct values {
    bool flag;
    const char *text;
    int64_t number, duration_ns;
    double x;
    struct ipw_opt_list list;
};

static const struct ipw_opt_key keys[] = {{"n", "number"}, {"d", "duration"}, {NULL, NULL}};
static const struct ipw_opt options[] = {
    {"flag", 'f', IPW_OPT_FLAG, offsetof(struct values, flag), NULL, "a flag", 0, 0},
    {"text", 't', IPW_OPT_STR, offsetof(struct values, text), "WORD", "a word", 0, 0},
    {"number", 'n', IPW_OPT_INT, offsetof(struct values, number), "N", "a number", 1, 10},
    {"duration", 0, IPW_OPT_DURATION, offsetof(struct values, duration_ns), "TIME", "a time", 0, 0},
    {"factor", 0, IPW_OPT_NUM, offsetof(struct values, x), "X", "a factor", 0, 0},
    {"pace", 0, IPW_OPT_NUM, offsetof(struct values, x), "X", "a pace above 0", 1, 0},
    {"item", 'i', IPW_OPT_LIST, offsetof(struct values, list), "ITEM", "an item", 0, 0},
    {"Rare (and odd)", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"stop", 0, IPW_OPT_KEYS, 0, "LIST", "n=,d=", .keys = keys},
    {"left", 0, IPW_OPT_GONE, 0, NULL, "use --item"},
    {NULL, 0, IPW_OPT_FLAG, 0, NULL, NULL, 0, 0},
};
static const struct ipw_command command = {.name = "try",
                                           .usage = "try THING",
                                           .about = "Tries.",
                                           .options = options,
                                           .min_args = 1,
                                           .max_args = 2};

static int parse(struct values *v, struct ipw_err *err, const char *const *words, char ***args,
                 int *n_args)
{
    static char *argv[16];
    int argc = 0;

    for (argv[argc++] = (char *)"try"; *words; words++) argv[argc++] = (char *)*words;
    argv[argc] = NULL;
    memset(v, 0, sizeof *v);
    memset(err, 0, sizeof *err);
    return ipw_options_parse(&command, argc, argv, v, args, n_args, err);
}

static void test_values(void **state)
{
    struct values v;
    struct ipw_err err;
    char **args;
    int n;

    (void)state;
    assert_int_equal(
        parse(&v, &err,
              (const char *const[]){"-f", "thing", "--text=word", "-n", "7", "--duration", "2m",
                                    "--factor", "-0.5", "-i", "a", "--item", "b", NULL},
              &args, &n),
        0);
    assert_true(v.flag);
    assert_string_equal(v.text, "word");
    assert_int_equal(v.number, 7);
    assert_int_equal(v.duration_ns, INT64_C(120000000000));
    assert_true(v.x == -0.5);
    assert_int_equal(v.list.n, 2);
    assert_string_equal(v.list.items[1], "b");
    assert_null(v.list.items[2]);
    free(v.list.items);
    assert_int_equal(n, 1);
    assert_string_equal(args[0], "thing");
}

static void test_double_dash_ends_options(void **state)
{
    struct values v;
    struct ipw_err err;
    char **args;
    int n;

    (void)state;
    assert_int_equal(parse(&v, &err, (const char *const[]){"--", "--text", "-n", NULL}, &args, &n),
                     0);
    assert_int_equal(n, 2);
    assert_string_equal(args[0], "--text");
    assert_null(v.text);
}

static void test_slips(void **state)
{
    static const struct {
        const char *words[4];
        const char *said;
    } cases[] = {
        {{"x", "--texd", "a"}, "unknown option '--texd' (did you mean '--text'?)"},
        {{"x", "--num=3"}, NULL}, /* an unambiguous beginning is getopt_long's own service */
        {{"x", "--zzzzzzzz"}, "unknown option '--zzzzzzzz'"},
        {{"x", "-q"}, "unknown option '-q'"},
        {{"x", "--text"}, "option '--text' needs a value"},
        {{"x", "--number", "11"}, "--number: 11 is outside 1 to 10"},
        {{"x", "--number", "3x"}, "--number: '3x' is not a whole number"},
        {{"x", "--duration", "soon"}, "--duration: 'soon' is not a duration"},
        {{"x", "--pace", "0"}, "--pace: '0' is not a number above 0"},
        {{"x", "--pace", "-2"}, "--pace: '-2' is not a number above 0"},
        {{"x", "--pace", "nan"}, "--pace: 'nan' is not"},
        {{"x", "--pace", "0.5"}, NULL},
        {{"x", "--stop", "n=3,d=2s"}, NULL},
        {{"x", "--stop", "n=3,x=1"}, "--stop 'x': expected KEY=VALUE, with one of the keys n, d"},
        {{"x", "--stop", "n"}, "--stop 'n': expected KEY=VALUE"},
        {{"x", "--stop", "n=11"}, "--number: 11 is outside 1 to 10"},
        {{"x", "--left"}, "there is no --left any more: use --item"},
        {{"x", "--left=2"}, "there is no --left any more: use --item"},
        {{"x", "--lef"}, "there is no --left any more: use --item"},
        {{NULL}, "an argument is missing"},
        {{"x", "y", "z"}, "unexpected argument 'z'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct values v;
        struct ipw_err err;
        char **args;
        int n, rc = parse(&v, &err, cases[i].words, &args, &n);

        if (!cases[i].said) {
            assert_int_equal(rc, 0);
            continue;
        }
        assert_int_equal(rc, IPW_EINVAL);
        if (!strstr(err.text, cases[i].said)) fail_msg("%s: %s", cases[i].said, err.text);
    }
}

/* The help as a text, which the caller frees; NULL: there is no such group. */
static char *help(const struct ipw_command *of, const char *group)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool found = ipw_options_help(of, group, out);

    fclose(out);
    if (found) return text;
    free(text);
    return NULL;
}

static void test_help_names_every_option(void **state)
{
    char *text = help(&command, NULL);

    (void)state;
    for (const struct ipw_opt *o = options; o->name; o++) {
        assert_true(!strstr(text, o->name) == (o->kind == IPW_OPT_GONE));
        if (o->help) assert_true(!strstr(text, o->help) == (o->kind == IPW_OPT_GONE));
    }
    assert_non_null(strstr(text, "usage: ipw-agent try THING"));
    assert_non_null(strstr(text, "--help"));
    free(text);
}

/* A command with many options shows the common ones, and the groups of the others. */
static void test_help_of_groups(void **state)
{
    static const struct {
        const char *group;
        bool text, item, stop, more; /* which options it has; the line of groups */
    } cases[] = {
        {NULL, true, false, false, true},
        {"all", true, true, true, false},
        {"rare", false, false, true, false},
        {"options", true, true, false, false},
    };
    struct ipw_command many = command;

    (void)state;
    many.first = " text number ";
    assert_null(help(&many, "nope"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = help(&many, cases[i].group);

        assert_non_null(text);
        assert_int_equal(!!strstr(text, "--text"), cases[i].text);
        assert_int_equal(!!strstr(text, "--item"), cases[i].item);
        assert_int_equal(!!strstr(text, "--stop"), cases[i].stop);
        assert_int_equal(!!strstr(text, "--help=rare"), cases[i].more);
        free(text);
    }
}

UNIT(options)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),         cmocka_unit_test(test_double_dash_ends_options),
        cmocka_unit_test(test_slips),          cmocka_unit_test(test_help_names_every_option),
        cmocka_unit_test(test_help_of_groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
