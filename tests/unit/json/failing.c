#include "unit/json/failing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
    bool on;
    int at, seen;
    enum failing_how how;
    const char *failed;
} rig;

void failing_at(int n, enum failing_how how)
{
    rig.on = true;
    rig.at = n;
    rig.seen = 0;
    rig.how = how;
    rig.failed = NULL;
}

const char *failing_end(void)
{
    rig.on = false;
    return rig.failed;
}

size_t failing_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    while (dir && readdir(dir)) n++;
    if (dir) closedir(dir);
    return n;
}

static bool is_bytes(const char *name)
{
    return !strcmp(name, "read") || !strcmp(name, "pread") || !strcmp(name, "write") ||
           !strcmp(name, "pwrite");
}

/* Is this the call?  Those that move no bytes are not counted where half of the bytes is meant. */
static bool is_due(const char *name)
{
    bool after = rig.failed && rig.how == FAILING_FULL;

    if (!rig.on) return false;
    if (rig.how >= FAILING_NOTHING && rig.how <= FAILING_FULL && !is_bytes(name))
        return after && !strcmp(name, "ftruncate");
    if (after) return !strcmp(name, "write");
    if (rig.how == FAILING_FULL && strcmp(name, "write")) return false;
    if (rig.how == FAILING_EINTR && !strcmp(name, "fstat")) return false; /* no signal ends that */
    if (rig.seen++ != rig.at) return false;
    rig.failed = name;
    return true;
}

static int fails(void)
{
    switch (rig.how) {
    case FAILING_EINTR: errno = EINTR; break;
    case FAILING_FULL: errno = ENOSPC; break;
    case FAILING_EACCES: errno = EACCES; break;
    case FAILING_ENODEV: errno = ENODEV; break;
    default: errno = EIO; break;
    }
    return -1;
}

/* How many of n bytes are moved, or -1: the call fails.  `first`: of a full disk. */
static ssize_t moved(size_t n, bool first)
{
    switch (rig.how) {
    case FAILING_NOTHING: return 0;
    case FAILING_SHORT: return (ssize_t)((n + 1) / 2);
    case FAILING_FULL: return first ? (ssize_t)(n / 2 + 1) : fails();
    default: return fails();
    }
}

#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters { return is_due(#name) ? fails() : __real_##name arguments; }

WRAP(int, fstat, (int fd, struct stat *st), (fd, st))
WRAP(int, ftruncate, (int fd, off_t size), (fd, size))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, flock, (int fd, int what), (fd, what))

/* The disk itself is not waited for: no test here cuts the power. */
#define WRAP_SYNC(name)                                                                            \
    int __wrap_##name(int fd);                                                                     \
    int __wrap_##name(int fd) { return is_due(#name) ? fails() : fcntl(fd, F_GETFD) < 0 ? -1 : 0; }

WRAP_SYNC(fsync)
WRAP_SYNC(fdatasync)

#define WRAP_BYTES(name, parameters, arguments)                                                    \
    ssize_t __real_##name parameters;                                                              \
    ssize_t __wrap_##name parameters;                                                              \
    ssize_t __wrap_##name parameters                                                               \
    {                                                                                              \
        bool before = rig.failed != NULL;                                                          \
                                                                                                   \
        if (is_due(#name)) {                                                                       \
            ssize_t k = moved(n, !before);                                                         \
                                                                                                   \
            if (k <= 0) return k;                                                                  \
            n = (size_t)k;                                                                         \
        }                                                                                          \
        return __real_##name arguments;                                                            \
    }

WRAP_BYTES(read, (int fd, void *to, size_t n), (fd, to, n))
WRAP_BYTES(write, (int fd, const void *from, size_t n), (fd, from, n))
WRAP_BYTES(pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
WRAP_BYTES(pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    int rc = __real_close(fd);

    return is_due("close") ? fails() : rc;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list rest;

    va_start(rest, flags);
    if (flags & O_CREAT) mode = va_arg(rest, mode_t);
    va_end(rest);
    return is_due("open") ? fails() : __real_open(path, flags, mode);
}

void failing_put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

const char *failing_contents(const char *path)
{
    static char text[4][4096];
    static int turn;
    char *to = text[turn++ % 4];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(to, 1, sizeof text[0] - 1, f) : 0;

    if (f) fclose(f);
    to[n] = '\0';
    return to;
}
