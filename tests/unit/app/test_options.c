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

static const struct ipw_opt options[] = {
    {"flag", 'f', IPW_OPT_FLAG, offsetof(struct values, flag), NULL, "a flag", 0, 0},
    {"text", 't', IPW_OPT_STR, offsetof(struct values, text), "WORD", "a word", 0, 0},
    {"number", 'n', IPW_OPT_INT, offsetof(struct values, number), "N", "a number", 1, 10},
    {"duration", 0, IPW_OPT_DURATION, offsetof(struct values, duration_ns), "TIME", "a time", 0, 0},
    {"factor", 0, IPW_OPT_NUM, offsetof(struct values, x), "X", "a factor", 0, 0},
    {"pace", 0, IPW_OPT_NUM, offsetof(struct values, x), "X", "a pace above 0", 1, 0},
    {"item", 'i', IPW_OPT_LIST, offsetof(struct values, list), "ITEM", "an item", 0, 0},
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

static void test_help_names_every_option(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    ipw_options_help(&command, out);
    fclose(out);
    assert_true(size > 0);
    for (const struct ipw_opt *o = options; o->name; o++) {
        assert_true(!strstr(text, o->name) == (o->kind == IPW_OPT_GONE));
        assert_true(!strstr(text, o->help) == (o->kind == IPW_OPT_GONE));
    }
    assert_non_null(strstr(text, "usage: ipw-agent try THING"));
    assert_non_null(strstr(text, "--help"));
    free(text);
}

UNIT(options)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_double_dash_ends_options),
        cmocka_unit_test(test_slips),
        cmocka_unit_test(test_help_names_every_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
