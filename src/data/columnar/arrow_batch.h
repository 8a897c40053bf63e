/* data/columnar/arrow_batch.h: the columns of one record batch or dictionary of Arrow.
 *
 * A column holds the buffers of a field, read and unpacked.  Loading checks that each buffer is
 * long enough for the column's length.  Values can then be read without further checks, except for
 * offsets, which are checked when they are used.  Call ipw_arrow_batch_start(), then
 * ipw_arrow_batch_load(): for a record batch once for each child of the root, in the order of the
 * schema; for a dictionary once, for its field. */
#ifndef IPW_DATA_COLUMNAR_ARROW_BATCH_H
#define IPW_DATA_COLUMNAR_ARROW_BATCH_H

#include "data/columnar/arrow_schema.h"
#include "data/columnar/data_file.h"

struct ipw_arrow_column {
    int64_t length;
    bool all_valid; /* no value is null; `valid` is not used */
    struct ipw_block valid, offsets, data;
};

struct ipw_arrow_batch {
    struct ipw_data_file *file;
    const struct ipw_arrow_schema *schema;
    struct ipw_flat *flat;
    size_t table;               /* the RecordBatch */
    uint64_t body, body_length; /* in the file */

    size_t nodes, n_nodes, next_node; /* the vectors of the table */
    size_t buffers, n_buffers, next_buffer;
    int codec;
    uint64_t buffer_bytes; /* sum of the buffers that were read */
    struct ipw_block packed;
};

/* Finds the vectors.  *length: the number of rows. */
int ipw_arrow_batch_start(struct ipw_arrow_batch *batch, int64_t *length, struct ipw_err *err);
/* Reads the next buffers of the batch into columns[field] and its children; `columns` has one entry
 * for each field of the schema.  A field that is not wanted is skipped.  `values`: the buffers of a
 * coded field are the values of its dictionary, not indices. */
int ipw_arrow_batch_load(struct ipw_arrow_batch *batch, struct ipw_arrow_column *columns,
                         size_t field, bool values, bool wanted, struct ipw_err *err);

#endif
