/* data/columns.h: names of columns and of files, for the readers of all formats.
 *
 * Pure.  It knows no format, so that readers of text and of columnar files can both use it. */
#ifndef IPW_DATA_COLUMNS_H
#define IPW_DATA_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

/* A column's name as the rows will say it, so that two names are the same here when they are in a
 * row: bytes that are not UTF-8, and NUL, are U+FFFD.  The caller frees it. */
char *ipw_column_name(const char *s, size_t n);
/* Whether the list of wanted columns contains the name, in any case; NULL: all are wanted. */
bool ipw_column_is_wanted(const char *const *columns, const char *name);
bool ipw_has_ending(const char *name, const char *ending); /* in any case */

#endif
