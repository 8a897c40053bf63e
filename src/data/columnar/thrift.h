/* data/columnar/thrift.h: reads Thrift's compact protocol, the format of Parquet's footer and page headers.
 *
 * Pure.  Apache Thrift's doc/specs/thrift-compact-protocol.md defines the wire format, parquet-format's
 * parquet.thrift the structs.  After the first error, kept in `wrong`, all values are 0.  So a struct is read
 * without a check after each field:
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
    const char *wrong; /* static text; NULL: nothing yet */
    bool ended;        /* the bytes ended inside a value; `wrong` says so too */
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
    int id; /* the next field's number is relative to it */
    int type;
};

struct ipw_thrift_slice {
    const char *s; /* in the reader's bytes */
    size_t n;
};

bool ipw_thrift_next(struct ipw_thrift *t,
                     struct ipw_thrift_field *f); /* false: the struct's end */
/* The value of the field that was just given; of another type: wrong. */
int64_t ipw_thrift_int(struct ipw_thrift *t, const struct ipw_thrift_field *f);
bool ipw_thrift_bool(struct ipw_thrift *t, const struct ipw_thrift_field *f);
struct ipw_thrift_slice ipw_thrift_bytes(struct ipw_thrift *t, const struct ipw_thrift_field *f);
/* How many elements of `type` follow; never more than there are bytes left.  Elements of type
 * STRUCT are read with ipw_thrift_next() and a field of their own. */
size_t ipw_thrift_list(struct ipw_thrift *t, const struct ipw_thrift_field *f, int type);
/* Whether the field is a struct, whose fields follow. */
bool ipw_thrift_struct(struct ipw_thrift *t, const struct ipw_thrift_field *f);
void ipw_thrift_skip(struct ipw_thrift *t, const struct ipw_thrift_field *f);

/* A number as used in other places of the formats too: 7 bits a byte, the lowest first.  False: it does not
 * end within 10 bytes or before `end`. */
bool ipw_varint(uint64_t *out, const unsigned char **p, const unsigned char *end);
static inline int64_t ipw_zigzag(uint64_t n) { return (int64_t)(n >> 1 ^ (0 - (n & 1))); }

#endif
