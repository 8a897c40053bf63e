/* A machine's own line from load to watts: energy/calibration.h. */
#include "energy/calibration.h"

#include "unit/energy/tree.h"
#include "unit/unit.h"

static struct ipw_calibration measured(double noise)
{
    struct ipw_calibration c = {.cpu = "a processor", .meter = "battery BAT0", .threads = 8};

    for (int i = 0; i < 4; i++) {
        static const double busy[] = {0.02, 0.27, 0.52, 1};

        c.points[c.n].busy = busy[i];
        c.points[c.n++].watts = 6 + 30 * busy[i] + (i % 2 ? noise : -noise);
    }
    return c;
}

static void test_fit(void **state)
{
    struct ipw_calibration c = measured(0);
    struct ipw_err err;

    (void)state;
    assert_int_equal(ipw_calibration_fit(&c, &err), 0);
    assert_near(c.idle_w, 6, 1e-9);
    assert_near(c.full_w, 36, 1e-9);
    assert_near(c.off_w, 0.02 * 36, 1e-9); /* no meter is that good */
    c = measured(1);
    assert_int_equal(ipw_calibration_fit(&c, &err), 0);
    assert_near(c.full_w, 36, 1.5);
    assert_true(c.off_w > 1 && c.off_w < 2.5);
}

static void test_what_tells_no_line(void **state)
{
    struct ipw_calibration c = measured(0);
    struct ipw_err err;

    (void)state;
    for (size_t i = 0; i < c.n; i++) c.points[i].busy = 0.5 + 0.05 * (double)i;
    assert_int_equal(ipw_calibration_fit(&c, &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "too similar to fit"));
    c = measured(0);
    for (size_t i = 0; i < c.n; i++) c.points[i].watts = 50 - (double)i;
    assert_int_equal(ipw_calibration_fit(&c, &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "does not grow"));
    c.n = 1;
    assert_int_equal(ipw_calibration_fit(&c, &err), IPW_EINVAL);
}

static void test_there_and_back(void **state)
{
    struct ipw_calibration c = measured(0.5), back;
    struct ipw_power_model_facts facts = {.cpu = "a processor", .threads = 8};
    struct ipw_err err = {0};
    char path[600];

    (void)state;
    snprintf(path, sizeof path, "%s/new/folder/calibration.json", tree_root);
    assert_int_equal(ipw_calibration_read(&back, path, &err), IPW_ENOTFOUND);
    assert_int_equal(ipw_calibration_fit(&c, &err), 0);
    assert_int_equal(ipw_calibration_write(&c, path, &err), 0);
    assert_int_equal(ipw_calibration_read(&back, path, &err), 0);
    assert_near(back.idle_w, c.idle_w, 0);
    assert_near(back.full_w, c.full_w, 0);
    assert_near(back.off_w, c.off_w, 0);
    assert_string_equal(back.meter, "battery BAT0");
    assert_true(ipw_calibration_fits(&back, &facts));
    facts.threads = 4;
    assert_false(ipw_calibration_fits(&back, &facts));
    for (size_t i = 0; i < 7; i++) {
        static const char *const bad[] = {"{\"idle_w\":5",
                                          "[]",
                                          "{\"idle_w\":50,\"full_w\":5,\"off_w\":1}",
                                          "{\"idle_w\":-1,\"full_w\":5,\"off_w\":1}",
                                          "{\"idle_w\":5,\"full_w\":50,\"off_w\":-1}",
                                          "{\"idle_w\":5,\"full_w\":2e6,\"off_w\":1}",
                                          "{\"idle_w\":\"5\",\"full_w\":50,\"off_w\":1}"};

        put("new/folder/calibration.json", bad[i]);
        assert_int_equal(ipw_calibration_read(&back, path, &err), IPW_EPARSE);
        assert_non_null(strstr(err.text, "calibration.json"));
    }
}

/* A line that would go below 0 W idle begins at 0; a meter that reads only negative power is
 * refused. */
static void test_negative_watts(void **state)
{
    struct ipw_calibration c = {.points = {{0.1, 1}, {0.6, 30}, {1, 60}}, .n = 3};
    struct ipw_err err;

    (void)state;
    assert_int_equal(ipw_calibration_fit(&c, &err), 0);
    assert_near(c.idle_w, 0, 0);
    assert_true(c.full_w > 50);
    for (size_t i = 0; i < c.n; i++) c.points[i].watts -= 100;
    assert_int_equal(ipw_calibration_fit(&c, &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "Does it measure this machine?"));
}

static void set_or_not(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* The file's place: the variable, else below the configuration folder, else below home; relative
 * folders do not count, and without any there is no place. */
static void test_path(void **state)
{
    static const struct {
        const char *named, *config, *home, *path;
    } table[] = {
        {"x.json", "/c", "/h", "x.json"},
        {NULL, "/c", "/h", "/c/ipw-agent/calibration.json"},
        {NULL, "c", "/h", "/h/.config/ipw-agent/calibration.json"},
        {NULL, NULL, "/h", "/h/.config/ipw-agent/calibration.json"},
        {NULL, "", "h", ""},
        {NULL, NULL, NULL, ""},
    };
    char path[600];

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        set_or_not("IPW_CALIBRATION", table[i].named);
        set_or_not("XDG_CONFIG_HOME", table[i].config);
        set_or_not("HOME", table[i].home);
        ipw_calibration_path(path, sizeof path);
        assert_string_equal(path, table[i].path);
    }
}

/* A folder that cannot be made is an error that names it; a folder in the file's place too. */
static void test_no_folder(void **state)
{
    struct ipw_calibration c = measured(0), back;
    struct ipw_err err = {0};
    char path[600];

    (void)state;
    put("file", "");
    snprintf(path, sizeof path, "%s/file/calibration.json", tree_root);
    assert_int_not_equal(ipw_calibration_write(&c, path, &err), 0);
    assert_non_null(strstr(err.text, "/file"));
    snprintf(path, sizeof path, "%s/file/deeper/calibration.json", tree_root);
    assert_int_not_equal(ipw_calibration_write(&c, path, &err), 0);
    assert_non_null(strstr(err.text, "/file/deeper"));
    put("empty", "");
    snprintf(path, sizeof path, "%s/empty", tree_root);
    assert_int_equal(ipw_calibration_read(&back, path, &err), IPW_EPARSE);
}

UNIT(calibration)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_what_tells_no_line),
        cmocka_unit_test(test_negative_watts),
        cmocka_unit_test(test_path),
        WITH_TREE(test_no_folder),
        cmocka_unit_test_setup_teardown(test_there_and_back, tree_setup, tree_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
