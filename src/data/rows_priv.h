/* data/rows_priv.h: shared by the readers of dataset files; private to src/data.
 *
 * Each parser gets the whole text (without a BOM) and adds its rows in file order.  On failure the
 * caller releases the rows added so far. */
#ifndef IPW_DATA_ROWS_PRIV_H
#define IPW_DATA_ROWS_PRIV_H

#include "data/rows.h"

#define IPW_ROW_MAX ((size_t)64 * 1024 * 1024) /* limit of one row */

void ipw_rows_add(struct ipw_rows *rows, char *json, size_t n, int64_t line); /* takes over json */
/* Returns 0 if the text is one JSON object; else an error that names file and line. */
int ipw_rows_check_object(const char *text, size_t n, const char *name, int64_t line,
                          struct ipw_err *err);

/* Files of text (rows.c): whether the name's ending is one of theirs; the rows of bytes, and of a
 * file.  `encoding` NULL: UTF-8. */
bool ipw_rows_text_knows(const char *name);
int ipw_rows_text_parse(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                        const char *encoding, struct ipw_err *err);
int ipw_rows_text_read(struct ipw_rows *out, const char *path, const char *encoding,
                       struct ipw_err *err);
/* A reader of the bytes of a Parquet or Arrow file, which are borrowed. */
int ipw_row_reader_open_memory(struct ipw_row_reader **out, const char *name, const void *bytes,
                               size_t n, struct ipw_err *err);

int ipw_rows_parse_json(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                        struct ipw_err *err);
int ipw_rows_parse_csv(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                       struct ipw_err *err);
int ipw_rows_parse_tsv(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                       struct ipw_err *err);

#endif
