/* data/columnar/arrow_batch.h: the columns of one record batch or dictionary of Arrow.
 *
 * A column holds the buffers of a field, read and unpacked.  Loading checks that every buffer is as long
 * as the field's length needs, so that a value inside the length can be read without a check; only
 * offsets are checked when they are used. */
#ifndef IPW_DATA_COLUMNAR_ARROW_BATCH_H
#define IPW_DATA_COLUMNAR_ARROW_BATCH_H

#include "data/columnar/arrow_schema.h"
#include "data/columnar/data_file.h"

struct ipw_arrow_column {
    int64_t length;
    bool all_valid; /* the buffer `valid` is not there */
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
    uint64_t buffer_bytes; /* of those that were read */
    struct ipw_block packed;
};

/* Finds the vectors; `length` is how many rows the batch has. */
int ipw_arrow_batch_start(struct ipw_arrow_batch *batch, int64_t *length, struct ipw_err *err);
/* Reads the field's buffers, the next in the batch, into `columns` (one for each field of the schema) and
 * passes over what is not wanted.  `values`: of a coded field those of the dictionary, into `columns` too, instead of
 * the indices. */
int ipw_arrow_batch_load(struct ipw_arrow_batch *batch, struct ipw_arrow_column *columns,
                         size_t field, bool values, bool wanted, struct ipw_err *err);

#endif
