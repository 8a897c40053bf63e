/* data/columnar/parquet.h: the rows of a Parquet file as JSON objects.
 *
 * Assembles rows from the columns by repetition and definition levels (parquet-format's README.md,
 * "Nested Encoding", after the Dremel paper).  Memory holds one page of each wanted column.  Errors
 * name the file, and the column if one is at fault.
 *
 * Open a file, call ipw_parquet_next() until it returns 0, free the reader. */
#ifndef IPW_DATA_COLUMNAR_PARQUET_H
#define IPW_DATA_COLUMNAR_PARQUET_H

#include "base/buf.h"
#include "data/columnar/data_file.h"

struct ipw_parquet;

/* `columns`: the names of the wanted columns, with NULL after the last name; NULL for all columns.
 * Takes ownership of the file, even on failure. */
int ipw_parquet_open(struct ipw_parquet **out, struct ipw_data_file *file,
                     const char *const *columns, struct ipw_err *err);
/* Appends the next row.  Returns 1 for a row, 0 at the end, a negative code on error. */
int ipw_parquet_next(struct ipw_parquet *parquet, struct ipw_buf *json, struct ipw_err *err);
int64_t ipw_parquet_count(const struct ipw_parquet *parquet);
void ipw_parquet_free(struct ipw_parquet *parquet); /* NULL is fine */

#endif
