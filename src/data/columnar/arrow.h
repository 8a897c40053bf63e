/* data/columnar/arrow.h: the rows of an Arrow IPC stream or file as JSON objects.
 *
 * Arrow's Columnar.rst ("Serialization and Interprocess Communication") defines both forms,
 * format/Message.fbs the messages, File.fbs the footer.  Hugging Face's save_to_disk() writes
 * streams; a file with a footer is also called Feather.  Memory holds the dictionaries and the
 * wanted columns of one record batch.  Errors name the file, and the column if one is at fault.
 *
 * Open a file, call ipw_arrow_next() until it returns 0, free the reader. */
#ifndef IPW_DATA_COLUMNAR_ARROW_H
#define IPW_DATA_COLUMNAR_ARROW_H

#include "base/buf.h"
#include "data/columnar/data_file.h"

struct ipw_arrow;

/* Arguments and results are those of ipw_parquet_open(), _next() and _free(). */
int ipw_arrow_open(struct ipw_arrow **out, struct ipw_data_file *file, const char *const *columns,
                   struct ipw_err *err);
int ipw_arrow_next(struct ipw_arrow *arrow, struct ipw_buf *json, struct ipw_err *err);
void ipw_arrow_free(struct ipw_arrow *arrow);

#endif
