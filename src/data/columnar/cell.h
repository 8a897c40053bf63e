/* data/columnar/cell.h: typed values of Parquet and Arrow files as JSON.
 *
 * Shared by both formats.  A cell type says what a column's stored bytes mean.
 * ipw_cell_write_*() writes one value.  docs/datasets.md has the table of conversions. */
#ifndef IPW_DATA_COLUMNAR_CELL_H
#define IPW_DATA_COLUMNAR_CELL_H

#include "json/write.h"

enum ipw_cell_kind {
    IPW_CELL_BOOL,
    IPW_CELL_INT,
    IPW_CELL_UINT,
    IPW_CELL_FLOAT, /* of 2, 4 or 8 bytes */
    IPW_CELL_TEXT,
    IPW_CELL_BINARY,
    IPW_CELL_JSON, /* text that is a JSON value */
    IPW_CELL_DECIMAL,
    IPW_CELL_DATE, /* days since 1970-01-01 */
    IPW_CELL_DATE_MS,
    IPW_CELL_TIME,
    IPW_CELL_TIMESTAMP,
    IPW_CELL_INT96, /* Impala's time stamp: nanosecond of the day, then the Julian day */
    IPW_CELL_UUID,
};

enum { IPW_CELL_DECIMAL_DIGITS = 38 }; /* 16 bytes */

struct ipw_cell_type {
    enum ipw_cell_kind kind;
    unsigned fraction_digits; /* digits after the second: 0, 3, 6 or 9 */
    bool utc;
    int precision, scale; /* decimal */
};

/* An integer of any width; also dates, times and decimals that are stored as integers. */
void ipw_cell_write_int(struct ipw_jw *w, const struct ipw_cell_type *type, int64_t value);
/* An IEEE 754 number of n bytes, little-endian. */
void ipw_cell_write_float(struct ipw_jw *w, const unsigned char *p, size_t n);
/* Text, bytes, JSON, UUID, INT96, and big-endian decimals of at most 16 bytes. */
void ipw_cell_write_bytes(struct ipw_jw *w, const struct ipw_cell_type *type,
                          const unsigned char *p, size_t n);
/* A decimal of 128 bits: hi and lo. */
void ipw_cell_write_decimal(struct ipw_jw *w, const struct ipw_cell_type *type, uint64_t hi,
                            uint64_t lo);

#endif
