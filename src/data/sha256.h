/* data/sha256.h: SHA-256 (FIPS 180-4), to name what a run was made of.
 *
 * Of bytes in memory in one call; of a long file piece by piece: begin, add, end.  Owns no memory. */
#ifndef IPW_DATA_SHA256_H
#define IPW_DATA_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct ipw_sha256 {
    uint32_t h[8];
    unsigned char block[64]; /* the bytes that do not fill a block yet */
    uint64_t n;              /* bytes in all */
};

void ipw_sha256_begin(struct ipw_sha256 *s);
void ipw_sha256_add(struct ipw_sha256 *s, const void *bytes, size_t n);
void ipw_sha256_end(struct ipw_sha256 *s, char out[65]); /* 64 hex digits and a NUL */

void ipw_sha256_hex(char out[65], const void *bytes, size_t n);

#endif
