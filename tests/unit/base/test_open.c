#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/open.h"
#include "unit/unit.h"

static char folder[] = "/tmp/ipw_open_XXXXXX";
static char path[64], second[64];
static struct ipw_err err;

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/f", folder);
    snprintf(second, sizeof second, "%s/g", folder);
    return 0;
}

static int fresh(void **state)
{
    (void)state;
    unlink(path);
    unlink(second);
    return 0;
}

static int tear_down(void **state)
{
    fresh(state);
    return rmdir(folder);
}

static void check_refused(int fd, const char *why)
{
    if (fd >= 0) fail_msg("opened, in place of: %s", why);
    if (!strstr(err.text, why) || !strstr(err.text, folder)) fail_msg("%s", err.text);
}

static void refuse_both(const char *why)
{
    check_refused(ipw_open_read(path, &err), why);
    check_refused(ipw_open_write(path, O_RDWR, &err), why);
    check_refused(ipw_open_write(path, O_WRONLY | O_CREAT | O_APPEND, &err), why);
}

static void test_files(void **state)
{
    char text[8] = "";
    int fd = ipw_open_write(path, O_WRONLY | O_CREAT, &err);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "abc", 3), 3);
    close(fd);
    fd = ipw_open_read(path, &err);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof text), 3);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    check_refused(ipw_open_write(path, O_WRONLY | O_CREAT | O_EXCL, &err), "File exists");
    assert_int_equal(err.detail, EEXIST);
    unlink(path);
    check_refused(ipw_open_read(path, &err), "No such file");
    assert_int_equal(err.detail, ENOENT);
}

/* None of them is waited for: a test that hangs has failed. */
static void test_other_things(void **state)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse_both("a pipe (FIFO), not a regular file");
    unlink(path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    refuse_both("a socket, not a regular file");
    close(fd);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refuse_both("Is a directory");
    rmdir(path);
    assert_int_equal(ipw_open_read("/dev/zero", &err), IPW_EINVAL);
    assert_string_equal(err.text, "/dev/zero: a device, not a regular file");
    assert_int_equal(ipw_open_write("/dev/full", O_RDWR, &err), IPW_EINVAL);
    fd = ipw_open_write("/dev/full", O_RDWR | O_APPEND, &err);
    assert_true(fd >= 0);
    assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
}

static void test_links(void **state)
{
    int fd = open(second, O_WRONLY | O_CREAT, 0600);

    (void)state;
    close(fd);
    assert_int_equal(symlink(second, path), 0);
    check_refused(ipw_open_write(path, O_WRONLY | O_CREAT, &err), "a link, not a regular file");
    fd = ipw_open_read(path, &err);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    assert_int_equal(link(second, path), 0);
    check_refused(ipw_open_write(path, O_RDWR | O_APPEND, &err), "2 names (hard links)");
    fd = ipw_open_read(path, &err);
    assert_true(fd >= 0);
    close(fd);
}

/* What a shell makes of `<(command)`, its writer gone or not. */
static void test_pipe_that_was_handed_over(void **state)
{
    char name[32], text[8];
    int ends[2], fd;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    close(ends[1]);
    fd = ipw_open_read(name, &err);
    assert_true(fd >= 0);
    assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(read(fd, text, sizeof text), 3);
    assert_int_equal(read(fd, text, sizeof text), 0);
    close(fd);
    close(ends[0]);
}

/* A folder is not read as a file, by whatever name; a link to itself leads nowhere. */
static void test_what_is_no_file_by_another_name(void **state)
{
    char name[32];
    int fd = open(folder, O_RDONLY | O_DIRECTORY);

    (void)state;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    assert_int_equal(ipw_open_read(name, &err), IPW_EIO);
    assert_int_equal(err.detail, EISDIR);
    close(fd);
    assert_int_equal(symlink(path, path), 0);
    check_refused(ipw_open_read(path, &err), "a link, not a regular file");
    unlink(path);
    fd = open(second, O_RDWR | O_CREAT, 0600);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    assert_int_equal(close(ipw_open_read(name, &err)),
                     0); /* a file that was handed over is read as one */
    close(fd);
}

UNIT(open)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_files, fresh),
        cmocka_unit_test_setup(test_other_things, fresh),
        cmocka_unit_test_setup(test_links, fresh),
        cmocka_unit_test_setup(test_pipe_that_was_handed_over, fresh),
        cmocka_unit_test_setup(test_what_is_no_file_by_another_name, fresh),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
