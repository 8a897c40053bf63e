#include "base/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static const char *kind_of(mode_t mode)
{
    if (S_ISFIFO(mode)) return "a pipe (FIFO)";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "something else";
}

static int refuse(mode_t mode, const char *path, struct ipw_err *err)
{
    if (S_ISLNK(mode)) return ipw_fail_errno(err, ELOOP, "%s: a link, not a regular file", path);
    if (S_ISDIR(mode)) return ipw_fail_errno(err, EISDIR, "%s", path);
    return ipw_fail(err, IPW_EINVAL, "%s: %s, not a regular file", path, kind_of(mode));
}

/* Names the kind of file that open(2) itself refuses, too. */
static int fail_open(int errnum, const char *path, struct ipw_err *err)
{
    struct stat st;

    if ((errnum == ENXIO || errnum == ELOOP) && lstat(path, &st) == 0 && !S_ISREG(st.st_mode) &&
        (errnum == ELOOP || !S_ISLNK(st.st_mode)))
        return refuse(st.st_mode, path, err);
    return ipw_fail_errno(err, errnum, "%s", path);
}

static int open_again(const char *path, int flags)
{
    int fd;

    do {
        fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static bool was_handed_over(const char *path)
{
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

int ipw_open_read(const char *path, struct ipw_err *err)
{
    int fd = open_again(path, O_RDONLY), rc = 0;
    struct stat st;

    if (fd < 0) return fail_open(errno, path, err);
    if (fstat(fd, &st) < 0)
        rc = ipw_fail_errno(err, errno, "%s", path);
    else if (was_handed_over(path) && !S_ISDIR(st.st_mode))
        rc = fcntl(fd, F_SETFL, 0) < 0 ? ipw_fail_errno(err, errno, "%s", path) : 0;
    else if (!S_ISREG(st.st_mode))
        rc = refuse(st.st_mode, path, err);
    if (!rc) return fd;
    close(fd);
    return rc;
}

int ipw_open_write(const char *path, int flags, struct ipw_err *err)
{
    int fd = open_again(path, flags | O_NOFOLLOW), rc = 0;
    struct stat st;

    if (fd < 0) return fail_open(errno, path, err);
    if (fstat(fd, &st) < 0)
        rc = ipw_fail_errno(err, errno, "%s", path);
    else if (!S_ISREG(st.st_mode) && !(S_ISCHR(st.st_mode) && (flags & O_APPEND)))
        rc = refuse(st.st_mode, path, err);
    else if (S_ISREG(st.st_mode) && st.st_nlink > 1)
        rc = ipw_fail(err, IPW_EINVAL,
                      "%s: the file has %lu names (hard links), so writing would change all of "
                      "them. Replace it by a copy",
                      path, (unsigned long)st.st_nlink);
    else if (S_ISCHR(st.st_mode) && fcntl(fd, F_SETFL, flags & O_APPEND) < 0)
        rc = ipw_fail_errno(err, errno, "%s", path);
    if (!rc) return fd;
    close(fd);
    return rc;
}

int ipw_make_parents(const char *path, struct ipw_err *err)
{
    char *copy = ipw_strdup(path);
    int rc = 0;

    for (char *slash = strchr(copy + 1, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
        if (slash[1] == '\0') break;
        *slash = '\0';
        if (TEMP_FAILURE_RETRY(mkdir(copy, 0777)) < 0 && errno != EEXIST) {
            rc = ipw_fail_errno(err, errno, "%s: the folder cannot be created", copy);
        }
        *slash = '/';
    }
    free(copy);
    return rc;
}

int ipw_write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t k = TEMP_FAILURE_RETRY(write(fd, bytes, n));

        if (k == 0) errno = ENOSPC;
        if (k <= 0) return -1;
        bytes += k;
        n -= (size_t)k;
    }
    return 0;
}
