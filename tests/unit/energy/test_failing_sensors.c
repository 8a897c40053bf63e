/* Sensors while the calls on their files fail, one at a time: while they are opened and while they
 * are read.  What is read is the right value or none, never another; a call that a signal
 * interrupted is made again; the reading after a failure is right again; and nothing stays open. */
#include "energy/source.h"
#include "energy/sources/hwmon.h"
#include "energy/sources/rapl.h"

#include "unit/energy/ask.h"
#include "unit/energy/tree.h"
#include "unit/json/failing.h"

enum { MOST = 8 };

static int64_t now_ns;
static int64_t clock_of_the_test(void) { return now_ns; }

/* ---- the sensors, each with its files ---- */

static void put_rapl(void)
{
    put("intel-rapl:0/name", "package-0\n");
    put("intel-rapl:0/max_energy_range_uj", "262143328850\n");
    put("intel-rapl:0/energy_uj", "1000\n");
    put("intel-rapl:0/intel-rapl:0:0/name", "dram\n");
    put("intel-rapl:0/intel-rapl:0:0/max_energy_range_uj", "65712999613\n");
    put("intel-rapl:0/intel-rapl:0:0/energy_uj", "2000\n");
}

static int open_rapl(struct ipw_source **out, struct ipw_err *err)
{
    return ipw_rapl_open(out, &(struct ipw_source_place){.powercap = tree_root}, "rapl", err);
}

static void put_battery(void)
{
    put("BAT0/type", "Battery\n");
    put("BAT0/status", "Discharging\n");
    put("BAT0/current_now", "1500000\n");
    put("BAT0/voltage_now", "12000000\n");
}

static int open_battery(struct ipw_source **out, struct ipw_err *err)
{
    const struct ipw_source_place o = {.batteries = tree_root};

    return ipw_battery_open(out, &o, "battery", err);
}

static void put_board(void)
{
    put("hwmon3/name", "amdgpu\n");
    put("hwmon3/power1_average", "35000000\n");
    put("hwmon3/power1_cap", "300000000\n");
    put("hwmon3/device/vendor", "0x1002\n");
}

static int open_board(struct ipw_source **out, struct ipw_err *err)
{
    const struct ipw_source_place o = {.hwmon = tree_root, .ask = test_ask};

    return ipw_hwmon_open(out, &o, "amdgpu", err);
}

static void put_rails(void)
{
    put("hwmon0/name", "ina3221\n");
    put("hwmon0/in1_label", "VDD_IN\n");
    put("hwmon0/in1_input", "19000\n");
    put("hwmon0/curr1_input", "500\n");
    put("hwmon0/in2_label", "VDD_CPU\n");
    put("hwmon0/in2_input", "5000\n");
    put("hwmon0/curr2_input", "400\n");
}

static int open_rails(struct ipw_source **out, struct ipw_err *err)
{
    const struct ipw_source_place o = {.hwmon = tree_root, .ask = test_ask};

    return ipw_hwmon_open(out, &o, "ina3221", err);
}

static const struct sensor {
    const char *name;
    void (*put)(void);
    int (*open)(struct ipw_source **out, struct ipw_err *err);
} sensors[] = {
    {"rapl", put_rapl, open_rapl},
    {"battery", put_battery, open_battery},
    {"amdgpu", put_board, open_board},
    {"ina3221", put_rails, open_rails},
};

static struct ipw_source *open_well(const struct sensor *sensor, int64_t want[MOST])
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    if (sensor->open(&s, &err)) fail_msg("%s: %s", sensor->name, err.text);
    assert_in_range(s->n_channels, 1, MOST);
    s->now = clock_of_the_test;
    s->read(s, want);
    return s;
}

/* ---- */

/* The rows are the kinds of failure that a kernel has for such files. */
static const enum failing_how kinds[] = {FAILING_EINTR, FAILING_EIO, FAILING_EACCES, FAILING_ENODEV,
                                         FAILING_NOTHING};

static void each_reading_is_right_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sensors / sizeof *sensors; i++) {
        int64_t want[MOST];
        struct ipw_source *s;

        sensors[i].put();
        s = open_well(&sensors[i], want);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const char *failed = "";

            for (int n = 0; failed; n++) {
                size_t before = failing_descriptors();
                int64_t got[MOST];

                now_ns += 10 * IPW_NS_PER_S;
                failing_at(n, kinds[k]);
                s->read(s, got);
                failed = failing_end();
                assert_int_equal(failing_descriptors(), before);
                for (size_t c = 0; c < s->n_channels; c++) {
                    if (got[c] == want[c]) continue;
                    if (got[c] != IPW_NO_VALUE || kinds[k] == FAILING_EINTR)
                        fail_msg("%s, call %d (%s): %s is %lld", sensors[i].name, n, failed,
                                 s->channels[c].name, (long long)got[c]);
                }
                now_ns += 10 * IPW_NS_PER_S; /* beyond any wait before it is tried again */
                s->read(s, got);
                for (size_t c = 0; c < s->n_channels; c++) assert_int_equal(got[c], want[c]);
            }
        }
        s->close(s);
    }
}

/* A sensor that opens with a part missing sums nothing up that the part belongs to, or says so. */
static void each_opening_tells_what_it_lacks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sensors / sizeof *sensors; i++) {
        int64_t want[MOST], got[MOST];
        size_t before = failing_descriptors(), n_channels;
        struct ipw_source *s;

        sensors[i].put();
        s = open_well(&sensors[i], want);
        n_channels = s->n_channels;
        s->close(s);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const char *failed = "";

            for (int n = 0; failed; n++) {
                struct ipw_err err = {0};
                bool whole; /* no signal ends the opening of such a file */
                int rc;

                failing_at(n, kinds[k]);
                rc = sensors[i].open(&s, &err);
                failed = failing_end();
                whole = !failed || (kinds[k] == FAILING_EINTR && strcmp(failed, "open"));
                if (rc) {
                    assert_true(rc < 0 && *err.text);
                    assert_null(s);
                    if (whole)
                        fail_msg("%s, call %d (%s): %s", sensors[i].name, n, failed, err.text);
                } else {
                    if (whole) {
                        assert_int_equal(s->n_channels, n_channels);
                        s->read(s, got);
                        assert_memory_equal(got, want, n_channels * sizeof *got);
                    }
                    s->close(s);
                }
                assert_int_equal(failing_descriptors(), before);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_reading_is_right_or_none, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(each_opening_tells_what_it_lacks, tree_setup,
                                        tree_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
