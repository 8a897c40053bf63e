/* data/sha1.h: SHA-1 (FIPS 180-4), the name that git gives a file's bytes.
 *
 * Only to compare a fetched file with the hub's own name of it; what a run was made of is named by
 * data/sha256.h.  Begin, add pieces, end.  Owns no memory. */
#ifndef IPW_DATA_SHA1_H
#define IPW_DATA_SHA1_H

#include <stddef.h>
#include <stdint.h>

struct ipw_sha1 {
    uint32_t h[5];
    unsigned char block[64]; /* the bytes that do not fill a block yet */
    uint64_t n;              /* bytes in all */
};

void ipw_sha1_begin(struct ipw_sha1 *s);
void ipw_sha1_add(struct ipw_sha1 *s, const void *bytes, size_t n);
void ipw_sha1_end(struct ipw_sha1 *s, char out[41]); /* 40 hex digits and a NUL */

#endif
