#include "energy/meter.h"

#include <stdlib.h>

#include "energy/meter_align.h"
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

/* ---- sums ---- */

/* Case 32: two meters half a second out of phase are interpolated before they are added. */
static void test_32_meters_out_of_phase(void **state)
{
    struct ipw_meter_log a, b;
    const struct ipw_meter_log *both[2] = {&a, &b};
    double shift[2] = {0, 0};
    struct ipw_meter_points sum;

    (void)state;
    feed(&a, "time,w\n1000,0\n1001,10\n1002,20\n1003,30\n", NULL);
    feed(&b, "time,w\n1000.5,105\n1001.5,115\n1002.5,125\n", NULL);
    ipw_meter_sum(&sum, both, shift, 2);
    assert_int_equal(sum.n, 5); /* where both are known: 1000.5 to 1002.5 */
    for (size_t i = 0; i < sum.n; i++) {
        assert_near(sum.at[i].t_s, 1000.5 + 0.5 * (double)i, 1e-9);
        assert_near(sum.at[i].value, 110 + 10 * (double)i, 1e-9);
    }
    assert_false(sum.means);
    free(sum.at);
    /* The same with the second clock a minute ahead. */
    for (size_t i = 0; i < b.columns[0].n; i++) b.columns[0].at[i].t_s += 60;
    shift[1] = 60;
    ipw_meter_sum(&sum, both, shift, 2);
    assert_int_equal(sum.n, 5);
    assert_near(sum.at[4].value, 150, 1e-9);
    free(sum.at);
    /* Alternate rows of one file do not have each other's cell. */
    ipw_meter_log_release(&b);
    feed(&b, "time,pm1,pm2\n1000,0,\n1000.5,,105\n1001,10,\n1001.5,,115\n1002,20,\n", NULL);
    shift[0] = 0;
    ipw_meter_sum(&sum, &both[1], shift, 1);
    assert_int_equal(sum.n, 3);
    assert_near(sum.at[1].value, 120, 1e-9);
    free(sum.at);
    ipw_meter_log_release(&a);
    ipw_meter_log_release(&b);
}

/* A counter that only ever goes back gives no watts at all, and there is nothing to add up. */
static void test_a_sum_without_points(void **state)
{
    struct ipw_meter_log back, watts;
    const struct ipw_meter_log *both[2] = {&back, &watts};
    double shift[2] = {0, 0};
    struct ipw_meter_points sum;

    (void)state;
    feed(&back, "time,joules\n1000,600\n1001,500\n", NULL);
    feed(&watts, "time,w\n1000,5\n1001,5\n", NULL);
    ipw_meter_sum(&sum, both, shift, 1);
    assert_int_equal(sum.n, 0);
    free(sum.at);
    ipw_meter_sum(&sum, both, shift, 2);
    assert_int_equal(sum.n, 0);
    free(sum.at);
    ipw_meter_log_release(&back);
    ipw_meter_log_release(&watts);
}

static void test_joules_become_mean_watts(void **state)
{
    struct ipw_meter_log log;
    const struct ipw_meter_log *one = &log;
    double shift = 0;
    struct ipw_meter_points sum;

    (void)state;
    feed(&log, "time,joules\n1000,500\n1001,600\n1003,900\n1004,10\n1005,60\n", NULL);
    ipw_meter_sum(&sum, &one, &shift, 1);
    assert_true(sum.means);
    assert_int_equal(sum.n, 3); /* none over the reset */
    assert_near(sum.at[0].value, 100, 1e-9);
    assert_near(sum.at[1].value, 150, 1e-9);
    assert_near(sum.at[2].value, 50, 1e-9);
    free(sum.at);
    ipw_meter_log_release(&log);
}

/* ---- alignment ---- */

enum { N_BUSY = 12 };

/* Inferences of 0.4 to 2.2 s with pauses, from t = 10000 on. */
static void make_busy(struct ipw_meter_busy *busy, uint64_t *seed)
{
    double t = 10000;

    for (int i = 0; i < N_BUSY; i++) {
        busy[i].t0_s = t;
        t = busy[i].t1_s = t + test_uniform(seed, 0.4, 2.2);
        t += test_uniform(seed, 0.2, 1.8);
    }
}

static double busy_s(const struct ipw_meter_busy *busy, double from, double to)
{
    double sum = 0;

    for (int i = 0; i < N_BUSY; i++) {
        double a = fmax(busy[i].t0_s, from), b = fmin(busy[i].t1_s, to);
        if (b > a) sum += b - a;
    }
    return sum;
}

/* 60 W idle, 240 W busy, `noise` watts on top, on a clock that is ahead. */
static struct ipw_meter_points make_rows(const struct ipw_meter_busy *busy, double row_s,
                                         double ahead_s, bool averages, double noise,
                                         uint64_t *seed)
{
    struct ipw_meter_points p = {0};

    p.at = malloc(10000 * sizeof *p.at);
    for (double t = 9970.123; t < 10070 && p.n < 10000; t += row_s) {
        double share =
            averages ? busy_s(busy, t - row_s, t) / row_s : busy_s(busy, t, t + 1e-6) > 0;
        p.at[p.n++] = (struct ipw_meter_point){t + ahead_s, 60 + 180 * share +
                                                                test_uniform(seed, -noise, noise)};
    }
    return p;
}

/* Case 31: rows of 1 Hz whose clock is 700 ms off: the offset is found to 100 ms, or refused. */
static void test_31_offset_found_or_refused(void **state)
{
    uint64_t seed = 31;
    int found[2] = {0}, runs[2] = {0};

    (void)state;
    for (int i = 0; i < 60; i++) {
        struct ipw_meter_busy busy[N_BUSY], given[N_BUSY];
        double ahead = i % 3 == 0 ? 0.7 : test_uniform(&seed, -5, 5);
        bool averages = i % 2;
        struct ipw_meter_points p;
        struct ipw_meter_fit fit;
        struct ipw_err err = {0};
        int rc;

        make_busy(busy, &seed);
        p = make_rows(busy, 1, ahead, averages, 2, &seed);
        memcpy(given, busy, sizeof given);
        given[0] = busy[N_BUSY - 1]; /* in any order */
        given[N_BUSY - 1] = busy[0];
        rc = ipw_meter_align(&fit, &p, given, N_BUSY, -600, 600, &err);
        runs[averages]++;
        if (rc == 0) {
            found[averages]++;
            assert_int_equal(fit.averages, averages);
            if (fabs(fit.offset_s - ahead) > 0.1) {
                fail_msg("run %d: %.3f s found, %.3f s true, to %.3f s", i, fit.offset_s, ahead,
                         fit.plus_minus_s);
            }
            assert_true(fit.correlation > 0.9);
            assert_near(fit.row_s, 1, 1e-6);
        } else {
            assert_int_equal(rc, IPW_EUNSUPPORTED);
            assert_non_null(strstr(err.text, "ambiguous"));
        }
        free(p.at);
    }
    /* Means tell their edges to a fraction of a row; instants only by the luck of many edges. */
    assert_true(found[1] == runs[1]);
    assert_true(found[0] > runs[0] / 4);
}

static void test_31_fast_log(void **state)
{
    uint64_t seed = 7;
    struct ipw_meter_busy busy[N_BUSY];
    struct ipw_meter_points p;
    struct ipw_meter_fit fit;
    struct ipw_err err = {0};

    (void)state;
    make_busy(busy, &seed);
    p = make_rows(busy, 0.02, -1.234, false, 20, &seed);
    if (ipw_meter_align(&fit, &p, busy, N_BUSY, -60, 60, &err) < 0) fail_msg("%s", err.text);
    assert_near(fit.offset_s, -1.234, 0.05);
    free(p.at);
}

static void test_31_refusals(void **state)
{
    uint64_t seed = 3;
    struct ipw_meter_busy busy[N_BUSY], even[N_BUSY], one = {10000.3, 10003.6}, none = {5, 5};
    struct ipw_meter_points p, flat = {0};
    struct ipw_meter_fit fit;
    struct ipw_err err = {0};

    (void)state;
    make_busy(busy, &seed);
    p = make_rows(busy, 1, 0.7, true, 2, &seed);
    assert_int_equal(ipw_meter_align(&fit, &p, &none, 1, -60, 60, &err), IPW_EUNSUPPORTED);
    assert_string_equal(err.text, "the run has no activity to align with");
    p.n = 5;
    assert_int_equal(ipw_meter_align(&fit, &p, busy, N_BUSY, -60, 60, &err), IPW_EUNSUPPORTED);
    assert_string_equal(err.text, "the log has 5 rows: 8 are needed");
    p.n = 40; /* ends inside the run */
    assert_int_equal(ipw_meter_align(&fit, &p, busy, N_BUSY, -1, 1, &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "does not cover the run"));
    free(p.at);

    /* Nothing but noise. */
    flat = make_rows(busy, 1, 0, true, 2, &seed);
    for (size_t i = 0; i < flat.n; i++) flat.at[i].value = test_uniform(&seed, 59, 61);
    assert_int_equal(ipw_meter_align(&fit, &flat, busy, N_BUSY, -20, 20, &err), IPW_EUNSUPPORTED);
    free(flat.at);

    /* Every 2 s the same: any multiple of 2 s fits but for the ends, and one edge in instants of
     * 1 Hz is a guess of half a second. */
    for (int i = 0; i < N_BUSY; i++)
        even[i] = (struct ipw_meter_busy){10000 + 2 * i, 10001 + 2 * i};
    p = make_rows(even, 1, 0.3, false, 0, &seed);
    assert_int_equal(ipw_meter_align(&fit, &p, even, N_BUSY, -60, 60, &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "ambiguous"));
    free(p.at);
    for (int i = 0; i < N_BUSY; i++) busy[i] = one;
    p = make_rows(busy, 1, 0.3, false, 0, &seed);
    assert_int_equal(ipw_meter_align(&fit, &p, &one, 1, -60, 60, &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "ambiguous"));
    free(p.at);
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
        cmocka_unit_test(test_32_meters_out_of_phase),
        cmocka_unit_test(test_a_sum_without_points),
        cmocka_unit_test(test_joules_become_mean_watts),
        cmocka_unit_test(test_31_offset_found_or_refused),
        cmocka_unit_test(test_31_fast_log),
        cmocka_unit_test(test_31_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
