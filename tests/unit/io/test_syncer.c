#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "io/syncer.h"
#include "unit/unit.h"
#include "with_loop.h"

static struct ipw_syncer *syncer;
static int calls, result;

/* The disk: while `held` is not -1, a sync lasts until something can be read from it. */
static int held = -1;

int fdatasync(int fd)
{
    char byte;

    if (held >= 0 && read(held, &byte, 1) < 0) return -1;
    return (int)syscall(SYS_fdatasync, fd);
}

static void synced(void *ud, int errnum)
{
    (void)ud;
    calls++;
    result = errnum;
}

static int set_up(void **state)
{
    calls = 0;
    result = -1;
    if (make_loop(state)) return -1;
    syncer = ipw_syncer_new(loop);
    return 0;
}

static int tear_down(void **state)
{
    ipw_syncer_free(syncer);
    return free_loop(state);
}

static int temporary(char *path)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    return fd;
}

static void files_are_synced(void **state)
{
    char a[] = "/tmp/ipw-sync-XXXXXX", b[] = "/tmp/ipw-sync-XXXXXX";
    int fds[2] = {temporary(a), temporary(b)};

    (void)state;
    for (int i = 1; i <= 3; i++) {
        ipw_syncer_start(syncer, fds, 2, synced, NULL);
        ipw_loop_run(loop); /* does not return before */
        assert_int_equal(calls, i);
        assert_int_equal(result, 0);
    }
    for (int i = 0; i < 2; i++) close(fds[i]);
    unlink(a);
    unlink(b);
}

static void a_pipe_needs_none(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    ipw_syncer_start(syncer, &ends[1], 1, synced, NULL);
    ipw_loop_run(loop);
    assert_int_equal(result, 0);
    close(ends[0]);
    close(ends[1]);
}

/* D-5: which is the caller's end, see ipw_syncer_start(). */
static void the_first_failure_is_told(void **state)
{
    char path[] = "/tmp/ipw-sync-XXXXXX";
    int fd = temporary(path), bad[2] = {-1, fd};

    (void)state;
    ipw_syncer_start(syncer, bad, 2, synced, NULL);
    ipw_loop_run(loop);
    assert_int_equal(result, EBADF);
    unlink(path); /* what is written to it is lost */
    ipw_syncer_start(syncer, &fd, 1, synced, NULL);
    ipw_loop_run(loop);
    assert_int_equal(result, ENOENT);
    close(fd);
}

static void freed_while_it_works(void **state)
{
    char path[] = "/tmp/ipw-sync-XXXXXX";
    int fd = temporary(path);

    (void)state;
    ipw_syncer_start(syncer, &fd, 1, synced, NULL);
    ipw_syncer_free(syncer);
    syncer = NULL;
    ipw_loop_run(loop);
    assert_int_equal(calls, 0);
    close(fd);
    unlink(path);
}

struct ticking {
    int n, release;
};

static void tick(void *ud)
{
    struct ticking *t = ud;

    assert_int_equal(calls, 0);
    if (++t->n < 50)
        ipw_timer_start(loop, IPW_NS_PER_MS, tick, t);
    else
        assert_int_equal(write(t->release, "x", 1), 1);
}

/* D-8: however long the disk takes, the loop does not wait for it: the sync ends only because the
 * loop's fiftieth tick lets it. */
static void d8_the_loop_goes_on(void **state)
{
    char path[] = "/tmp/ipw-sync-XXXXXX";
    int fd = temporary(path), ends[2];
    struct ticking t = {0};

    (void)state;
    assert_int_equal(pipe(ends), 0);
    held = ends[0];
    t.release = ends[1];
    ipw_syncer_start(syncer, &fd, 1, synced, NULL);
    ipw_timer_start(loop, IPW_NS_PER_MS, tick, &t);
    ipw_loop_run(loop);
    assert_int_equal(t.n, 50);
    assert_int_equal(calls, 1);
    assert_int_equal(result, 0);
    held = -1;
    close(ends[0]);
    close(ends[1]);
    close(fd);
    unlink(path);
}

UNIT(syncer)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(files_are_synced),     CASE(a_pipe_needs_none),   CASE(the_first_failure_is_told),
        CASE(freed_while_it_works), CASE(d8_the_loop_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
