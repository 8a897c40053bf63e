/* data/encoding.h: makes UTF-8 of a text in another encoding, before a parser sees it.
 *
 * Pure.  The encodings are those of the C library's iconv ("latin1", "windows-1252", "utf-16").  A
 * byte that the encoding does not have is an error, never a replacement character. */
#ifndef IPW_DATA_ENCODING_H
#define IPW_DATA_ENCODING_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the text to `out`.  `name` is the file's, for messages. */
int ipw_encoding_to_utf8(struct ipw_buf *out, const char *encoding, const char *name,
                         const char *bytes, size_t n, struct ipw_err *err);

#endif
