/* A run's folder that is taken up again: the lock, torn tails, traces that count no more. */
#include <fcntl.h>
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
#include "trace/lock.h"
#include "trace/rundir.h"
#include "unit/base/temp_folder.h"
#include "unit/unit.h"

static void assert_contents(const char *path, const char *want)
{
    struct ipw_buf bytes = IPW_BUF(IPW_MIB);

    assert_int_equal(ipw_file_read(&bytes, path, NULL), 0);
    assert_string_equal(ipw_buf_str(&bytes), want);
    ipw_buf_release(&bytes);
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* ---- the lock ---- */

/* One of a pair: waits for the start, tries, says how it went, holds on until told. */
static void contender(int start, int said, int end)
{
    struct ipw_rundir *dir;
    char byte;
    int rc;

    if (read(start, &byte, 1) < 0) _exit(3);
    rc = ipw_rundir_open(&dir, "raced", NULL);
    byte = rc == 0 ? 'w' : rc == IPW_EEXISTS ? 'l' : '?';
    if (write(said, &byte, 1) != 1) _exit(4);
    if (read(end, &byte, 1) < 0) _exit(5);
    if (rc == 0) ipw_rundir_close(dir, NULL); /* every other pair: a crash, see below */
    _exit(0);
}

/* D-12: a hundred pairs, one winner each, whether the owner before went in order or not. */
static void racing_pairs_have_one_winner(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        int start[2], said[2], end[2], status;
        char words[2];
        pid_t pids[2];

        assert_int_equal(pipe2(start, O_CLOEXEC) | pipe2(said, O_CLOEXEC) | pipe2(end, O_CLOEXEC),
                         0);
        for (int k = 0; k < 2; k++) {
            pids[k] = fork();
            assert_true(pids[k] >= 0);
            if (pids[k]) continue;
            close(start[1]);
            close(end[1]);
            contender(start[0], said[1], end[0]);
        }
        close(start[0]);
        close(start[1]); /* both see the end of the pipe at once */
        assert_int_equal(read(said[0], &words[0], 1), 1);
        assert_int_equal(read(said[0], &words[1], 1), 1);
        assert_true((words[0] == 'w' && words[1] == 'l') || (words[0] == 'l' && words[1] == 'w'));
        if (i % 2)
            for (int k = 0; k < 2; k++) kill(pids[k], SIGKILL);
        close(end[0]);
        close(end[1]);
        close(said[0]);
        close(said[1]);
        for (int k = 0; k < 2; k++) assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
    }
}

/* D-12, S-6: the owner is named, as nothing but text. */
static void the_owner_is_named(void **state)
{
    struct ipw_rundir *dir, *second;
    struct ipw_err err = {0};
    char pid[40];

    (void)state;
    assert_int_equal(ipw_rundir_open(&dir, "owned", NULL), 0);
    assert_string_equal(ipw_rundir_stale_owner(dir), "");
    assert_int_equal(ipw_rundir_open(&second, "owned", &err), IPW_EEXISTS);
    snprintf(pid, sizeof pid, "(pid %d, start ", (int)getpid());
    assert_non_null(strstr(err.text, pid));
    assert_non_null(strstr(err.text, ", host "));
    put("owned/lock", "pid \x1b[2J1\n");
    assert_int_equal(ipw_rundir_open(&second, "owned", &err), IPW_EEXISTS);
    assert_non_null(strstr(err.text, "(pid ?[2J1)"));
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    assert_int_equal(access("owned/lock", F_OK), -1);
}

static void a_stale_lock_is_taken_over(void **state)
{
    struct ipw_rundir *dir;

    (void)state;
    assert_int_equal(mkdir("stale", 0700), 0);
    put("stale/lock", "pid 1, start 2, host gone, since then\n");
    assert_int_equal(ipw_rundir_open(&dir, "stale", NULL), 0);
    assert_string_equal(ipw_rundir_stale_owner(dir), "pid 1, start 2, host gone, since then");
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
}

/* D-13: a child that lives on does not keep it. */
static void a_child_does_not_inherit_it(void **state)
{
    int ready[2];
    pid_t owner, child = 0;
    int status;
    struct ipw_rundir *dir;

    (void)state;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    owner = fork();
    assert_true(owner >= 0);
    if (owner == 0) {
        assert_int_equal(ipw_rundir_open(&dir, "left", NULL), 0);
        child = fork();
        if (child == 0) {
            execlp("sleep", "sleep", "60", (char *)NULL);
            _exit(9);
        }
        _exit(write(ready[1], &child, sizeof child) != sizeof child || pause());
    }
    assert_int_equal(read(ready[0], &child, sizeof child), sizeof child);
    kill(owner, SIGKILL);
    assert_int_equal(waitpid(owner, &status, 0), owner);
    /* Until it has executed the child is a copy of its parent, descriptors and all. */
    for (int i = 0; i < 30000; i++) {
        char file[64], name[64] = "";
        FILE *f;

        snprintf(file, sizeof file, "/proc/%d/comm", (int)child);
        f = fopen(file, "r");
        if (f && fgets(name, sizeof name, f) && !strcmp(name, "sleep\n")) i = 30000;
        if (f) fclose(f);
        usleep(1000);
    }
    assert_int_equal(kill(child, 0), 0);
    assert_int_equal(ipw_rundir_open(&dir, "left", NULL), 0);
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    kill(child, SIGKILL);
    close(ready[0]);
    close(ready[1]);
}

/* S-9: no link of somebody else's is followed. */
static void links_are_not_followed(void **state)
{
    struct ipw_rundir *dir;

    (void)state;
    assert_int_equal(mkdir("planted", 0700), 0);
    put("victim", "mine\n");
    assert_int_equal(symlink("../victim", "planted/lock"), 0);
    assert_true(ipw_rundir_open(&dir, "planted", NULL) < 0);
    assert_int_equal(unlink("planted/lock"), 0);
    assert_int_equal(symlink("../victim", "planted/events.jsonl"), 0);
    assert_true(ipw_rundir_open(&dir, "planted", NULL) < 0);
    assert_contents("victim", "mine\n");
    assert_int_equal(access("planted/lock", F_OK), -1);
}

/* S-9: whatever the umask is. */
static void modes_do_not_depend_on_the_umask(void **state)
{
    static const char *const files[] = {"bare/events.jsonl", "bare/traces.jsonl", "bare/lock",
                                        "bare/attempts.jsonl", "bare/manifest.json"};
    mode_t before = umask(0);
    struct ipw_rundir *dir;
    struct stat st;

    (void)state;
    assert_int_equal(ipw_rundir_open(&dir, "bare", NULL), 0);
    assert_int_equal(ipw_rundir_attempt(dir, "{}", 2, NULL), 0);
    assert_int_equal(ipw_rundir_write_manifest(dir, "{}", 2, NULL), 0);
    assert_int_equal(stat("bare", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(stat(files[i], &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    umask(before);
}

/* ---- what a crash left ---- */

static void torn_tails_are_set_aside(void **state)
{
    const struct ipw_rundir_torn *torn;
    struct ipw_rundir *dir;

    (void)state;
    assert_int_equal(mkdir("torn", 0700), 0);
    put("torn/manifest.json", "{}");
    put("torn/events.jsonl", "{\"a\":1}\n{\"b\":");
    put("torn/traces.jsonl", "{}\n");
    put("torn/power.jsonl", "{}\n[1,0,3]\n[2,");
    assert_int_equal(ipw_rundir_open(&dir, "torn", NULL), 0);
    assert_true(ipw_rundir_has_manifest(dir));
    assert_int_equal(ipw_rundir_torn(dir, &torn), 2);
    assert_string_equal(torn[0].file, "events.jsonl");
    assert_int_equal(torn[0].cut.offset, 8);
    assert_int_equal(torn[0].cut.bytes, 5);
    assert_string_equal(torn[1].file, "power.jsonl");
    assert_int_equal(ipw_rundir_trace(dir, "{\"c\":2}", 7, NULL), 0);
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    assert_contents("torn/events.jsonl", "{\"a\":1}\n");
    assert_contents("torn/events.jsonl.torn", "{\"b\":");
    assert_contents("torn/power.jsonl", "{}\n[1,0,3]\n");
    assert_contents("torn/power.jsonl.torn", "[2,");
    assert_contents("torn/traces.jsonl", "{}\n{\"c\":2}\n");
}

static void without_a_manifest_only_an_empty_run_goes_on(void **state)
{
    struct ipw_rundir *dir;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(mkdir("born", 0700), 0); /* killed as soon as it had its files */
    put("born/events.jsonl", "");
    put("born/traces.jsonl", "");
    assert_int_equal(ipw_rundir_open(&dir, "born", &err), 0);
    assert_false(ipw_rundir_has_manifest(dir));
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    put("born/traces.jsonl", "{}\n");
    assert_int_equal(ipw_rundir_open(&dir, "born", &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "born: has traces.jsonl but no manifest.json"));
    assert_int_equal(access("born/lock", F_OK), -1);
}

/* ---- traces that count no more ---- */

static int keep_odd(void *ud, const char *line, size_t n, struct ipw_buf *out, struct ipw_err *err)
{
    int *left = ud;

    ipw_buf_add(out, line, n);
    if (--*left < 0) return ipw_fail(err, IPW_EPARSE, "enough");
    return n == 3 && (line[1] - '0') % 2;
}

static void traces_are_sifted_whole_or_not_at_all(void **state)
{
    struct ipw_rundir *dir;
    struct ipw_err err = {0};
    int left = 2;

    (void)state;
    assert_int_equal(ipw_rundir_open(&dir, "sifted", NULL), 0);
    for (int i = 0; i < 4; i++) {
        char line[] = "[0]";

        line[1] = (char)('0' + i);
        assert_int_equal(ipw_rundir_trace(dir, line, 3, NULL), 0);
    }
    assert_int_equal(ipw_rundir_edit_traces(dir, keep_odd, &left, &err), IPW_EPARSE);
    assert_string_equal(err.text, "sifted/traces.jsonl:3: enough");
    assert_contents("sifted/traces.jsonl", "[0]\n[1]\n[2]\n[3]\n");
    assert_int_equal(access("sifted/traces.jsonl.tmp", F_OK), -1);
    left = 4;
    put("sifted/traces.jsonl.tmp", "of a session that was killed in here");
    assert_int_equal(ipw_rundir_edit_traces(dir, keep_odd, &left, &err), 0);
    assert_contents("sifted/traces.jsonl", "[1]\n[3]\n");
    assert_int_equal(ipw_rundir_trace(dir, "[5]", 3, NULL), 0); /* goes to the new file */
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    assert_contents("sifted/traces.jsonl", "[1]\n[3]\n[5]\n");
    assert_int_equal(access("sifted/traces.jsonl.tmp", F_OK), -1);
}

/* Its name leads to another run by then: nothing of this one may go there. */
static void a_folder_that_was_moved_away_is_not_sought_by_name(void **state)
{
    struct ipw_rundir *dir, *other;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_rundir_create(&dir, "here", NULL, NULL), 0);
    assert_int_equal(ipw_rundir_trace(dir, "[1]", 3, NULL), 0);
    assert_int_equal(rename("here", "there"), 0);
    assert_int_equal(ipw_rundir_create(&other, "here", NULL, NULL), 0);
    assert_int_equal(ipw_rundir_trace(dir, "[2]", 3, NULL), 0); /* goes where it is now */
    assert_int_equal(ipw_rundir_write_summary(dir, "{}", 2, &err), IPW_ENOTFOUND);
    assert_string_equal(err.text,
                        "here: was moved while the run was writing to it; ipw-agent resume "
                        "continues it where it is now");
    assert_int_equal(ipw_rundir_warmup(dir, "[0]", 3, NULL), IPW_ENOTFOUND);
    assert_int_equal(ipw_rundir_close(dir, NULL), IPW_ENOTFOUND);
    assert_contents("there/traces.jsonl", "[1]\n[2]\n");
    assert_int_equal(access("here/summary.json", F_OK), -1);
    assert_int_equal(access("here/warmup.jsonl", F_OK), -1);
    assert_int_equal(access("here/lock", F_OK), 0);
    assert_int_equal(ipw_rundir_write_summary(other, "{}", 2, NULL), 0);
    assert_int_equal(ipw_rundir_close(other, NULL), 0);

    assert_int_equal(ipw_rundir_create(&dir, "gone", NULL, NULL), 0);
    assert_int_equal(system("rm -r gone"), 0);
    assert_int_equal(ipw_rundir_write_summary(dir, "{}", 2, &err), IPW_ENOTFOUND);
    assert_string_equal(err.text, "gone: was removed while the run was writing to it");
    assert_int_equal(ipw_rundir_close(dir, NULL), IPW_ENOTFOUND);
}

/* D-5: after a failed sync nothing more is written, and none is tried again. */
static void a_failure_of_the_disk_is_final(void **state)
{
    struct ipw_rundir *dir;
    struct ipw_err why, err = {0};

    (void)state;
    assert_int_equal(ipw_rundir_open(&dir, "final", NULL), 0);
    ipw_fail(&why, IPW_EIO, "the disk did not keep it");
    ipw_rundir_failed(dir, &why);
    assert_int_equal(ipw_rundir_trace(dir, "[5]", 3, &err), IPW_EIO);
    assert_string_equal(err.text, "the disk did not keep it");
    assert_int_equal(ipw_rundir_write_summary(dir, "{}", 2, NULL), IPW_EIO);
    assert_int_equal(ipw_rundir_attempt(dir, "{}", 2, NULL), IPW_EIO);
    assert_int_equal(ipw_rundir_close(dir, &err), IPW_EIO);
    assert_contents("final/traces.jsonl", "");
    assert_int_equal(access("final/summary.json", F_OK), -1);
}

UNIT(rundir_reopen)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(racing_pairs_have_one_winner),
        cmocka_unit_test(the_owner_is_named),
        cmocka_unit_test(a_stale_lock_is_taken_over),
        cmocka_unit_test(a_child_does_not_inherit_it),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(modes_do_not_depend_on_the_umask),
        cmocka_unit_test(torn_tails_are_set_aside),
        cmocka_unit_test(without_a_manifest_only_an_empty_run_goes_on),
        cmocka_unit_test(traces_are_sifted_whole_or_not_at_all),
        cmocka_unit_test(a_folder_that_was_moved_away_is_not_sought_by_name),
        cmocka_unit_test(a_failure_of_the_disk_is_final),
    };

    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
