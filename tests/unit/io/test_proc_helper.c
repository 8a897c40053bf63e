/* Starting child processes where something is in the way: no descriptors left, and a helper that is
 * told nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/proc.h"
#include "io/proc_priv.h"
#include "unit/descriptors.h"
#include "with_loop.h"

static int ended;

static int set_up(void **state)
{
    ended = 0;
    return make_loop(state);
}

static void on_done(void *ud, const struct ipw_proc_result *result)
{
    (void)ud;
    ended++;
    assert_int_equal(result->exit_code, 0);
    assert_int_equal(result->exec_errno, 0);
}

static int start_plain(struct ipw_err *err)
{
    const char *argv[] = {"true", NULL};
    struct ipw_proc *proc;

    return ipw_proc_start(&proc, loop, &(struct ipw_proc_request){.argv = argv}, on_done, NULL,
                          err);
}

static int start_with_input(struct ipw_err *err)
{
    const char *argv[] = {"cat", NULL};
    struct ipw_proc *proc;

    return ipw_proc_start(&proc, loop,
                          &(struct ipw_proc_request){.argv = argv, .input = "x", .input_len = 1},
                          on_done, NULL, err);
}

static int start_ours(struct ipw_err *err)
{
    const char *argv[] = {"echo", "here", NULL};
    struct ipw_proc *proc;

    return ipw_proc_start(&proc, loop,
                          &(struct ipw_proc_request){.argv = argv, .whose = IPW_PROC_OURS}, on_done,
                          NULL, err);
}

static void settle(void *ud) { ipw_loop_stop(ud); }

/* Each of the descriptors that a start needs is the one too many in turn: it fails with a word,
 * leaves nothing open and nothing running, and goes as soon as there is room. */
static void test_no_descriptors(void **state)
{
    static int (*const starts[])(struct ipw_err *) = {start_plain, start_with_input, start_ours};

    (void)state;
    for (size_t k = 0; k < sizeof starts / sizeof *starts; k++) {
        struct rlimit old;
        int before, failures = 0, rc = -1;

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
        before = open_descriptors();
        for (rlim_t room = 3; rc && room < 200; room++) {
            struct ipw_err err = {0};

            assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){room, old.rlim_max}), 0);
            ended = 0;
            rc = starts[k](&err);
            assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
            if (!rc) break;
            failures++;
            assert_int_equal(rc, err.code);
            if (!strstr(err.text, "cannot create a pipe") &&
                !strstr(err.text, "cannot open /dev/null") &&
                !strstr(err.text, "cannot start the helper"))
                fail_msg("start %zu, room for %d: %s", k, (int)room, err.text);
            assert_int_equal(ipw_loop_leftovers(loop), 0);
            assert_int_equal(open_descriptors(), before);
        }
        assert_int_equal(rc, 0);
        assert_true(failures > 3);
        while (!ended) {
            ipw_timer_start(loop, 5 * IPW_NS_PER_MS, settle, loop);
            ipw_loop_run(loop);
        }
    }
}

/* ---- the helper ---- */

/* Runs it with these words; the errno that it reports, or 1000 and its exit status when it reports
 * none. */
static int helper(bool status_fd, const char *const *words)
{
    char *argv[12] = {"/proc/self/exe", "__exec"};
    int ends[2], errnum = 0, status;
    ssize_t n;
    pid_t pid;

    for (size_t i = 0; words[i]; i++) argv[i + 2] = (char *)words[i];
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (!status_fd)
            close(PROC_STATUS_FD);
        else if (ends[1] != PROC_STATUS_FD)
            dup2(ends[1], PROC_STATUS_FD);
        if (ends[0] != PROC_STATUS_FD) close(ends[0]);
        execv(argv[0], argv);
        abort();
    }
    close(ends[1]);
    n = read(ends[0], &errnum, sizeof errnum);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (n != (ssize_t)sizeof errnum) return 1000 + WEXITSTATUS(status);
    assert_int_equal(WEXITSTATUS(status), 127);
    return errnum;
}

#define HELPER(...) helper(true, (const char *const[]){__VA_ARGS__, NULL})

static void test_helper(void **state)
{
    (void)state;
    assert_int_equal(HELPER("--", "true"), 1000);
    assert_int_equal(
        HELPER("cpu=5", "memory=4000000000", "file=100000000", "files=64", "--", "true"), 1000);
    assert_int_equal(HELPER("cpu=5", "cpu=9", "--", "true"), 1000); /* no limit is raised again */
    assert_int_equal(HELPER("files=20", "files=2000", "--", "true"), 1000);
    assert_int_equal(HELPER("cwd=/", "--", "/bin/sh", "-c", "exit 7"), 1007);
    /* what it was told wrong */
    assert_int_equal(HELPER("cwd=/no/such/folder", "--", "true"), ENOENT);
    assert_int_equal(HELPER("cpu", "--", "true"), EINVAL);
    assert_int_equal(HELPER("cpu=soon", "--", "true"), EINVAL);
    assert_int_equal(HELPER("cpu=0", "--", "true"), EINVAL);
    assert_int_equal(HELPER("colour=5", "--", "true"), EINVAL);
    assert_int_equal(HELPER("--"), EINVAL);
    assert_int_equal(HELPER("cpu=5"), EINVAL);
    /* programs that are not there, or are none */
    assert_int_equal(HELPER("--", "no-such-program"), ENOENT);
    assert_int_equal(HELPER("--", ""), ENOENT);
    assert_int_equal(HELPER("--", "/no/such/program"), ENOENT);
    assert_int_equal(HELPER("--", "/etc/passwd"), EACCES);
    assert_int_equal(HELPER("--", "/"), EACCES);
    /* its parent is another, and nobody who listens for a fault */
    assert_int_equal(HELPER("parent=1", "--", "true"), 1126);
    assert_int_equal(helper(false, (const char *const[]){"--", "true", NULL}), 1126);
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, free_loop)
    const struct CMUnitTest tests[] = {CASE(test_no_descriptors), CASE(test_helper)};

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
