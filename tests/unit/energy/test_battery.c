/* The battery over a power_supply folder of the test's own. */
#include "energy/source.h"

#include "unit/energy/tree.h"
#include "unit/unit.h"

static struct ipw_source *open_battery(void)
{
    const struct ipw_source_place o = {.batteries = tree_root};
    struct ipw_source *s;
    struct ipw_err err = {0};

    if (ipw_battery_open(&s, &o, "battery", &err)) fail_msg("%s", err.text);
    assert_string_equal(s->name, "battery");
    assert_int_equal(s->n_channels, 1);
    return s;
}

static void cell(const char *name, const char *status)
{
    char file[64];

    snprintf(file, sizeof file, "%s/type", name);
    put(file, "Battery\n");
    snprintf(file, sizeof file, "%s/status", name);
    put(file, status);
}

static void test_power_now(void **state)
{
    struct ipw_source *s;
    const struct ipw_channel *c;

    (void)state;
    cell("BAT0", "Discharging\n");
    put("BAT0/power_now", "12345678\n");
    put("AC/type", "Mains\n");
    put("AC/online", "0\n");
    s = open_battery();
    c = &s->channels[0];
    assert_string_equal(c->name, "battery");
    assert_string_equal(c->device, "BAT0");
    assert_string_equal(c->unit, "mW");
    assert_string_equal(c->method, "power_now");
    assert_int_equal(c->kind, IPW_CHANNEL_GAUGE);
    assert_int_equal(c->domain, IPW_DOMAIN_MACHINE);
    assert_int_equal(c->scope, IPW_SCOPE_MACHINE);
    assert_true(c->in_sum);
    assert_string_equal(s->note, "");
    assert_int_equal(value(s, "battery"), 12345);
    put("BAT0/power_now", "-9000000\n"); /* the sign is the driver's habit */
    assert_int_equal(value(s, "battery"), 9000);
    s->close(s);
}

static void test_current_times_voltage(void **state)
{
    struct ipw_source *s;

    (void)state;
    cell("BAT1", "Discharging\n");
    put("BAT1/current_now", "-1500000\n");
    put("BAT1/voltage_now", "12000000\n");
    s = open_battery();
    assert_string_equal(s->channels[0].method, "current_now x voltage_now");
    assert_int_equal(value(s, "battery"), 18000);
    put("BAT1/current_now", "9223372036854775807\n");
    assert_true(value(s, "battery") == IPW_NO_VALUE);
    s->close(s);
}

/* Only while it discharges is it the machine's power. */
static void test_status_decides(void **state)
{
    static const struct {
        const char *first, *second;
        int64_t mw;
    } cases[] = {
        {"Discharging\n", "Discharging\n", 30000},
        {"Discharging", "Not charging\n", 10000}, /* laptops empty one after the other */
        {"Full\n", "Discharging\n", 20000},
        {"Unknown\n", "Discharging\n", 20000},
        {"Charging\n", "Discharging\n", IPW_NO_VALUE},
        {"Discharging\n", "Charging\n", IPW_NO_VALUE},
        {"Charging\n", "Full\n", IPW_NO_VALUE},
        {"Full\n", "Full\n", IPW_NO_VALUE},
        {"Not charging\n", "Unknown\n", IPW_NO_VALUE},
        {"discharging\n", "\n", IPW_NO_VALUE},
        {"Discharging Discharging\n", "", IPW_NO_VALUE},
    };
    struct ipw_source *s;

    (void)state;
    cell("BAT0", "Full\n");
    put("BAT0/power_now", "10000000\n");
    cell("BAT1", "Full\n");
    put("BAT1/power_now", "20000000\n");
    s = open_battery();
    assert_string_equal(s->channels[0].device, "BAT0+BAT1");
    assert_string_equal(s->note, "not discharging: no reading while on mains");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("BAT0/status", cases[i].first);
        put("BAT1/status", cases[i].second);
        if (value(s, "battery") != cases[i].mw) fail_msg("case %zu", i);
    }
    s->close(s);
}

/* What carries the machine gives more than nothing: 0 W while discharging is no reading. */
static void test_zero_while_discharging(void **state)
{
    struct ipw_source *s;

    (void)state;
    cell("BAT0", "Discharging\n");
    put("BAT0/power_now", "0\n");
    s = open_battery();
    assert_string_equal(s->note, "discharging at 0 W, which is not a valid reading");
    assert_true(value(s, "battery") == IPW_NO_VALUE);
    put("BAT0/power_now", "9000000\n");
    assert_int_equal(value(s, "battery"), 9000);
    put("BAT0/power_now", "300\n"); /* a third of a milliwatt */
    assert_true(value(s, "battery") == IPW_NO_VALUE);
    s->close(s);
    cell("BAT1", "Discharging\n"); /* two, of which one gives nothing */
    put("BAT1/power_now", "8000000\n");
    s = open_battery();
    assert_int_equal(value(s, "battery"), 8000);
    s->close(s);
}

static void test_09_10_bad_texts(void **state)
{
    static const char *const bad[] = {"",
                                      "nan\n",
                                      "inf\n",
                                      "1e6\n",
                                      "12 W\n",
                                      "\n",
                                      "--5\n",
                                      "18446744073709551615\n",
                                      "9999999999999999999\n"};
    struct ipw_source *s;

    (void)state;
    cell("BAT0", "Discharging\n");
    put("BAT0/power_now", "1000\n");
    s = open_battery();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("BAT0/power_now", bad[i]);
        if (value(s, "battery") != IPW_NO_VALUE) fail_msg("'%s' is a value", bad[i]);
    }
    put("BAT0/power_now", "2000\n");
    assert_int_equal(value(s, "battery"), 2);
    s->close(s);
}

static void test_none(void **state)
{
    const struct ipw_source_place here = {.batteries = tree_root},
                                  nowhere = {.batteries = "/nonexistent"};
    struct ipw_source *s = (struct ipw_source *)1;
    struct ipw_err err = {0};
    char want[200];

    (void)state;
    assert_int_equal(ipw_battery_open(&s, &nowhere, "battery", &err), IPW_EUNSUPPORTED);
    assert_null(s);
    assert_string_equal(err.text, "no battery with a power reading in /nonexistent");
    put("AC/type", "Mains\n");
    cell("mouse", "Discharging\n");
    put("mouse/power_now", "1000\n");
    put("mouse/scope", "Device\n");
    cell("dumb", "Discharging\n"); /* neither power nor current */
    put("dumb/voltage_now", "1000\n");
    assert_int_equal(ipw_battery_open(&s, &here, "battery", &err), IPW_EUNSUPPORTED);
    snprintf(want, sizeof want, "no battery with a power reading in %s", tree_root);
    assert_string_equal(err.text, want);
    assert_int_equal(ipw_battery_open(&s, &here, "battery", NULL), IPW_EUNSUPPORTED);
}

/* What does not say that it is a battery of the machine, or not what it gives, is none. */
static void test_no_batteries(void **state)
{
    const struct ipw_source_place o = {.batteries = tree_root},
                                  own = {.batteries = "/sys/class/power_supply"};
    struct ipw_source *s;
    struct ipw_err err = {0};

    (void)state;
    put("A/online", "1\n"); /* no type */
    cell("B", "Discharging\n");
    put("B/scope", "Device\n"); /* a mouse's */
    put("B/power_now", "1000000\n");
    cell("C", "Discharging\n");
    put("C/current_now", "1000000\n"); /* at no known voltage */
    put("D/type", "Battery\n");
    put("D/power_now", "1000000\n"); /* does not say whether it gives or takes */
    assert_int_equal(ipw_battery_open(&s, &o, "battery", &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, tree_root));
    put("B/scope", "System\n");
    s = open_battery();
    assert_string_equal(s->channels[0].device, "B");
    assert_int_equal(value(s, "battery"), 1000);
    s->close(s);
    if (ipw_battery_open(&s, &own, "battery", &err) == 0)
        s->close(s); /* this machine's, if it has one */
}

/* One of two cells that cannot be read makes the sum unknown; so does a product beyond all
 * numbers. */
static void test_unreadable_cells(void **state)
{
    struct ipw_source *s;

    (void)state;
    cell("BAT0", "Discharging\n");
    put("BAT0/power_now", "5000000\n");
    cell("BAT1", "Discharging\n");
    put("BAT1/current_now", "1000000\n");
    put("BAT1/voltage_now", "10000000\n");
    s = open_battery();
    assert_int_equal(value(s, "battery"), 15000);
    put("BAT1/voltage_now", "");
    assert_true(value(s, "battery") == IPW_NO_VALUE);
    put("BAT1/voltage_now", "10000000\n");
    put("BAT1/current_now", "");
    assert_true(value(s, "battery") == IPW_NO_VALUE);
    put("BAT1/current_now", "9000000000000\n");
    put("BAT1/voltage_now", "9000000000000\n");
    assert_true(value(s, "battery") == IPW_NO_VALUE);
    s->close(s);
}

UNIT(battery)
{
    const struct CMUnitTest tests[] = {
        WITH_TREE(test_power_now),      WITH_TREE(test_current_times_voltage),
        WITH_TREE(test_status_decides), WITH_TREE(test_09_10_bad_texts),
        WITH_TREE(test_none),           WITH_TREE(test_zero_while_discharging),
        WITH_TREE(test_no_batteries),   WITH_TREE(test_unreadable_cells),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
