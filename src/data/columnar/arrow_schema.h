/* data/columnar/arrow_schema.h: the columns of an Arrow stream or file.
 *
 * Pure.  Arrow's format/Schema.fbs defines the tables, its Columnar.rst the layouts in memory.  The
 * schema is a tree of fields; parents come before children, and the root (field 0) is the row.  For
 * an unsupported type the error names the type and the column. */
#ifndef IPW_DATA_COLUMNAR_ARROW_SCHEMA_H
#define IPW_DATA_COLUMNAR_ARROW_SCHEMA_H

#include "base/err.h"
#include "data/columnar/cell.h"
#include "data/columnar/flatbuffer.h"

enum ipw_arrow_layout {
    IPW_ARROW_NULL,
    IPW_ARROW_BITS,       /* booleans */
    IPW_ARROW_FIXED,      /* `width` bytes per value */
    IPW_ARROW_BYTES,      /* offsets of `width` bytes, and the bytes */
    IPW_ARROW_LIST,       /* offsets of `width` bytes, and a child */
    IPW_ARROW_FIXED_LIST, /* `width` elements per value */
    IPW_ARROW_STRUCT,
};

struct ipw_arrow_field {
    char *name;
    size_t parent;
    enum ipw_arrow_layout layout;
    size_t width;
    struct ipw_cell_type cell;
    size_t n_children, first_child; /* in the schema's order; follow `next` of each child */
    size_t *by_name;                /* the children, sorted by name */
    size_t next;
    bool wanted, coded; /* coded: indices into a dictionary of this type */
    int64_t dictionary;
    unsigned index_width;
    bool index_signed;
};

struct ipw_arrow_schema {
    struct ipw_arrow_field *fields;
    size_t n, cap;
};

/* `table`: position of the Schema.  `columns`: the wanted columns; NULL for all. */
int ipw_arrow_schema_read(struct ipw_arrow_schema *out, struct ipw_flat *f, size_t table,
                          const char *const *columns, struct ipw_err *err);
void ipw_arrow_schema_release(struct ipw_arrow_schema *schema);

#endif
