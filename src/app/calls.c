#include "app/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/open.h"
#include "json/write.h"

static void put_text(struct ipw_buf *out, const char *text)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_str(&w, text);
}

/* real_path(path): absolute and without links. */
static int real_path(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                     struct ipw_err *err)
{
    char *path = realpath(n ? args[0] : ".", NULL);

    (void)ud;
    if (!path) return ipw_fail_errno(err, errno, "%s", args[0]);
    put_text(out, path);
    free(path);
    return 0;
}

/* write_new(path, text, "program"?): a file that was not there, with the folders above it. */
static int write_new(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                     struct ipw_err *err)
{
    const char *path = args[0];
    int rc = ipw_make_parents(path, err), fd;

    (void)ud;
    (void)out;
    if (rc) return rc;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, n > 2 ? 0777 : 0666);
    if (fd < 0)
        return errno == EEXIST
                   ? ipw_fail(err, IPW_EEXISTS, "%s already exists; it was not changed", path)
                   : ipw_fail_errno(err, errno, "%s", path);
    if (ipw_write_all(fd, args[1], strlen(args[1]))) rc = ipw_fail_errno(err, errno, "%s", path);
    if (close(fd) && !rc) rc = ipw_fail_errno(err, errno, "%s", path);
    if (rc) unlink(path); /* half a file would block the next try */
    return rc;
}

/* remove(path): a file of write_new. */
static int remove_file(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                       struct ipw_err *err)
{
    (void)ud;
    (void)n;
    (void)out;
    return unlink(args[0]) ? ipw_fail_errno(err, errno, "%s", args[0]) : 0;
}

const struct ipw_lua_call ipw_calls[] = {
    {"real_path", real_path},
    {"write_new", write_new},
    {"remove", remove_file},
    {NULL, NULL},
};
