#include "data/db.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/write.h"

enum {
    STEPS_BETWEEN_LOOKS = 1000,
    /* A single call of an SQL function cannot be stopped, so its arguments are limited.  At worst,
     * instr() in a value of 4 MiB and LIKE of 1,000 characters take minutes, not days. */
    MAX_VALUE_BYTES = 4 * 1024 * 1024,
    MAX_PATTERN_BYTES = 1000,
};

struct ipw_db {
    sqlite3 *db;
    sqlite3_stmt **kept; /* each is prepared once */
    size_t n, cap;
};

static int look(void *ud)
{
    const struct ipw_db_limits *l = ud;

    return atomic_load(l->stop) || (l->deadline_ns && ipw_now_ns() > l->deadline_ns);
}

/* Allow reading and functions.  Everything else is refused when the statement is compiled. */
static int authorize(void *ud, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)ud, (void)c, (void)d;
    if (action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE)
        return SQLITE_OK;
    if (action == SQLITE_FUNCTION)
        /* fts3_tokenizer() reads and writes addresses of code; Debian's SQLite has it. */
        return b && (sqlite3_stricmp(b, "load_extension") == 0 ||
                     sqlite3_stricmp(b, "fts3_tokenizer") == 0)
                   ? SQLITE_DENY
                   : SQLITE_OK;
    if (action == SQLITE_PRAGMA && a && !b &&
        (sqlite3_stricmp(a, "table_list") == 0 || sqlite3_stricmp(a, "data_version") == 0))
        return SQLITE_OK;
    if (action == SQLITE_PRAGMA && a &&
        (sqlite3_stricmp(a, "table_info") == 0 || sqlite3_stricmp(a, "table_xinfo") == 0 ||
         sqlite3_stricmp(a, "index_list") == 0 || sqlite3_stricmp(a, "data_version") == 0))
        return SQLITE_OK; /* data_version: FTS5 asks for it */
    return SQLITE_DENY;
}

static int fail_db(struct ipw_err *err, sqlite3 *db, int rc, const struct ipw_db_limits *l)
{
    enum ipw_code code = IPW_EINVAL;

    if (rc == SQLITE_INTERRUPT && l && atomic_load(l->stop))
        return ipw_fail(err, IPW_ECANCELLED, "cancelled");
    if (rc == SQLITE_INTERRUPT) return ipw_fail(err, IPW_ETIMEOUT, "the query took too long");
    if (rc == SQLITE_AUTH)
        return ipw_fail(err, IPW_EPERM, "only SELECT is allowed (%s)", sqlite3_errmsg(db));
    if (rc == SQLITE_CANTOPEN) code = IPW_ENOTFOUND;
    if (rc == SQLITE_FULL || rc == SQLITE_IOERR) code = IPW_EIO;
    return ipw_fail(err, code, "%s", db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

/* ---- opening ---- */

/* SQLite resolves the links of a path and opens the result later.  A name below /proc/self/fd must
 * stay as it is, so that the kernel begins at the descriptor. */
static int keep_name(sqlite3_vfs *vfs, const char *name, int n_out, char *out)
{
    (void)vfs;
    return snprintf(out, (size_t)n_out, "%s", name) < n_out ? SQLITE_OK : SQLITE_CANTOPEN;
}

static sqlite3_vfs by_descriptor;

static void register_vfs(void)
{
    by_descriptor = *sqlite3_vfs_find(NULL);
    by_descriptor.zName = "ipw";
    by_descriptor.xFullPathname = keep_name;
    sqlite3_vfs_register(&by_descriptor, 0);
}

static int open_db(struct ipw_db **out, const char *path, int flags, const char *vfs,
                   struct ipw_err *err)
{
    struct ipw_db *db = ipw_calloc(1, sizeof *db);
    int rc = sqlite3_open_v2(path, &db->db, flags, vfs);

    if (rc == SQLITE_OK) {
        *out = db;
        return 0;
    }
    rc = fail_db(err, db->db, rc, NULL);
    ipw_db_close(db);
    return rc;
}

int ipw_db_open(struct ipw_db **out, int folder, const char *name, struct ipw_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, rc;
    char path[512];
    sqlite3 *db;

    pthread_once(&once, register_vfs);
    if (snprintf(path, sizeof path, "/proc/self/fd/%d/%s", folder, name) >= (int)sizeof path)
        return ipw_fail(err, IPW_EINVAL, "the name of the file is too long");
    rc = open_db(out, path, flags, "ipw", err);
    if (rc) return rc;
    db = (*out)->db;
    sqlite3_busy_timeout(db, 200);
    sqlite3_set_authorizer(db, authorize, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
    sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    return 0;
}

int ipw_db_create(struct ipw_db **out, const char *path, struct ipw_err *err)
{
    int rc = open_db(out, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL, err);

    if (rc) return rc;
    rc = ipw_db_script(*out, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", err);
    if (rc) {
        ipw_db_close(*out);
        *out = NULL;
    }
    return rc;
}

void ipw_db_close(struct ipw_db *db)
{
    if (!db) return;
    for (size_t i = 0; i < db->n; i++) sqlite3_finalize(db->kept[i]);
    free(db->kept);
    sqlite3_close(db->db);
    free(db);
}

int ipw_db_script(struct ipw_db *db, const char *sql, struct ipw_err *err)
{
    int rc = sqlite3_exec(db->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : fail_db(err, db->db, rc, NULL);
}

/* ---- statements ---- */

static void put_value(struct ipw_jw *w, sqlite3_stmt *statement, int i)
{
    switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER: ipw_jw_int(w, sqlite3_column_int64(statement, i)); break;
    case SQLITE_FLOAT: ipw_jw_num(w, sqlite3_column_double(statement, i)); break;
    case SQLITE_NULL: ipw_jw_null(w); break;
    default: { /* bytes that are not UTF-8 become U+FFFD */
        const char *text = (const char *)sqlite3_column_text(statement, i);
        ipw_jw_strn(w, text ? text : "", (size_t)sqlite3_column_bytes(statement, i));
    }
    }
}

/* Steps the statement; appends its rows to `out`. */
static int put_rows(struct ipw_buf *out, sqlite3 *db, sqlite3_stmt *statement,
                    const struct ipw_db_limits *l, struct ipw_err *err)
{
    int columns = sqlite3_column_count(statement), rc;
    /* The key "more" comes first but is known last, so collect the rows separately. */
    struct ipw_buf gathered = IPW_BUF(2 * l->max_bytes + 4096);
    bool more = false;
    size_t rows = 0;
    struct ipw_jw w, r;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "columns");
    ipw_jw_arr(&w);
    for (int i = 0; i < columns; i++) ipw_jw_str(&w, sqlite3_column_name(statement, i));
    ipw_jw_arr_end(&w);
    ipw_jw_init(&r, &gathered);
    ipw_jw_arr(&r);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        if (rows == l->max_rows) {
            more = true;
            break;
        }
        ipw_jw_arr(&r);
        for (int i = 0; i < columns; i++) put_value(&r, statement, i);
        ipw_jw_arr_end(&r);
        if (gathered.failed || gathered.len > l->max_bytes) {
            ipw_buf_release(&gathered);
            return ipw_fail(err, IPW_ELIMIT,
                            "the answer is larger than %zu bytes: ask for fewer rows or columns",
                            l->max_bytes);
        }
        rows++;
    }
    if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
        ipw_buf_release(&gathered);
        return fail_db(err, db, rc, l);
    }
    ipw_jw_arr_end(&r);
    ipw_jw_kbool(&w, "more", more);
    ipw_jw_kraw(&w, "rows", ipw_buf_str(&gathered), gathered.len);
    ipw_jw_obj_end(&w);
    ipw_buf_release(&gathered);
    return 0;
}

static int bind_values(sqlite3_stmt *statement, const struct ipw_db_value *values, size_t n)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        const struct ipw_db_value *v = &values[i];
        int at = (int)i + 1;

        switch (v->type) {
        case IPW_DB_NULL: rc = sqlite3_bind_null(statement, at); break;
        case IPW_DB_INT: rc = sqlite3_bind_int64(statement, at, v->integer); break;
        case IPW_DB_NUM: rc = sqlite3_bind_double(statement, at, v->number); break;
        case IPW_DB_TEXT: /* it lives until the reset after the last step */
            rc = sqlite3_bind_text64(statement, at, v->text, v->n, SQLITE_STATIC, SQLITE_UTF8);
            break;
        }
    }
    return rc;
}

static int prepare(sqlite3_stmt **out, struct ipw_db *db, const char *sql,
                   const struct ipw_db_limits *limits, struct ipw_err *err)
{
    const char *rest = NULL;
    int rc;

    for (size_t i = 0; i < db->n; i++) {
        *out = db->kept[i];
        if (strcmp(sqlite3_sql(*out), sql) == 0) return 0;
    }
    rc = sqlite3_prepare_v2(db->db, sql, -1, out, &rest);
    if (rc) return fail_db(err, db->db, rc, limits);
    if (!*out) return ipw_fail(err, IPW_EINVAL, "the SQL text is empty");
    IPW_GROW(db->kept, db->cap, db->n + 1);
    db->kept[db->n++] = *out;
    if (rest[strspn(rest, " \t\r\n;")])
        return ipw_fail(err, IPW_EINVAL, "only one statement at a time is allowed");
    return 0;
}

int ipw_db_run(struct ipw_buf *out, struct ipw_db *db, const char *sql,
               const struct ipw_db_value *values, size_t n, const struct ipw_db_limits *limits,
               struct ipw_err *err)
{
    sqlite3_stmt *statement = NULL;
    int rc, code;

    if (limits) sqlite3_progress_handler(db->db, STEPS_BETWEEN_LOOKS, look, (void *)limits);
    code = prepare(&statement, db, sql, limits, err);
    if (!code && (size_t)sqlite3_bind_parameter_count(statement) != n)
        code = ipw_fail(err, IPW_EINVAL, "the statement takes %d values but got %zu",
                        sqlite3_bind_parameter_count(statement), n);
    if (!code && (rc = bind_values(statement, values, n))) code = fail_db(err, db->db, rc, limits);
    if (!code && out)
        code = put_rows(out, db->db, statement, limits, err);
    else if (!code && (rc = sqlite3_step(statement)) != SQLITE_DONE && rc != SQLITE_ROW)
        code = fail_db(err, db->db, rc, limits);
    sqlite3_reset(statement);
    sqlite3_progress_handler(db->db, 0, NULL, NULL);
    return code;
}
