#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/open.h"
#include "json/jsonl.h"

struct ipw_jsonl_appender {
    int fd;
    char *path;
    int64_t size; /* the file's length up to its last whole line */
    bool regular; /* only a regular file can be cut back to an earlier length */
    bool failed;
    struct ipw_err why;
};

/* A line appended to a torn line would be lost with it. */
static int check_tail(int fd, int64_t size, const char *path, struct ipw_err *err)
{
    char last;
    ssize_t n;

    do {
        n = pread(fd, &last, 1, size - 1);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return ipw_fail_errno(err, errno, "%s", path);
    if (n == 1 && last == '\n') return 0;
    return ipw_fail(err, IPW_EPARSE, "%s: its last line is torn (no line feed after byte %lld)",
                    path, (long long)size - 1);
}

int ipw_jsonl_append_open(struct ipw_jsonl_appender **out, const char *path, bool exclusive,
                          struct ipw_err *err)
{
    struct ipw_jsonl_appender *a;
    struct ipw_err why = {0};
    struct stat st;
    int fd, rc = 0;

    *out = NULL;
    fd = ipw_open_write(path, O_RDWR | O_APPEND | O_CREAT | (exclusive ? O_EXCL : 0), &why);
    if (fd < 0 && exclusive && why.detail == EEXIST)
        return ipw_fail(err, IPW_EEXISTS, "%s: exists already", path);
    if (fd < 0) {
        if (err) *err = why;
        return fd;
    }
    if (fstat(fd, &st) < 0)
        rc = ipw_fail_errno(err, errno, "%s", path);
    else if (S_ISREG(st.st_mode) && st.st_size)
        rc = check_tail(fd, st.st_size, path, err);
    if (rc) {
        close(fd);
        return rc;
    }
    a = ipw_calloc(1, sizeof *a);
    a->fd = fd;
    a->path = ipw_strdup(path);
    a->regular = S_ISREG(st.st_mode);
    a->size = a->regular ? st.st_size : 0;
    *out = a;
    return 0;
}

/* Stores the error and removes the partly written lines. */
static int give_up(struct ipw_jsonl_appender *a, int errnum, size_t written, struct ipw_err *err)
{
    a->failed = true;
    ipw_fail_errno(&a->why, errnum, "%s: write", a->path);
    if (written && a->regular && TEMP_FAILURE_RETRY(ftruncate(a->fd, (off_t)a->size)) < 0) {
        struct ipw_err cut;
        ipw_fail_errno(&cut, errno, "and it could not be cut back to %lld bytes",
                       (long long)a->size);
        ipw_fail(&a->why, a->why.code, "%s: write: %s, %s", a->path, strerror(errnum), cut.text);
        a->why.detail = errnum;
    }
    if (err) *err = a->why;
    return a->why.code;
}

int ipw_jsonl_append(struct ipw_jsonl_appender *a, const char *lines, size_t n, struct ipw_err *err)
{
    size_t done = 0;

    if (a->failed) {
        if (err) *err = a->why;
        return a->why.code;
    }
    if (n == 0) return 0;
    if (lines[n - 1] != '\n')
        return ipw_fail(err, IPW_EINVAL, "%s: the bytes to append do not end a line", a->path);
    while (done < n) {
        ssize_t k = write(a->fd, lines + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return give_up(a, errno, done, err);
        if (k == 0) return give_up(a, ENOSPC, done, err); /* a device that accepts no bytes */
        done += (size_t)k;
    }
    a->size += (int64_t)n;
    return 0;
}

int ipw_jsonl_append_fd(const struct ipw_jsonl_appender *a) { return a->fd; }

int ipw_jsonl_append_close(struct ipw_jsonl_appender *a, struct ipw_err *err)
{
    int rc = 0;

    if (!a) return 0;
    /* On Linux the descriptor is closed even after EINTR. */
    if (close(a->fd) < 0 && errno != EINTR) rc = ipw_fail_errno(err, errno, "%s: close", a->path);
    free(a->path);
    free(a);
    return rc;
}
