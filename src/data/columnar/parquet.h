/* data/columnar/parquet.h: the rows of a Parquet file as JSON objects.
 *
 * Assembles rows from the columns by repetition and definition levels (parquet-format's README.md, "Nested
 * Encoding", after the Dremel paper).  One page of each wanted column is in memory at a time.  Errors name the
 * file, and the column if one is at fault. */
#ifndef IPW_DATA_COLUMNAR_PARQUET_H
#define IPW_DATA_COLUMNAR_PARQUET_H

#include "base/buf.h"
#include "data/columnar/data_file.h"

struct ipw_parquet;

/* `columns`: the names of the wanted columns, NULL after the last; NULL: all.  Takes
 * ownership of the file, also if opening fails. */
int ipw_parquet_open(struct ipw_parquet **out, struct ipw_data_file *file,
                     const char *const *columns, struct ipw_err *err);
/* Appends the next row.  1: a row; 0: the end; negative: an error. */
int ipw_parquet_next(struct ipw_parquet *parquet, struct ipw_buf *json, struct ipw_err *err);
int64_t ipw_parquet_count(const struct ipw_parquet *parquet);
void ipw_parquet_free(struct ipw_parquet *parquet); /* NULL is fine */

#endif
