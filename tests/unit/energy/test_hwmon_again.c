/* Devices of the hwmon sources that go and come back, perhaps behind another number. */
#include "base/clock.h"
#include "unit/energy/hwmon_tree.h"
#include "unit/unit.h"

/* Case 16: the file goes and comes back: it is opened anew. */
static int64_t tick_ns;
static int64_t tick(void) { return tick_ns; }

static void test_16_reopened(void **state)
{
    struct ipw_source *s;

    (void)state;
    board(0, "amdgpu\n", "0000:03:00.0");
    put("hwmon0/energy1_input", "10\n");
    s = open_with("amdgpu", NULL);
    assert_int_equal(value(s, "amdgpu0"), 10);
    s->now = tick;
    tick_ns = ipw_now_ns();
    put("hwmon0/energy1_input", ""); /* who still holds it reads nothing */
    assert_int_equal(remove(tree_path("hwmon0/energy1_input")), 0);
    put("hwmon0/energy1_input", "20\n");
    assert_true(value(s, "amdgpu0") == IPW_NO_VALUE &&
                s->lost[0]); /* another file, another count */
    assert_true(value(s, "amdgpu0") == IPW_NO_VALUE && s->lost[0]);
    tick_ns += IPW_NS_PER_S; /* again after a second, not before */
    assert_int_equal(value(s, "amdgpu0"), 20);
    assert_false(s->lost[0]);
    put("hwmon0/energy1_input", "");
    assert_true(value(s, "amdgpu0") == IPW_NO_VALUE);
    assert_int_equal(remove(tree_path("hwmon0/energy1_input")), 0);
    put("hwmon0/energy1_input", "30\n");
    assert_true(value(s, "amdgpu0") == IPW_NO_VALUE);
    tick_ns += IPW_NS_PER_S;
    assert_true(value(s, "amdgpu0") == IPW_NO_VALUE && s->lost[0]);
    tick_ns += IPW_NS_PER_S;
    assert_int_equal(value(s, "amdgpu0"), 30);
    s->close(s);
}

/* A driver that was reloaded: its files fail for who holds them, and what comes is numbered
 * anew. */
static void leave(const char *hwmon)
{
    static const char *const files[] = {"energy1_input", "device"};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char file[64];

        snprintf(file, sizeof file, "%s/%s", hwmon, files[i]);
        if (i == 0) put(file, "");
        assert_int_equal(remove(tree_path(file)), 0);
    }
}

static void test_16_numbered_anew(void **state)
{
    struct ipw_source *s;
    int64_t back = 0;

    (void)state;
    board(0, "amdgpu\n", "0000:03:00.0");
    put("hwmon0/energy1_input", "10\n");
    board(1, "amdgpu\n", "0000:83:00.0");
    put("hwmon1/energy1_input", "1000\n");
    s = open_with("amdgpu", NULL);
    s->now = tick;
    tick_ns = ipw_now_ns();
    assert_int_equal(value(s, "amdgpu0"), 10);
    leave("hwmon0");
    leave("hwmon1");
    board(0, "amdgpu\n", "0000:83:00.0");
    put("hwmon0/energy1_input", "2000\n");
    board(1, "amdgpu\n", "0000:03:00.0");
    put("hwmon1/energy1_input", "20\n");
    assert_true(value(s, "amdgpu0") == IPW_NO_VALUE && s->lost[0] && s->lost[1]);
    tick_ns += IPW_NS_PER_S;
    assert_int_equal(value(s, "amdgpu0"), 20); /* of 03:00.0, which it has always been */
    assert_int_equal(value(s, "amdgpu1"), 2000);
    assert_false(s->lost[0] || s->lost[1]);
    /* Somebody else behind its number, and it nowhere: lost until it is back. */
    leave("hwmon1");
    board(1, "nvme\n", "0000:04:00.0");
    put("hwmon1/energy1_input", "777\n");
    for (int i = 0; i < 3; i++) {
        tick_ns += IPW_NS_PER_S;
        assert_true(value(s, "amdgpu0") == IPW_NO_VALUE && s->lost[0]);
    }
    board(12, "amdgpu\n", "0000:03:00.0");
    put("hwmon12/energy1_input", "30\n");
    for (int i = 0; i < 2; i++) { /* at once, if the new file has the number of an old one */
        tick_ns += IPW_NS_PER_S;
        back = value(s, "amdgpu0");
    }
    assert_int_equal(back, 30);
    assert_int_equal(value(s, "amdgpu1"), 2000);
    s->close(s);
}

/* A supply with a plug: the same one, plugged in once more. */
static void test_16_plugged_in_again(void **state)
{
    struct ipw_source *s;

    (void)state;
    board(4, "corsairpsu\n", "0003:1B1C:1C0B.0005");
    put("hwmon4/energy1_input", "10\n");
    s = open_with("hwmon", NULL);
    s->now = tick;
    tick_ns = ipw_now_ns();
    assert_int_equal(value(s, "corsairpsu/energy1"), 10);
    leave("hwmon4");
    board(4, "corsairpsu\n", "0003:1B1C:1C0B.0006");
    put("hwmon4/energy1_input", "20\n");
    assert_true(value(s, "corsairpsu/energy1") == IPW_NO_VALUE && s->lost[0]);
    tick_ns += IPW_NS_PER_S;
    assert_int_equal(value(s, "corsairpsu/energy1"), 20);
    s->close(s);
}

UNIT(hwmon_again)
{
    const struct CMUnitTest tests[] = {
        WITH_TREE(test_16_reopened),
        WITH_TREE(test_16_numbered_anew),
        WITH_TREE(test_16_plugged_in_again),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
