/* Sensors of which a part, or nothing, can be read: no sum without its parts, and a message with
 * the remedy. */
#include "energy/sources/rapl.h"

#include "unit/energy/hwmon_tree.h"
#include "unit/unit.h"

/* Root may read everything: the call goes as a user who may not. */
static int as_nobody(int (*open_it)(struct ipw_source **out, struct ipw_err *err),
                     struct ipw_source **out, struct ipw_err *err)
{
    bool root = geteuid() == 0;
    int rc;

    if (root) assert_int_equal(seteuid(65534), 0);
    rc = open_it(out, err);
    if (root) assert_int_equal(seteuid(0), 0);
    return rc;
}

static int open_rapl(struct ipw_source **out, struct ipw_err *err)
{
    return ipw_rapl_open(out, &(struct ipw_source_place){.powercap = tree_root}, "rapl", err);
}

static int open_amdgpu(struct ipw_source **out, struct ipw_err *err)
{
    const struct ipw_source_place o = {.hwmon = tree_root, .ask = test_ask};

    return ipw_hwmon_open(out, &o, "amdgpu", err);
}

static void package(int n)
{
    char file[64], name[32];

    snprintf(file, sizeof file, "intel-rapl:%d/name", n);
    snprintf(name, sizeof name, "package-%d\n", n);
    put(file, name);
    snprintf(file, sizeof file, "intel-rapl:%d/max_energy_range_uj", n);
    put(file, "262143328850\n");
    snprintf(file, sizeof file, "intel-rapl:%d/energy_uj", n);
    put_number(file, 1000 + n);
}

/* One of two packages cannot be read: one package's energy would pass for both, so there is no
 * sum. */
static void test_rapl_in_part(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    (void)state;
    package(0);
    package(1);
    deny("intel-rapl:1/energy_uj");
    assert_int_equal(as_nobody(open_rapl, &s, &err), 0);
    assert_int_equal(s->n_channels, 2);
    for (size_t i = 0; i < s->n_channels; i++) assert_false(s->channels[i].in_sum);
    assert_true(s->missing[IPW_DOMAIN_CPU].denied);
    assert_non_null(strstr(s->missing[IPW_DOMAIN_CPU].text, "intel-rapl:1/energy_uj: "));
    assert_non_null(strstr(s->missing[IPW_DOMAIN_CPU].text, "chmod a+r"));
    assert_non_null(strstr(s->note, "no cpu energy: "));
    assert_int_equal(value(s, "package-0"), 1000);
    s->close(s);
}

/* A file that is broken is no matter of rights: the message says what is wrong, and no chmod. */
static void test_rapl_broken(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    (void)state;
    package(0);
    assert_int_equal(unlink(tree_path("intel-rapl:0/energy_uj")), 0);
    put_link("intel-rapl:0/energy_uj", "energy_uj");
    assert_int_not_equal(open_rapl(&s, &err), 0);
    assert_non_null(strstr(err.text, "intel-rapl:0/energy_uj"));
    assert_null(strstr(err.text, "chmod"));
    package(1);
    assert_int_equal(open_rapl(&s, &err), 0);
    assert_false(s->missing[IPW_DOMAIN_CPU].denied);
    assert_non_null(strstr(s->missing[IPW_DOMAIN_CPU].text, "intel-rapl:0/energy_uj: "));
    assert_null(strstr(s->missing[IPW_DOMAIN_CPU].text, "chmod"));
    s->close(s);
}

static void test_rapl_denied(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    (void)state;
    package(0);
    deny("intel-rapl:0/energy_uj");
    assert_int_equal(as_nobody(open_rapl, &s, &err), IPW_EPERM);
    assert_null(s);
    assert_non_null(strstr(err.text, "/intel-rapl:0/energy_uj is not readable: chmod a+r "));
}

/* The root is a file, or there is none: no RAPL.  A root that cannot be followed is an error of its
 * own. */
static void test_rapl_root(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};
    char path[128];

    (void)state;
    put("file", "");
    put_link("loop", "loop");
    snprintf(path, sizeof path, "%s/file", tree_root);
    assert_int_equal(ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = path}, "rapl", &err),
                     IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "no RAPL here"));
    snprintf(path, sizeof path, "%s/loop", tree_root);
    assert_int_not_equal(
        ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = path}, "rapl", &err),
        IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "/loop"));
    assert_null(s);
}

/* A zone's limit bounds the channel of the same name; the others stay as they are. */
static void test_rapl_limits(void **state)
{
    struct ipw_channel channels[2] = {{.name = "package-0", .max_w = 1}, {.name = "x", .max_w = 2}};

    (void)state;
    package(0);
    put("intel-rapl:0/constraint_0_max_power_uw", "100000000\n");
    ipw_rapl_limits(channels, 2, "/nonexistent");
    assert_int_equal(channels[0].max_w, 1);
    ipw_rapl_limits(channels, 2, tree_root);
    assert_int_equal(channels[0].max_w, 200);
    assert_int_equal(channels[1].max_w, 2);
}

static void two_boards(void)
{
    board(0, "amdgpu\n", "0000:03:00.0");
    put("hwmon0/energy1_input", "1000\n");
    board(1, "amdgpu\n", "0000:43:00.0");
    put("hwmon1/energy1_input", "2000\n");
}

static void test_boards_in_part(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    (void)state;
    two_boards();
    deny("hwmon1/energy1_input");
    assert_int_equal(as_nobody(open_amdgpu, &s, &err), 0);
    assert_int_equal(s->n_channels, 2);
    for (size_t i = 0; i < s->n_channels; i++) assert_false(s->channels[i].in_sum);
    assert_true(s->missing[IPW_DOMAIN_GPU].denied);
    assert_non_null(strstr(s->missing[IPW_DOMAIN_GPU].text, "hwmon1/energy1_input: "));
    assert_non_null(strstr(s->note, "no gpu energy: "));
    s->close(s);
}

static void test_boards_denied(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    (void)state;
    two_boards();
    deny("hwmon1/energy1_input");
    assert_int_equal(unlink(tree_path("hwmon0/energy1_input")), 0);
    put_link("hwmon0/energy1_input", "energy1_input");
    assert_int_equal(as_nobody(open_amdgpu, &s, &err), IPW_EPERM);
    assert_non_null(strstr(err.text, "hwmon1/energy1_input is not readable: chmod a+r it"));
    assert_null(s);
}

UNIT(denied)
{
    const struct CMUnitTest tests[] = {
        WITH_TREE(test_rapl_in_part),  WITH_TREE(test_rapl_broken), WITH_TREE(test_rapl_denied),
        WITH_TREE(test_rapl_root),     WITH_TREE(test_rapl_limits), WITH_TREE(test_boards_in_part),
        WITH_TREE(test_boards_denied),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
