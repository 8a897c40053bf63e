/* base/utf8.h: checks UTF-8, byte sequence by byte sequence.
 *
 * Pure, without other units: base/err.h uses it, too.  base/text.h repairs invalid UTF-8. */
#ifndef IPW_BASE_UTF8_H
#define IPW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the valid UTF-8 sequence at s (1..4), or 0 if the bytes there are not valid. */
size_t ipw_utf8_len(const char *s, size_t n);
bool ipw_utf8_valid(const char *s, size_t n);

#endif
