#include "data/columnar/parquet.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/columnar/parquet_column.h"

struct ipw_parquet {
    struct ipw_data_file file;
    struct ipw_parquet_footer footer;
    struct ipw_parquet_chunk *chunks;
    struct ipw_parquet_column *columns; /* one for each leaf; unused if not wanted */
    size_t groups_read;
    int64_t rows_left, rows_given; /* rows left in the group; rows of the file returned so far */
    struct ipw_jw json;
};

static int fail_leaf(struct ipw_parquet *q, size_t leaf, const char *what, struct ipw_err *err)
{
    char path[256];

    ipw_parquet_node_path(&q->footer, q->footer.leaves[leaf], path, sizeof path);
    if (what)
        return ipw_fail(err, IPW_EPARSE, "column '%s', row %lld: %s", path,
                        (long long)q->rows_given + 1, what);
    return ipw_err_prefix(err, "column '%s', row %lld", path, (long long)q->rows_given + 1);
}

static int peek(struct ipw_parquet *q, size_t leaf, struct ipw_err *err)
{
    int rc = ipw_parquet_column_peek(&q->columns[leaf], err);

    if (rc == 1) return 0;
    return fail_leaf(q, leaf, rc == 0 ? "it has fewer values than rows" : NULL, err);
}

/* Moves past the leaf's value.  Its repetition level must be `repeat`. */
static int take(struct ipw_parquet *q, size_t leaf, unsigned repeat,
                struct ipw_parquet_value *value, struct ipw_err *err)
{
    struct ipw_parquet_column *c = &q->columns[leaf];

    if (c->repeat != repeat)
        return fail_leaf(q, leaf, "its repetition levels do not fit the columns beside it", err);
    if (ipw_parquet_column_take(c, value, err)) return fail_leaf(q, leaf, NULL, err);
    return 0;
}

/* Skips a null or an empty list: each leaf below the node must have the definition level of the
 * node's parent. */
static int take_absent(struct ipw_parquet *q, const struct ipw_parquet_node *node, unsigned repeat,
                       struct ipw_err *err)
{
    struct ipw_parquet_value none;

    for (size_t i = node->first_leaf; i < node->first_leaf + node->n_leaves; i++) {
        int rc = peek(q, i, err);

        if (rc) return rc;
        if (q->columns[i].definition + 1 != node->definition)
            return fail_leaf(q, i, "its definition levels do not fit the columns beside it", err);
        rc = take(q, i, repeat, &none, err);
        if (rc) return rc;
    }
    return 0;
}

static void write_leaf(struct ipw_jw *w, const struct ipw_parquet_node *node,
                       const struct ipw_parquet_value *value)
{
    const unsigned char *p = value->n ? value->p : (const unsigned char *)"";
    const struct ipw_cell_type *type = &node->cell;

    switch (node->physical) {
    case IPW_PARQUET_BOOLEAN: ipw_cell_write_int(w, type, p[0]); return;
    case IPW_PARQUET_INT32:
        if (type->kind == IPW_CELL_UINT)
            ipw_jw_int(w, ipw_le32(p));
        else
            ipw_cell_write_int(w, type, (int32_t)ipw_le32(p));
        return;
    case IPW_PARQUET_INT64: ipw_cell_write_int(w, type, (int64_t)ipw_le64(p)); return;
    case IPW_PARQUET_FLOAT:
    case IPW_PARQUET_DOUBLE: ipw_cell_write_float(w, p, value->n); return;
    default:
        if (type->kind == IPW_CELL_FLOAT) /* FLOAT16 */
            ipw_cell_write_float(w, p, value->n);
        else
            ipw_cell_write_bytes(w, type, p, value->n);
    }
}

static int read_node(struct ipw_parquet *q, size_t index, unsigned repeat, struct ipw_err *err);

static int read_leaf(struct ipw_parquet *q, const struct ipw_parquet_node *node, unsigned repeat,
                     struct ipw_err *err)
{
    struct ipw_parquet_value value = {0};
    int rc = peek(q, node->first_leaf, err);

    if (rc) return rc;
    if (q->columns[node->first_leaf].definition != node->definition)
        return fail_leaf(q, node->first_leaf,
                         "its definition levels do not fit the columns beside it", err);
    rc = take(q, node->first_leaf, repeat, &value, err);
    if (rc) return rc;
    if (node->cell.kind == IPW_CELL_DECIMAL && value.n > 16)
        return fail_leaf(q, node->first_leaf, "a decimal of more than 16 bytes", err);
    write_leaf(&q->json, node, &value);
    return 0;
}

static int read_struct(struct ipw_parquet *q, const struct ipw_parquet_node *node, unsigned repeat,
                       struct ipw_err *err)
{
    int rc = 0;

    ipw_jw_obj(&q->json);
    for (size_t i = 0; !rc && i < node->n_children; i++) {
        const struct ipw_parquet_node *child = &q->footer.nodes[node->children[i]];

        if (!child->wanted) continue;
        ipw_jw_key_any(&q->json, child->name, strlen(child->name));
        rc = read_node(q, node->children[i], repeat, err);
    }
    ipw_jw_obj_end(&q->json);
    return rc;
}

/* Reads a node that is not null. */
static int read_body(struct ipw_parquet *q, const struct ipw_parquet_node *node, unsigned repeat,
                     struct ipw_err *err)
{
    switch (node->shape) {
    case IPW_PARQUET_LEAF: return read_leaf(q, node, repeat, err);
    case IPW_PARQUET_STRUCT: return read_struct(q, node, repeat, err);
    default: return read_node(q, node->children[0], repeat, err);
    }
}

static int read_repeated(struct ipw_parquet *q, const struct ipw_parquet_node *node,
                         unsigned repeat, struct ipw_err *err)
{
    struct ipw_parquet_column *first = &q->columns[node->first_leaf];
    int rc = 0;

    ipw_jw_arr(&q->json);
    if (first->definition < node->definition) {
        rc = take_absent(q, node, repeat, err);
        ipw_jw_arr_end(&q->json);
        return rc;
    }
    do {
        rc = read_body(q, node, repeat, err);
        repeat = node->repeats;
        if (!rc && q->json.out->failed)
            rc = ipw_fail(err, IPW_ELIMIT, "row %lld is longer than 64 MiB",
                          (long long)q->rows_given + 1);
        if (rc) return rc;
        rc = ipw_parquet_column_peek(first, err);
        if (rc < 0) return fail_leaf(q, node->first_leaf, NULL, err);
    } while (rc == 1 && first->repeat == node->repeats);
    if (rc == 1 && first->repeat > node->repeats)
        return fail_leaf(q, node->first_leaf, "a repetition level is too high", err);
    ipw_jw_arr_end(&q->json);
    return 0;
}

static int read_node(struct ipw_parquet *q, size_t index, unsigned repeat, struct ipw_err *err)
{
    const struct ipw_parquet_node *node = &q->footer.nodes[index];
    int rc = peek(q, node->first_leaf, err);

    if (rc) return rc;
    if (node->repetition == IPW_PARQUET_REPEATED) return read_repeated(q, node, repeat, err);
    if (node->repetition == IPW_PARQUET_OPTIONAL &&
        q->columns[node->first_leaf].definition < node->definition) {
        ipw_jw_null(&q->json);
        return take_absent(q, node, repeat, err);
    }
    return read_body(q, node, repeat, err);
}

static bool is_wanted_leaf(const struct ipw_parquet *q, size_t leaf)
{
    return q->footer.nodes[q->footer.leaves[leaf]].wanted;
}

/* Checks that no column has values left after a group's last row. */
static int check_ends(struct ipw_parquet *q, struct ipw_err *err)
{
    for (size_t i = 0; i < q->footer.n_leaves; i++) {
        int rc = is_wanted_leaf(q, i) ? ipw_parquet_column_peek(&q->columns[i], err) : 0;

        if (rc) return fail_leaf(q, i, rc == 1 ? "it has more values than rows" : NULL, err);
    }
    return 0;
}

static int next_group(struct ipw_parquet *q, struct ipw_err *err)
{
    int rc = ipw_parquet_footer_next(&q->footer, &q->rows_left, q->chunks, err);

    for (size_t i = 0; !rc && i < q->footer.n_leaves; i++) {
        if (!is_wanted_leaf(q, i)) continue;
        rc = ipw_parquet_column_start(&q->columns[i], &q->file,
                                      &q->footer.nodes[q->footer.leaves[i]], &q->chunks[i], err);
        if (rc) return fail_leaf(q, i, NULL, err);
    }
    q->groups_read++;
    return rc;
}

static int next_row(struct ipw_parquet *q, struct ipw_buf *json, struct ipw_err *err)
{
    int rc;

    while (q->rows_left == 0) {
        rc = q->groups_read ? check_ends(q, err) : 0;
        if (rc) return rc;
        if (q->groups_read == q->footer.n_groups) {
            if (q->rows_given == q->footer.rows) return 0;
            return ipw_fail(err, IPW_EPARSE, "the footer says %lld rows, the row groups have %lld",
                            (long long)q->footer.rows, (long long)q->rows_given);
        }
        rc = next_group(q, err);
        if (rc) return rc;
    }
    ipw_jw_init(&q->json, json);
    rc = read_struct(q, &q->footer.nodes[0], 0, err);
    if (rc) return rc;
    if (json->failed)
        return ipw_fail(err, IPW_ELIMIT, "row %lld is longer than 64 MiB",
                        (long long)q->rows_given + 1);
    q->rows_left--;
    q->rows_given++;
    return 1;
}

int ipw_parquet_next(struct ipw_parquet *q, struct ipw_buf *json, struct ipw_err *err)
{
    int rc = next_row(q, json, err);

    return rc < 0 ? ipw_err_prefix(err, "%s", q->file.name) : rc;
}

int64_t ipw_parquet_count(const struct ipw_parquet *q) { return q->footer.rows; }

int ipw_parquet_open(struct ipw_parquet **out, struct ipw_data_file *file,
                     const char *const *columns, struct ipw_err *err)
{
    struct ipw_parquet *q = ipw_calloc(1, sizeof *q);
    int rc;

    q->file = *file;
    *file = (struct ipw_data_file){.fd = -1};
    rc = ipw_parquet_footer_read(&q->footer, &q->file, columns, err);
    if (rc) {
        ipw_err_prefix(err, "%s", q->file.name);
        ipw_parquet_free(q);
        return rc;
    }
    q->chunks = ipw_calloc(q->footer.n_leaves, sizeof *q->chunks);
    q->columns = ipw_calloc(q->footer.n_leaves, sizeof *q->columns);
    *out = q;
    return 0;
}

void ipw_parquet_free(struct ipw_parquet *q)
{
    if (!q) return;
    for (size_t i = 0; q->columns && i < q->footer.n_leaves; i++)
        ipw_parquet_column_release(&q->columns[i]);
    ipw_parquet_footer_release(&q->footer, &q->file);
    ipw_data_file_close(&q->file);
    free(q->chunks);
    free(q->columns);
    free(q);
}
