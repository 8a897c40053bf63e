#include "energy/meter.h"

#include <stdlib.h>

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

/* ---- quantities ---- */

static void test_quantities(void **state)
{
    static const struct {
        const char *text;
        bool comma, ok;
        double value;
        enum ipw_meter_kind kind;
    } cases[] = {
        {"123.4 W", false, true, 123.4, IPW_METER_WATTS},
        {"123.4W", false, true, 123.4, IPW_METER_WATTS},
        {" 45.33 W ", false, true, 45.33, IPW_METER_WATTS},
        {"250 mW", false, true, 0.25, IPW_METER_WATTS},
        {"1.5 kW", false, true, 1500, IPW_METER_WATTS},
        {"2 MW", false, true, 2e6, IPW_METER_WATTS},
        {"17", false, true, 17, IPW_METER_NONE},
        {"+17", false, true, 17, IPW_METER_NONE},
        {"1e3 watts", false, true, 1000, IPW_METER_WATTS},
        {"5.2 J", false, true, 5.2, IPW_METER_JOULES},
        {"5.2 joules", false, true, 5.2, IPW_METER_JOULES},
        {"2 Wh", false, true, 7200, IPW_METER_JOULES},
        {"0,5 kWh", true, true, 1.8e6, IPW_METER_JOULES},
        {"123,4", true, true, 123.4, IPW_METER_NONE},
        {"-3 W", false, true, -3, IPW_METER_WATTS},
        {"12 V", false, false, 0, 0},
        {"", false, false, 0, 0},
        {"W", false, false, 0, 0},
        {"nan", false, false, 0, 0},
        {"1.2.3", false, false, 0, 0},
        {"0x10", false, false, 0, 0},
        {"1e999", false, false, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum ipw_meter_kind kind;
        double value;
        bool ok =
            ipw_meter_quantity(cases[i].text, strlen(cases[i].text), cases[i].comma, &value, &kind);
        if (ok != cases[i].ok) fail_msg("'%s' is %d", cases[i].text, ok);
        if (!ok) continue;
        assert_near(value, cases[i].value, 1e-9 * fabs(cases[i].value) + 1e-12);
        assert_int_equal(kind, cases[i].kind);
    }
}

/* ---- formats ---- */

static void feed(struct ipw_meter_log *log, const char *text, const char *only)
{
    struct ipw_err err = {0};
    int64_t number = 1;

    ipw_meter_log_init(log);
    for (const char *at = text; *at; number++) {
        size_t n = strcspn(at, "\n");
        if (ipw_meter_log_line(log, at, n, number, only, &err) < 0) fail_msg("%s", err.text);
        at += n + (at[n] == '\n');
    }
    if (ipw_meter_log_end(log, &err) < 0) fail_msg("%s", err.text);
}

static void test_formats(void **state)
{
    /* Each has two rows, two seconds apart, of 100 W and 150.5 W. */
    static const struct {
        const char *text, *column;
        double t0_s;
        enum ipw_meter_clock clock;
    } cases[] = {
        {"time,id,pm1,pm2,sum\n1790000000,1,60,40,100\n1790000002,2,100.5,50,150.5\n", "sum",
         1790000000, IPW_METER_CLOCK_EPOCH},
        {"id,time,watts\n1,1790000000.5,100\n2,1790000002.5,150.5\n", "watts", 1790000000.5,
         IPW_METER_CLOCK_EPOCH},
        {"timestamp_ms;Power (W)\n1790000000000;100\n1790000002000;150,5\n", "Power (W)",
         1790000000, IPW_METER_CLOCK_EPOCH},
        {"timestamp, name, power.draw [W]\n2026/09/21 14:13:20.000, H100, 100.00 W\n"
         "2026/09/21 14:13:22.000, H100, 150.50 W\n",
         "power.draw [W]", 1790000000, IPW_METER_CLOCK_LOCAL},
        {"# a comment\n\ntime\tkw\n2026-09-21T14:13:20Z\t0.1\n2026-09-21T14:13:22Z\t0.1505\n", "kw",
         1790000000, IPW_METER_CLOCK_ZONED},
        {"time,power\n2026-09-21T16:13:20.25+02:00,100\n2026-09-21T16:13:22.25+02:00,150.5\n",
         "power", 1790000000.25, IPW_METER_CLOCK_ZONED},
        {"Datum;Leistung\n21.09.2026 14:13:20;100,0\n21.09.2026 14:13:22;150,5\n", "Leistung",
         1790000000, IPW_METER_CLOCK_LOCAL},
        {"time,watt\n14:13:20,100\n14:13:22,150.5\n", "watt", 51200, IPW_METER_CLOCK_DAY},
        {"time,watt\n2:13:20 PM,100\n2:13:22 PM,150.5\n", "watt", 51200, IPW_METER_CLOCK_DAY},
        {"1790000000,7,100\n1790000002,8,150.5\n", "column 3", 1790000000, IPW_METER_CLOCK_EPOCH},
        /* Date and time of day in cells of their own. */
        {"Date,Time,Power (W)\n2026-09-21,14:13:20,100\n2026-09-21,14:13:22,150.5\n", "Power (W)",
         1790000000, IPW_METER_CLOCK_LOCAL},
        {"Datum;Zeit;Leistung\n21.9.2026;14:13:20,25;100\n21.9.2026;14:13:22,25;150,5\n",
         "Leistung", 1790000000.25, IPW_METER_CLOCK_LOCAL},
        {"date,time_s,w\n2026-09-21 14:13:20,0,100\n2026-09-21 14:13:22,2,150.5\n", "w", 1790000000,
         IPW_METER_CLOCK_LOCAL},
        /* Since the meter was switched on: 1000 ms are no 1000 s. */
        {"time_ms,watt\n5000,100\n7000,150.5\n", "watt", 5, IPW_METER_CLOCK_EPOCH},
        {"Elapsed [min];watt\n0;100\n0,033333333333;150,5\n", "watt", 0, IPW_METER_CLOCK_EPOCH},
        {"time (s),watt\n5,100\n7,150.5\n", "watt", 5, IPW_METER_CLOCK_EPOCH},
        {"time,watt\n5,100\n7,150.5\n", "watt", 5, IPW_METER_CLOCK_EPOCH},
        {"\"time\",\"W\"\n\"1790000000\",\"100\"\n\"1790000002\",\"150.5\"\r\n", "W", 1790000000,
         IPW_METER_CLOCK_EPOCH},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_meter_log log;
        const struct ipw_meter_column *c = NULL;
        size_t at = 0, sums = 0;

        feed(&log, cases[i].text, NULL);
        for (size_t k = 0; k < log.format.n_columns; k++) {
            sums += log.format.columns[k].in_sum;
            if (log.format.columns[k].in_sum) at = k, c = &log.format.columns[k];
        }
        if (sums != 1) fail_msg("case %zu: %zu columns in the sum", i, sums);
        assert_string_equal(c->name, cases[i].column);
        assert_int_equal(log.format.clock, cases[i].clock);
        assert_int_equal(log.rows, 2);
        if (log.bad_rows) fail_msg("case %zu: %s", i, log.first_bad);
        assert_near(log.columns[at].at[0].t_s, cases[i].t0_s, 1e-6);
        assert_near(log.columns[at].at[1].t_s, cases[i].t0_s + 2, 1e-6);
        assert_near(log.columns[at].at[0].value, 100, 1e-9);
        assert_near(log.columns[at].at[1].value, 150.5, 1e-9);
        ipw_meter_log_release(&log);
    }
}

static void test_midnight_passes(void **state)
{
    struct ipw_meter_log log;

    (void)state;
    feed(&log, "time,w\n23:59:58,1\n23:59:59.5,2\n00:00:01,3\n", NULL);
    assert_near(log.columns[0].at[2].t_s - log.columns[0].at[0].t_s, 3, 1e-9);
    ipw_meter_log_release(&log);
}

static void test_columns_are_chosen(void **state)
{
    static const struct {
        const char *heading, *only;
        const char *sum; /* names in the sum, each with a blank behind it */
    } cases[] = {
        {"time,pm1,pm2", NULL, "pm1 pm2 "},
        {"time,pm1,pm2,sum", NULL, "sum "},
        {"time,pm1,pm2,sum", "pm2", "pm2 "},
        {"time,power_w,energy_wh", NULL, "energy_wh "},
        {"time,volts,amps,watts,temp", NULL, "watts "},
        {"time,gpu_w,cpu_w", NULL, "gpu_w cpu_w "},
        {"time,gpu_w,machine_w", NULL, "machine_w "},
        {"time,flow,apower", "apower", "apower "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_meter_log log;
        struct ipw_err err = {0};
        char names[256] = "";

        ipw_meter_log_init(&log);
        assert_int_equal(ipw_meter_log_line(&log, cases[i].heading, strlen(cases[i].heading), 1,
                                            cases[i].only, &err),
                         0);
        ipw_meter_log_end(&log, &err); /* no rows: fails, after the choice */
        for (size_t k = 0; k < log.format.n_columns; k++) {
            if (!log.format.columns[k].in_sum) continue;
            strcat(strcat(names, log.format.columns[k].name), " ");
        }
        assert_string_equal(names, cases[i].sum);
        ipw_meter_log_release(&log);
    }
}

static void test_damaged_rows_are_counted_and_named(void **state)
{
    struct ipw_meter_log log;

    (void)state;
    feed(&log,
         "time,w\n1790000000,100\n1790000001\n1790000002,-5\n1790000003,\n1790000004,abc\n"
         "yesterday,3\n1790000005,7 J\n1790000006,1e300\n1790000007,50\n",
         NULL);
    assert_int_equal(log.bad_rows, 6);
    assert_int_equal(log.rows, 3);
    assert_int_equal(log.columns[0].n, 2); /* an empty cell is no reading */
    assert_string_equal(log.first_bad, "line 3: 1 cells, expected 2");
    ipw_meter_log_release(&log);
}

static void test_unusable_logs_are_refused(void **state)
{
    static const struct {
        const char *line, *only, *message;
    } cases[] = {
        {"time,volts", NULL,
         "no column of watts or joules (w, watts, power, pm1, energy, ...); name "
         "it with --column"},
        {"time,w", "power", "no column 'power'"},
        {"1790000000", NULL, "expected a time and watts in each row"},
        {"1790000000,12", "w",
         "no column 'w': the log has no heading; give the column's number, 2 to 2"},
    };
    struct ipw_meter_log log;
    struct ipw_err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ipw_meter_log_init(&log);
        assert_true(ipw_meter_log_line(&log, cases[i].line, strlen(cases[i].line), 1, cases[i].only,
                                       &err) < 0);
        assert_string_equal(err.text, cases[i].message);
        ipw_meter_log_release(&log);
    }
    ipw_meter_log_init(&log);
    assert_int_equal(ipw_meter_log_end(&log, &err), IPW_EPARSE);
    assert_string_equal(err.text, "the log is empty");
}

/* nvidia-smi's log of two boards: the mean of the two is the power of neither and not the sum. */
static void test_rows_of_several_devices_are_refused(void **state)
{
    static const char *const smi[] = {
        "timestamp, index, power.draw [W]", "2026/09/21 14:13:20.000, 0, 100.00 W",
        "2026/09/21 14:13:20.003, 1, 300.00 W", "2026/09/21 14:13:21.000, 0, 100.00 W"};
    struct ipw_meter_log log;
    struct ipw_err err = {0};

    (void)state;
    for (int only = 0; only < 2; only++) {
        ipw_meter_log_init(&log);
        for (int i = 0; i < 4; i++)
            assert_int_equal(ipw_meter_log_line(&log, smi[i], strlen(smi[i]), i + 1,
                                                only ? "power.draw [W]" : NULL, &err),
                             i < 3 ? 0 : IPW_EUNSUPPORTED);
        assert_string_equal(err.text, "the log mixes several devices ('0' and others). Use "
                                      "one log per device and repeat --log");
        ipw_meter_log_release(&log);
    }
    /* One board, and a count of rows of that name. */
    feed(&log, "timestamp,uuid,w\n1,GPU-a,5\n2,GPU-a,6\n3,GPU-a,7\n", NULL);
    assert_int_equal(log.rows, 3);
    ipw_meter_log_release(&log);
    feed(&log, "index,time,w\n0,1,5\n1,2,6\n2,3,7\n", NULL);
    assert_int_equal(log.rows, 3);
    ipw_meter_log_release(&log);
}

/* Case 50, for this reader: any bytes give rows or an error, and finite numbers. */
static void test_50_random_bytes(void **state)
{
    static const char alphabet[] = "0123456789.,;:\t-+eEWJhkm \"TZ/#nasum";
    uint64_t seed = 50;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct ipw_meter_log log;
        struct ipw_err err;
        char line[80];

        ipw_meter_log_init(&log);
        for (int64_t row = 0; row < 4; row++) {
            size_t n = test_random(&seed) % sizeof line;
            for (size_t k = 0; k < n; k++) {
                line[k] = test_random(&seed) % 40 == 0
                              ? (char)test_random(&seed)
                              : alphabet[test_random(&seed) % (sizeof alphabet - 1)];
            }
            if (row == 0 && test_random(&seed) % 2) n = (size_t)sprintf(line, "time,w");
            ipw_meter_log_line(&log, line, n, row + 1, NULL, &err);
        }
        for (size_t c = 0; c < log.format.n_columns; c++) {
            for (size_t k = 0; k < log.columns[c].n; k++) {
                assert_true(isfinite(log.columns[c].at[k].value));
                assert_true(isfinite(log.columns[c].at[k].t_s));
            }
        }
        ipw_meter_log_release(&log);
    }
}

UNIT(meter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_midnight_passes),
        cmocka_unit_test(test_columns_are_chosen),
        cmocka_unit_test(test_damaged_rows_are_counted_and_named),
        cmocka_unit_test(test_unusable_logs_are_refused),
        cmocka_unit_test(test_rows_of_several_devices_are_refused),
        cmocka_unit_test(test_50_random_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
