/* data/rows.h: reads rows of datasets from files.
 *
 * Pure but for the reading of the file: JSONL, JSON (an array of objects, or an object with a
 * "rows" or "data" array of them), CSV and TSV (RFC 4180: quotes, CRLF, newlines inside quotes,
 * BOM; the separator of a .csv is found: comma, semicolon or tab) become rows of JSON text, one object each, in file order, with line numbers for messages.
 * What the columns mean is the dataset script's business (datasets and lua/ipw/dataset.lua). */
#ifndef IPW_DATA_ROWS_H
#define IPW_DATA_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_row {
    char *json; /* one object */
    size_t n;
    int64_t line; /* where it starts in the file, from 1 */
};

struct ipw_rows {
    struct ipw_row *rows;
    size_t n, cap;
    char sha256[65]; /* of the file's bytes, hex */
};

/* The kind is taken from the name's ending (.jsonl, .ndjson, .json, .csv, .tsv).  A bad line is an
 * error that names file and line. */
int ipw_rows_read(struct ipw_rows *out, const char *path, struct ipw_err *err);
/* The same from memory (embedded data); `name` stands in messages and decides the kind. */
int ipw_rows_parse(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                   struct ipw_err *err);
void ipw_rows_release(struct ipw_rows *rows);

#endif
