#include "data/columnar/arrow.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/columnar/arrow_batch.h"

#define METADATA_MAX (64 * IPW_MIB)

enum { SCHEMA = 1, DICTIONARY_BATCH = 2, RECORD_BATCH = 3 }; /* Message.fbs's MessageHeader */
enum { MAGIC_BYTES = 6, BLOCK_BYTES = 24 };

struct message {
    int64_t kind;
    struct ipw_flat flat;
    size_t table;
    uint64_t body, body_length;
    bool end; /* the stream's end mark */
};

struct ipw_arrow {
    struct ipw_data_file file;
    struct ipw_arrow_schema schema;
    struct ipw_arrow_column *columns;      /* one for each field, with a dictionary's children */
    struct ipw_arrow_column *dictionaries; /* one for each field: the values of its dictionary */
    struct ipw_block metadata, footer;
    struct ipw_arrow_batch batch;
    uint64_t at;      /* in a stream: offset of the next message */
    size_t blocks[2]; /* in a file: positions of the footer's lists of dictionaries and batches */
    size_t n_blocks[2];
    size_t next_block; /* counts through both lists */
    bool is_file;
    int64_t batch_rows, next_row, rows_given;
    struct ipw_jw json;
};

static int fail_field(const struct ipw_arrow *a, size_t field, const char *what,
                      struct ipw_err *err)
{
    return ipw_fail(err, IPW_EPARSE, "column '%.80s', row %lld: %s", a->schema.fields[field].name,
                    (long long)a->rows_given + 1, what);
}

/* ---- messages ---- */

static int open_metadata(struct ipw_arrow *a, struct message *m, size_t n, struct ipw_err *err)
{
    size_t root;
    int64_t version, length;

    m->flat = (struct ipw_flat){.bytes = a->metadata.data, .n = n};
    root = ipw_flat_root(&m->flat);
    version = ipw_flat_int(&m->flat, root, 0, 2, 0);
    m->kind = ipw_flat_int(&m->flat, root, 1, 1, 0);
    m->table = ipw_flat_table(&m->flat, root, 2);
    length = ipw_flat_int(&m->flat, root, 3, 8, 0);
    if (m->flat.bad || !m->table || length < 0)
        return ipw_fail(err, IPW_EPARSE, "the message at byte %llu is damaged",
                        (unsigned long long)a->at);
    if (version != 3 && version != 4)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "metadata version %d is not supported (V4 and V5 are)", (int)version + 1);
    m->body_length = (uint64_t)length;
    if (m->body_length > a->file.size - m->body)
        return ipw_fail(
            err, IPW_EPARSE,
            "the message at byte %llu has a body of %llu bytes, beyond the file's end (cut off?)",
            (unsigned long long)a->at, (unsigned long long)m->body_length);
    return 0;
}

/* Reads the message at a->at. */
static int read_message(struct ipw_arrow *a, struct message *m, struct ipw_err *err)
{
    unsigned char head[8];
    uint64_t at = a->at;
    uint32_t n;
    int rc;

    *m = (struct message){0};
    if (a->file.size - at < 4)
        return ipw_fail(err, IPW_EPARSE,
                        "the stream ends at byte %llu without its end mark (cut off?)",
                        (unsigned long long)at);
    rc = ipw_data_file_read(&a->file, at, head, 4, err);
    if (rc) return rc;
    n = ipw_le32(head);
    at += 4;
    if (n == UINT32_MAX) { /* since Arrow 0.15, a mark precedes the length */
        rc = ipw_data_file_read(&a->file, at, head + 4, 4, err);
        if (rc) return rc;
        n = ipw_le32(head + 4);
        at += 4;
    }
    if (n == 0) {
        m->end = true;
        return 0;
    }
    if (n > METADATA_MAX || n > a->file.size - at)
        return ipw_fail(err, IPW_EPARSE,
                        "a message of %lu bytes at byte %llu does not fit into the file",
                        (unsigned long)n, (unsigned long long)a->at);
    rc = ipw_block_resize(&a->metadata, &a->file, n, err);
    if (!rc) rc = ipw_data_file_read(&a->file, at, a->metadata.data, n, err);
    if (rc) return rc;
    m->body = at + n;
    return open_metadata(a, m, n, err);
}

/* Reads the next dictionary or record batch.  Returns 1, or 0 at the end. */
static int next_message(struct ipw_arrow *a, struct message *m, struct ipw_err *err)
{
    size_t list = a->next_block < a->n_blocks[0] ? 0 : 1, i;
    uint64_t at;
    int rc;

    if (a->is_file) {
        i = a->next_block++ - (list ? a->n_blocks[0] : 0);
        if (list && i >= a->n_blocks[1]) return 0;
        at = ipw_le64(a->footer.data + a->blocks[list] + BLOCK_BYTES * i);
        if (at > a->file.size)
            return ipw_fail(err, IPW_EPARSE, "footer: a block at byte %llu is not in the file",
                            (unsigned long long)at);
        a->at = at;
    }
    rc = read_message(a, m, err);
    if (rc) return rc;
    if (m->end && a->is_file)
        return ipw_fail(err, IPW_EPARSE, "footer: there is no message at byte %llu",
                        (unsigned long long)a->at);
    if (m->end) return 0;
    if (m->kind != DICTIONARY_BATCH && m->kind != RECORD_BATCH)
        return ipw_fail(err, IPW_EUNSUPPORTED, "a message of kind %d at byte %llu is not supported",
                        (int)m->kind, (unsigned long long)a->at);
    a->at = m->body + m->body_length;
    return 1;
}

/* ---- batches ---- */

static int start_batch(struct ipw_arrow *a, struct message *m, size_t table, int64_t *length,
                       struct ipw_err *err)
{
    a->batch.file = &a->file;
    a->batch.schema = &a->schema;
    a->batch.flat = &m->flat;
    a->batch.table = table;
    a->batch.body = m->body;
    a->batch.body_length = m->body_length;
    return ipw_arrow_batch_start(&a->batch, length, err);
}

static int load_dictionary(struct ipw_arrow *a, struct message *m, struct ipw_err *err)
{
    int64_t id = ipw_flat_int(&m->flat, m->table, 0, 8, 0), length;
    size_t table = ipw_flat_table(&m->flat, m->table, 1);

    for (size_t i = 1; i < a->schema.n; i++) {
        const struct ipw_arrow_field *field = &a->schema.fields[i];
        struct ipw_arrow_column indices = a->columns[i];
        int rc;

        if (!field->coded || field->dictionary != id || !field->wanted) continue;
        if (ipw_flat_int(&m->flat, m->table, 2, 1, 0))
            return ipw_fail(err, IPW_EUNSUPPORTED,
                            "column '%.80s': delta dictionaries are not supported", field->name);
        rc = start_batch(a, m, table, &length, err);
        if (rc) return rc;
        a->columns[i] = a->dictionaries[i];
        rc = ipw_arrow_batch_load(&a->batch, a->columns, i, true, true, err);
        a->dictionaries[i] = a->columns[i];
        a->columns[i] = indices;
        if (rc) return ipw_err_prefix(err, "dictionary");
    }
    return 0;
}

static int load_batch(struct ipw_arrow *a, struct message *m, struct ipw_err *err)
{
    size_t child = a->schema.fields[0].first_child;
    int rc = start_batch(a, m, m->table, &a->batch_rows, err);

    a->next_row = 0;
    for (size_t i = 0; !rc && i < a->schema.fields[0].n_children; i++) {
        rc = ipw_arrow_batch_load(&a->batch, a->columns, child, false,
                                  a->schema.fields[child].wanted, err);
        if (!rc && a->columns[child].length != a->batch_rows)
            rc = ipw_fail(err, IPW_EPARSE,
                          "column '%.80s' has %lld values, its record batch %lld rows",
                          a->schema.fields[child].name, (long long)a->columns[child].length,
                          (long long)a->batch_rows);
        child = a->schema.fields[child].next;
    }
    return rc;
}

/* ---- values ---- */

static bool is_valid(const struct ipw_arrow_column *column, uint64_t row)
{
    return column->all_valid || (column->valid.data[row / 8] >> row % 8 & 1);
}

static uint64_t read_uint(const unsigned char *p, size_t width)
{
    switch (width) {
    case 1: return *p;
    case 2: return ipw_le16(p);
    case 4: return ipw_le32(p);
    default: return ipw_le64(p);
    }
}

static int64_t read_int(const unsigned char *p, size_t width)
{
    unsigned unused = 64 - 8 * (unsigned)width;

    return (int64_t)(read_uint(p, width) << unused) >> unused;
}

static void write_fixed(struct ipw_jw *w, const struct ipw_arrow_field *field,
                        const unsigned char *p)
{
    switch (field->cell.kind) {
    case IPW_CELL_FLOAT: ipw_cell_write_float(w, p, field->width); return;
    case IPW_CELL_BINARY:
    case IPW_CELL_UUID: ipw_cell_write_bytes(w, &field->cell, p, field->width); return;
    case IPW_CELL_UINT:
        ipw_cell_write_int(w, &field->cell, (int64_t)read_uint(p, field->width));
        return;
    case IPW_CELL_DECIMAL:
        if (field->width == 16) {
            ipw_cell_write_decimal(w, &field->cell, ipw_le64(p + 8), ipw_le64(p));
            return;
        } /* fallthrough */
    default: ipw_cell_write_int(w, &field->cell, read_int(p, field->width));
    }
}

static int write_value(struct ipw_arrow *a, const struct ipw_arrow_column *column, size_t index,
                       uint64_t row, bool decoded, struct ipw_err *err);

static int write_struct(struct ipw_arrow *a, size_t index, uint64_t row, struct ipw_err *err)
{
    const struct ipw_arrow_field *field = &a->schema.fields[index];
    int rc = 0;

    ipw_jw_obj(&a->json);
    for (size_t i = 0; !rc && i < field->n_children; i++) {
        const struct ipw_arrow_field *child = &a->schema.fields[field->by_name[i]];

        if (!child->wanted) continue;
        ipw_jw_key_any(&a->json, child->name, strlen(child->name));
        rc = write_value(a, &a->columns[field->by_name[i]], field->by_name[i], row, false, err);
    }
    ipw_jw_obj_end(&a->json);
    return rc;
}

static int write_list(struct ipw_arrow *a, size_t index, uint64_t from, uint64_t to,
                      struct ipw_err *err)
{
    size_t child = a->schema.fields[index].first_child;
    int rc = 0;

    if (from > to || to > (uint64_t)a->columns[child].length)
        return fail_field(a, index, "its offsets are damaged", err);
    ipw_jw_arr(&a->json);
    for (uint64_t i = from; !rc && i < to && !a->json.out->failed; i++)
        rc = write_value(a, &a->columns[child], child, i, false, err);
    ipw_jw_arr_end(&a->json);
    return rc;
}

/* `decoded`: the column holds the values of the field's dictionary, not indices into it. */
static int write_value(struct ipw_arrow *a, const struct ipw_arrow_column *column, size_t index,
                       uint64_t row, bool decoded, struct ipw_err *err)
{
    const struct ipw_arrow_field *field = &a->schema.fields[index];
    const struct ipw_arrow_column *dictionary = &a->dictionaries[index];
    const unsigned char *data = column->data.data;
    size_t width = field->width;
    uint64_t from, to;

    if ((field->layout == IPW_ARROW_NULL && !field->coded) || !is_valid(column, row)) {
        ipw_jw_null(&a->json);
        return 0;
    }
    if (field->coded && !decoded) {
        const unsigned char *p = data + row * field->index_width;
        int64_t at = field->index_signed ? read_int(p, field->index_width)
                                         : (int64_t)read_uint(p, field->index_width);

        if (at < 0 || at >= dictionary->length)
            return fail_field(a, index, "an index is not in its dictionary", err);
        return write_value(a, dictionary, index, (uint64_t)at, true, err);
    }
    switch (field->layout) {
    case IPW_ARROW_NULL: ipw_jw_null(&a->json); return 0;
    case IPW_ARROW_BITS: ipw_jw_bool(&a->json, data[row / 8] >> row % 8 & 1); return 0;
    case IPW_ARROW_FIXED: write_fixed(&a->json, field, data + row * width); return 0;
    case IPW_ARROW_STRUCT: return write_struct(a, index, row, err);
    case IPW_ARROW_FIXED_LIST: return write_list(a, index, row * width, (row + 1) * width, err);
    default:
        from = read_uint(column->offsets.data + row * width, width);
        to = read_uint(column->offsets.data + (row + 1) * width, width);
        if (field->layout == IPW_ARROW_LIST) return write_list(a, index, from, to, err);
        if (from > to || to > column->data.n)
            return fail_field(a, index, "its offsets are damaged", err);
        ipw_cell_write_bytes(&a->json, &field->cell, data ? data + from : (const unsigned char *)"",
                             (size_t)(to - from));
        return 0;
    }
}

static int next_row(struct ipw_arrow *a, struct ipw_buf *json, struct ipw_err *err)
{
    int rc;

    while (a->next_row == a->batch_rows) {
        struct message m;

        rc = next_message(a, &m, err);
        if (rc <= 0) return rc;
        rc = m.kind == RECORD_BATCH ? load_batch(a, &m, err) : load_dictionary(a, &m, err);
        if (rc) return rc;
    }
    ipw_jw_init(&a->json, json);
    rc = write_struct(a, 0, (uint64_t)a->next_row++, err);
    if (rc) return rc;
    a->rows_given++;
    if (json->failed)
        return ipw_fail(err, IPW_ELIMIT, "row %lld is longer than 64 MiB",
                        (long long)a->rows_given);
    return 1;
}

int ipw_arrow_next(struct ipw_arrow *a, struct ipw_buf *json, struct ipw_err *err)
{
    int rc = next_row(a, json, err);

    return rc < 0 ? ipw_err_prefix(err, "%s", a->file.name) : rc;
}

/* ---- opening ---- */

static int open_stream(struct ipw_arrow *a, const char *const *columns, struct ipw_err *err)
{
    struct message m;
    int rc = read_message(a, &m, err);

    if (rc) return rc;
    if (m.end || m.kind != SCHEMA)
        return ipw_fail(err, IPW_EPARSE, "no Arrow stream: it does not begin with a schema");
    a->at = m.body + m.body_length;
    return ipw_arrow_schema_read(&a->schema, &m.flat, m.table, columns, err);
}

static int open_file(struct ipw_arrow *a, const char *const *columns, struct ipw_err *err)
{
    unsigned char tail[4 + MAGIC_BYTES];
    struct ipw_flat f;
    uint32_t n;
    size_t root;
    int rc;

    if (a->file.size < 8 + sizeof tail) return ipw_fail(err, IPW_EPARSE, "the file ends too soon");
    rc = ipw_data_file_read(&a->file, a->file.size - sizeof tail, tail, sizeof tail, err);
    if (rc) return rc;
    if (memcmp(tail + 4, "ARROW1", MAGIC_BYTES) != 0)
        return ipw_fail(err, IPW_EPARSE, "it does not end with ARROW1 (cut off?)");
    n = ipw_le32(tail);
    if (n > METADATA_MAX || n > a->file.size - 8 - sizeof tail)
        return ipw_fail(err, IPW_EPARSE, "a footer of %lu bytes does not fit into the file",
                        (unsigned long)n);
    rc = ipw_block_resize(&a->footer, &a->file, n, err);
    if (!rc)
        rc = ipw_data_file_read(&a->file, a->file.size - sizeof tail - n, a->footer.data, n, err);
    if (rc) return rc;
    f = (struct ipw_flat){.bytes = a->footer.data, .n = n};
    root = ipw_flat_root(&f);
    for (unsigned i = 0; i < 2; i++)
        a->blocks[i] = ipw_flat_vector(&f, root, 2 + i, BLOCK_BYTES, &a->n_blocks[i]);
    if (f.bad || !ipw_flat_table(&f, root, 1))
        return ipw_fail(err, IPW_EPARSE, "the footer is damaged");
    return ipw_arrow_schema_read(&a->schema, &f, ipw_flat_table(&f, root, 1), columns, err);
}

int ipw_arrow_open(struct ipw_arrow **out, struct ipw_data_file *file, const char *const *columns,
                   struct ipw_err *err)
{
    struct ipw_arrow *a = ipw_calloc(1, sizeof *a);
    unsigned char head[MAGIC_BYTES] = {0};
    int rc = 0;

    a->file = *file;
    *file = (struct ipw_data_file){.fd = -1};
    if (a->file.size >= sizeof head) rc = ipw_data_file_read(&a->file, 0, head, sizeof head, err);
    a->is_file = memcmp(head, "ARROW1", sizeof head) == 0;
    if (!rc && memcmp(head, "FEA1", 4) == 0)
        rc = ipw_fail(err, IPW_EUNSUPPORTED, "Feather version 1 is not supported, only version 2");
    if (!rc) rc = a->is_file ? open_file(a, columns, err) : open_stream(a, columns, err);
    if (rc) {
        ipw_err_prefix(err, "%s", a->file.name);
        ipw_arrow_free(a);
        return rc;
    }
    a->columns = ipw_calloc(a->schema.n, sizeof *a->columns);
    a->dictionaries = ipw_calloc(a->schema.n, sizeof *a->dictionaries);
    *out = a;
    return 0;
}

static void release_columns(struct ipw_arrow *a, struct ipw_arrow_column *columns)
{
    for (size_t i = 0; columns && i < a->schema.n; i++) {
        ipw_block_release(&columns[i].valid, &a->file);
        ipw_block_release(&columns[i].offsets, &a->file);
        ipw_block_release(&columns[i].data, &a->file);
    }
    free(columns);
}

void ipw_arrow_free(struct ipw_arrow *a)
{
    if (!a) return;
    release_columns(a, a->columns);
    release_columns(a, a->dictionaries);
    ipw_block_release(&a->metadata, &a->file);
    ipw_block_release(&a->footer, &a->file);
    ipw_block_release(&a->batch.packed, &a->file);
    ipw_arrow_schema_release(&a->schema);
    ipw_data_file_close(&a->file);
    free(a);
}
