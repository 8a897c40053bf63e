#include "app/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/open.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "script/embedded.h"
#include "script/installed.h"

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

/* write(path, text): a file whole or not at all, in the place of an older one. */
static int write_file(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                      struct ipw_err *err)
{
    int rc = ipw_make_parents(args[0], err);

    (void)ud;
    (void)n;
    (void)out;
    return rc ? rc : ipw_file_write_atomic(args[0], args[1], strlen(args[1]), err);
}

/* built_in(): the names of the files in the program.  built_in(name): writes that file to standard
 * output as it is, and gives true; nothing if there is none. */
static int built_in(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                    struct ipw_err *err)
{
    const struct ipw_embedded_file *f = n ? ipw_installed_find(args[0]) : NULL;
    struct ipw_jw w;

    (void)ud;
    (void)err;
    ipw_jw_init(&w, out);
    if (f) {
        fwrite(f->bytes, 1, f->n, stdout);
        ipw_jw_bool(&w, true);
    }
    if (n) return 0;
    ipw_jw_arr(&w);
    for (f = ipw_embedded_files; f->path; f++) ipw_jw_str(&w, f->path);
    ipw_jw_arr_end(&w);
    return 0;
}

/* clang-format off */
const struct ipw_lua_call ipw_calls[] = {
    {"real_path", real_path},
    {"write_new", write_new, 2},
    {"write", write_file, 2},
    {"remove", remove_file, 1},
    {"built_in", built_in},
    {"machine", ipw_call_machine},
    {"sensors", ipw_call_sensors},
    {"server", ipw_call_server},
    {"score", ipw_call_score, 9},
    {NULL, NULL},
};
/* clang-format on */
