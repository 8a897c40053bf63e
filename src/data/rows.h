/* data/rows.h: reads tasks (rows) of datasets from files.
 *
 * Pure except for reading the file.  Formats: JSONL, JSON (an array of objects, or an object with a
 * "rows" or "data" array of them), CSV and TSV (RFC 4180: quotes, CRLF, newlines inside quotes,
 * BOM; the separator of a .csv is found: comma, semicolon or tab) become rows of JSON text, one
 * object each, in file order, with line numbers for messages.  So do Parquet and Arrow (columnar/),
 * whose line is the number of the row, and a folder of such files.  What the columns mean is the
 * dataset script's business (datasets and lua/ipw/dataset.lua).
 *
 * Two ways to read: ipw_rows_read() takes the whole set into memory; a struct ipw_row_reader
 * gives one row after another. */
#ifndef IPW_DATA_ROWS_H
#define IPW_DATA_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_row {
    char *json; /* one object */
    size_t n;
    int64_t line; /* line in the file where it starts, from 1 */
};

struct ipw_rows {
    struct ipw_row *rows;
    size_t n, cap;
    size_t most;     /* rows that are wanted, from the first on; 0: all */
    char sha256[65]; /* hash of the file's bytes, as hex digits */
};

/* Whether the name's ending is one of those below. */
bool ipw_rows_knows_name(const char *name);

struct ipw_rows_wanted {
    /* Names in any case, NULL after the last; NULL: all.  Of Parquet and Arrow the other columns
     * are not decoded, and may be of a type that is not read.  A file of text gives all of its
     * columns, wanted or not. */
    const char *const *columns;
    /* How many rows, 0: all.  Rows of JSONL behind them are hashed, but not read: a fault in one of
     * them is no error.  A reader of single rows ignores it. */
    size_t most;
    const char *encoding; /* of a file of text (data/encoding.h); NULL: UTF-8 */
};

/* The kind is taken from the name's ending (.jsonl, .ndjson, .json, .csv, .tsv, .parquet, .arrow,
 * .feather).  A bad line is an error that names file and line.  `wanted` NULL: all, of UTF-8. */
int ipw_rows_read(struct ipw_rows *out, const char *path, const struct ipw_rows_wanted *wanted,
                  struct ipw_err *err);
/* The same from memory (embedded data); `name` stands in messages and decides the kind. */
int ipw_rows_parse(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                   struct ipw_err *err);
void ipw_rows_release(struct ipw_rows *rows);

struct ipw_row_reader;

/* `wanted` as above; it may go when this returns. */
int ipw_row_reader_open(struct ipw_row_reader **out, const char *path,
                        const struct ipw_rows_wanted *wanted, struct ipw_err *err);
/* 1: a row, whose text is the reader's until the next call; 0: the end; negative: an error. */
int ipw_row_reader_next(struct ipw_row_reader *reader, struct ipw_row *row, struct ipw_err *err);
int64_t ipw_row_reader_count(const struct ipw_row_reader *reader); /* rows in all; -1: not known */
/* `sha256` of struct ipw_rows; reads the files' bytes. */
int ipw_row_reader_sha256(struct ipw_row_reader *reader, char out[65], struct ipw_err *err);
void ipw_row_reader_free(struct ipw_row_reader *reader); /* NULL is fine */

#endif
