/* data/columnar/arrow.h: the rows of an Arrow IPC stream or file as JSON objects.
 *
 * Both forms of Arrow's Columnar.rst ("Serialization and Interprocess Communication"), with the messages of
 * format/Message.fbs and the footer of File.fbs: the stream, as save_to_disk() writes it, and the file with
 * its footer (also called Feather).  One record batch of the wanted columns is in memory at a time, and the dictionaries.
 * Errors name the file, and the column where one is at fault. */
#ifndef IPW_DATA_COLUMNAR_ARROW_H
#define IPW_DATA_COLUMNAR_ARROW_H

#include "base/buf.h"
#include "data/columnar/data_file.h"

struct ipw_arrow;

/* As ipw_parquet_open() and the functions after it. */
int ipw_arrow_open(struct ipw_arrow **out, struct ipw_data_file *file, const char *const *columns,
                   struct ipw_err *err);
int ipw_arrow_next(struct ipw_arrow *arrow, struct ipw_buf *json, struct ipw_err *err);
void ipw_arrow_free(struct ipw_arrow *arrow);

#endif
