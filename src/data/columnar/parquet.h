/* data/columnar/parquet.h: the rows of a Parquet file as JSON objects.
 *
 * Puts the values of the columns together into rows, by their repetition and definition levels (the rules of the
 * Dremel paper, as parquet-format's README.md has them).  One page for each wanted column is in memory at a
 * time.  Errors name the file, and the column where one is at fault. */
#ifndef IPW_DATA_COLUMNAR_PARQUET_H
#define IPW_DATA_COLUMNAR_PARQUET_H

#include "base/buf.h"
#include "data/columnar/data_file.h"

struct ipw_parquet;

/* `columns`: the names of the wanted columns, NULL after the last; NULL: all.  Takes the file, which is
 * closed when opening fails, too. */
int ipw_parquet_open(struct ipw_parquet **out, struct ipw_data_file *file,
                     const char *const *columns, struct ipw_err *err);
/* Appends the next row.  1: a row; 0: the end; negative: an error. */
int ipw_parquet_next(struct ipw_parquet *parquet, struct ipw_buf *json, struct ipw_err *err);
int64_t ipw_parquet_count(const struct ipw_parquet *parquet);
void ipw_parquet_free(struct ipw_parquet *parquet); /* NULL is fine */

#endif
