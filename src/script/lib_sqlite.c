/* ipw.core.sqlite: queries and full-text search, on a thread of the pool (data/db.h). */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "data/db.h"
#include "io/work.h"
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
    char *path, *text;
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
    for (size_t i = 0; i < job->n_values; i++) free(job->values[i].text);
    free(job->values);
    free(job->path);
    free(job->text);
    ipw_buf_release(&job->answer);
    free(job);
}

static void job_run(void *ud)
{
    struct job *job = ud;

    job->code = job->search
                    ? ipw_db_search(&job->answer, job->path, job->text, &job->limits, &job->err)
                    : ipw_db_query(&job->answer, job->path, job->text, job->values, job->n_values,
                                   &job->limits, &job->err);
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

/* A path within the workspace or below a folder of --read; resolved, without links.  NULL with the
 * reason. */
static char *allowed_path(const struct ipw_host *host, const char *path, struct ipw_err *err)
{
    const char *workspace = ipw_host_workspace(host);
    char *whole = NULL, *real, *root;
    bool inside = false;

    if (path[0] != '/' && !workspace) {
        ipw_fail(err, IPW_EPERM, "%s: there is no workspace", path);
        return NULL;
    }
    whole = path[0] == '/' ? ipw_strdup(path) : ipw_asprintf("%s/%s", workspace, path);
    real = realpath(whole, NULL);
    if (!real) {
        ipw_fail(err, IPW_ENOTFOUND, "%s: no such file or folder", path);
        free(whole);
        return NULL;
    }
    for (size_t i = 0; !inside; i++) {
        const char *folder = i == 0                  ? workspace
                             : host->grants.readable ? host->grants.readable[i - 1]
                                                     : NULL;
        size_t n;

        if (!folder && i > 0) break;
        root = folder ? realpath(folder, NULL) : NULL;
        n = root ? strlen(root) : 0;
        inside = root && strncmp(real, root, n) == 0 &&
                 (real[n] == '/' || !real[n] || root[n - 1] == '/');
        free(root);
    }
    free(whole);
    if (inside) return real;
    ipw_fail(err, IPW_EPERM, "%s: not in the workspace. Allow its folder with --read DIR.", path);
    free(real);
    return NULL;
}

static void take_values(lua_State *L, int idx, struct job *job)
{
    lua_Unsigned n;

    if (lua_isnoneornil(L, idx)) return;
    n = lua_rawlen(L, idx);
    job->values = ipw_calloc(n + 1, sizeof *job->values);
    for (lua_Unsigned i = 0; i < n; i++, job->n_values++) {
        struct ipw_db_value *v = &job->values[i];
        const char *text;

        lua_rawgeti(L, idx, (lua_Integer)i + 1);
        switch (lua_type(L, -1)) {
        case LUA_TNUMBER:
            v->type = lua_isinteger(L, -1) ? IPW_DB_INT : IPW_DB_NUM;
            v->integer = lua_tointeger(L, -1);
            v->number = lua_tonumber(L, -1);
            break;
        case LUA_TBOOLEAN:
            v->type = IPW_DB_INT;
            v->integer = lua_toboolean(L, -1);
            break;
        case LUA_TSTRING:
            v->type = IPW_DB_TEXT;
            text = lua_tolstring(L, -1, &v->n);
            v->text = ipw_memdup(text, v->n);
            break;
        default: break; /* json.null; other types were refused before */
        }
        lua_pop(L, 1);
    }
}

static void check_values(lua_State *L, int idx)
{
    if (lua_isnoneornil(L, idx)) return;
    luaL_checktype(L, idx, LUA_TTABLE);
    luaL_argcheck(L, lua_rawlen(L, idx) <= MAX_VALUES, idx, "has more than 100 values");
    for (lua_Unsigned i = 1; i <= lua_rawlen(L, idx); i++) {
        int type = lua_rawgeti(L, idx, (lua_Integer)i);
        if (type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TTHREAD ||
            type == LUA_TUSERDATA)
            luaL_error(L, "sqlite: value %d: expected a text, a number or a boolean, got %s",
                       (int)i, luaL_typename(L, -1));
        lua_pop(L, 1);
    }
}

static int start(lua_State *L, bool search, int values, int options)
{
    struct ipw_host *host = ipw_vm_host(L);
    const char *path = luaL_checkstring(L, 1), *text = luaL_checkstring(L, 2);
    double seconds = DEFAULT_SECONDS, rows = search ? 10 : 1000;
    struct db_op *op;
    struct job *job;

    if (lua_istable(L, options)) {
        seconds = ipw_fields_number(L, options, "sqlite", "seconds", seconds, 0.001, 600);
        rows = ipw_fields_number(L, options, "sqlite", "rows", rows, 1, MAX_ROWS);
    }
    if (values) check_values(L, values);
    op = ipw_op_new(L, sizeof *op, db_cancel, db_finish, db_release);
    op->job = job = ipw_calloc(1, sizeof *job);
    job->op = op;
    job->text = ipw_strdup(text);
    job->search = search;
    job->answer = IPW_BUF(4 * MAX_ANSWER);
    atomic_init(&job->stop, false);
    job->limits = (struct ipw_db_limits){.deadline_ns = ipw_now_ns() + ipw_s_to_ns(seconds),
                                         .stop = &job->stop,
                                         .max_rows = (size_t)rows,
                                         .max_bytes = MAX_ANSWER};
    if (values) take_values(L, values, job);
    job->path = allowed_path(host, path, &job->err);
    if (job->path) {
        ipw_work_start(host->loop, job_run, job_done, job);
    } else {
        job->code = job->err.code;
        op->op.done = true;
    }
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
