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
/* A column's name as the rows will say it, so that two names are the same here when they are in a row:
 * bytes that are not UTF-8, and NUL, are U+FFFD. */
char *ipw_rows_column_name(const char *s, size_t n);

/* Whether the list of wanted columns contains the name, in any case; NULL: all are wanted. */
bool ipw_rows_is_wanted(const char *const *columns, const char *name);
bool ipw_rows_has_ending(const char *name, const char *ending); /* whatever its case */
/* Whether a name has an ending of Parquet or Arrow; whether a path is such a file, or a folder of them. */
bool ipw_rows_is_columnar_name(const char *name);
bool ipw_rows_is_columnar(const char *path);
/* A reader of such a file's bytes, which are borrowed. */
int ipw_row_reader_open_memory(struct ipw_row_reader **out, const char *name, const void *bytes,
                               size_t n, struct ipw_err *err);

int ipw_rows_parse_json(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                        struct ipw_err *err);
int ipw_rows_parse_csv(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                       struct ipw_err *err);
int ipw_rows_parse_tsv(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                       struct ipw_err *err);

#endif
