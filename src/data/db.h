/* data/db.h: SQLite for scripts: read-only queries on a file, and full-text search over a folder.
 *
 * Both are made to run away from the loop's thread and touch nothing shared but an index behind its own
 * lock.  A query can write nothing, attach nothing and load nothing; it ends at its deadline, when
 * *stop is set, or when its answer is full.  Values are 4 MiB at most: inside one call of an SQL function it
 * cannot be ended.  Needs libsqlite3; a build without it says so. */
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
    size_t max_rows, max_bytes; /* of the answer, as JSON */
};

/* Appends {"columns":[...],"rows":[[...],...],"more":bool}. */
int ipw_db_query(struct ipw_buf *out, const char *path, const char *sql,
                 const struct ipw_db_value *values, size_t n_values,
                 const struct ipw_db_limits *limits, struct ipw_err *err);

/* Texts of the folder's files (UTF-8, at most 4 MiB each) that hold the words, best first: appends the
 * same with the columns path, score, snippet.  The index is made when a folder is first searched, and
 * again when a file of it has changed; it is kept in memory for the process. */
int ipw_db_search(struct ipw_buf *out, const char *folder, const char *words,
                  const struct ipw_db_limits *limits, struct ipw_err *err);

#endif
