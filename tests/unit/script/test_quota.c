#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "script/quota.h"
#include "unit/unit.h"

static char folder[64];
static struct ipw_err err;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/ipw_quota_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* As a child would: behind the quota's back. */
static void put(const char *name, long n)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, n), 0);
    close(fd);
}

static void take_away(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static void refused(int rc, const char *why)
{
    assert_int_equal(rc, IPW_ELIMIT);
    if (!strstr(err.text, why)) fail_msg("%s", err.text);
}

static void test_writes(void **state)
{
    struct ipw_quota q = {.max_bytes = 1000, .max_files = 3};

    (void)state;
    put("there", 100);
    assert_int_equal(ipw_quota_write(&q, folder, true, 0, 500, &err), 0);
    put("a", 500);
    refused(ipw_quota_write(&q, folder, true, 0, 401, &err),
            "may hold 1000 bytes in all (--workspace-size)");
    assert_int_equal(ipw_quota_write(&q, folder, true, 0, 400, &err), 0);
    put("b", 400);
    refused(ipw_quota_write(&q, folder, true, 0, 0, &err),
            "may hold 3 files in all (--workspace-files)");
    /* One that is there may become shorter, and then another one longer. */
    refused(ipw_quota_write(&q, folder, false, 400, 401, &err), "--workspace-size");
    assert_int_equal(ipw_quota_write(&q, folder, false, 400, 0, &err), 0);
    assert_int_equal(ipw_quota_write(&q, folder, false, 500, 900, &err), 0);
    refused(ipw_quota_write(&q, folder, false, 900, SIZE_MAX, &err), "--workspace-size");
}

static void test_no_limit(void **state)
{
    struct ipw_quota q = {0};
    size_t file_bytes = 1;

    (void)state;
    assert_int_equal(ipw_quota_write(&q, "/no/such/folder", true, 0, SIZE_MAX, &err), 0);
    assert_int_equal(ipw_quota_child_begins(&q, "/no/such/folder", &file_bytes, &err), 0);
    assert_int_equal(file_bytes, 0);
}

/* A child that went over it: writes and children are refused until there is room again. */
static void test_children(void **state)
{
    struct ipw_quota q = {.max_bytes = 1 << 20, .max_files = 10};
    size_t file_bytes;

    (void)state;
    assert_int_equal(ipw_quota_write(&q, folder, true, 0, 1 << 10, &err), 0);
    put("own", 1 << 10);
    assert_int_equal(ipw_quota_child_begins(&q, folder, &file_bytes, &err), 0);
    assert_int_equal(file_bytes, (1 << 20) - (1 << 10));
    put("big", 1 << 20);
    refused(ipw_quota_write(&q, folder, true, 0, 1, &err),
            "may hold 1M in all"); /* while it runs */
    ipw_quota_child_ended(&q);
    refused(ipw_quota_write(&q, folder, true, 0, 1, &err), "may hold 1M in all");
    refused(ipw_quota_child_begins(&q, folder, &file_bytes, &err), "may hold 1M in all");
    assert_int_equal(q.children, 0);
    take_away("big");
    assert_int_equal(ipw_quota_write(&q, folder, true, 0, 1, &err), 0);
    take_away("own");
    put("own", 1 << 20);
    assert_int_equal(ipw_quota_child_begins(&q, folder, &file_bytes, &err), 0);
    assert_int_equal(file_bytes, 1); /* 0 would be no limit */
    ipw_quota_child_ended(&q);
}

static void test_folders(void **state)
{
    struct ipw_quota q = {.max_bytes = 1 << 20, .max_files = 100};
    char path[600];
    int64_t again_ns;
    size_t n;

    (void)state;
    n = (size_t)snprintf(path, sizeof path, "%s", folder);
    for (int depth = 0; depth < 40; depth++) {
        n += (size_t)snprintf(path + n, sizeof path - n, "/d");
        assert_int_equal(mkdir(path, 0700), 0);
    }
    strcat(path, "/f");
    close(open(path, O_WRONLY | O_CREAT, 0600));
    assert_int_equal(truncate(path, 1 << 20), 0);
    refused(ipw_quota_write(&q, folder, true, 0, 1, &err), "--workspace-size");
    q = (struct ipw_quota){.max_bytes = 1 << 30, .max_files = 40};
    refused(ipw_quota_write(&q, folder, true, 0, 1, &err), "--workspace-files");
    path[n] = '\0';
    for (int depth = 40; depth < 70; depth++) {
        n += (size_t)snprintf(path + n, sizeof path - n, "/d");
        assert_int_equal(mkdir(path, 0700), 0);
    }
    q.max_files = 1000;
    refused(ipw_quota_write(&q, folder, true, 0, 1, &err), "more than 64 deep");
    /* A child that makes them ends at once: what it hides there is not counted. */
    refused(ipw_quota_look(&q, folder, NULL, &again_ns, &err), "more than 64 deep");
}

UNIT(quota)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_writes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_children, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_folders, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
