/* data/columnar/flatbuffer.h: reads FlatBuffers, the format of Arrow's metadata.
 *
 * Pure.  FlatBuffers' internals.md defines the wire format: a table has a vtable with the places of
 * its fields.  A position is an offset into the bytes; 0 means absent.  An offset that points
 * outside the bytes sets `bad` and reads as absent, so check `bad` after reading. */
#ifndef IPW_DATA_COLUMNAR_FLATBUFFER_H
#define IPW_DATA_COLUMNAR_FLATBUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipw_flat {
    const unsigned char *bytes;
    size_t n;
    bool bad;
};

size_t ipw_flat_root(struct ipw_flat *f);
/* A field of `size` bytes (1, 2, 4, 8), sign-extended. */
int64_t ipw_flat_int(struct ipw_flat *f, size_t table, unsigned field, unsigned size,
                     int64_t fallback);
size_t ipw_flat_table(struct ipw_flat *f, size_t table, unsigned field);
/* The position of a vector's first element.  `size`: bytes per element; *n: number of elements. */
size_t ipw_flat_vector(struct ipw_flat *f, size_t table, unsigned field, size_t size, size_t *n);
/* The i-th table of a vector of tables. */
size_t ipw_flat_element(struct ipw_flat *f, size_t vector, size_t i);
const char *ipw_flat_text(struct ipw_flat *f, size_t table, unsigned field, size_t *n);

#endif
