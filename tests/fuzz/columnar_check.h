/* tests/fuzz/columnar_check.h: reads any bytes as a Parquet or Arrow file: rows that are JSON objects, or one
 * line that names the file.  A few bytes can stand for very many rows, so it stops after some. */
#ifndef IPW_FUZZ_COLUMNAR_CHECK_H
#define IPW_FUZZ_COLUMNAR_CHECK_H

#include "check.h"
#include "data/rows_priv.h"
#include "json/json.h"

static inline void read_columnar(const char *name, const void *bytes, size_t n)
{
    enum { ROWS_MAX = 300, BYTES_MAX = 1 << 17 };
    struct ipw_row_reader *reader = NULL;
    struct ipw_row row = {0};
    struct ipw_err err = {0};
    size_t given = 0;
    int64_t rows = 0;
    int rc = ipw_row_reader_open_memory(&reader, name, bytes, n, &err);

    while (!rc && (rc = ipw_row_reader_next(reader, &row, &err)) == 1) {
        struct ipw_json *root;

        check(row.line == ++rows, "rows are not counted one by one");
        check(row.n == strlen(row.json) && row.json[0] == '{', "a row is not an object");
        if (ipw_json_parse(&root, row.json, row.n, NULL, NULL) == 0) ipw_json_free(root);
        given += row.n;
        rc = 0;
        if (rows == ROWS_MAX || given > BYTES_MAX) break;
    }
    if (rc < 0) {
        check_error(&err, rc);
        check(strncmp(err.text, name, strlen(name)) == 0, "an error that does not name the file");
    }
    ipw_row_reader_free(reader);
}

#endif
