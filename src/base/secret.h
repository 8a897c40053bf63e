/* base/secret.h: keys never leave this process in writing.
 *
 * The owner of a key registers it when it is read; from then on the few places that write for
 * others (the run's files, stderr, the tables on stdout) pass what they write through
 * ipw_secret_clean(), which replaces every occurrence by ***: as it is, escaped for JSON (once and
 * twice), percent-encoded, as part of a base64 text, from its end to its start, and as hexadecimal
 * digits; and what a text that was cut short has left of it, from 16 bytes on.  With nothing registered it costs nothing;
 * else one pass over the text that looks at about one byte in ten.
 *
 * Values shorter than 8 bytes and the well-known stand-ins for "no key" are words, not secrets:
 * they are not registered.  The list belongs to the process; it is filled at start, by one
 * thread. */
#ifndef IPW_BASE_SECRET_H
#define IPW_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Copies what it needs; NULL, words and repetitions are passed over. */
void ipw_secret_add(const char *value);
void ipw_secret_forget_all(void);

/* Cleans the bytes [from, len) of the buffer; returns how many occurrences were replaced. */
size_t ipw_secret_clean(struct ipw_buf *b, size_t from);
/* The same for a text of *n bytes in place: it never grows.  No NUL is written. */
size_t ipw_secret_clean_bytes(char *text, size_t *n);
/* The same for a C string. */
size_t ipw_secret_clean_text(char *text);

#endif
