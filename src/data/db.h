/* data/db.h: the one SQLite binding: read-only queries for scripts, full-text search over a folder,
 * and the files of exports.
 *
 * A database that a script names is opened by the descriptor of its folder, which the caller has
 * checked; so the file that was checked is the file that is read.  It can write nothing, attach
 * nothing and load nothing.  A query ends at its deadline, when *stop is set, or when its answer is
 * full.  Values are limited to 4 MiB, because a single call of an SQL function cannot be stopped.
 * A handle belongs to one thread at a time. */
#ifndef IPW_DATA_DB_H
#define IPW_DATA_DB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum ipw_db_type { IPW_DB_NULL, IPW_DB_INT, IPW_DB_NUM, IPW_DB_TEXT };

struct ipw_db_value {
    enum ipw_db_type type;
    int64_t integer;
    double number;
    const char *text;
    size_t n;
};

struct ipw_db_limits {
    int64_t deadline_ns; /* monotonic */
    atomic_bool *stop;
    size_t max_rows, max_bytes; /* limits of the answer, as JSON */
};

struct ipw_db;

/* Opens the file `name` of a folder for reading.  The folder stays open until the close, because
 * SQLite looks there for the file's log, too. */
int ipw_db_open(struct ipw_db **out, int folder, const char *name, struct ipw_err *err);
/* Opens a file that is new or empty, or ":memory:", for writing: one transaction without a journal,
 * because a file that fails is thrown away. */
int ipw_db_create(struct ipw_db **out, const char *path, struct ipw_err *err);
/* Runs one statement and appends {"columns":[...],"rows":[[...],...],"more":bool}.  Without `out`
 * and `limits` its rows are left out.  The statement is kept for the next call. */
int ipw_db_run(struct ipw_buf *out, struct ipw_db *db, const char *sql,
               const struct ipw_db_value *values, size_t n, const struct ipw_db_limits *limits,
               struct ipw_err *err);
/* Runs statements that give no rows. */
int ipw_db_script(struct ipw_db *db, const char *sql, struct ipw_err *err);
void ipw_db_close(struct ipw_db *db); /* an open transaction is lost; NULL is fine */

/* Appends the texts in the folder (UTF-8, at most 4 MiB each) that contain the words, best match
 * first, in the same form with the columns path, score, snippet.  The index of a folder is built at
 * its first search, and again if one of its files changed; the process keeps it in memory, under
 * `name`, and has a lock for it.  The folder stays the caller's. */
int ipw_db_search(struct ipw_buf *out, int folder, const char *name, const char *words,
                  const struct ipw_db_limits *limits, struct ipw_err *err);

#endif
