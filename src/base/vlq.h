/* base/vlq.h: integers as letters, base64 VLQ as in source maps.
 *
 * Five bits a letter of A-Za-z0-9+/, lowest first, 32 added to each letter but the last; the lowest
 * bit of the whole is the sign.  Minus zero, "B", stands for "no value".  Small numbers take one or
 * two letters, and what is written is ASCII that no JSON string has to escape.  Owns nothing. */
#ifndef IPW_BASE_VLQ_H
#define IPW_BASE_VLQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define IPW_VLQ_NONE INT64_MIN

void ipw_vlq_put(struct ipw_buf *out, int64_t x); /* IPW_VLQ_NONE: no value */
/* Reads one number at *at and moves it on.  False, and *at anywhere: not one (or beyond 59 bits). */
bool ipw_vlq_take(const char **at, int64_t *x);

#endif
