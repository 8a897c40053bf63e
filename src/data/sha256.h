/* data/sha256.h: SHA-256 (FIPS 180-4), to identify a run's inputs. */
#ifndef IPW_DATA_SHA256_H
#define IPW_DATA_SHA256_H

#include <stddef.h>

/* Writes 64 hex digits and a NUL. */
void ipw_sha256_hex(char out[65], const void *bytes, size_t n);

#endif
