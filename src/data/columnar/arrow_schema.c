#include "data/columnar/arrow_schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/columns.h"

enum { FIELDS_MAX = 30000, DEPTH_MAX = 32, NAME_MAX_BYTES = 1000 };

enum type { /* Schema.fbs's union Type */
            TYPE_NULL = 1,
            TYPE_INT = 2,
            TYPE_FLOAT = 3,
            TYPE_BINARY = 4,
            TYPE_UTF8 = 5,
            TYPE_BOOL = 6,
            TYPE_DECIMAL = 7,
            TYPE_DATE = 8,
            TYPE_TIME = 9,
            TYPE_TIMESTAMP = 10,
            TYPE_INTERVAL = 11,
            TYPE_LIST = 12,
            TYPE_STRUCT = 13,
            TYPE_FIXED_BINARY = 15,
            TYPE_FIXED_LIST = 16,
            TYPE_MAP = 17,
            TYPE_DURATION = 18,
            TYPE_LARGE_BINARY = 19,
            TYPE_LARGE_UTF8 = 20,
            TYPE_LARGE_LIST = 21,
};

static const char *const refused[] = {
    [TYPE_INTERVAL] = "Interval",
    [14] = "Union",
    [TYPE_DURATION] = "Duration",
    [22] = "RunEndEncoded",
    [23] = "BinaryView",
    [24] = "Utf8View",
    [25] = "ListView",
    [26] = "LargeListView",
};

struct tree {
    struct ipw_arrow_schema *schema;
    struct ipw_flat *f;
    const char *const *columns;
    struct ipw_err *err;
};

static int refuse(const struct tree *tree, size_t index, enum ipw_code code, const char *what)
{
    const struct ipw_arrow_field *fields = tree->schema->fields;
    int rc = ipw_fail(tree->err, code, "column '%.80s': %s", fields[index].name, what);

    if (fields[index].parent)
        ipw_err_prefix(tree->err, "in '%.80s'", fields[fields[index].parent].name);
    return rc;
}

static int read_int(const struct tree *tree, size_t index, size_t type)
{
    struct ipw_arrow_field *field = &tree->schema->fields[index];
    int64_t bits = ipw_flat_int(tree->f, type, 0, 4, 0);

    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        return refuse(tree, index, IPW_EPARSE, "an integer of an unknown width");
    field->width = (size_t)bits / 8;
    field->cell.kind = ipw_flat_int(tree->f, type, 1, 1, 0) ? IPW_CELL_INT : IPW_CELL_UINT;
    return 0;
}

static int read_decimal(const struct tree *tree, size_t index, size_t type)
{
    struct ipw_arrow_field *field = &tree->schema->fields[index];
    int64_t precision = ipw_flat_int(tree->f, type, 0, 4, 0);
    int64_t scale = ipw_flat_int(tree->f, type, 1, 4, 0);
    int64_t bits = ipw_flat_int(tree->f, type, 2, 4, 128);

    if (bits != 32 && bits != 64 && bits != 128)
        return refuse(tree, index, IPW_EUNSUPPORTED, "the type Decimal256 is not supported");
    if (precision < 1 || precision > IPW_CELL_DECIMAL_DIGITS || scale < 0 || scale > precision)
        return refuse(tree, index, IPW_EUNSUPPORTED,
                      "a decimal of this precision and scale is not supported");
    field->width = (size_t)bits / 8;
    field->cell = (struct ipw_cell_type){
        .kind = IPW_CELL_DECIMAL, .precision = (int)precision, .scale = (int)scale};
    return 0;
}

/* Date, Time, Timestamp. */
static int read_instant(const struct tree *tree, size_t index, int64_t kind, size_t type)
{
    struct ipw_arrow_field *field = &tree->schema->fields[index];
    int64_t unit = ipw_flat_int(tree->f, type, 0, 2, kind == TYPE_TIMESTAMP ? 0 : 1);
    size_t zone = 0;

    if (unit < 0 || unit > 3) return refuse(tree, index, IPW_EPARSE, "an unknown unit of time");
    field->cell.fraction_digits = 3 * (unsigned)unit;
    switch (kind) {
    case TYPE_DATE:
        field->cell.kind = unit == 0 ? IPW_CELL_DATE : IPW_CELL_DATE_MS;
        field->width = unit == 0 ? 4 : 8;
        return 0;
    case TYPE_TIME:
        field->cell.kind = IPW_CELL_TIME;
        field->width = unit < 2 ? 4 : 8;
        return 0;
    default:
        ipw_flat_text(tree->f, type, 1, &zone);
        field->cell.kind = IPW_CELL_TIMESTAMP;
        field->cell.utc = zone > 0;
        field->width = 8;
        return 0;
    }
}

static int read_type(const struct tree *tree, size_t index, int64_t kind, size_t type)
{
    struct ipw_arrow_field *field = &tree->schema->fields[index];
    int64_t n;

    field->layout = IPW_ARROW_FIXED;
    field->cell = (struct ipw_cell_type){.kind = IPW_CELL_TEXT};
    switch (kind) {
    case TYPE_NULL: field->layout = IPW_ARROW_NULL; return 0;
    case TYPE_INT: return read_int(tree, index, type);
    case TYPE_FLOAT:
        n = ipw_flat_int(tree->f, type, 0, 2, 0);
        if (n < 0 || n > 2) return refuse(tree, index, IPW_EPARSE, "an unknown precision");
        field->cell.kind = IPW_CELL_FLOAT;
        field->width = (size_t)2 << n;
        return 0;
    case TYPE_BINARY:
    case TYPE_LARGE_BINARY: field->cell.kind = IPW_CELL_BINARY; /* fallthrough */
    case TYPE_UTF8:
    case TYPE_LARGE_UTF8:
        field->layout = IPW_ARROW_BYTES;
        field->width = kind == TYPE_BINARY || kind == TYPE_UTF8 ? 4 : 8;
        return 0;
    case TYPE_BOOL:
        field->layout = IPW_ARROW_BITS;
        field->cell.kind = IPW_CELL_BOOL;
        return 0;
    case TYPE_DECIMAL: return read_decimal(tree, index, type);
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP: return read_instant(tree, index, kind, type);
    case TYPE_LIST:
    case TYPE_LARGE_LIST:
    case TYPE_MAP: /* the list of its pairs */
        field->layout = IPW_ARROW_LIST;
        field->width = kind == TYPE_LARGE_LIST ? 8 : 4;
        return 0;
    case TYPE_STRUCT: field->layout = IPW_ARROW_STRUCT; return 0;
    case TYPE_FIXED_BINARY:
    case TYPE_FIXED_LIST:
        n = ipw_flat_int(tree->f, type, 0, 4, 0);
        if (n < 1) return refuse(tree, index, IPW_EPARSE, "a fixed length that is not above 0");
        field->layout = kind == TYPE_FIXED_LIST ? IPW_ARROW_FIXED_LIST : IPW_ARROW_FIXED;
        field->cell.kind = IPW_CELL_BINARY;
        field->width = (size_t)n;
        return 0;
    case TYPE_INTERVAL: /* accepted if unwanted, as they can be skipped */
    case TYPE_DURATION: return field->wanted;
    default: return 1;
    }
}

static int refuse_type(const struct tree *tree, size_t index, int64_t kind)
{
    bool known = kind >= 0 && kind < (int64_t)(sizeof refused / sizeof *refused) && refused[kind];
    char *what = known ? ipw_asprintf("the type %s is not supported", refused[kind])
                       : ipw_asprintf("the type with the number %d is not supported", (int)kind);
    int rc = refuse(tree, index, IPW_EUNSUPPORTED, what);

    free(what);
    return rc;
}

/* Two canonical extension types change the meaning of the bytes.  Others are read as their storage
 * type. */
static void read_extension(const struct tree *tree, size_t index, size_t table)
{
    struct ipw_arrow_field *field = &tree->schema->fields[index];
    size_t n, vector = ipw_flat_vector(tree->f, table, 6, 4, &n);

    for (size_t i = 0; i < n; i++) {
        size_t pair = ipw_flat_element(tree->f, vector, i), key_n, value_n;
        const char *key = ipw_flat_text(tree->f, pair, 0, &key_n);
        const char *value = ipw_flat_text(tree->f, pair, 1, &value_n);

        if (key_n != 20 || memcmp(key, "ARROW:extension:name", 20) != 0) continue;
        if (value_n == 10 && memcmp(value, "arrow.json", 10) == 0 &&
            field->layout == IPW_ARROW_BYTES)
            field->cell.kind = IPW_CELL_JSON;
        if (value_n == 10 && memcmp(value, "arrow.uuid", 10) == 0 && field->width == 16 &&
            field->layout == IPW_ARROW_FIXED)
            field->cell.kind = IPW_CELL_UUID;
    }
}

static int read_coding(const struct tree *tree, size_t index, size_t coding)
{
    struct ipw_arrow_field *field = &tree->schema->fields[index];
    size_t type = ipw_flat_table(tree->f, coding, 1);
    int64_t bits = type ? ipw_flat_int(tree->f, type, 0, 4, 0) : 32;

    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        return refuse(tree, index, IPW_EPARSE, "dictionary indices of an unknown width");
    for (size_t up = field->parent; up; up = tree->schema->fields[up].parent)
        if (tree->schema->fields[up].coded)
            return refuse(tree, index, IPW_EUNSUPPORTED,
                          "a dictionary inside a dictionary is not supported");
    field->coded = true;
    field->dictionary = ipw_flat_int(tree->f, coding, 0, 8, 0);
    field->index_width = (unsigned)bits / 8;
    field->index_signed = type ? ipw_flat_int(tree->f, type, 1, 1, 0) != 0 : true;
    return 0;
}

static int compare_names(const void *a, const void *b, void *fields)
{
    const struct ipw_arrow_field *f = fields;

    return strcmp(f[*(const size_t *)a].name, f[*(const size_t *)b].name);
}

static int sort_children(const struct tree *tree, size_t index)
{
    struct ipw_arrow_field *fields = tree->schema->fields, *field = &fields[index];
    size_t n = 0;

    field->by_name = ipw_calloc(field->n_children + 1, sizeof *field->by_name);
    for (size_t c = field->first_child; n < field->n_children; c = fields[c].next)
        field->by_name[n++] = c;
    qsort_r(field->by_name, n, sizeof *field->by_name, compare_names, fields);
    for (size_t i = 1; i < n && field->layout == IPW_ARROW_STRUCT; i++)
        if (strcmp(fields[field->by_name[i - 1]].name, fields[field->by_name[i]].name) == 0)
            return refuse(tree, field->by_name[i], IPW_EPARSE, "two columns have this name");
    return 0;
}

static int add_field(const struct tree *tree, size_t parent, size_t table, int depth);

static int add_children(const struct tree *tree, size_t index, size_t table, unsigned from,
                        int depth)
{
    size_t n, vector = ipw_flat_vector(tree->f, table, from, 4, &n), last = 0;

    for (size_t i = 0; i < n; i++) {
        size_t child = tree->schema->n;
        int rc = add_field(tree, index, ipw_flat_element(tree->f, vector, i), depth);

        if (rc) return rc;
        if (last)
            tree->schema->fields[last].next = child;
        else
            tree->schema->fields[index].first_child = child;
        last = child;
    }
    tree->schema->fields[index].n_children = n;
    return sort_children(tree, index);
}

static int add_field(const struct tree *tree, size_t parent, size_t table, int depth)
{
    struct ipw_arrow_schema *schema = tree->schema;
    size_t index = schema->n, n, type, coding;
    struct ipw_arrow_field *field;
    const char *name;
    int64_t kind;
    int rc;

    if (!table || tree->f->bad) return ipw_fail(tree->err, IPW_EPARSE, "the schema is damaged");
    if (index >= FIELDS_MAX)
        return ipw_fail(tree->err, IPW_ELIMIT, "more than 30000 columns and fields in them");
    IPW_GROW(schema->fields, schema->cap, index + 1);
    field = &schema->fields[schema->n++];
    name = ipw_flat_text(tree->f, table, 0, &n);
    *field = (struct ipw_arrow_field){
        .name = ipw_column_name(name, n < NAME_MAX_BYTES ? n : NAME_MAX_BYTES), .parent = parent};
    field->wanted =
        parent ? schema->fields[parent].wanted : ipw_column_is_wanted(tree->columns, field->name);
    if (depth > DEPTH_MAX) return refuse(tree, index, IPW_ELIMIT, "more than 32 levels");
    kind = ipw_flat_int(tree->f, table, 2, 1, 0);
    type = ipw_flat_table(tree->f, table, 3);
    rc = read_type(tree, index, kind, type);
    if (rc > 0)
        return refuse_type(tree, index,
                           kind); /* even if not wanted: its buffers cannot be skipped */
    if (rc) return rc;
    read_extension(tree, index, table);
    coding = ipw_flat_table(tree->f, table, 4);
    rc = coding ? read_coding(tree, index, coding) : 0;
    if (!rc) rc = add_children(tree, index, table, 5, depth + 1);
    if (rc) return rc;
    field = &schema->fields[index]; /* the array may have moved */
    n = field->n_children;
    if (field->layout == IPW_ARROW_LIST || field->layout == IPW_ARROW_FIXED_LIST ? n != 1
        : field->layout != IPW_ARROW_STRUCT                                      ? n != 0
                                                                                 : false)
        return refuse(tree, index, IPW_EPARSE, "a type with the wrong number of children");
    return 0;
}

int ipw_arrow_schema_read(struct ipw_arrow_schema *out, struct ipw_flat *f, size_t table,
                          const char *const *columns, struct ipw_err *err)
{
    struct tree tree = {out, f, columns, err};
    int rc;

    *out = (struct ipw_arrow_schema){0};
    if (ipw_flat_int(f, table, 0, 2, 0) != 0)
        return ipw_fail(err, IPW_EUNSUPPORTED, "big-endian Arrow is not supported");
    IPW_GROW(out->fields, out->cap, 1);
    out->fields[out->n++] = (struct ipw_arrow_field){
        .name = ipw_strdup(""), .layout = IPW_ARROW_STRUCT, .wanted = true};
    rc = add_children(&tree, 0, table, 1, 1);
    if (!rc && f->bad) rc = ipw_fail(err, IPW_EPARSE, "the schema is damaged");
    if (rc) ipw_arrow_schema_release(out);
    return rc;
}

void ipw_arrow_schema_release(struct ipw_arrow_schema *schema)
{
    for (size_t i = 0; i < schema->n; i++) {
        free(schema->fields[i].name);
        free(schema->fields[i].by_name);
    }
    free(schema->fields);
    *schema = (struct ipw_arrow_schema){0};
}
