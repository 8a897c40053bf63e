/* data/columnar/parquet_schema.h: a Parquet file's footer: its columns, and where their bytes are.
 *
 * parquet-format's parquet.thrift defines the structs, its README.md and LogicalTypes.md their
 * meaning.  The schema is a tree of nodes in the order of the file.  A node's leaves are the column
 * chunks `first_leaf` to `first_leaf + n_leaves - 1` of each row group.  For an unsupported type
 * the error names the type and the column.  Row groups are parsed one at a time from the footer's
 * bytes, which the struct keeps. */
#ifndef IPW_DATA_COLUMNAR_PARQUET_SCHEMA_H
#define IPW_DATA_COLUMNAR_PARQUET_SCHEMA_H

#include "data/columnar/cell.h"
#include "data/columnar/data_file.h"
#include "data/columnar/thrift.h"

enum ipw_parquet_physical {
    IPW_PARQUET_BOOLEAN,
    IPW_PARQUET_INT32,
    IPW_PARQUET_INT64,
    IPW_PARQUET_INT96,
    IPW_PARQUET_FLOAT,
    IPW_PARQUET_DOUBLE,
    IPW_PARQUET_BYTE_ARRAY,
    IPW_PARQUET_FIXED, /* FIXED_LEN_BYTE_ARRAY */
};

enum ipw_parquet_repetition { IPW_PARQUET_REQUIRED, IPW_PARQUET_OPTIONAL, IPW_PARQUET_REPEATED };

enum ipw_parquet_shape {
    IPW_PARQUET_LEAF,
    IPW_PARQUET_STRUCT,
    IPW_PARQUET_LIST,    /* a group around one repeated node */
    IPW_PARQUET_WRAPPER, /* a repeated group with one child: each repetition is that child */
};

struct ipw_parquet_node {
    char *name;
    size_t parent;
    enum ipw_parquet_shape shape;
    enum ipw_parquet_repetition repetition;
    enum ipw_parquet_physical physical;
    uint32_t width;            /* bytes of a stored value; 0 for BYTE_ARRAY and BOOLEAN */
    struct ipw_cell_type cell; /* of a leaf */
    unsigned definition;       /* definition level of a value that is not null */
    unsigned repeats;          /* repetition level */
    size_t n_children;
    size_t *children; /* indices of nodes, sorted by name */
    size_t first_leaf, n_leaves;
    bool wanted;
};

struct ipw_parquet_chunk {
    int codec;
    uint64_t values;  /* number of values */
    uint64_t at, end; /* the file offsets of its pages */
};

struct ipw_parquet_footer {
    const struct ipw_data_file *file;
    struct ipw_block bytes;
    struct ipw_parquet_node *nodes; /* the root first */
    size_t n_nodes;
    size_t *leaves; /* indices of the leaf nodes */
    size_t n_leaves;
    int64_t rows;
    struct ipw_thrift groups; /* positioned before the next row group */
    size_t n_groups;
};

/* Writes the names of the node and its ancestors ("a.b.c"), for messages. */
void ipw_parquet_node_path(const struct ipw_parquet_footer *footer, size_t node, char *out,
                           size_t room);

/* `columns`: NULL for all. */
int ipw_parquet_footer_read(struct ipw_parquet_footer *footer, struct ipw_data_file *file,
                            const char *const *columns, struct ipw_err *err);
/* Reads the next row group: its number of rows, and into chunks[n_leaves] each leaf's chunk. */
int ipw_parquet_footer_next(struct ipw_parquet_footer *footer, int64_t *rows,
                            struct ipw_parquet_chunk *chunks, struct ipw_err *err);
void ipw_parquet_footer_release(struct ipw_parquet_footer *footer, struct ipw_data_file *file);

#endif
