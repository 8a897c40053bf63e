/* base/vlq.h: integers as letters, base64 VLQ as in source maps.
 *
 * Each letter of A-Za-z0-9+/ holds five bits, lowest first.  32 is added to each letter but the
 * last.  The lowest bit of the number is the sign.  Minus zero, "B", stands for "no value".  Small
 * numbers take one or two letters, and the text is ASCII that no JSON string has to escape.  Owns
 * nothing. */
#ifndef IPW_BASE_VLQ_H
#define IPW_BASE_VLQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define IPW_VLQ_NONE INT64_MIN

void ipw_vlq_put(struct ipw_buf *out, int64_t x); /* IPW_VLQ_NONE: no value */
/* Reads one number at *at and moves *at past it.  False, with *at anywhere, if there is no number
 * (or one beyond 59 bits). */
bool ipw_vlq_take(const char **at, int64_t *x);

#endif
