/* What people type: numbers, times, sizes and energies, and whole command lines (an argument a line).
 * A value that is taken lies within its range, and reads the same when it is written plainly. */
#include <math.h>

#include "app/options.h"
#include "base/text.h"
#include "check.h"

struct values {
    bool flag;
    const char *str;
    int64_t integer, duration;
    double num, joules;
    size_t bytes;
    struct ipw_opt_list list;
};

static const struct ipw_opt options[] = {
    {"flag", 'f', IPW_OPT_FLAG, offsetof(struct values, flag), NULL, "a flag", 0, 0},
    {"str", 's', IPW_OPT_STR, offsetof(struct values, str), "TEXT", "a text", 0, 0},
    {"int", 'i', IPW_OPT_INT, offsetof(struct values, integer), "N", "an integer", -5, 1000000},
    {"num", 'n', IPW_OPT_NUM, offsetof(struct values, num), "X", "a number", 0, 0},
    {"duration", 'd', IPW_OPT_DURATION, offsetof(struct values, duration), "TIME", "a time", 7, 0},
    {"joules", 'j', IPW_OPT_JOULES, offsetof(struct values, joules), "ENERGY", "energy", 0, 0},
    {"bytes", 'b', IPW_OPT_BYTES, offsetof(struct values, bytes), "SIZE", "a size", 16, 1 << 30},
    {"list", 'l', IPW_OPT_LIST, offsetof(struct values, list), "A,B", "a list", 0, 0},
    {0},
};

static const struct ipw_command command = {.name = "fuzz",
                                           .usage = "fuzz [options]",
                                           .about = "Reads options.",
                                           .options = options,
                                           .max_args = 3};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!freopen("/dev/null", "w", stdout)) abort(); /* --help is printed there */
    return 0;
}

static void check_command(char *text)
{
    char *argv[34] = {"fuzz"}, **args, *line;
    struct values v = {.integer = 0, .duration = 7, .joules = 1, .bytes = 16};
    struct ipw_err err = {0};
    int argc = 1, n, rc;

    while (argc < 33 && (line = next_line(&text))) argv[argc++] = line;
    rc = ipw_options_parse(&command, argc, argv, &v, &args, &n, &err);
    if (rc < 0) {
        check_error(&err, rc);
    } else if (rc == 0) {
        check(n >= 0 && n <= 3, "more arguments than there may be");
        check(v.integer >= -5 && v.integer <= 1000000, "an integer out of its range");
        check(v.duration >= 7, "a time below its least");
        check(isfinite(v.num), "a number that is none");
        check(isfinite(v.joules) && v.joules > 0, "an energy that is none");
        check(v.bytes >= 16 && v.bytes <= 1 << 30, "a size out of its range");
        for (size_t i = 0; i < v.list.n; i++) check(v.list.items[i] != NULL, "a list with a hole");
        check(!v.list.n || !v.list.items[v.list.n], "a list without its end");
    }
    free(v.list.items);
}

static void check_values(const char *text)
{
    struct ipw_err err = {0};
    int64_t integer, again, ns;
    double x, y, joules;
    size_t bytes;
    char plain[64];
    int rc;

    rc = ipw_parse_int(&integer, text, -1000, INT64_MAX, &err);
    if (rc) {
        check_error(&err, rc);
    } else {
        snprintf(plain, sizeof plain, "%lld", (long long)integer);
        check(integer >= -1000, "an integer out of its range");
        check(!ipw_parse_int(&again, plain, INT64_MIN, INT64_MAX, NULL) && again == integer,
              "an integer does not come back");
    }
    rc = ipw_parse_double(&x, text, &err);
    if (rc) {
        check_error(&err, rc);
    } else {
        snprintf(plain, sizeof plain, "%.17g", x);
        check(isfinite(x), "a number that is none");
        check(!ipw_parse_double(&y, plain, NULL) && x == y, "a number does not come back");
    }
    rc = ipw_parse_duration_ns(&ns, text, &err);
    if (rc) {
        check_error(&err, rc);
    } else {
        check(ns >= 0, "a negative time");
        snprintf(plain, sizeof plain, "%.9fs", (double)ns / 1e9);
        check(!ipw_parse_duration_ns(&again, plain, NULL) && llabs(again - ns) <= 1 + (ns >> 50),
              "a time does not come back");
    }
    rc = ipw_parse_bytes(&bytes, text, &err);
    if (rc) {
        check_error(&err, rc);
    } else if (bytes < (size_t)1 << 50) {
        size_t same;

        snprintf(plain, sizeof plain, "%zu", bytes);
        check(!ipw_parse_bytes(&same, plain, NULL) && same == bytes, "a size does not come back");
    }
    rc = ipw_parse_joules(&joules, text, &err);
    if (rc)
        check_error(&err, rc);
    else
        check(isfinite(joules) && joules > 0, "an energy that is none");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = exact_text(data, size), *copy = exact_text(data, size), *rest = text, *line;

    while ((line = next_line(&rest))) check_values(line);
    check_command(copy);
    free(text);
    free(copy);
    return 0;
}
