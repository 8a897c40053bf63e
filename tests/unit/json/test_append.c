/* The appender and the file helpers, on good files and on full ones. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

#include "check.h"
#include "json/jsonl.h"
#include "unit/unit.h"

static char folder[] = "/tmp/ipw_append_XXXXXX";
static char path[64], other[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/f.jsonl", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder); /* fails when a test left a file */
}

static int fresh(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return 0;
}

static const char *content(const char *name)
{
    static struct ipw_buf out = {.max = IPW_MIB};
    struct ipw_err err;

    ipw_buf_clear(&out);
    if (ipw_file_read(&out, name, &err)) fail_msg("%s", err.text);
    return ipw_buf_str(&out);
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(name, "wb");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static struct ipw_jsonl_appender *opened(const char *name)
{
    struct ipw_jsonl_appender *a;
    struct ipw_err err;

    if (ipw_jsonl_append_open(&a, name, false, &err)) fail_msg("%s", err.text);
    return a;
}

static int64_t size_of(const struct ipw_jsonl_appender *a)
{
    struct stat st;

    assert_int_equal(fstat(ipw_jsonl_append_fd(a), &st), 0);
    return st.st_size;
}

static void test_appends(void **state)
{
    struct ipw_jsonl_appender *a = opened(path);
    struct ipw_err err;
    struct stat st;

    (void)state;
    assert_int_equal(size_of(a), 0);
    assert_int_equal(ipw_jsonl_append(a, "{}\n", 3, &err), 0);
    assert_int_equal(ipw_jsonl_append(a, "[1]\n[2]\n", 8, &err), 0);
    assert_int_equal(ipw_jsonl_append(a, "", 0, &err), 0);
    assert_int_equal(size_of(a), 11);
    assert_int_equal(ipw_jsonl_append(a, "[3]", 3, &err), IPW_EINVAL); /* not a whole line */
    assert_int_equal(ipw_jsonl_append(a, "[4]\n", 4, &err), 0);
    assert_int_equal(fstat(ipw_jsonl_append_fd(a), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_true(fcntl(ipw_jsonl_append_fd(a), F_GETFD) & FD_CLOEXEC);
    assert_int_equal(ipw_jsonl_append_close(a, &err), 0);
    assert_string_equal(content(path), "{}\n[1]\n[2]\n[4]\n");

    a = opened(path); /* goes on behind what is there */
    assert_int_equal(size_of(a), 15);
    assert_int_equal(ipw_jsonl_append(a, "5\n", 2, &err), 0);
    assert_int_equal(ipw_jsonl_append_close(a, &err), 0);
    assert_string_equal(content(path), "{}\n[1]\n[2]\n[4]\n5\n");
    assert_int_equal(ipw_jsonl_append_close(NULL, &err), 0);
}

static void test_refuses_to_open(void **state)
{
    struct ipw_jsonl_appender *a;
    struct ipw_err err;

    (void)state;
    put(path, "{}\n");
    assert_int_equal(ipw_jsonl_append_open(&a, path, true, &err), IPW_EEXISTS);
    assert_null(a);
    put(path, "{}\n{\"a\":");
    assert_int_equal(ipw_jsonl_append_open(&a, path, false, &err), IPW_EPARSE);
    assert_non_null(strstr(err.text, "incomplete"));
    assert_string_equal(content(path), "{}\n{\"a\":");
    assert_int_equal(symlink(path, other), 0);
    assert_int_equal(ipw_jsonl_append_open(&a, other, false, &err), IPW_EIO);
    assert_int_equal(err.detail, ELOOP);
    assert_int_equal(ipw_jsonl_append_open(&a, "/nonexistent/f", false, &err), IPW_ENOTFOUND);
    assert_int_equal(ipw_jsonl_append_open(&a, folder, false, &err), IPW_EIO);
}

/* A device that is full from the start: the first call fails, the next with the same message. */
static void test_no_space(void **state)
{
    struct ipw_jsonl_appender *a = opened("/dev/full");
    struct ipw_err first = {0}, second = {0};

    (void)state;
    assert_int_equal(ipw_jsonl_append(a, "{}\n", 3, &first), IPW_EIO);
    assert_int_equal(first.detail, ENOSPC);
    assert_string_equal(first.text, "/dev/full: write: No space left on device");
    assert_int_equal(ipw_jsonl_append(a, "{}\n", 3, &second), IPW_EIO);
    assert_string_equal(second.text, first.text);
    assert_int_equal(size_of(a), 0);
    assert_int_equal(ipw_jsonl_append_close(a, NULL), 0);
}

static void limit_file_size(rlim_t bytes, struct rlimit *old)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, old), 0);
    limit = *old;
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A disk that fills inside a line: the kernel takes a part, then refuses.  Wherever that is, the
 * file ends at the last whole line. */
static void test_cut_back(void **state)
{
    (void)state;
    for (rlim_t room = 10; room <= 30; room++) {
        struct ipw_jsonl_appender *a;
        struct ipw_err err = {0};
        struct rlimit old;
        int rc, again;

        unlink(path);
        a = opened(path);
        assert_int_equal(ipw_jsonl_append(a, "{\"line\":1}\n", 11, &err), 0);
        limit_file_size(room, &old);
        rc = ipw_jsonl_append(a, "{\"a longer line\":2}\n", 20, &err);
        again = ipw_jsonl_append(a, "3\n", 2, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(rc, IPW_EIO); /* 31 bytes never fit */
        assert_int_equal(again, IPW_EIO);
        assert_int_equal(err.detail, EFBIG);
        assert_int_equal(ipw_jsonl_append(a, "4\n", 2, &err), IPW_EIO); /* for good */
        assert_int_equal(size_of(a), 11);
        assert_int_equal(ipw_jsonl_append_close(a, NULL), 0);
        assert_string_equal(content(path), "{\"line\":1}\n");
    }
}

static void test_file_read(void **state)
{
    struct ipw_buf out = IPW_BUF(8);
    struct ipw_err err;

    (void)state;
    put(path, "12345678");
    assert_int_equal(ipw_file_read(&out, path, &err), 0); /* exactly the ceiling */
    assert_string_equal(out.data, "12345678");
    ipw_buf_clear(&out);
    put(path, "123456789");
    assert_int_equal(ipw_file_read(&out, path, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "larger than 8 bytes"));
    assert_non_null(strstr(err.text, path));
    ipw_buf_release(&out);
    put(path, "");
    assert_int_equal(ipw_file_read(&out, path, &err), 0);
    assert_int_equal(out.len, 0);
    assert_int_equal(ipw_file_read(&out, folder, &err), IPW_EIO);
    assert_int_equal(err.detail, EISDIR);
    assert_int_equal(ipw_file_read(&out, "/nonexistent", &err), IPW_ENOTFOUND);
    ipw_buf_release(&out);
    ipw_buf_init(&out, IPW_MIB);
    ipw_buf_adds(&out, "before ");
    put(path, "after");
    assert_int_equal(ipw_file_read(&out, path, &err), 0);
    assert_string_equal(out.data, "before after");
    ipw_buf_clear(&out);
    assert_int_equal(ipw_file_read(&out, "/proc/self/maps", &err), 0); /* has no size of its own */
    assert_true(out.len > 0);
    ipw_buf_release(&out);
}

static void test_atomic(void **state)
{
    struct ipw_err err;
    struct rlimit old;
    struct stat st;
    char tmp[80];
    int rc;

    (void)state;
    snprintf(tmp, sizeof tmp, "%s.tmp", path);
    assert_int_equal(ipw_file_write_atomic(path, "one", 3, &err), 0);
    assert_string_equal(content(path), "one");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(ipw_file_write_atomic(path, "two!", 4, &err), 0);
    assert_string_equal(content(path), "two!");

    /* a link that waits at the temporary name is not written through */
    put(other, "precious");
    assert_int_equal(symlink(other, tmp), 0);
    assert_int_equal(ipw_file_write_atomic(path, "three", 5, &err), 0);
    assert_string_equal(content(path), "three");
    assert_string_equal(content(other), "precious");

    /* no room: the old content stays, nothing is left over */
    limit_file_size(4, &old);
    rc = ipw_file_write_atomic(path, "12345678", 8, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(rc, IPW_EIO);
    assert_int_equal(err.detail, EFBIG);
    assert_string_equal(content(path), "three");
    assert_int_equal(access(tmp, F_OK), -1);

    assert_int_equal(ipw_file_write_atomic("/nonexistent/f", "x", 1, &err), IPW_ENOTFOUND);
    assert_int_equal(ipw_file_write_atomic(folder, "x", 1, &err), IPW_EIO); /* a folder is there */
    snprintf(tmp, sizeof tmp, "%s.tmp", folder);
    assert_int_equal(access(tmp, F_OK), -1);
}

/* A name without a slash lives in the current folder. */
static void test_atomic_here(void **state)
{
    char here[4096];
    struct ipw_err err;

    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(ipw_file_write_atomic("other", "x", 1, &err), 0);
    assert_int_equal(chdir(here), 0);
    assert_string_equal(content(other), "x");
}

/* ---- D-7: a terminal that takes a part, and signals in between ---- */

enum { PIPE_LINE = 1000, PIPE_LINES = 400 };
static volatile sig_atomic_t n_alarms;

static void on_alarm(int signum)
{
    (void)signum;
    n_alarms = n_alarms + 1;
}

struct drain {
    int fd;
    size_t n;
    char bytes[PIPE_LINE * PIPE_LINES];
};

/* Small pieces, so that the writer waits in the middle of its lines. */
static void *drain_slowly(void *arg)
{
    struct drain *d = arg;
    ssize_t n;

    while (d->n < sizeof d->bytes && (n = read(d->fd, d->bytes + d->n, 4096)) > 0) {
        d->n += (size_t)n;
        usleep(1000);
    }
    return NULL;
}

/* One end as a file with a name, which hands on the bytes as they are; a pipe is refused. */
static struct ipw_jsonl_appender *open_terminal(int *other_end)
{
    struct termios raw;
    struct ipw_jsonl_appender *a;
    int fd;

    *other_end = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(*other_end >= 0);
    assert_int_equal(grantpt(*other_end), 0);
    assert_int_equal(unlockpt(*other_end), 0);
    fd = open(ptsname(*other_end), O_RDWR | O_NOCTTY);
    assert_true(fd >= 0);
    assert_int_equal(tcgetattr(fd, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(fd, TCSANOW, &raw), 0);
    a = opened(ptsname(*other_end));
    close(fd);
    return a;
}

/* The writer is interrupted every millisecond while the terminal is full: a write that has moved
 * something answers with less than it was given, one that has not with EINTR.  No byte is lost or
 * doubled, and nobody is told. */
static void test_d7_short_writes_and_interrupts(void **state)
{
    struct sigaction act = {.sa_handler = on_alarm}, old; /* no SA_RESTART */
    struct itimerval every = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    struct drain *d = calloc(1, sizeof *d);
    char line[PIPE_LINE], *all = malloc(sizeof d->bytes);
    struct ipw_jsonl_appender *a;
    struct ipw_err err = {0};
    sigset_t alarm_only, before;
    pthread_t reader;

    (void)state;
    assert_non_null(d);
    assert_non_null(all);
    a = open_terminal(&d->fd);
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, &before); /* the reader's */
    assert_int_equal(pthread_create(&reader, NULL, drain_slowly, d), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
    for (int i = 0; i < PIPE_LINES; i++) {
        memset(line, 'a' + i % 26, sizeof line);
        line[sizeof line - 1] = '\n';
        memcpy(all + (size_t)i * sizeof line, line, sizeof line);
    }
    /* In two, each larger than what a terminal keeps. */
    for (size_t at = 0; at < sizeof d->bytes; at += sizeof d->bytes / 2)
        if (ipw_jsonl_append(a, all + at, sizeof d->bytes / 2, &err)) fail_msg("%s", err.text);
    setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &old, NULL);
    assert_int_equal(pthread_join(reader, NULL), 0);
    assert_int_equal(d->n, sizeof d->bytes);
    assert_memory_equal(d->bytes, all, sizeof d->bytes);
    assert_true(n_alarms > 0);
    assert_int_equal(ipw_jsonl_append_close(a, NULL), 0);
    close(d->fd);
    free(d);
    free(all);
}

UNIT(append)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_appends, fresh),
        cmocka_unit_test_setup(test_refuses_to_open, fresh),
        cmocka_unit_test_setup(test_no_space, fresh),
        cmocka_unit_test_setup(test_cut_back, fresh),
        cmocka_unit_test_setup(test_d7_short_writes_and_interrupts, fresh),
        cmocka_unit_test_setup(test_file_read, fresh),
        cmocka_unit_test_setup(test_atomic, fresh),
        cmocka_unit_test_setup(test_atomic_here, fresh),
    };
    int before = open_descriptors(), failed;

    signal(SIGXFSZ, SIG_IGN); /* as the program does: a full file is an error, not a death */
    failed = cmocka_run_group_tests(tests, set_up, tear_down);
    return failed + (open_descriptors() != before);
}
