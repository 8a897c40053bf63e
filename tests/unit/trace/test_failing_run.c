/* A run's folder while the calls on its files fail, one at a time: the first failure is what every
 * later step and the end of it say, the files hold whole lines, the lock is given back, and nothing
 * stays open. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "trace/lock.h"
#include "trace/rundir.h"
#include "unit/base/temp_folder.h"
#include "unit/json/failing.h"

static void assert_whole_lines(const char *path)
{
    const char *text = failing_contents(path);

    if (*text) assert_int_equal(text[strlen(text) - 1], '\n');
}

static void remove_run(void)
{
    DIR *dir = opendir("run");

    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] != '.') assert_int_equal(unlinkat(dirfd(dir), e->d_name, 0), 0);
    }
    if (dir) closedir(dir);
    if (dir) assert_int_equal(rmdir("run"), 0);
}

/* ---- a run from its start to its end ---- */

/* After a step failed all the others do, with the same words. */
struct steps {
    struct ipw_err *first;
    int rc;
};

static void step(struct steps *s, int rc, const struct ipw_err *err)
{
    if (s->rc) {
        assert_int_equal(rc, s->rc);
        assert_string_equal(err->text, s->first->text);
    } else if (rc) {
        *s->first = *err;
        s->rc = rc;
    }
}

static int write_run(struct ipw_err *first)
{
    static const struct ipw_event event = {.kind = IPW_EV_RUN_END, .t_ns = 5, .query = -1};
    struct steps s = {.first = first};
    struct ipw_rundir *dir;
    struct ipw_err err = {0};
    int rc = ipw_rundir_create(&dir, "run", NULL, first);

    if (rc) return rc;
    step(&s, ipw_rundir_write_manifest(dir, "{}", 2, &err), &err);
    ipw_rundir_event(dir, &event);
    ipw_rundir_event_line(dir, "{\"t_ns\":6}", 10);
    step(&s, ipw_rundir_flush(dir, &err), &err);
    step(&s, ipw_rundir_warmup(dir, "{\"w\":1}", 7, &err), &err);
    step(&s, ipw_rundir_trace(dir, "{\"a\":1}", 7, &err), &err);
    step(&s, ipw_rundir_attempt(dir, "{\"b\":1}", 7, &err), &err);
    step(&s, ipw_rundir_sync(dir, &err), &err);
    step(&s, ipw_rundir_write_summary(dir, "{\"n\":1}", 7, &err), &err);
    step(&s, ipw_rundir_close(dir, &err), &err);
    return s.rc;
}

static void the_first_failure_is_told_to_the_end(void **state)
{
    const char *failed = "";
    int n, told = 0;

    (void)state;
    for (n = 0; failed; n++) {
        struct ipw_err err = {0};
        size_t before = failing_descriptors();
        int rc;

        remove_run();
        failing_at(n, FAILING_EIO);
        rc = write_run(&err);
        failed = failing_end();
        assert_int_equal(failing_descriptors(), before);
        assert_whole_lines("run/events.jsonl");
        assert_whole_lines("run/traces.jsonl");
        assert_int_equal(ipw_lock_look("run", NULL), 0);
        told += rc != 0;
        if (rc) {
            assert_true(rc == IPW_EIO || rc == IPW_ENOTFOUND);
            assert_true(strncmp(err.text, "run", 3) == 0 || strncmp(err.text, ".: sync: ", 9) == 0);
        } else if (failed) { /* what is only read, or kept in reserve, does no harm */
            assert_true(!strcmp(failed, "close") || !strcmp(failed, "open") ||
                        !strcmp(failed, "pread") || !strcmp(failed, "fstat"));
        }
        if (rc == 0) assert_string_equal(failing_contents("run/summary.json"), "{\"n\":1}");
    }
    assert_true(n > 60 && told > 40);
}

static void an_interrupted_call_is_repeated(void **state)
{
    (void)state;
    for (int how = FAILING_EINTR; how <= FAILING_SHORT; how += FAILING_SHORT - FAILING_EINTR) {
        const char *failed = "";
        int n;

        for (n = 0; failed; n++) {
            struct ipw_err err = {0};

            remove_run();
            failing_at(n, (enum failing_how)how);
            assert_int_equal(write_run(&err), 0);
            failed = failing_end();
            assert_string_equal(
                failing_contents("run/events.jsonl"),
                "{\"event\":\"run_end\",\"query\":-1,\"span\":0,\"t_ns\":5}\n{\"t_ns\":6}\n");
            assert_string_equal(failing_contents("run/traces.jsonl"), "{\"a\":1}\n");
            assert_string_equal(failing_contents("run/warmup.jsonl"), "{\"w\":1}\n");
            assert_string_equal(failing_contents("run/attempts.jsonl"), "{\"b\":1}\n");
            assert_string_equal(failing_contents("run/summary.json"), "{\"n\":1}");
            assert_int_equal(access("run/lock", F_OK), -1);
        }
        assert_true(n > 5);
    }
}

/* ---- a run that goes on ---- */

static int keep_even(void *ud, const char *line, size_t n, struct ipw_buf *out, struct ipw_err *err)
{
    (void)ud;
    (void)err;
    ipw_buf_add(out, line, n);
    return n == 1 && (*line - '0') % 2 == 0;
}

static int go_on(struct ipw_err *first, size_t *n_torn)
{
    const struct ipw_rundir_torn *torn;
    struct steps s = {.first = first};
    struct ipw_rundir *dir;
    struct ipw_err err = {0};
    int rc = ipw_rundir_open(&dir, "run", first);

    if (rc) return rc;
    *n_torn = ipw_rundir_torn(dir, &torn);
    rc = ipw_rundir_edit_traces(dir, keep_even, NULL, first);
    if (rc) { /* nothing was changed, or the new file is there and cannot be opened */
        ipw_rundir_close(dir, &err);
        return rc;
    }
    step(&s, ipw_rundir_reopen(dir, &err), &err);
    step(&s, ipw_rundir_trace(dir, "8", 1, &err), &err);
    step(&s, ipw_rundir_close(dir, &err), &err);
    return s.rc;
}

static void put_killed_run(void)
{
    remove_run();
    assert_int_equal(mkdir("run", 0700), 0);
    failing_put("run/manifest.json", "{}");
    failing_put("run/events.jsonl", "1\n2\n");
    failing_put("run/traces.jsonl", "1\n2\n3\n4\n{\"to");
    failing_put("run/lock", "pid 1, start 2, host h, since 2026-11-21T02:31:07Z\n");
}

static bool is_one_of(const char *text, const char *const *all)
{
    while (*all && strcmp(*all, text)) all++;
    return *all;
}

static void traces_are_the_old_or_the_new_ones(void **state)
{
    static const char *const may_be[] = {"1\n2\n3\n4\n{\"to", "1\n2\n3\n4\n", "2\n4\n", "2\n4\n8\n",
                                         NULL};

    (void)state;
    for (enum failing_how how = FAILING_EIO; how <= FAILING_FULL; how++) {
        const char *failed =
            how == FAILING_NOTHING ? NULL : ""; /* a read of nothing is the file's end */
        int n;

        for (n = 0; failed; n++) {
            struct ipw_err err = {0};
            size_t before = failing_descriptors(), n_torn = 0;
            int rc;

            put_killed_run();
            failing_at(n, how);
            rc = go_on(&err, &n_torn);
            failed = failing_end();
            assert_int_equal(failing_descriptors(), before);
            assert_true(is_one_of(failing_contents("run/traces.jsonl"), may_be));
            assert_string_equal(failing_contents("run/events.jsonl"), "1\n2\n");
            if (strcmp(failing_contents("run/traces.jsonl"), may_be[0]))
                assert_string_equal(failing_contents("run/traces.jsonl.torn"), "{\"to");
            if (how == FAILING_EINTR || how == FAILING_SHORT || !failed) assert_int_equal(rc, 0);
            if (rc) assert_true(strncmp(err.text, "run", 3) == 0);
            if (rc) continue;
            assert_string_equal(failing_contents("run/traces.jsonl"), "2\n4\n8\n");
            assert_int_equal(n_torn, 1);
            assert_int_equal(access("run/traces.jsonl.tmp", F_OK), -1);
        }
        assert_true(n > 3 || how == FAILING_NOTHING);
    }
}

/* A line that cannot be judged stops it, with its number, and the file is as it was. */
static int refuse_3(void *ud, const char *line, size_t n, struct ipw_buf *out, struct ipw_err *err)
{
    (void)ud;
    ipw_buf_add(out, line, n);
    return *line == '3' ? ipw_fail(err, IPW_EPARSE, "no query") : 1;
}

static void a_refused_line_changes_nothing(void **state)
{
    struct ipw_rundir *dir;
    struct ipw_err err = {0};

    (void)state;
    put_killed_run();
    assert_int_equal(ipw_rundir_open(&dir, "run", NULL), 0);
    assert_int_equal(ipw_rundir_edit_traces(dir, refuse_3, NULL, &err), IPW_EPARSE);
    assert_string_equal(err.text, "run/traces.jsonl:3: no query");
    assert_string_equal(failing_contents("run/traces.jsonl"), "1\n2\n3\n4\n");
    assert_int_equal(access("run/traces.jsonl.tmp", F_OK), -1);
    /* and the run can be written */
    assert_int_equal(ipw_rundir_trace(dir, "5", 1, NULL), 0);
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    assert_string_equal(failing_contents("run/traces.jsonl"), "1\n2\n3\n4\n5\n");
}

/* ---- the lock alone ---- */

static void a_lock_that_cannot_be_held_is_told(void **state)
{
    const char *failed = "";

    (void)state;
    remove_run();
    assert_int_equal(mkdir("run", 0700), 0);
    for (int n = 0; failed; n++) {
        struct ipw_lock lock;
        struct ipw_err err = {0};
        size_t before = failing_descriptors();
        int rc;

        failing_at(n, FAILING_EIO);
        rc = ipw_lock_take(&lock, "run", &err);
        failed = failing_end();
        if (rc) {
            assert_int_equal(lock.fd, -1);
            assert_int_equal(rc, IPW_EIO);
            assert_int_equal(strncmp(err.text, "run/lock: ", 10), 0);
            if (!strcmp(failed, "flock"))
                assert_string_equal(err.text, "run/lock: cannot be locked: Input/output error");
            if (!strcmp(failed, "pwrite"))
                assert_string_equal(err.text, "run/lock: cannot be written: Input/output error");
        } else {
            assert_int_equal(ipw_lock_check(&lock, "run", NULL), 0);
            assert_int_equal(strncmp(failing_contents("run/lock"), "pid ", 4), 0);
        }
        ipw_lock_drop(&lock, "run");
        assert_int_equal(failing_descriptors(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_failure_is_told_to_the_end),
        cmocka_unit_test(an_interrupted_call_is_repeated),
        cmocka_unit_test(traces_are_the_old_or_the_new_ones),
        cmocka_unit_test(a_refused_line_changes_nothing),
        cmocka_unit_test(a_lock_that_cannot_be_held_is_told),
    };

    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
