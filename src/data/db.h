/* data/db.h: SQLite for scripts: read-only queries on a file, and full-text search over a folder.
 *
 * Both run away from the loop's thread and share only an index, which has its own lock.  A query
 * can write nothing, attach nothing and load nothing.  It ends at its deadline, when *stop is set,
 * or when its answer is full.  Values are limited to 4 MiB, because a single call of an SQL
 * function cannot be stopped.  Needs libsqlite3; a build without it returns an error that says
 * so. */
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
    char *text;
    size_t n;
};

struct ipw_db_limits {
    int64_t deadline_ns; /* monotonic */
    atomic_bool *stop;
    size_t max_rows, max_bytes; /* limits of the answer, as JSON */
};

/* Appends {"columns":[...],"rows":[[...],...],"more":bool}. */
int ipw_db_query(struct ipw_buf *out, const char *path, const char *sql,
                 const struct ipw_db_value *values, size_t n_values,
                 const struct ipw_db_limits *limits, struct ipw_err *err);

/* Appends the texts in the folder (UTF-8, at most 4 MiB each) that contain the words, best match
 * first, in the same form with the columns path, score, snippet.  The index of a folder is built at
 * its first search, and again if one of its files changed; the process keeps it in memory. */
int ipw_db_search(struct ipw_buf *out, const char *folder, const char *words,
                  const struct ipw_db_limits *limits, struct ipw_err *err);

#endif
