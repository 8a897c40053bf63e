#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/open.h"
#include "json/jsonl.h"

int ipw_file_read(struct ipw_buf *out, const char *path, struct ipw_err *err)
{
    enum { CHUNK = 32 * 1024 };
    size_t start = out->len;
    int fd = ipw_open_read(path, err);
    int rc = 0;

    if (fd < 0) return fd;
    while (!out->failed) {
        size_t left = out->max > out->len ? out->max - out->len : 0;
        size_t want = left < CHUNK ? left : CHUNK;
        char one;
        /* At the limit, one more byte shows whether the file ends there. */
        char *to = want ? ipw_buf_room(out, want) : &one;
        ssize_t n = read(fd, to, want ? want : 1);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) rc = ipw_fail_errno(err, errno, "%s", path);
        if (n <= 0) break;
        if (want)
            ipw_buf_added(out, (size_t)n);
        else
            out->failed = true;
    }
    close(fd);
    if (!rc && out->failed)
        rc = ipw_fail(err, IPW_ELIMIT, "%s: larger than %zu bytes", path, out->max - start);
    return rc;
}

int ipw_file_sync_folder(const char *path, struct ipw_err *err)
{
    const char *slash = strrchr(path, '/');
    char *folder =
        slash ? ipw_memdup(path, slash == path ? 1 : (size_t)(slash - path)) : ipw_strdup(".");
    int fd = (int)TEMP_FAILURE_RETRY(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int rc = 0;

    /* EINVAL: this file system's folders need no sync. */
    if (fd < 0 || (TEMP_FAILURE_RETRY(fsync(fd)) < 0 && errno != EINVAL))
        rc = ipw_fail_errno(err, errno, "%s: sync", folder);
    if (fd >= 0) close(fd);
    free(folder);
    return rc;
}

int ipw_file_write_atomic(const char *path, const char *bytes, size_t n, struct ipw_err *err)
{
    char *tmp = ipw_asprintf("%s.tmp", path);
    int fd, rc = 0;

    /* Remove the file of an interrupted run first.  O_EXCL then never opens a file or link that
     * another program put there. */
    unlink(tmp);
    fd = ipw_open_write(tmp, O_WRONLY | O_CREAT | O_EXCL, err);
    if (fd < 0) {
        free(tmp);
        return fd;
    }
    if (ipw_write_all(fd, bytes, n) < 0)
        rc = ipw_fail_errno(err, errno, "%s: write", tmp);
    else if (TEMP_FAILURE_RETRY(fsync(fd)) < 0)
        rc = ipw_fail_errno(err, errno, "%s: sync", tmp);
    /* On Linux the descriptor is closed even after EINTR. */
    if (close(fd) < 0 && !rc && errno != EINTR) rc = ipw_fail_errno(err, errno, "%s: close", tmp);
    if (!rc && TEMP_FAILURE_RETRY(rename(tmp, path)) < 0)
        rc = ipw_fail_errno(err, errno, "%s: rename", path);
    if (rc)
        unlink(tmp);
    else
        rc = ipw_file_sync_folder(path, err);
    free(tmp);
    return rc;
}
