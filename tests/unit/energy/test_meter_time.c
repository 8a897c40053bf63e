/* Times in a meter's log: energy/meter.h. */
#include "energy/meter.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define DAY_14H 1795269600 /* 2026-11-21 14:00:00 UTC */

static struct ipw_meter_format format_of(const char *heading)
{
    struct ipw_meter_format f;

    assert_int_equal(ipw_meter_format_begin(&f, heading, strlen(heading), NULL, NULL), 1);
    return f;
}

static int take(struct ipw_meter_format *f, const char *text, double *t_s, struct ipw_err *err)
{
    struct ipw_meter_row row;
    char line[128];
    int rc = ipw_meter_row(f, line, (size_t)sprintf(line, "%s\t5", text), &row, err);

    *t_s = row.t_s;
    return rc < 0 ? rc : 0;
}

static int read_time(enum ipw_meter_clock *clock, const char *text, double *t_s)
{
    struct ipw_meter_format f = format_of("time\tw");
    int rc = take(&f, text, t_s, NULL);

    *clock = f.clock;
    return rc;
}

static void test_spellings(void **state)
{
    static const struct {
        const char *text;
        enum ipw_meter_clock clock;
        double t_s;
    } table[] = {
        {"2026-11-21T14:00:00Z", IPW_METER_CLOCK_ZONED, DAY_14H},
        {"2026-11-21 14:00:00z", IPW_METER_CLOCK_ZONED, DAY_14H},
        {"2026-11-21 14:00:00 UTC", IPW_METER_CLOCK_ZONED, DAY_14H},
        {"2026-11-21T15:00:00+01:00", IPW_METER_CLOCK_ZONED, DAY_14H},
        {"2026-11-21T15:00:00 +01", IPW_METER_CLOCK_ZONED, DAY_14H},
        {"2026-11-21T08:30:00-0530", IPW_METER_CLOCK_ZONED, DAY_14H},
        {"2026/11/21 14:00:00.5", IPW_METER_CLOCK_LOCAL, DAY_14H + 0.5},
        {"2026.11.21_14:00:00,25", IPW_METER_CLOCK_LOCAL, DAY_14H + 0.25},
        {"21.11.2026 14:00", IPW_METER_CLOCK_LOCAL, DAY_14H},
        {"21.11.2026t14:00:00", IPW_METER_CLOCK_LOCAL, DAY_14H},
        {"2026-11-21    2:00:00 PM", IPW_METER_CLOCK_LOCAL, DAY_14H},
        {"2026-11-21 2:00 pm", IPW_METER_CLOCK_LOCAL, DAY_14H},
        {"2026-11-21 12:00:00 AM", IPW_METER_CLOCK_LOCAL, DAY_14H - 14 * 3600},
        {"2026-11-21 12:00:00 PM", IPW_METER_CLOCK_LOCAL, DAY_14H - 2 * 3600},
        {"1970-01-01 00:00:00", IPW_METER_CLOCK_LOCAL, 0},
        {"2024-02-29 00:00:00", IPW_METER_CLOCK_LOCAL, 1709164800},
        {"14:00:60", IPW_METER_CLOCK_DAY, 14 * 3600 + 60}, /* a leap second */
        {"9:05", IPW_METER_CLOCK_DAY, 9 * 3600 + 300},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        enum ipw_meter_clock clock;
        double t_s;

        if (read_time(&clock, table[i].text, &t_s)) fail_msg("%s", table[i].text);
        if (clock != table[i].clock) fail_msg("%s: clock %d", table[i].text, (int)clock);
        assert_near(t_s, table[i].t_s, 1e-6);
    }
}

/* A time that is not one is refused as a whole, never read in part. */
static void test_refused(void **state)
{
    static const char *const table[] = {
        "",
        "noon",
        "-5",
        "14", /* seconds, see below */
        "24:00:00",
        "14:60",
        "14:00:00x",
        "0:30 PM",
        "13:30 PM",
        "14:00:00 XM",
        "2026-11-21",
        "2026-11-21T",
        "2026-11-21T25:00:00",
        "2026-00-21T14:00:00",
        "2026-13-21T14:00:00",
        "2026-11-00T14:00:00",
        "2026-11-32T14:00:00",
        "1969-12-31T23:59:59",
        "2026-11-21T14:00:00Zx",
        "2026-11-21T14:00:00+",
        "2026-11-21T14:00:00+1",
        "2026-11-21T14:00:00*01",
        "2026-11-21T14:00:00+01:0",
        "2026-11-21T14:00:00+01:60",
        "2026-11-21T14:00:00+01:00x",
        "2026-11-21T14:00:00 CET",
        "21.11.26 14:00",
        "21.11-2026 14:00",
        "21.x.2026 14:00",
        "21.11.2026",
        "2026-x-21T14:00:00",
        "2026-11+21T14:00:00",
        "2026-11-xT14:00:00",
        "2026+11-21T14:00:00",
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        enum ipw_meter_clock clock;
        double t_s;
        int rc = read_time(&clock, table[i], &t_s);

        if (!strcmp(table[i], "14")) {
            assert_int_equal(rc, 0);
            assert_int_equal(clock, IPW_METER_CLOCK_EPOCH);
        } else if (rc != IPW_EPARSE || clock != IPW_METER_CLOCK_NONE) {
            fail_msg("%s: %d", table[i], rc);
        }
    }
}

/* A log keeps to the clock of its first row; the message names the clock. */
static void test_one_clock(void **state)
{
    static const struct {
        const char *first, *then, *is_not;
    } table[] = {
        {"1795269600", "14:00:00", "'14:00:00' is not seconds since 1970"},
        {"2026-11-21T14:00:00Z", "2026-11-21T14:00:00", "is not a date with its zone"},
        {"2026-11-21T14:00:00", "2026-11-21T14:00:00Z", "is not a date"},
        {"14:00:00", "5", "'5' is not HH:MM:SS"},
        {"14:00:00", "a word that is much longer than a message has room for: forty bytes",
         "'a word that is much longer than a messag' is not"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_meter_format f = format_of("time\tw");
        struct ipw_err err = {0};
        double t_s;

        assert_int_equal(take(&f, table[i].first, &t_s, &err), 0);
        assert_int_equal(take(&f, table[i].then, &t_s, &err), IPW_EPARSE);
        if (!strstr(err.text, table[i].is_not)) fail_msg("%s", err.text);
    }
}

/* After midnight the next day begins; a step back of minutes is no midnight. */
static void test_midnight(void **state)
{
    struct ipw_meter_format f = format_of("time\tw");
    double t_s;

    (void)state;
    assert_int_equal(take(&f, "23:59:59", &t_s, NULL), 0);
    assert_int_equal(take(&f, "00:00:01", &t_s, NULL), 0);
    assert_near(t_s, 86401, 1e-9);
    assert_int_equal(take(&f, "00:00:00", &t_s, NULL), 0);
    assert_near(t_s, 86400, 1e-9);
}

/* The unit is the heading's, unless that gives a date beyond 2286. */
static void test_units(void **state)
{
    static const struct {
        const char *text, *heading;
        double t_s;
    } table[] = {
        {"1795269600", "time\tw", DAY_14H},
        {"1795269600000", "time\tw", DAY_14H},
        {"1795269600000000", "time\tw", DAY_14H},
        {"1795269600000000000", "time\tw", DAY_14H},
        {"1500", "time_ms\tw", 1.5},
        {"1795269600000", "time_s\tw", DAY_14H},
        {"1795269600000", "Time [ms]\tw", DAY_14H},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_meter_format f = format_of(table[i].heading);
        double t_s;

        assert_int_equal(take(&f, table[i].text, &t_s, NULL), 0);
        assert_near(t_s, table[i].t_s, 1e-3);
    }
}

UNIT(meter_time)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_one_clock), cmocka_unit_test(test_midnight),
        cmocka_unit_test(test_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
