#include "app/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/workbench.h"
#include "base/mem.h"
#include "base/open.h"
#include "export/redacted.h"
#include "io/proc.h"
#include "json/jsonl.h"
#include "json/whole_output.h"
#include "json/write.h"
#include "script/embedded.h"
#include "telemetry/sensor_page.h"

static void put_text(struct ipw_buf *out, const char *text)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_str(&w, text);
}

/* real_path(path): absolute and without links. */
static int real_path(const struct ipw_call *c, struct ipw_err *err)
{
    char *path = realpath(c->n ? c->args[0] : ".", NULL);

    if (!path) return ipw_fail_errno(err, errno, "%s", c->args[0]);
    put_text(c->out, path);
    free(path);
    return 0;
}

/* write_new(path, text, "program"?): a file that was not there, with the folders above it. */
static int write_new(const struct ipw_call *c, struct ipw_err *err)
{
    const char *path = c->args[0];
    int rc = ipw_make_parents(path, err), fd;

    if (rc) return rc;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, c->n > 2 ? 0777 : 0666);
    if (fd < 0)
        return errno == EEXIST
                   ? ipw_fail(err, IPW_EEXISTS, "%s already exists; it was not changed", path)
                   : ipw_fail_errno(err, errno, "%s", path);
    if (ipw_write_all(fd, c->args[1], strlen(c->args[1])))
        rc = ipw_fail_errno(err, errno, "%s", path);
    if (close(fd) && !rc) rc = ipw_fail_errno(err, errno, "%s", path);
    if (rc) unlink(path); /* half a file would block the next try */
    return rc;
}

/* remove(path): a file, if it is there. */
static int remove_file(const struct ipw_call *c, struct ipw_err *err)
{
    return unlink(c->args[0]) && errno != ENOENT ? ipw_fail_errno(err, errno, "%s", c->args[0]) : 0;
}

/* move(from, to): in the place of an older file. */
static int move(const struct ipw_call *c, struct ipw_err *err)
{
    return rename(c->args[0], c->args[1]) ? ipw_fail_errno(err, errno, "%s", c->args[1]) : 0;
}

/* link(target, path): a symbolic link, in the place of another. */
static int make_link(const struct ipw_call *c, struct ipw_err *err)
{
    int rc = symlink(c->args[0], c->args[1]);

    if (rc && errno == EEXIST && unlink(c->args[1]) == 0) rc = symlink(c->args[0], c->args[1]);
    return rc ? ipw_fail_errno(err, errno, "%s", c->args[1]) : 0;
}

/* folders(path, "private"?): the folders above a file, those that are missing; for us alone. */
static int folders(const struct ipw_call *c, struct ipw_err *err)
{
    mode_t before = umask(077);
    int rc;

    if (c->n < 2) umask(before);
    rc = ipw_make_parents(c->args[0], err);
    umask(before);
    return rc;
}

/* write(path, text): a file whole or not at all, in the place of an older one. */
static int write_file(const struct ipw_call *c, struct ipw_err *err)
{
    int rc = ipw_make_parents(c->args[0], err);

    return rc ? rc : ipw_file_write_atomic(c->args[0], c->args[1], strlen(c->args[1]), err);
}

/* built_in(): the names of the files in the program.  built_in(name): writes that file to standard
 * output as it is, and gives true; nothing if there is none. */
static int built_in(const struct ipw_call *c, struct ipw_err *err)
{
    const struct ipw_embedded_file *f = c->n ? ipw_embedded_find(c->args[0]) : NULL;
    struct ipw_jw w;

    (void)err;
    ipw_jw_init(&w, c->out);
    if (f) {
        fwrite(f->bytes, 1, f->n, stdout);
        ipw_jw_bool(&w, true);
    }
    if (c->n) return 0;
    ipw_jw_arr(&w);
    for (f = ipw_embedded_files; f->path; f++) ipw_jw_str(&w, f->path);
    ipw_jw_arr_end(&w);
    return 0;
}

/* watch_page(): the page of a run, as HTML with a new nonce. */
static int watch_page(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_buf page = IPW_BUF(IPW_MIB);

    (void)err;
    ipw_sensor_page_html(&page);
    put_text(c->out, ipw_buf_str(&page));
    ipw_buf_release(&page);
    return 0;
}

/* new_folder(path): with the folders above it. */
static int new_folder(const struct ipw_call *c, struct ipw_err *err)
{
    int rc = ipw_make_parents(c->args[0], err);

    if (rc || mkdir(c->args[0], 0777) == 0) return rc;
    return errno == EEXIST ? ipw_fail(err, IPW_EEXISTS, "%s already exists", c->args[0])
                           : ipw_fail_errno(err, errno, "%s", c->args[0]);
}

/* temporary(name): a path in a folder that goes when the command ends. */
static int temporary(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_workbench *bench = c->bench;
    char path[PATH_MAX];
    int rc = bench->workspaces.path ? 0 : ipw_workspaces_make(&bench->workspaces, err);

    if (rc) return rc;
    snprintf(path, sizeof path, "%s/%s", bench->workspaces.path, c->n ? c->args[0] : "file");
    put_text(c->out, path);
    return 0;
}

/* copy(from, to): whole or not at all. */
static int copy(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_buf bytes = IPW_BUF(256 * IPW_MIB);
    struct ipw_whole_output *whole = NULL;
    int rc = ipw_file_read(&bytes, c->args[0], err);

    if (!rc) rc = ipw_whole_file(&whole, c->args[1], stdout, err);
    if (!rc) rc = ipw_whole_write(whole, ipw_buf_str(&bytes), bytes.len, err);
    if (rc)
        ipw_whole_drop(whole);
    else
        rc = ipw_whole_commit(whole, err);
    ipw_buf_release(&bytes);
    return rc;
}

/* which(name): the path of a program; or nothing. */
static int which(const struct ipw_call *c, struct ipw_err *err)
{
    char *path = ipw_proc_find(c->args[0]);

    (void)err;
    if (path) put_text(c->out, path);
    free(path);
    return 0;
}

/* allow_web(host...): as --web-allow, for addresses that the user has named in another way. */
static int allow_web(const struct ipw_call *c, struct ipw_err *err)
{
    (void)err;
    for (size_t i = 0; i < c->n; i++) ipw_workbench_allow(c->bench, c->args[i]);
    return 0;
}

/* redacted(run, folder, what): the run without its texts. */
static int redacted(const struct ipw_call *c, struct ipw_err *err)
{
    enum ipw_redact what = 0;
    int rc = ipw_redact_parse(&what, c->args[2], err);

    return rc ? rc : ipw_export_redacted(c->args[0], c->args[1], what, err);
}

static struct {
    char **all;
    size_t n, cap;
} answers;

/* answer(text): what a command in C has asked for (app/ask.h). */
static int answer(const struct ipw_call *call, struct ipw_err *err)
{
    (void)err;
    IPW_GROW(answers.all, answers.cap, answers.n + 1);
    answers.all[answers.n++] = ipw_strdup(call->args[0]);
    return 0;
}

char **ipw_answers_take(size_t *n)
{
    char **all = answers.all;

    *n = answers.n;
    memset(&answers, 0, sizeof answers);
    return all;
}

/* clang-format off */
const struct ipw_lua_call ipw_calls[] = {
    {"real_path", real_path},
    {"write_new", write_new, 2},
    {"write", write_file, 2},
    {"copy", copy, 2},
    {"remove", remove_file, 1},
    {"move", move, 2},
    {"link", make_link, 2},
    {"folders", folders, 1},
    {"new_folder", new_folder, 1},
    {"temporary", temporary},
    {"allow_web", allow_web},
    {"watch_page", watch_page},
    {"which", which, 1},
    {"start", ipw_call_start, 3},
    {"answer", answer, 1},
    {"options", ipw_call_options, 1},
    {"run_words", ipw_call_run_words, 1},
    {"redacted", redacted, 3},
    {"built_in", built_in},
    {"machine", ipw_call_machine},
    {"sensors", ipw_call_sensors},
    {"server", ipw_call_server},
    {"settings", ipw_call_settings},
    {"score", ipw_call_score, 9},
    {"ledger", ipw_call_ledger, 1},
    {"meter", ipw_call_meter, 2},
    {"meter_logs", ipw_call_meter_logs, 3},
    {"book_meter", ipw_call_book_meter, 3},
    {"shard", ipw_call_shard, 1},
    {"same_run", ipw_call_same_run, 1},
    {"merge", ipw_call_merge, 2},
    {NULL, NULL},
};
/* clang-format on */
