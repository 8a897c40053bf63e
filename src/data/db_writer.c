#include "data/db_writer.h"

#ifndef IPW_HAVE_SQLITE

int ipw_db_writer_open(struct ipw_db_writer **out, const char *path, struct ipw_err *err)
{
    (void)out, (void)path;
    return ipw_fail(err, IPW_EUNSUPPORTED,
                    "this build has no SQLite: install libsqlite3-dev and build it again");
}

int ipw_db_writer_run(struct ipw_db_writer *writer, const char *sql, struct ipw_err *err)
{
    (void)writer, (void)sql;
    return ipw_fail(err, IPW_EUNSUPPORTED, "this build has no SQLite");
}

int ipw_db_writer_insert(struct ipw_db_writer *writer, const char *table,
                         const struct ipw_db_value *values, size_t n, struct ipw_err *err)
{
    (void)writer, (void)table, (void)values, (void)n;
    return ipw_fail(err, IPW_EUNSUPPORTED, "this build has no SQLite");
}

int ipw_db_writer_finish(struct ipw_db_writer *writer, struct ipw_err *err)
{
    (void)writer;
    return ipw_fail(err, IPW_EUNSUPPORTED, "this build has no SQLite");
}

void ipw_db_writer_close(struct ipw_db_writer *writer) { (void)writer; }

#else

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct insert { /* a table's prepared statement */
    char *table;
    size_t n;
    sqlite3_stmt *statement;
};

struct ipw_db_writer {
    sqlite3 *db;
    struct insert *inserts;
    size_t n, cap;
};

static int fail_db(struct ipw_err *err, const struct ipw_db_writer *writer, const char *what)
{
    return ipw_fail(err, IPW_EIO, "%s: %s", what, sqlite3_errmsg(writer->db));
}

void ipw_db_writer_close(struct ipw_db_writer *writer)
{
    if (!writer) return;
    for (size_t i = 0; i < writer->n; i++) {
        sqlite3_finalize(writer->inserts[i].statement);
        free(writer->inserts[i].table);
    }
    free(writer->inserts);
    sqlite3_close(writer->db);
    free(writer);
}

int ipw_db_writer_run(struct ipw_db_writer *writer, const char *sql, struct ipw_err *err)
{
    if (sqlite3_exec(writer->db, sql, NULL, NULL, NULL) == SQLITE_OK) return 0;
    return fail_db(err, writer, "SQLite");
}

int ipw_db_writer_open(struct ipw_db_writer **out, const char *path, struct ipw_err *err)
{
    struct ipw_db_writer *writer = ipw_calloc(1, sizeof *writer);
    int rc;

    if (sqlite3_open_v2(path, &writer->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
        SQLITE_OK)
        rc = fail_db(err, writer, path);
    else
        rc = ipw_db_writer_run(writer, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN",
                               err);
    if (rc)
        ipw_db_writer_close(writer);
    else
        *out = writer;
    return rc;
}

static int prepare(struct insert **out, struct ipw_db_writer *writer, const char *table, size_t n,
                   struct ipw_err *err)
{
    struct ipw_buf sql = IPW_BUF(64 * IPW_KIB);
    struct insert new = {.n = n};
    int rc = 0;

    for (size_t i = 0; i < writer->n; i++) {
        *out = &writer->inserts[i];
        if ((*out)->n == n && strcmp((*out)->table, table) == 0) return 0;
    }
    ipw_buf_addf(&sql, "INSERT INTO \"%s\" VALUES(", table);
    for (size_t i = 0; i < n; i++) ipw_buf_adds(&sql, i ? ",?" : "?");
    ipw_buf_addc(&sql, ')');
    if (strchr(table, '"') || sql.failed)
        rc = ipw_fail(err, IPW_EINVAL, "the table's name cannot be used: %.80s", table);
    else if (sqlite3_prepare_v2(writer->db, ipw_buf_str(&sql), -1, &new.statement, NULL))
        rc = fail_db(err, writer, table);
    ipw_buf_release(&sql);
    if (rc) return rc;
    new.table = ipw_strdup(table);
    IPW_GROW(writer->inserts, writer->cap, writer->n + 1);
    *out = &writer->inserts[writer->n];
    writer->inserts[writer->n++] = new;
    return 0;
}

int ipw_db_writer_insert(struct ipw_db_writer *writer, const char *table,
                         const struct ipw_db_value *values, size_t n, struct ipw_err *err)
{
    struct insert *insert = NULL;
    int rc = prepare(&insert, writer, table, n, err);

    if (rc) return rc;
    sqlite3_reset(insert->statement);
    for (size_t i = 0; i < n; i++) {
        const struct ipw_db_value *v = &values[i];
        int at = (int)i + 1;

        switch (v->type) {
        case IPW_DB_NULL: sqlite3_bind_null(insert->statement, at); break;
        case IPW_DB_INT: sqlite3_bind_int64(insert->statement, at, v->integer); break;
        case IPW_DB_NUM: sqlite3_bind_double(insert->statement, at, v->number); break;
        case IPW_DB_TEXT: /* it lives until the step below is over */
            sqlite3_bind_text64(insert->statement, at, v->text, v->n, SQLITE_STATIC, SQLITE_UTF8);
            break;
        }
    }
    return sqlite3_step(insert->statement) == SQLITE_DONE ? 0 : fail_db(err, writer, table);
}

int ipw_db_writer_finish(struct ipw_db_writer *writer, struct ipw_err *err)
{
    int rc = ipw_db_writer_run(writer, "COMMIT", err);

    ipw_db_writer_close(writer);
    return rc;
}

#endif
