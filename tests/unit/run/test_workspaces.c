/* Temporary folders of workspaces: whose they are, and the sweeping of those that are nobody's. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "run/workspaces.h"
#include "unit/base/temp_folder.h"
#include "unit/unit.h"

static int enter(void **state)
{
    char tmp[80];

    if (enter_temp_folder(state)) return -1;
    if (mkdir("tmp", 0700) || mkdir("outside", 0700)) return -1;
    snprintf(tmp, sizeof tmp, "%s/tmp", temp_folder);
    return setenv("TMPDIR", tmp, 1);
}

static bool is_there(const char *path) { return access(path, F_OK) == 0; }

static void write_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    assert_true(fd >= 0 && write(fd, "text\n", 5) == 5);
    close(fd);
}

/* A process that makes a folder, fills it, and is killed; its folder's name. */
static char *killed(void)
{
    char name[200] = "";
    int ends[2], status;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        struct ipw_workspaces w = IPW_WORKSPACES_NONE;
        char deep[PATH_MAX];

        if (ipw_workspaces_make(&w, NULL) || chdir(w.path)) _exit(1);
        mkdir("q0000", 0700);
        mkdir("q0000/sub", 0700);
        snprintf(deep, sizeof deep, "%s/outside", temp_folder);
        if (symlink(deep, "q0000/link") || symlink(deep, "q0000/sub/link")) _exit(1);
        if (mkfifo("q0000/fifo", 0600)) _exit(1);
        close(open("q0000/sub/file", O_WRONLY | O_CREAT, 0400));
        chmod("q0000/sub", 0500);
        if (mkdir("q0000/d", 0700) || chdir("q0000/d")) _exit(1);
        for (int depth = 0; depth < 300; depth++)
            if (mkdir("d", 0700) || chdir("d")) _exit(1);
        write_file("file");
        if (write(ends[1], w.path, strlen(w.path)) < 0) _exit(1);
        raise(SIGKILL);
    }
    close(ends[1]);
    assert_true(read(ends[0], name, sizeof name - 1) > 0);
    close(ends[0]);
    waitpid(pid, &status, 0);
    return ipw_strdup(name);
}

static void sweeps(void **state)
{
    struct ipw_workspaces own = IPW_WORKSPACES_NONE;
    struct ipw_workspaces_left left;
    char *a, *b, *path;

    (void)state;
    write_file("outside/kept");
    assert_int_equal(mkdir("tmp/ipw-agent-nomark", 0700), 0); /* whose it is cannot be told */
    assert_int_equal(mkdir("tmp/ipw-agent-others", 0755), 0); /* open to others: not one of ours */
    write_file("tmp/ipw-agent-others/.owner");
    assert_int_equal(symlink("../outside", "tmp/ipw-agent-tolink"), 0);
    assert_int_equal(mkdir("tmp/ipw-agent-x", 0700), 0);
    write_file("tmp/ipw-agent-x/.owner"); /* not a name that is given */
    a = killed();
    b = killed();
    assert_int_equal(ipw_workspaces_make(&own, NULL), 0);
    path = ipw_strdup(own.path);
    ipw_workspaces_left(&left, false);
    assert_int_equal(left.n, 2);
    assert_true(left.bytes > 0 && left.more); /* 300 folders deep */
    assert_true(is_there(a) && is_there(b));
    ipw_workspaces_left(&left, true);
    assert_int_equal(left.n, 2);
    assert_false(is_there(a) || is_there(b));
    ipw_workspaces_left(&left, true);
    assert_int_equal(left.n, 0);
    assert_true(is_there(path) && is_there("outside/kept"));
    assert_true(is_there("tmp/ipw-agent-nomark") && is_there("tmp/ipw-agent-others/.owner") &&
                is_there("tmp/ipw-agent-tolink") && is_there("tmp/ipw-agent-x"));
    ipw_workspaces_remove(&own);
    assert_false(is_there(path));
    ipw_workspaces_remove(&own); /* none any more */
    free(a);
    free(b);
    free(path);
}

/* A child that lives on does not keep the folder: the mark is closed when it executes. */
static void not_of_children(void **state)
{
    struct ipw_workspaces_left left;
    int started[2], end[2], status;
    char byte;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(started), 0);
    assert_int_equal(pipe(end), 0);
    pid = fork();
    if (pid == 0) {
        struct ipw_workspaces w = IPW_WORKSPACES_NONE;

        if (ipw_workspaces_make(&w, NULL)) _exit(1);
        if (fork() == 0) {
            dup2(end[0], 0);
            dup2(started[1], 1);
            close(end[1]);
            execl("/bin/sh", "sh", "-c", "echo; read line", (char *)NULL);
            _exit(1);
        }
        pause();
    }
    assert_int_equal(read(started[0], &byte, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    ipw_workspaces_left(&left, true);
    assert_int_equal(left.n, 1);
    close(end[1]); /* the child ends */
    close(end[0]);
    close(started[0]);
    close(started[1]);
}

/* Another run sweeps all the time: what is being made is not taken for a dead process's. */
static void being_made(void **state)
{
    pid_t sweeper = fork();
    int gone = 0;

    (void)state;
    if (sweeper == 0) {
        for (;;) {
            struct ipw_workspaces_left left;

            ipw_workspaces_left(&left, true);
        }
    }
    for (int i = 0; i < 2000; i++) {
        struct ipw_workspaces w = IPW_WORKSPACES_NONE;

        if (ipw_workspaces_make(&w, NULL) || !is_there(w.path)) gone++;
        ipw_workspaces_remove(&w);
    }
    kill(sweeper, SIGKILL);
    waitpid(sweeper, NULL, 0);
    assert_int_equal(gone, 0);
}

UNIT(workspaces)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sweeps), cmocka_unit_test(not_of_children),
                                       cmocka_unit_test(being_made)};

    return cmocka_run_group_tests(tests, enter, leave_temp_folder);
}
