#include "run/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/open.h"
#include "base/walk.h"
#include "data/data_url.h"
#include "json/jsonl.h"
#include "script/embedded.h"

enum { MAX_FILE_BYTES = 256 * 1024 * 1024 };

const char *ipw_workspace_make(char **path, const char *folder, int32_t query)
{
    if (*path) return *path;
    *path = ipw_asprintf("%s/q%04d", folder, (int)query);
    if (TEMP_FAILURE_RETRY(mkdir(*path, 0700)) == 0) return *path;
    ipw_log(IPW_LOG_WARN, "%s: %s", *path, strerror(errno));
    free(*path);
    *path = NULL;
    return NULL;
}

/* A copy for the tools.  It need not survive a crash, so it is not synced. */
static int write_copy(const char *path, const char *bytes, size_t n, struct ipw_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int errnum = fd < 0 || ipw_write_all(fd, bytes, n) ? errno : 0;

    if (fd >= 0 && close(fd) && !errnum) errnum = errno;
    return errnum ? ipw_fail_errno(err, errnum, "%s: cannot be written", path) : 0;
}

static int put_file(const char *folder, const struct ipw_case_file *file, struct ipw_err *err)
{
    const struct ipw_embedded_file *embedded = NULL;
    struct ipw_buf bytes = IPW_BUF(MAX_FILE_BYTES);
    char *path;
    int rc = 0;

    if (!file->name || !file->name[0] || strchr(file->name, '/') || file->name[0] == '.')
        return ipw_fail(err, IPW_EINVAL, "attachment '%s': not a plain file name",
                        file->name ? file->name : "");
    if (file->builtin) {
        embedded = ipw_embedded_find(file->builtin);
        if (!embedded)
            return ipw_fail(err, IPW_ENOTFOUND, "attachment '%s' is not in this binary",
                            file->builtin);
    } else if (file->data) {
        rc = ipw_data_url_decode(&bytes, file->data, err);
        if (rc) ipw_err_prefix(err, "attachment '%s'", file->name);
    } else {
        rc = ipw_file_read(&bytes, file->path ? file->path : file->name, err);
    }
    path = ipw_asprintf("%s/%s", folder, file->name);
    if (!rc)
        rc = write_copy(path, embedded ? embedded->bytes : ipw_buf_str(&bytes),
                        embedded ? embedded->n : bytes.len, err);
    free(path);
    ipw_buf_release(&bytes);
    return rc;
}

int ipw_workspace_fill(const char *(*folder)(void *ud), void *ud, const struct ipw_case *c,
                       struct ipw_err *err)
{
    const char *path = c->n_files ? folder(ud) : NULL;
    int rc = 0;

    if (c->n_files && !path)
        return ipw_fail(err, IPW_EIO, "no workspace for attachment '%s'", c->files[0].name);
    for (size_t i = 0; i < c->n_files && !rc; i++) rc = put_file(path, &c->files[i], err);
    return rc;
}

void ipw_workspace_remove(const char *path)
{
    int errnum = ipw_walk_remove(AT_FDCWD, path, NULL);

    if (errnum) ipw_log(IPW_LOG_WARN, "%s: cannot be removed: %s", path, strerror(errnum));
}
