/* The text format of exporters, line by line: what is a sample, and what is not. */
#include "energy/sources/prometheus.h"

#include <stdlib.h>

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

struct got {
    size_t n, n_labels;
    double value;
    bool is_int;
    char name[64], label[64];
};

static void keep(void *ud, const struct ipw_prom_sample *s)
{
    struct got *g = ud;

    g->n++;
    g->n_labels = s->n_labels;
    g->value = s->value;
    g->is_int = s->is_int;
    snprintf(g->name, sizeof g->name, "%s", s->name);
    snprintf(g->label, sizeof g->label, "%s", ipw_prom_label(s, "a"));
}

static size_t parse(struct got *g, const char *text, size_t *first_bad)
{
    size_t n = strlen(text), bad;
    char *exact = malloc(n ? n : 1); /* so that reading beyond is seen */

    memcpy(exact, text, n);
    *g = (struct got){0};
    bad = ipw_prom_parse(exact, n, keep, g, first_bad);
    free(exact);
    return bad;
}

static void test_samples(void **state)
{
    static const struct {
        const char *text, *name, *label;
        double value;
        bool is_int;
    } table[] = {
        {"w 5", "w", "", 5, true},
        {"\t w\t5.5\t", "w", "", 5.5, false},
        {":W_9{} 5\r\n", ":W_9", "", 5, true},
        {"w { a = \"b\" , c=\"d\", } 5", "w", "b", 5, true},
        {"w{a=\"x\\\"\\n\\\\\"} 5", "w", "x\"\n\\", 5, true},
        {"w 5 1790000000", "w", "", 5, true},
        {"w 5 -1.79e+9", "w", "", 5, true},
        {"w 5 +1E3", "w", "", 5, true},
        {"w 5 # {id=\"x\"} 1", "w", "", 5, true},
        {"w -5e-1", "w", "", -0.5, false},
        {"w 99999999999999999999", "w", "", 1e20, false},
    };
    struct got g;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (parse(&g, table[i].text, NULL) || g.n != 1) fail_msg("%s", table[i].text);
        assert_string_equal(g.name, table[i].name);
        assert_string_equal(g.label, table[i].label);
        assert_near(g.value, table[i].value, 1e-6);
        assert_int_equal(g.is_int, table[i].is_int);
    }
    assert_int_equal(parse(&g, "w +Inf\n", NULL), 0);
    assert_true(isinf(g.value));
    assert_int_equal(parse(&g, "w NaN\n", NULL), 0);
    assert_true(isnan(g.value));
}

/* A line that is cut or is none is counted with the first one's number; the lines around it
 * stay. */
static void test_no_samples(void **state)
{
    static const char *const table[] = {
        "5",
        "9w 5",
        "w",
        "w ",
        "w{",
        "w{a",
        "w{a}",
        "w{a=",
        "w{a=5} 5",
        "w{a=\"b",
        "w{a=\"b\\",
        "w{a=\"b\"",
        "w{a=\"b\" c=\"d\"} 5",
        "w{=\"b\"} 5",
        "w{a=\"b\"}",
        "w 0x5",
        "w nan(1)",
        "w 5x",
        "w 5 noon",
        "w 5 5 5",
        "w five",
        "w{a=\"b\",,} 5",
    };
    struct got g;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[128];
        size_t first_bad = 0;

        assert_int_equal(parse(&g, table[i], &first_bad), 1);
        assert_int_equal(first_bad, 1);
        assert_int_equal(g.n, 0);
        snprintf(text, sizeof text, "# HELP w\nv 1\n%s\n\nw 7\n", table[i]);
        if (parse(&g, text, &first_bad) != 1) fail_msg("%s", table[i]);
        assert_int_equal(first_bad, 3);
        assert_int_equal(g.n, 2);
        assert_near(g.value, 7, 0);
    }
}

/* Names, values and numbers beyond the ceilings are refused, never cut; further labels are left
 * out. */
static void test_ceilings(void **state)
{
    static char text[200000];
    struct got g;
    size_t used;

    (void)state;
    memset(text, 'n', 150000);
    strcpy(text + 150000, " 5");
    assert_int_equal(parse(&g, text, NULL), 1);
    used = (size_t)sprintf(text, "w{a=\"");
    memset(text + used, 'v', 150000);
    strcpy(text + used + 150000, "\"} 5");
    assert_int_equal(parse(&g, text, NULL), 1);
    sprintf(text, "w %0100d", 5); /* a number of so many digits is none of an exporter's */
    assert_int_equal(parse(&g, text, NULL), 1);
    used = (size_t)sprintf(text, "w{");
    for (int i = 0; i < 60; i++) used += (size_t)sprintf(text + used, "l%d=\"x\",", i);
    sprintf(text + used, "a=\"late\"} 5");
    assert_int_equal(parse(&g, text, NULL), 0);
    assert_int_equal(g.n_labels, IPW_PROM_LABELS);
    assert_string_equal(g.label, "");
}

UNIT(prometheus_page)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_no_samples),
        cmocka_unit_test(test_ceilings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
