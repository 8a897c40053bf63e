/* ipw.core.sqlite: queries and full-text search, on a thread of the pool (data/db.h). */
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/work.h"
#include "script/db_values.h"
#include "script/fields.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/task.h"
#include "script/value.h"
#include "script/vm.h"

enum { MAX_VALUES = 100, MAX_ROWS = 10000, DEFAULT_SECONDS = 10 };
#define MAX_ANSWER (8 * IPW_MIB)

/* It outlives an operation that is dropped, because the thread may still work on it. */
struct job {
    struct db_op *op; /* NULL: no operation waits */
    int folder;       /* the one to search, or the one with the file; -1: none */
    char *path;       /* without links; the file's name follows the last slash */
    char *text;
    bool search;
    struct ipw_db_value *values;
    size_t n_values;
    atomic_bool stop;
    struct ipw_db_limits limits;
    struct ipw_buf answer;
    int code;
    struct ipw_err err;
};

struct db_op {
    struct ipw_op op;
    struct job *job;
};

static void job_free(struct job *job)
{
    if (job->folder >= 0) close(job->folder);
    free(job->values);
    free(job->path);
    free(job->text);
    ipw_buf_release(&job->answer);
    free(job);
}

static void job_run(void *ud)
{
    struct job *job = ud;
    struct ipw_db *db = NULL;

    if (job->search) {
        job->code =
            ipw_db_search(&job->answer, job->folder, job->path, job->text, &job->limits, &job->err);
        return;
    }
    job->code = ipw_db_open(&db, job->folder, strrchr(job->path, '/') + 1, &job->err);
    if (!job->code)
        job->code = ipw_db_run(&job->answer, db, job->text, job->values, job->n_values,
                               &job->limits, &job->err);
    ipw_db_close(db);
}

static void job_done(void *ud)
{
    struct job *job = ud;

    if (job->op)
        ipw_op_done(&job->op->op);
    else
        job_free(job);
}

static void db_cancel(struct ipw_op *base)
{
    struct db_op *op = (struct db_op *)base;

    if (!op->job) return;
    atomic_store(&op->job->stop, true);
    op->job->op = NULL; /* the end of the thread frees it */
    op->job = NULL;
}

static void db_release(struct ipw_op *base)
{
    struct db_op *op = (struct db_op *)base;

    if (op->job) job_free(op->job);
}

/* The answer as a table; or nil and a reason. */
static int db_finish(lua_State *L, struct ipw_op *base)
{
    struct job *job = ((struct db_op *)base)->job;
    struct ipw_err err;

    if (job->code) return ipw_value_push_failure(L, job->err.text);
    if (ipw_value_decode(L, ipw_buf_str(&job->answer), job->answer.len, &err))
        return ipw_value_push_failure(L, err.text);
    return 1;
}

static bool lies_in(const char *path, const char *folder)
{
    char *root = folder ? realpath(folder, NULL) : NULL;
    size_t n = root ? strlen(root) : 0;
    bool inside =
        root && strncmp(path, root, n) == 0 && (path[n] == '/' || !path[n] || root[n - 1] == '/');

    free(root);
    return inside;
}

/* Opens the folder to search, or the one with the file.  It must be the workspace, lie in it, or
 * lie below a folder of --read.  The kernel says where the opened folder lies, so that a link which
 * takes the place of a folder meanwhile leads nowhere else. */
static int open_allowed(struct job *job, const struct ipw_host *host, const char *path)
{
    const char *workspace = ipw_host_workspace(host);
    const char *const *readable = host->grants.readable;
    char *whole, *real, link[40], at[PATH_MAX];
    bool inside;
    ssize_t n;

    if (path[0] != '/' && !workspace)
        return ipw_fail(&job->err, IPW_EPERM, "%s: there is no workspace", path);
    whole = path[0] == '/' ? ipw_strdup(path) : ipw_asprintf("%s/%s", workspace, path);
    real = realpath(whole, NULL);
    free(whole);
    if (!real) return ipw_fail(&job->err, IPW_ENOTFOUND, "%s: no such file or folder", path);
    whole = ipw_strdup(real);
    if (!job->search) *(strrchr(whole, '/') + 1) = '\0';
    job->folder = open(whole, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(link, sizeof link, "/proc/self/fd/%d", job->folder);
    n = readlink(link, at, sizeof at - 1);
    at[n > 0 ? n : 0] = '\0';
    job->path = job->search ? ipw_strdup(at) : ipw_asprintf("%s%s", at, strrchr(real, '/'));
    inside = lies_in(job->path, workspace);
    while (!inside && readable && *readable) inside = lies_in(job->path, *readable++);
    free(whole);
    free(real);
    if (inside) return 0;
    return ipw_fail(&job->err, IPW_EPERM,
                    "%s: not in the workspace. Allow its folder with --read DIR.", path);
}

static int start(lua_State *L, bool search, int values, int options)
{
    struct ipw_host *host = ipw_vm_host(L);
    const char *path = luaL_checkstring(L, 1), *text = luaL_checkstring(L, 2);
    double seconds = DEFAULT_SECONDS, rows = search ? 10 : 1000;
    struct ipw_db_value *taken = NULL;
    size_t n_values = 0;
    struct db_op *op;
    struct job *job;

    if (lua_istable(L, options)) {
        seconds = ipw_fields_number(L, options, "sqlite", "seconds", seconds, 0.001, 600);
        rows = ipw_fields_number(L, options, "sqlite", "rows", rows, 1, MAX_ROWS);
    }
    op = ipw_op_new(L, sizeof *op, db_cancel, db_finish, db_release);
    if (values) n_values = ipw_db_values_take(&taken, L, values, MAX_VALUES); /* raises */
    op->job = job = ipw_calloc(1, sizeof *job);
    job->op = op;
    job->folder = -1;
    job->values = taken;
    job->n_values = n_values;
    job->text = ipw_strdup(text);
    job->search = search;
    job->answer = IPW_BUF(4 * MAX_ANSWER);
    atomic_init(&job->stop, false);
    job->limits = (struct ipw_db_limits){.deadline_ns = ipw_now_ns() + ipw_s_to_ns(seconds),
                                         .stop = &job->stop,
                                         .max_rows = (size_t)rows,
                                         .max_bytes = MAX_ANSWER};
    job->code = open_allowed(job, host, path);
    if (job->code)
        op->op.done = true;
    else
        ipw_work_start(host->loop, job_run, job_done, job);
    return ipw_op_await(L);
}

/* query(file, sql, values, options): {columns, rows, more}; or nil and a reason. [-4, +(1|2), e] */
static int sqlite_query(lua_State *L)
{
    lua_settop(L, 4);
    return start(L, false, 3, 4);
}

/* search(folder, words, options): the same with the columns path, score, snippet. [-3, +(1|2),
 * e] */
static int sqlite_search(lua_State *L)
{
    lua_settop(L, 3);
    return start(L, true, 0, 3);
}

int ipw_lib_sqlite(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"query", sqlite_query}, {"search", sqlite_search}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
