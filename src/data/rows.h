/* data/rows.h: reads tasks (rows) of datasets from files.
 *
 * Pure except for reading the file.  Formats: JSONL, JSON (an array of objects, or an object with a
 * "rows" or "data" array of them), CSV and TSV (RFC 4180: quotes, CRLF, newlines inside quotes,
 * BOM).  The separator of a .csv file is detected: comma, semicolon or tab.  Each row becomes one
 * JSON object as text, in file order, with its line number for messages.  The dataset script
 * decides what the columns mean (datasets and lua/ipw/dataset.lua). */
#ifndef IPW_DATA_ROWS_H
#define IPW_DATA_ROWS_H

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
    char sha256[65]; /* hash of the file's bytes, as hex digits */
};

/* The name's ending selects the format (.jsonl, .ndjson, .json, .csv, .tsv).  A bad line is an
 * error that names file and line. */
int ipw_rows_read(struct ipw_rows *out, const char *path, struct ipw_err *err);
/* The same from memory (embedded data); `name` appears in messages and selects the format. */
int ipw_rows_parse(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                   struct ipw_err *err);
void ipw_rows_release(struct ipw_rows *rows);

#endif
