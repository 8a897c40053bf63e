/* data/columnar/thrift.h: reads Thrift's compact protocol, the format of Parquet's footer and page
 * headers.
 *
 * Pure.  Apache Thrift's doc/specs/thrift-compact-protocol.md defines the wire format,
 * parquet-format's parquet.thrift the structs.  `wrong` keeps the first error; after it all values
 * are 0.  So check `wrong` once, after a whole struct:
 *
 *     for (struct ipw_thrift_field f = {0}; ipw_thrift_next(t, &f);)
 *         if (f.id == 1) version = ipw_thrift_int(t, &f); else ipw_thrift_skip(t, &f); */
#ifndef IPW_DATA_COLUMNAR_THRIFT_H
#define IPW_DATA_COLUMNAR_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipw_thrift {
    const unsigned char *p, *end;
    const char *wrong; /* the first error, a static text; NULL: no error */
    bool ended;        /* the error: the bytes end inside a value */
};

enum ipw_thrift_type {
    IPW_THRIFT_STOP,
    IPW_THRIFT_TRUE,
    IPW_THRIFT_FALSE,
    IPW_THRIFT_BYTE,
    IPW_THRIFT_I16,
    IPW_THRIFT_I32,
    IPW_THRIFT_I64,
    IPW_THRIFT_DOUBLE,
    IPW_THRIFT_BINARY,
    IPW_THRIFT_LIST,
    IPW_THRIFT_SET,
    IPW_THRIFT_MAP,
    IPW_THRIFT_STRUCT,
};

struct ipw_thrift_field {
    int id; /* the next field's id is stored relative to it */
    int type;
};

struct ipw_thrift_slice {
    const char *s; /* in the reader's bytes */
    size_t n;
};

bool ipw_thrift_next(struct ipw_thrift *t,
                     struct ipw_thrift_field *f); /* false: the struct's end */
/* The value of the field that ipw_thrift_next() found.  A field of another type is an error. */
int64_t ipw_thrift_int(struct ipw_thrift *t, const struct ipw_thrift_field *f);
bool ipw_thrift_bool(struct ipw_thrift *t, const struct ipw_thrift_field *f);
struct ipw_thrift_slice ipw_thrift_bytes(struct ipw_thrift *t, const struct ipw_thrift_field *f);
/* The number of elements that follow; never more than the bytes that are left.  Elements of another
 * type are an error.  Read an element of type STRUCT with ipw_thrift_next() and a new field. */
size_t ipw_thrift_list(struct ipw_thrift *t, const struct ipw_thrift_field *f, int type);
/* Whether the field is a struct; if so, its fields follow. */
bool ipw_thrift_struct(struct ipw_thrift *t, const struct ipw_thrift_field *f);
void ipw_thrift_skip(struct ipw_thrift *t, const struct ipw_thrift_field *f);

/* A variable-length number, as also used outside Thrift: 7 bits per byte, the lowest first.  False:
 * it does not end within 10 bytes or before `end`. */
bool ipw_varint(uint64_t *out, const unsigned char **p, const unsigned char *end);
static inline int64_t ipw_zigzag(uint64_t n) { return (int64_t)(n >> 1 ^ (0 - (n & 1))); }

#endif
