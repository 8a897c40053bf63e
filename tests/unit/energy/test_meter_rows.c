/* Cells and headings of a meter's log that are not as they should be: energy/meter.h. */
#include "energy/meter.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static struct ipw_meter_log meter;

static int take(const char *text, struct ipw_err *err)
{
    int64_t number = 1;

    ipw_meter_log_init(&meter);
    for (const char *at = text; *at; number++) {
        size_t n = strcspn(at, "\n");
        int rc = ipw_meter_log_line(&meter, at, n, number, NULL, err);

        if (rc < 0) return rc;
        at += n + (at[n] == '\n');
    }
    return ipw_meter_log_end(&meter, err);
}

/* "-", "n/a" and "nan" are no reading; another word, unit or number is an error with its line. */
static void test_cells(void **state)
{
    static const struct {
        const char *cell, *message; /* NULL: no reading, no error */
    } table[] = {
        {"", NULL},
        {"-", NULL},
        {"N/A", NULL},
        {"NaN", NULL},
        {"nil", "line 4: 'nil' in column watts is not a number"},
        {"x", "'x' in column watts is not a number"},
        {"5 J", "'5 J' in column watts is not watts"},
        {"-5", "'-5' in column watts is out of range"},
        {"1e13", "'1e13' in column watts is out of range"},
        {"a text of more than forty characters, which is cut there",
         "'a text of more than forty characters, wh' in"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_err err = {0};
        char text[256];

        snprintf(text, sizeof text, "time;watts\n1;5\n2;5\n3;%s\n", table[i].cell);
        if (take(text, &err)) fail_msg("%s: %s", table[i].cell, err.text);
        assert_int_equal(meter.bad_rows, table[i].message != NULL);
        if (table[i].message && !strstr(meter.first_bad, table[i].message))
            fail_msg("%s", meter.first_bad);
        assert_int_equal(meter.columns[0].n, 2);
        ipw_meter_log_release(&meter);
    }
}

/* A counter expects joules. */
static void test_watts_in_a_counter(void **state)
{
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(take("time,energy\n1,5\n2,6 J\n3,7 W\n", &err), 0);
    assert_int_equal(meter.format.columns[0].kind, IPW_METER_JOULES);
    assert_non_null(strstr(meter.first_bad, "is not joules"));
    ipw_meter_log_release(&meter);
}

/* Rows in any order are sorted; of several of one instant the last one counts. */
static void test_order(void **state)
{
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(take("time,watts\n3,30\n1,10\n2,20\n5,50\n5,55\n", &err), 0);
    assert_int_equal(meter.columns[0].n, 4);
    for (size_t i = 0; i < 3; i++)
        assert_near(meter.columns[0].at[i].value, 10 * (double)(i + 1), 0);
    assert_near(meter.columns[0].at[3].t_s, 5, 0);
    ipw_meter_log_release(&meter);
}

/* Too few readings: the message names the column, and the first row that was left out. */
static void test_too_few(void **state)
{
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(take("time,watts\n1,5\n", &err), IPW_EPARSE);
    assert_string_equal(err.text, "column watts has fewer than two readings");
    ipw_meter_log_release(&meter);
    assert_int_equal(take("time,watts\n1,5\nnoon,6\n", &err), IPW_EPARSE);
    assert_non_null(strstr(err.text, "fewer than two readings; line 3: time 'noon' is not"));
    ipw_meter_log_release(&meter);
    assert_int_equal(take("", &err), IPW_EPARSE);
    assert_string_equal(err.text, "the log is empty");
    ipw_meter_log_release(&meter);
}

/* A column's unit and domain by the words of its heading. */
static void test_headings(void **state)
{
    static const struct {
        const char *heading;
        enum ipw_meter_kind kind;
        enum ipw_domain domain;
    } table[] = {
        {"gpu power", IPW_METER_WATTS, IPW_DOMAIN_GPU},
        {"cpu_watts", IPW_METER_WATTS, IPW_DOMAIN_CPU},
        {"package watt", IPW_METER_WATTS, IPW_DOMAIN_CPU},
        {"dram energy", IPW_METER_JOULES, IPW_DOMAIN_DRAM},
        {"joules", IPW_METER_JOULES, IPW_DOMAIN_MACHINE},
        {"pm", IPW_METER_WATTS, IPW_DOMAIN_MACHINE},
        {"sum", IPW_METER_WATTS, IPW_DOMAIN_MACHINE},
        {"total", IPW_METER_WATTS, IPW_DOMAIN_MACHINE},
        {"Leistung", IPW_METER_WATTS, IPW_DOMAIN_MACHINE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_err err = {0};
        char text[128];

        snprintf(text, sizeof text, "time,%s\n1,5\n2,6\n", table[i].heading);
        if (take(text, &err)) fail_msg("%s: %s", table[i].heading, err.text);
        assert_int_equal(meter.format.columns[0].kind, table[i].kind);
        assert_int_equal(meter.format.columns[0].domain, table[i].domain);
        assert_true(meter.format.columns[0].in_sum);
        ipw_meter_log_release(&meter);
    }
}

/* A heading has a ceiling of columns. */
static void test_wide(void **state)
{
    struct ipw_err err = {0};
    char text[2048] = "time";

    (void)state;
    for (int i = 0; i < 80; i++) strcat(text, ",w");
    strcat(text, "\n");
    assert_int_equal(take(text, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "more than 64 cells in a row"));
    ipw_meter_log_release(&meter);
}

UNIT(meter_rows)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),    cmocka_unit_test(test_watts_in_a_counter),
        cmocka_unit_test(test_order),    cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_headings), cmocka_unit_test(test_wide),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
