/* data/rows_priv.h: what the readers of dataset files share; inside the floor only.
 *
 * Each parser gets the whole text (without a BOM) and adds its rows in file order.  On failure the
 * caller releases what was added. */
#ifndef IPW_DATA_ROWS_PRIV_H
#define IPW_DATA_ROWS_PRIV_H

#include "data/rows.h"

#define IPW_ROW_MAX ((size_t)64 * 1024 * 1024) /* bytes of one row */

void ipw_rows_add(struct ipw_rows *rows, char *json, size_t n, int64_t line); /* takes json */
/* 0 when the text is one JSON object; else an error that names file and line. */
int ipw_rows_check_object(const char *text, size_t n, const char *name, int64_t line,
                          struct ipw_err *err);

int ipw_rows_parse_json(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                        struct ipw_err *err);
int ipw_rows_parse_csv(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                       struct ipw_err *err);
int ipw_rows_parse_tsv(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                       struct ipw_err *err);

#endif
