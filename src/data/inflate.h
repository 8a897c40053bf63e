/* data/inflate.h: unpacks deflate, the compression of zip files.
 *
 * Pure: bytes in, bytes out, never more than the buffer's limit: a small file can stand for a huge
 * one. */
#ifndef IPW_DATA_INFLATE_H
#define IPW_DATA_INFLATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Raw deflate (RFC 1951), without a header.  IPW_ELIMIT: the text is longer than out->max;
 * IPW_EPARSE: the bytes are damaged or cut. */
int ipw_inflate(struct ipw_buf *out, const char *bytes, size_t n, struct ipw_err *err);
/* The checksum of zip files (CRC-32). */
uint32_t ipw_inflate_checksum(const char *bytes, size_t n);

#endif
