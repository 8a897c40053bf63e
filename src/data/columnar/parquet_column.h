/* data/columnar/parquet_column.h: reads one column chunk of a Parquet file, value by value.
 *
 * Holds one page and the chunk's dictionary, so memory does not grow with the row group.
 * parquet-format's README.md ("Data Pages") and Encodings.md define the pages.  Errors name the
 * page's position; the caller adds column and file.  For each value: peek, then take. */
#ifndef IPW_DATA_COLUMNAR_PARQUET_COLUMN_H
#define IPW_DATA_COLUMNAR_PARQUET_COLUMN_H

#include "data/columnar/packed.h"
#include "data/columnar/parquet_schema.h"

struct ipw_parquet_value {
    const unsigned char *p; /* as PLAIN stores it, without a length; valid until the next value */
    size_t n;
};

struct ipw_parquet_column {
    struct ipw_data_file *file;
    const struct ipw_parquet_node *node;
    struct ipw_parquet_chunk chunk; /* `at` is the next page */
    struct ipw_block header, packed, page, dictionary, entries, last;
    size_t n_entries;
    uint64_t page_at, page_left; /* page_left: values of the page not yet read */

    struct ipw_rle repeats, definitions;
    unsigned repeat, definition; /* levels of the next value */
    bool peeked;

    int encoding;
    const unsigned char *p, *end; /* of the values */
    struct ipw_rle bits;          /* dictionary indices and booleans */
    struct ipw_delta numbers, prefixes;
    size_t stream, stream_at; /* BYTE_STREAM_SPLIT: values in the page; index of the next value */
    unsigned char scratch[16];
};

/* Begins a chunk, and ends the chunk before it. */
int ipw_parquet_column_start(struct ipw_parquet_column *c, struct ipw_data_file *file,
                             const struct ipw_parquet_node *node,
                             const struct ipw_parquet_chunk *chunk, struct ipw_err *err);
/* Reads the levels of the next value.  Returns 1, or 0 at the end of the chunk. */
int ipw_parquet_column_peek(struct ipw_parquet_column *c, struct ipw_err *err);
/* Moves past the peeked value.  Fills *value if the value is not null, which means that its
 * definition level is the node's. */
int ipw_parquet_column_take(struct ipw_parquet_column *c, struct ipw_parquet_value *value,
                            struct ipw_err *err);
void ipw_parquet_column_release(struct ipw_parquet_column *c);

#endif
