#include "data/columnar/arrow_batch.h"

#include "data/columnar/codec.h"

#define LENGTH_MAX (INT64_C(1) << 40)

static int damaged(const struct ipw_arrow_batch *batch, size_t field, const char *what,
                   struct ipw_err *err)
{
    return ipw_fail(err, IPW_EPARSE, "column '%.80s': %s", batch->schema->fields[field].name, what);
}

int ipw_arrow_batch_start(struct ipw_arrow_batch *batch, int64_t *length, struct ipw_err *err)
{
    struct ipw_flat *f = batch->flat;
    size_t compression = ipw_flat_table(f, batch->table, 3), n;
    int64_t codec = ipw_flat_int(f, compression, 0, 1, 0);

    *length = ipw_flat_int(f, batch->table, 0, 8, 0);
    batch->nodes = ipw_flat_vector(f, batch->table, 1, 16, &batch->n_nodes);
    batch->buffers = ipw_flat_vector(f, batch->table, 2, 16, &batch->n_buffers);
    batch->next_node = batch->next_buffer = 0;
    batch->buffer_bytes = 0;
    ipw_flat_vector(f, batch->table, 4, 8, &n);
    if (f->bad || !batch->table || *length < 0 || *length > LENGTH_MAX)
        return ipw_fail(err, IPW_EPARSE, "the head of a record batch is damaged");
    if (codec != 0 && codec != 1)
        return ipw_fail(err, IPW_EUNSUPPORTED, "buffer compression %d is not known", (int)codec);
    batch->codec = !compression ? IPW_CODEC_NONE : codec ? IPW_CODEC_ZSTD : IPW_CODEC_LZ4_FRAME;
    return 0;
}

/* A compressed buffer begins with its unpacked length; -1 means that it is not compressed. */
static int unpack(struct ipw_arrow_batch *batch, struct ipw_block *to, uint64_t at, size_t n,
                  struct ipw_err *err)
{
    const unsigned char *p;
    int64_t unpacked;
    int codec, rc;

    if (n < 8) return ipw_fail(err, IPW_EPARSE, "a compressed buffer of %zu bytes", n);
    rc = ipw_block_resize(&batch->packed, batch->file, n, err);
    if (!rc) rc = ipw_data_file_read(batch->file, at, batch->packed.data, n, err);
    if (rc) return rc;
    p = batch->packed.data + 8;
    n -= 8;
    unpacked = (int64_t)ipw_le64(batch->packed.data);
    codec = unpacked == -1 ? IPW_CODEC_NONE : batch->codec;
    if (unpacked == -1) unpacked = (int64_t)n;
    if (unpacked < 0) return ipw_fail(err, IPW_EPARSE, "a buffer of a negative length");
    rc = ipw_codec_check(codec, n, (uint64_t)unpacked, err);
    if (!rc) rc = ipw_block_resize(to, batch->file, (size_t)unpacked, err);
    return rc ? rc : ipw_codec_unpack(codec, to->data, (size_t)unpacked, p, n, err);
}

/* Reads the next buffer of the batch.  It must have at least `need` bytes. */
static int read_buffer(struct ipw_arrow_batch *batch, struct ipw_block *to, size_t field,
                       bool wanted, uint64_t need, struct ipw_err *err)
{
    const unsigned char *p;
    uint64_t at, n;
    int rc;

    if (batch->next_buffer >= batch->n_buffers)
        return damaged(batch, field, "the record batch has too few buffers", err);
    p = batch->flat->bytes + batch->buffers + 16 * batch->next_buffer++;
    if (!wanted) return 0;
    at = ipw_le64(p);
    n = ipw_le64(p + 8);
    if (at > batch->body_length || n > batch->body_length - at)
        return damaged(batch, field, "a buffer is not inside the record batch", err);
    batch->buffer_bytes += n;
    if (batch->buffer_bytes > batch->body_length)
        return damaged(batch, field, "the buffers are longer than the record batch", err);
    if (batch->codec != IPW_CODEC_NONE && n) {
        rc = unpack(batch, to, batch->body + at, (size_t)n, err);
    } else {
        rc = ipw_block_resize(to, batch->file, (size_t)n, err);
        if (!rc) rc = ipw_data_file_read(batch->file, batch->body + at, to->data, (size_t)n, err);
    }
    if (rc) return ipw_err_prefix(err, "column '%.80s'", batch->schema->fields[field].name);
    if (to->n < need) return damaged(batch, field, "a buffer is shorter than its values", err);
    return 0;
}

static int read_valid(struct ipw_arrow_batch *batch, struct ipw_arrow_column *column, size_t field,
                      bool wanted, int64_t nulls, struct ipw_err *err)
{
    int rc = read_buffer(batch, &column->valid, field, wanted, 0, err);

    if (rc || !wanted) return rc;
    column->all_valid = nulls == 0 || (column->valid.n == 0 && nulls < 0);
    if (!column->all_valid && column->valid.n < ((uint64_t)column->length + 7) / 8)
        return damaged(batch, field, "its validity bits are too few", err);
    return 0;
}

static int load_children(struct ipw_arrow_batch *batch, struct ipw_arrow_column *columns,
                         size_t field, bool wanted, int64_t least, struct ipw_err *err)
{
    const struct ipw_arrow_field *fields = batch->schema->fields;
    size_t child = fields[field].first_child;

    for (size_t i = 0; i < fields[field].n_children; i++, child = fields[child].next) {
        int rc = ipw_arrow_batch_load(batch, columns, child, false, wanted, err);

        if (rc) return rc;
        if (wanted && columns[child].length < least)
            return damaged(batch, child, "it has fewer values than the column around it", err);
    }
    return 0;
}

int ipw_arrow_batch_load(struct ipw_arrow_batch *batch, struct ipw_arrow_column *columns,
                         size_t index, bool values, bool wanted, struct ipw_err *err)
{
    const struct ipw_arrow_field *field = &batch->schema->fields[index];
    struct ipw_arrow_column *column = &columns[index];
    const unsigned char *node;
    uint64_t n;
    int rc;

    if (batch->next_node >= batch->n_nodes)
        return damaged(batch, index, "the record batch has too few columns", err);
    node = batch->flat->bytes + batch->nodes + 16 * batch->next_node++;
    column->length = (int64_t)ipw_le64(node);
    if (column->length < 0 || column->length > LENGTH_MAX)
        return damaged(batch, index, "its length is damaged", err);
    n = (uint64_t)column->length;
    if (field->layout == IPW_ARROW_NULL && (values || !field->coded)) {
        column->all_valid = true; /* it has no buffers; write_value() writes null by its layout */
        return 0;
    }
    rc = read_valid(batch, column, index, wanted, (int64_t)ipw_le64(node + 8), err);
    if (rc) return rc;
    if (field->coded && !values)
        return read_buffer(batch, &column->data, index, wanted, n * field->index_width, err);
    switch (field->layout) {
    case IPW_ARROW_BITS: return read_buffer(batch, &column->data, index, wanted, (n + 7) / 8, err);
    case IPW_ARROW_FIXED:
        if (n && field->width > (uint64_t)INT64_MAX / n)
            return damaged(batch, index, "its length is damaged", err);
        return read_buffer(batch, &column->data, index, wanted, n * field->width, err);
    case IPW_ARROW_BYTES:
    case IPW_ARROW_LIST:
        rc = read_buffer(batch, &column->offsets, index, wanted, n ? (n + 1) * field->width : 0,
                         err);
        if (rc) return rc;
        if (field->layout == IPW_ARROW_LIST)
            return load_children(batch, columns, index, wanted, 0, err);
        return read_buffer(batch, &column->data, index, wanted, 0, err);
    case IPW_ARROW_FIXED_LIST:
        if (n && field->width > (uint64_t)LENGTH_MAX / n)
            return damaged(batch, index, "its length is damaged", err);
        return load_children(batch, columns, index, wanted, (int64_t)(n * field->width), err);
    default: return load_children(batch, columns, index, wanted, column->length, err);
    }
}
