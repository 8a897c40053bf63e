#include "data/columnar/parquet_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "data/columns.h"

#define FOOTER_MAX (64 * IPW_MIB)

enum { NODES_MAX = 30000, DEPTH_MAX = 32, TAIL_BYTES = 8, NAME_MAX_BYTES = 1000 };

/* LogicalType's fields. */
enum logical {
    NO_LOGICAL,
    STRING = 1,
    MAP = 2,
    LIST = 3,
    ENUM = 4,
    DECIMAL = 5,
    DATE = 6,
    TIME = 7,
    TIMESTAMP = 8,
    INTERVAL = 9,
    INTEGER = 10,
    UNKNOWN = 11,
    JSON = 12,
    BSON = 13,
    UUID = 14,
    FLOAT16 = 15,
    VARIANT = 16,
};

struct element {
    struct ipw_thrift_slice name;
    int64_t physical, width, repetition, children; /* physical -1: a group */
    int logical;
    int64_t scale, precision;
    unsigned fraction_digits;
    bool utc, is_signed;
};

static const unsigned digits_of_unit[] = {0, 3, 6, 9};

/* ---- elements ---- */

/* The struct of TIME and TIMESTAMP: a UTC flag, and a union of units. */
static void read_time_type(struct ipw_thrift *t, struct element *e)
{
    for (struct ipw_thrift_field f = {0}; ipw_thrift_next(t, &f);) {
        if (f.id == 1) {
            e->utc = ipw_thrift_bool(t, &f);
        } else if (f.id == 2 && ipw_thrift_struct(t, &f)) {
            for (struct ipw_thrift_field unit = {0}; ipw_thrift_next(t, &unit);) {
                if (unit.id >= 1 && unit.id <= 3) e->fraction_digits = digits_of_unit[unit.id];
                ipw_thrift_skip(t, &unit);
            }
        } else {
            ipw_thrift_skip(t, &f);
        }
    }
}

static void read_logical(struct ipw_thrift *t, struct element *e)
{
    for (struct ipw_thrift_field kind = {0}; ipw_thrift_next(t, &kind);) {
        e->logical = kind.id;
        if (!ipw_thrift_struct(t, &kind)) return;
        if (kind.id == TIME || kind.id == TIMESTAMP) {
            read_time_type(t, e);
            continue;
        }
        for (struct ipw_thrift_field f = {0}; ipw_thrift_next(t, &f);) {
            if (kind.id == DECIMAL && f.id == 1)
                e->scale = ipw_thrift_int(t, &f);
            else if (kind.id == DECIMAL && f.id == 2)
                e->precision = ipw_thrift_int(t, &f);
            else if (kind.id == INTEGER && f.id == 2)
                e->is_signed = ipw_thrift_bool(t, &f);
            else
                ipw_thrift_skip(t, &f);
        }
    }
}

/* Older writers have a converted type instead of a logical type. */
static void take_converted(struct element *e, int64_t converted)
{
    static const struct {
        int logical;
        unsigned fraction_digits;
    } types[] = {
        {STRING, 0},  {MAP, 0},     {MAP, 0},     {LIST, 0},      {ENUM, 0},      {DECIMAL, 0},
        {DATE, 0},    {TIME, 3},    {TIME, 6},    {TIMESTAMP, 3}, {TIMESTAMP, 6}, {INTEGER, 0},
        {INTEGER, 0}, {INTEGER, 0}, {INTEGER, 0}, {INTEGER, 0},   {INTEGER, 0},   {INTEGER, 0},
        {INTEGER, 0}, {JSON, 0},    {BSON, 0},    {INTERVAL, 0},
    };
    enum { UINT_8 = 11, UINT_64 = 14 };

    if (e->logical || converted < 0 || converted >= (int64_t)(sizeof types / sizeof *types)) return;
    e->logical = types[converted].logical;
    e->fraction_digits = types[converted].fraction_digits;
    e->is_signed = converted < UINT_8 || converted > UINT_64;
    e->utc = e->logical == TIMESTAMP;
}

static struct element read_element(struct ipw_thrift *t)
{
    struct element e = {.physical = -1, .is_signed = true};
    int64_t converted = -1;

    for (struct ipw_thrift_field f = {0}; ipw_thrift_next(t, &f);) {
        switch (f.id) {
        case 1: e.physical = ipw_thrift_int(t, &f); break;
        case 2: e.width = ipw_thrift_int(t, &f); break;
        case 3: e.repetition = ipw_thrift_int(t, &f); break;
        case 4: e.name = ipw_thrift_bytes(t, &f); break;
        case 5: e.children = ipw_thrift_int(t, &f); break;
        case 6: converted = ipw_thrift_int(t, &f); break;
        case 7: e.scale = ipw_thrift_int(t, &f); break;
        case 8: e.precision = ipw_thrift_int(t, &f); break;
        case 10:
            if (ipw_thrift_struct(t, &f)) read_logical(t, &e);
            break;
        default: ipw_thrift_skip(t, &f);
        }
    }
    take_converted(&e, converted);
    return e;
}

/* ---- the tree ---- */

struct tree {
    struct ipw_parquet_footer *footer;
    struct ipw_thrift *t;
    size_t elements;
    const char *const *columns;
    struct ipw_err *err;
};

void ipw_parquet_node_path(const struct ipw_parquet_footer *footer, size_t node, char *out,
                           size_t room)
{
    size_t up[DEPTH_MAX + 1], n = 0, at = 0;

    for (; node && n <= DEPTH_MAX; node = footer->nodes[node].parent) up[n++] = node;
    out[0] = '\0';
    while (n-- && at < room)
        at += (size_t)snprintf(out + at, room - at, "%s%.80s", at ? "." : "",
                               footer->nodes[up[n]].name);
}

static int refuse(const struct tree *tree, size_t node, enum ipw_code code, const char *what)
{
    char path[256];

    ipw_parquet_node_path(tree->footer, node, path, sizeof path);
    return ipw_fail(tree->err, code, "column '%s': %s", path, what);
}

static int unsupported(const struct tree *tree, size_t node, const char *type)
{
    char what[120];

    snprintf(what, sizeof what, "the type %s is not supported", type);
    return refuse(tree, node, IPW_EUNSUPPORTED, what);
}

static int misfit(const struct tree *tree, size_t node)
{
    return refuse(tree, node, IPW_EPARSE, "its logical type does not fit how it is stored");
}

static bool is_bytes(enum ipw_parquet_physical physical)
{
    return physical == IPW_PARQUET_BYTE_ARRAY || physical == IPW_PARQUET_FIXED;
}

static int type_decimal(const struct tree *tree, size_t index, const struct element *e)
{
    struct ipw_parquet_node *node = &tree->footer->nodes[index];

    if (e->precision < 1 || e->scale < 0 || e->scale > e->precision ||
        (node->physical != IPW_PARQUET_INT32 && node->physical != IPW_PARQUET_INT64 &&
         !is_bytes(node->physical)))
        return misfit(tree, index);
    if (e->precision > IPW_CELL_DECIMAL_DIGITS || node->width > 16)
        return unsupported(tree, index, "decimal of more than 38 digits");
    node->cell.kind = IPW_CELL_DECIMAL;
    node->cell.precision = (int)e->precision;
    node->cell.scale = (int)e->scale;
    return 0;
}

/* Sets the cell type of a leaf. */
static int type_leaf(const struct tree *tree, size_t index, const struct element *e)
{
    static const enum ipw_cell_kind plain[] = {IPW_CELL_BOOL,   IPW_CELL_INT,   IPW_CELL_INT,
                                               IPW_CELL_INT96,  IPW_CELL_FLOAT, IPW_CELL_FLOAT,
                                               IPW_CELL_BINARY, IPW_CELL_BINARY};
    struct ipw_parquet_node *node = &tree->footer->nodes[index];
    struct ipw_cell_type *cell = &node->cell;
    bool int32 = node->physical == IPW_PARQUET_INT32, int64 = node->physical == IPW_PARQUET_INT64;

    *cell = (struct ipw_cell_type){
        .kind = plain[node->physical], .fraction_digits = e->fraction_digits, .utc = e->utc};
    switch (e->logical) {
    case NO_LOGICAL:
    case UNKNOWN: return 0;
    case STRING:
    case ENUM:
    case JSON:
        cell->kind = e->logical == JSON ? IPW_CELL_JSON : IPW_CELL_TEXT;
        return is_bytes(node->physical) ? 0 : misfit(tree, index);
    case DECIMAL: return type_decimal(tree, index, e);
    case INTEGER:
        cell->kind = e->is_signed ? IPW_CELL_INT : IPW_CELL_UINT;
        return int32 || int64 ? 0 : misfit(tree, index);
    case DATE: cell->kind = IPW_CELL_DATE; return int32 ? 0 : misfit(tree, index);
    case TIME: cell->kind = IPW_CELL_TIME; return int32 || int64 ? 0 : misfit(tree, index);
    case TIMESTAMP: cell->kind = IPW_CELL_TIMESTAMP; return int64 ? 0 : misfit(tree, index);
    case UUID:
        cell->kind = IPW_CELL_UUID;
        return node->physical == IPW_PARQUET_FIXED && node->width == 16 ? 0 : misfit(tree, index);
    case FLOAT16:
        cell->kind = IPW_CELL_FLOAT;
        return node->physical == IPW_PARQUET_FIXED && node->width == 2 ? 0 : misfit(tree, index);
    case INTERVAL: return unsupported(tree, index, "INTERVAL");
    case BSON: return unsupported(tree, index, "BSON");
    case VARIANT: return unsupported(tree, index, "VARIANT");
    default: return unsupported(tree, index, "GEOMETRY, GEOGRAPHY or another new logical type");
    }
}

static int add_leaf(const struct tree *tree, size_t index, const struct element *e, bool wanted)
{
    static const uint32_t widths[] = {0, 4, 8, 12, 4, 8, 0};
    struct ipw_parquet_node *node = &tree->footer->nodes[index];

    if (e->physical > IPW_PARQUET_FIXED)
        return refuse(tree, index, IPW_EPARSE, "its stored type has an unknown number");
    node->physical = (enum ipw_parquet_physical)e->physical;
    if (node->physical != IPW_PARQUET_FIXED) {
        node->width = widths[node->physical];
    } else {
        if (e->width < 1 || e->width > INT32_MAX)
            return refuse(tree, index, IPW_EPARSE, "FIXED_LEN_BYTE_ARRAY without a length");
        node->width = (uint32_t)e->width;
    }
    tree->footer->leaves[tree->footer->n_leaves++] = index;
    return wanted ? type_leaf(tree, index, e) : 0;
}

static int compare_names(const void *a, const void *b, void *nodes)
{
    const struct ipw_parquet_node *n = nodes;

    return strcmp(n[*(const size_t *)a].name, n[*(const size_t *)b].name);
}

static int sort_children(const struct tree *tree, size_t index)
{
    struct ipw_parquet_node *nodes = tree->footer->nodes, *node = &nodes[index];

    qsort_r(node->children, node->n_children, sizeof *node->children, compare_names, nodes);
    for (size_t i = 1; i < node->n_children; i++)
        if (strcmp(nodes[node->children[i - 1]].name, nodes[node->children[i]].name) == 0)
            return refuse(tree, node->children[i], IPW_EPARSE, "two columns have this name");
    return 0;
}

/* Applies the rules of LogicalTypes.md for lists, including the rules for older writers. */
static int shape_list(const struct tree *tree, size_t index)
{
    struct ipw_parquet_node *nodes = tree->footer->nodes, *node = &nodes[index], *repeated;
    size_t n = strlen(node->name);

    if (node->n_children != 1 || node->repetition == IPW_PARQUET_REPEATED)
        return refuse(tree, index, IPW_EPARSE, "a list is not stored as LogicalTypes.md says");
    repeated = &nodes[node->children[0]];
    if (repeated->repetition != IPW_PARQUET_REPEATED)
        return refuse(tree, index, IPW_EPARSE, "a list is not stored as LogicalTypes.md says");
    node->shape = IPW_PARQUET_LIST;
    if (repeated->shape != IPW_PARQUET_LEAF && repeated->n_children == 1 &&
        strcmp(repeated->name, "array") != 0 &&
        !(strncmp(repeated->name, node->name, n) == 0 && strcmp(repeated->name + n, "_tuple") == 0))
        repeated->shape = IPW_PARQUET_WRAPPER;
    return 0;
}

static int add_node(struct tree *tree, size_t parent, int depth, bool wanted);

static int add_children(struct tree *tree, size_t index, const struct element *e, int depth,
                        bool wanted)
{
    struct ipw_parquet_footer *footer = tree->footer;

    if (e->children < 1 || (size_t)e->children > tree->elements - footer->n_nodes)
        return refuse(tree, index, IPW_EPARSE, "a group whose children are not in the schema");
    footer->nodes[index].children =
        ipw_calloc((size_t)e->children, sizeof *footer->nodes[index].children);
    for (int64_t i = 0; i < e->children; i++) {
        size_t child = footer->n_nodes;
        int rc = add_node(tree, index, depth + 1, wanted);

        if (rc) return rc;
        footer->nodes[index].children[footer->nodes[index].n_children++] = child;
    }
    return sort_children(tree, index);
}

/* Reads the next element and its children.  The array of nodes is already large enough. */
static int add_node(struct tree *tree, size_t parent, int depth, bool wanted)
{
    struct ipw_parquet_footer *footer = tree->footer;
    size_t index = footer->n_nodes++;
    struct ipw_parquet_node *node = &footer->nodes[index];
    struct element e;
    int rc;

    if (index >= tree->elements) return ipw_fail(tree->err, IPW_EPARSE, "the schema ends too soon");
    e = read_element(tree->t);
    if (tree->t->wrong) return ipw_fail(tree->err, IPW_EPARSE, "schema: %s", tree->t->wrong);
    node->name = ipw_column_name(e.name.s, e.name.n < NAME_MAX_BYTES ? e.name.n : NAME_MAX_BYTES);
    node->parent = parent;
    node->shape = e.physical < 0 ? IPW_PARQUET_STRUCT : IPW_PARQUET_LEAF;
    if (depth > DEPTH_MAX) return refuse(tree, index, IPW_ELIMIT, "more than 32 levels of groups");
    if (e.repetition < 0 || e.repetition > IPW_PARQUET_REPEATED)
        return refuse(tree, index, IPW_EPARSE, "its repetition has an unknown number");
    if (index) {
        node->repetition = (enum ipw_parquet_repetition)e.repetition;
        node->definition =
            footer->nodes[parent].definition + (e.repetition != IPW_PARQUET_REQUIRED);
        node->repeats = footer->nodes[parent].repeats + (e.repetition == IPW_PARQUET_REPEATED);
    }
    if (depth == 1) wanted = ipw_column_is_wanted(tree->columns, node->name);
    node->wanted = wanted;
    node->first_leaf = footer->n_leaves;
    if (node->shape == IPW_PARQUET_LEAF && index == 0)
        return ipw_fail(tree->err, IPW_EPARSE, "the schema does not begin with a group");
    rc = node->shape == IPW_PARQUET_LEAF ? add_leaf(tree, index, &e, wanted)
                                         : add_children(tree, index, &e, depth, wanted);
    if (rc) return rc;
    node->n_leaves = footer->n_leaves - node->first_leaf;
    if (node->shape == IPW_PARQUET_LEAF || !wanted || !index) return 0;
    if (e.logical == VARIANT) return unsupported(tree, index, "VARIANT");
    /* A map is the list of its pairs; older writers give their group the map's type, too. */
    if (e.logical == MAP && node->repetition != IPW_PARQUET_REPEATED)
        return shape_list(tree, index);
    return e.logical == LIST ? shape_list(tree, index) : 0;
}

/* ---- the footer ---- */

static int read_schema(struct ipw_parquet_footer *footer, struct ipw_thrift *t, size_t elements,
                       const char *const *columns, struct ipw_err *err)
{
    struct tree tree = {footer, t, elements, columns, err};
    int rc;

    if (footer->nodes) return ipw_fail(err, IPW_EPARSE, "the footer has two schemas");
    if (elements > NODES_MAX)
        return ipw_fail(err, IPW_ELIMIT, "%zu columns and groups; 30000 is the limit", elements);
    if (elements == 0) return ipw_fail(err, IPW_EPARSE, "the schema is empty");
    footer->nodes = ipw_calloc(elements, sizeof *footer->nodes);
    footer->leaves = ipw_calloc(elements, sizeof *footer->leaves);
    rc = add_node(&tree, 0, 0, !columns);
    if (rc) {
        if (footer->n_nodes > elements) footer->n_nodes = elements;
        return rc;
    }
    if (footer->n_nodes != elements)
        return ipw_fail(err, IPW_EPARSE,
                        "the schema has %zu elements, of which %zu are in its tree", elements,
                        footer->n_nodes);
    return 0;
}

static int read_metadata(struct ipw_parquet_footer *footer, struct ipw_thrift *t,
                         const char *const *columns, struct ipw_err *err)
{
    int rc = 0;

    footer->rows = -1;
    for (struct ipw_thrift_field f = {0}; !rc && ipw_thrift_next(t, &f);) {
        size_t n;

        switch (f.id) {
        case 2:
            n = ipw_thrift_list(t, &f, IPW_THRIFT_STRUCT);
            if (!t->wrong) rc = read_schema(footer, t, n, columns, err);
            break;
        case 3: footer->rows = ipw_thrift_int(t, &f); break;
        case 4:
            footer->n_groups = ipw_thrift_list(t, &f, IPW_THRIFT_STRUCT);
            footer->groups = *t;
            f.type = IPW_THRIFT_STRUCT;
            for (size_t i = 0; i < footer->n_groups && !t->wrong; i++) ipw_thrift_skip(t, &f);
            break;
        case 8: return ipw_fail(err, IPW_EUNSUPPORTED, "the file is encrypted");
        default: ipw_thrift_skip(t, &f);
        }
    }
    if (rc) return rc;
    if (t->wrong) return ipw_fail(err, IPW_EPARSE, "footer: %s", t->wrong);
    if (!footer->nodes) return ipw_fail(err, IPW_EPARSE, "the footer has no schema");
    if (footer->rows < 0)
        return ipw_fail(err, IPW_EPARSE, "the footer does not say how many rows there are");
    return 0;
}

int ipw_parquet_footer_read(struct ipw_parquet_footer *footer, struct ipw_data_file *file,
                            const char *const *columns, struct ipw_err *err)
{
    unsigned char tail[TAIL_BYTES], head[4];
    struct ipw_thrift t;
    uint32_t n;
    int rc;

    *footer = (struct ipw_parquet_footer){.file = file};
    if (file->size < sizeof head + TAIL_BYTES)
        return ipw_fail(err, IPW_EPARSE, "%llu bytes are too few for a Parquet file",
                        (unsigned long long)file->size);
    rc = ipw_data_file_read(file, 0, head, sizeof head, err);
    if (!rc) rc = ipw_data_file_read(file, file->size - TAIL_BYTES, tail, TAIL_BYTES, err);
    if (rc) return rc;
    if (memcmp(tail + 4, "PARE", 4) == 0)
        return ipw_fail(err, IPW_EUNSUPPORTED, "its footer is encrypted");
    if (memcmp(head, "PAR1", 4) != 0)
        return ipw_fail(err, IPW_EPARSE, "no Parquet file: it does not begin with PAR1");
    if (memcmp(tail + 4, "PAR1", 4) != 0)
        return ipw_fail(err, IPW_EPARSE, "it does not end with PAR1 (cut off?)");
    n = ipw_le32(tail);
    if (n > file->size - sizeof head - TAIL_BYTES || n > FOOTER_MAX)
        return ipw_fail(err, IPW_EPARSE, "a footer of %lu bytes does not fit into the file",
                        (unsigned long)n);
    rc = ipw_block_resize(&footer->bytes, file, n, err);
    if (!rc) rc = ipw_data_file_read(file, file->size - TAIL_BYTES - n, footer->bytes.data, n, err);
    if (rc) return rc;
    t = (struct ipw_thrift){.p = footer->bytes.data, .end = footer->bytes.data + n};
    return read_metadata(footer, &t, columns, err);
}

void ipw_parquet_footer_release(struct ipw_parquet_footer *footer, struct ipw_data_file *file)
{
    for (size_t i = 0; i < footer->n_nodes; i++) {
        free(footer->nodes[i].name);
        free(footer->nodes[i].children);
    }
    free(footer->nodes);
    free(footer->leaves);
    ipw_block_release(&footer->bytes, file);
    *footer = (struct ipw_parquet_footer){0};
}

/* ---- row groups ---- */

struct chunk_metadata {
    int64_t physical, codec, values, packed_bytes, data_at, dictionary_at;
    bool there, elsewhere, encrypted;
};

static void read_chunk_metadata(struct ipw_thrift *t, struct chunk_metadata *m)
{
    m->there = true;
    for (struct ipw_thrift_field f = {0}; ipw_thrift_next(t, &f);) {
        switch (f.id) {
        case 1: m->physical = ipw_thrift_int(t, &f); break;
        case 4: m->codec = ipw_thrift_int(t, &f); break;
        case 5: m->values = ipw_thrift_int(t, &f); break;
        case 7: m->packed_bytes = ipw_thrift_int(t, &f); break;
        case 9: m->data_at = ipw_thrift_int(t, &f); break;
        case 11: m->dictionary_at = ipw_thrift_int(t, &f); break;
        default: ipw_thrift_skip(t, &f);
        }
    }
}

static struct chunk_metadata read_chunk(struct ipw_thrift *t)
{
    struct chunk_metadata m = {.physical = -1, .values = -1, .codec = -1};

    for (struct ipw_thrift_field f = {0}; ipw_thrift_next(t, &f);) {
        if (f.id == 3 && ipw_thrift_struct(t, &f)) {
            read_chunk_metadata(t, &m);
            continue;
        }
        m.elsewhere |= f.id == 1;
        m.encrypted |= f.id == 8 || f.id == 9;
        ipw_thrift_skip(t, &f);
    }
    return m;
}

static int check_chunk(const struct ipw_parquet_footer *footer, size_t leaf,
                       const struct chunk_metadata *m, struct ipw_parquet_chunk *out,
                       struct ipw_err *err)
{
    const struct ipw_parquet_node *node = &footer->nodes[footer->leaves[leaf]];
    uint64_t from =
        (uint64_t)(m->dictionary_at > 0 && m->dictionary_at < m->data_at ? m->dictionary_at
                                                                         : m->data_at);

    if (m->elsewhere) return ipw_fail(err, IPW_EUNSUPPORTED, "its data is in another file");
    if (m->encrypted) return ipw_fail(err, IPW_EUNSUPPORTED, "it is encrypted");
    if (!m->there || m->physical != (int64_t)node->physical || m->values < 0)
        return ipw_fail(err, IPW_EPARSE, "its column chunk does not fit the schema");
    if (m->data_at < 4 || m->packed_bytes < 0 || from > footer->file->size ||
        (uint64_t)m->packed_bytes > footer->file->size - from)
        return ipw_fail(err, IPW_EPARSE,
                        "its column chunk (%lld bytes at byte %llu) is not in the file",
                        (long long)m->packed_bytes, (unsigned long long)from);
    *out = (struct ipw_parquet_chunk){.codec = m->codec < 0 || m->codec > 99 ? -1 : (int)m->codec,
                                      .values = (uint64_t)m->values,
                                      .at = from,
                                      .end = from + (uint64_t)m->packed_bytes};
    return 0;
}

static int read_chunks(struct ipw_parquet_footer *footer, struct ipw_thrift *t, size_t n,
                       struct ipw_parquet_chunk *chunks, struct ipw_err *err)
{
    uint64_t bytes = 0;

    if (t->wrong) return 0;
    if (n != footer->n_leaves)
        return ipw_fail(err, IPW_EPARSE, "a row group has %zu columns, the schema %zu", n,
                        footer->n_leaves);
    for (size_t i = 0; i < n && !t->wrong; i++) {
        struct chunk_metadata m = read_chunk(t);
        char path[256];
        int rc = t->wrong ? 0 : check_chunk(footer, i, &m, &chunks[i], err);

        if (rc) {
            ipw_parquet_node_path(footer, footer->leaves[i], path, sizeof path);
            return ipw_err_prefix(err, "column '%s'", path);
        }
        bytes += chunks[i].end - chunks[i].at;
        if (bytes > footer->file->size)
            return ipw_fail(err, IPW_EPARSE, "a row group's columns are longer than the file");
    }
    return 0;
}

int ipw_parquet_footer_next(struct ipw_parquet_footer *footer, int64_t *rows,
                            struct ipw_parquet_chunk *chunks, struct ipw_err *err)
{
    struct ipw_thrift *t = &footer->groups;
    bool has_chunks = false;
    int rc = 0;

    *rows = -1;
    for (struct ipw_thrift_field f = {0}; !rc && ipw_thrift_next(t, &f);) {
        if (f.id == 1) {
            rc = read_chunks(footer, t, ipw_thrift_list(t, &f, IPW_THRIFT_STRUCT), chunks, err);
            has_chunks = true;
        } else if (f.id == 3) {
            *rows = ipw_thrift_int(t, &f);
        } else {
            ipw_thrift_skip(t, &f);
        }
    }
    if (rc) return rc;
    if (t->wrong) return ipw_fail(err, IPW_EPARSE, "footer: %s", t->wrong);
    if (!has_chunks || *rows < 0)
        return ipw_fail(err, IPW_EPARSE, "footer: a row group without rows or columns");
    return 0;
}
