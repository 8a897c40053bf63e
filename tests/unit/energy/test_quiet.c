/* Who else is at work: two looks at a /proc tree. */
#include "energy/quiet.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static char root[] = "/tmp/ipw-quiet-XXXXXX";

static void put(const char *path, const char *text)
{
    char full[256], *slash;
    FILE *f;

    snprintf(full, sizeof full, "%s/%s", root, path);
    for (slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    f = fopen(full, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void process(int pid, int parent, const char *name, int user, int sys)
{
    char path[64], text[256];

    snprintf(path, sizeof path, "%d/stat", pid);
    snprintf(text, sizeof text, "%d (%s) S %d 1 1 0 -1 4194304 100 0 0 0 %d %d 5 6 20 0 1 0 1\n",
             pid, name, parent, user, sys);
    put(path, text);
}

static void stat_file(int user, int idle)
{
    char text[256];

    snprintf(text, sizeof text,
             "cpu  %d 0 10 %d 5 1 1 0 0 0\ncpu0 9 9 9 9 9 9 9 0 0 0\ncpu1 8 8 8 8 8 8 8 0 0 0\n"
             "intr 12345\nctxt 1\n",
             user, idle);
    put("stat", text);
}

static void test_load(void **state)
{
    struct ipw_quiet_look before, after;
    struct ipw_quiet_load load;
    const pid_t ours[] = {100, 200};

    (void)state;
    stat_file(1000, 5000);
    process(100, 1, "ipw-agent", 10, 10);
    process(101, 100, "tool (x) y", 0, 0);
    process(200, 1, "llama-server", 500, 0);
    process(201, 200, "worker", 100, 0);
    process(300, 1, "backup job", 70, 0);
    assert_true(ipw_quiet_look(&before, root));
    assert_int_equal(before.cpus, 2);
    assert_int_equal(before.n, 5);
    stat_file(1200, 5000); /* 200 ticks in a second */
    process(101, 100, "tool (x) y", 20, 0);
    process(200, 1, "llama-server", 560, 0);
    process(201, 200, "worker", 150, 0);
    process(300, 1, "backup job", 130, 10);
    assert_true(ipw_quiet_look(&after, root));
    ipw_quiet_judge(&load, &before, &after, 1, 100, ours, 2);
    /* 20 are our tool's, 110 the server's: 70 remain. */
    assert_near(load.foreign_cpus, 0.7, 1e-9);
    assert_near(load.cpus, 2, 1e-9);
    assert_string_equal(load.busiest, "backup job");
    assert_int_equal(load.busiest_pid, 300);
    assert_true(ipw_quiet_is_loud(&load));
    /* Without the server in our tree it would be foreign: upstream's mistake. */
    ipw_quiet_judge(&load, &before, &after, 1, 100, ours, 1);
    assert_near(load.foreign_cpus, 1.8, 1e-9);
    assert_true(ipw_quiet_is_ours(&after, 201, ours, 2));
    assert_false(ipw_quiet_is_ours(&after, 300, ours, 2));
    assert_false(ipw_quiet_is_ours(&after, 999, ours, 2));
    assert_string_equal(ipw_quiet_name(&after, 101), "tool (x) y");
    assert_null(ipw_quiet_name(&after, 999));
    load = (struct ipw_quiet_load){.foreign_cpus = 0.15, .cpus = 2};
    assert_false(ipw_quiet_is_loud(&load));
    load = (struct ipw_quiet_load){.foreign_cpus = 1.5, .cpus = 64};
    assert_true(ipw_quiet_is_loud(&load));
    ipw_quiet_release(&before);
    ipw_quiet_release(&after);
}

static void test_listener(void **state)
{
    char path[128];

    (void)state;
    put("net/tcp", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   "
                   "uid  timeout inode\n"
                   "   0: 0100007F:1F90 00000000:0000 01 00000000:00000000 00:00000000 00000000  "
                   "1000        0 111 1\n"
                   "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  "
                   "1000        0 4242 1\n");
    put("200/fd/none", "");
    snprintf(path, sizeof path, "%s/200/fd/7", root);
    assert_int_equal(symlink("socket:[4242]", path), 0);
    assert_int_equal(ipw_quiet_listener(root, 8080), 200);
    assert_int_equal(ipw_quiet_listener(root, 8081), 0);
    assert_int_equal(ipw_quiet_listener("/nonexistent", 8080), 0);
}

/* Lines that are not a listener's are passed over; one that no process holds has no owner. */
static void test_listener_of_nobody(void **state)
{
    (void)state;
    put("net/tcp", "  sl  local_address\n"
                   "   0: nowhere 00000000:0000 0A 0:0 00:0 0  1000        0 1 1\n"
                   "   1: 0100007F:zz 00000000:0000 0A 0:0 00:0 0  1000        0 2 1\n");
    put("net/tcp6",
        "   0: 00000000000000000000000001000000:1F91 0:0000 0A 0:0 00:0 0 1000 0 777 1\n");
    assert_int_equal(ipw_quiet_listener(root, 8081), 0);
    assert_int_equal(ipw_quiet_listener(root, 8082), 0);
}

/* A process whose file ends early, or is none, is left out; the others stay. */
static void test_damaged_processes(void **state)
{
    static const char *const damaged[] = {"", "400 no brackets", "400 )x(", "400 (x) S", "400 (x"};
    struct ipw_quiet_look look;

    (void)state;
    stat_file(1, 1);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        put("400/stat", damaged[i]);
        assert_true(ipw_quiet_look(&look, root));
        assert_null(ipw_quiet_name(&look, 400));
        ipw_quiet_release(&look);
    }
    process(400, 1, "whole", 1, 1);
    put("401/fd/0", ""); /* has gone: a folder without its file */
    assert_true(ipw_quiet_look(&look, root));
    assert_string_equal(ipw_quiet_name(&look, 400), "whole");
    assert_null(ipw_quiet_name(&look, 401));
    ipw_quiet_release(&look);
}

/* Without the line of all processors, or with fewer times on it, the load is not known. */
static void test_damaged_stat(void **state)
{
    static const char *const damaged[] = {"", "cpu  1 2 3\n", "cpu0 1 2 3 4 5 6 7\n"};
    struct ipw_quiet_look look;

    (void)state;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        put("stat", damaged[i]);
        assert_false(ipw_quiet_look(&look, root));
        ipw_quiet_release(&look);
    }
}

/* Processes that are each other's parents, and ones that ended in between, end no search and make
 * no load below 0. */
static void test_odd_families(void **state)
{
    struct ipw_quiet_process a[] = {{.pid = 5, .parent = 6, .ticks = 10}, {.pid = 6, .parent = 5}};
    struct ipw_quiet_look before = {.processes = a, .n = 2, .busy_ticks = 100};
    struct ipw_quiet_look after = {.processes = a, .n = 2, .busy_ticks = 100, .cpus = 1};
    const pid_t ours[] = {1};
    struct ipw_quiet_load load;

    (void)state;
    assert_false(ipw_quiet_is_ours(&after, 5, ours, 1));
    ipw_quiet_judge(&load, &before, &after, 1, 100, ours, 1);
    assert_near(load.foreign_cpus, 0, 0);
    before.n = 0; /* all are new */
    after.busy_ticks = 130;
    ipw_quiet_judge(&load, &before, &after, 1, 100, ours, 1);
    assert_near(load.foreign_cpus, 0.3, 1e-9);
    assert_int_equal(load.busiest_pid, 5);
    ipw_quiet_judge(&load, &before, &after, 0, 100, ours, 1);
    assert_near(load.foreign_cpus, 0, 0); /* no time, no load */
}

/* Without another folder it looks at this machine, and finds the test. */
static void test_this_machine(void **state)
{
    struct ipw_quiet_look look;

    (void)state;
    assert_true(ipw_quiet_look(&look, NULL));
    assert_non_null(ipw_quiet_name(&look, getpid()));
    assert_true(look.cpus > 0);
    ipw_quiet_release(&look);
}

static void test_nothing_to_read(void **state)
{
    struct ipw_quiet_look look;

    (void)state;
    assert_false(ipw_quiet_look(&look, "/nonexistent"));
    ipw_quiet_release(&look);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

UNIT(quiet)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_listener),
        cmocka_unit_test(test_listener_of_nobody),
        cmocka_unit_test(test_damaged_processes),
        cmocka_unit_test(test_damaged_stat),
        cmocka_unit_test(test_odd_families),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_nothing_to_read),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
