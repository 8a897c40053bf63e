/* tests/unit/data/parquet_frame.h: writes Parquet files byte by byte, for tests that need what no writer makes:
 * damaged ones, refused ones, long ones.  As little of Thrift's compact protocol and of parquet.thrift as that
 * takes. */
#ifndef IPW_PARQUET_FRAME_H
#define IPW_PARQUET_FRAME_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

struct frame_column {
    const char *name;
    int physical, repetition, codec;
    int64_t values, at, bytes; /* of its one chunk */
};

static inline void put_varint(struct ipw_buf *out, uint64_t n)
{
    for (; n >= 128; n >>= 7) ipw_buf_addc(out, (char)(n | 128));
    ipw_buf_addc(out, (char)n);
}

enum { THRIFT_I32 = 5, THRIFT_I64 = 6 };

/* A field whose number is `step` after the last one's. */
static inline void put_number(struct ipw_buf *out, int step, int type, int64_t n)
{
    ipw_buf_addc(out, (char)(step << 4 | type));
    put_varint(out, (uint64_t)n << 1);
}

static inline void put_text(struct ipw_buf *out, int step, const char *text)
{
    ipw_buf_addc(out, (char)(step << 4 | 8));
    put_varint(out, strlen(text));
    ipw_buf_adds(out, text);
}

static inline void put_structs(struct ipw_buf *out, int step, size_t n)
{
    ipw_buf_addc(out, (char)(step << 4 | 9));
    ipw_buf_addc(out, (char)(n << 4 | 12)); /* fewer than 15 */
}

static inline void put_end(struct ipw_buf *out) { ipw_buf_addc(out, 0); }

/* The header of a data page of version 1, uncompressed unless `packed` differs. */
static inline void put_page_header(struct ipw_buf *out, int64_t unpacked, int64_t packed,
                                   int64_t values, int encoding)
{
    put_number(out, 1, THRIFT_I32, 0);
    put_number(out, 1, THRIFT_I32, unpacked);
    put_number(out, 1, THRIFT_I32, packed);
    ipw_buf_addc(out, 0x2c);
    put_number(out, 1, THRIFT_I32, values);
    put_number(out, 1, THRIFT_I32, encoding);
    put_number(out, 1, THRIFT_I32, 3);
    put_number(out, 1, THRIFT_I32, 3);
    put_end(out);
    put_end(out);
}

static inline void put_schema(struct ipw_buf *out, const struct frame_column *columns, size_t n)
{
    put_structs(out, 1, n + 1);
    put_text(out, 4, "root");
    put_number(out, 1, THRIFT_I32, (int64_t)n);
    put_end(out);
    for (size_t i = 0; i < n; i++) {
        put_number(out, 1, THRIFT_I32, columns[i].physical);
        put_number(out, 1, THRIFT_I32, 5); /* type_length */
        put_number(out, 1, THRIFT_I32, columns[i].repetition);
        put_text(out, 1, columns[i].name);
        put_end(out);
    }
}

/* One row group of one chunk a column. */
static inline void put_group(struct ipw_buf *out, const struct frame_column *columns, size_t n,
                             int64_t rows)
{
    put_structs(out, 1, 1);
    put_structs(out, 1, n);
    for (size_t i = 0; i < n; i++) {
        ipw_buf_addc(out, 0x3c); /* meta_data */
        put_number(out, 1, THRIFT_I32, columns[i].physical);
        put_number(out, 3, THRIFT_I32, columns[i].codec);
        put_number(out, 1, THRIFT_I64, columns[i].values);
        put_number(out, 2, THRIFT_I64, columns[i].bytes);
        put_number(out, 2, THRIFT_I64, columns[i].at);
        put_end(out);
        put_end(out);
    }
    put_number(out, 2, THRIFT_I64, rows);
    put_end(out);
}

/* The footer's length and the file's end mark, for a footer that began at `start`. */
static inline void put_tail(struct ipw_buf *out, size_t start)
{
    size_t n = out->len - start;

    for (int i = 0; i < 4; i++) ipw_buf_addc(out, (char)(n >> (8 * i)));
    ipw_buf_adds(out, "PAR1");
}

static inline void put_footer(struct ipw_buf *out, const struct frame_column *columns, size_t n,
                              int64_t rows)
{
    size_t start = out->len;

    put_number(out, 1, THRIFT_I32, 1);
    put_schema(out, columns, n);
    put_number(out, 1, THRIFT_I64, rows);
    put_group(out, columns, n, rows);
    put_end(out);
    put_tail(out, start);
}

#endif
