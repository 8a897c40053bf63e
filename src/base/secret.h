/* base/secret.h: keeps keys out of everything that this process writes.
 *
 * The owner of a key registers it when it reads it.  Everything written for others (the run's
 * files, stderr, the tables on stdout) then passes through ipw_secret_clean().  It replaces every
 * occurrence by ***: plain, escaped for JSON (once and twice), percent-encoded, as part of a base64
 * text, reversed, and as hexadecimal digits.  In a truncated text it also replaces the first part
 * of a key, from 16 bytes on.  It costs nothing while no key is registered; else one pass over the
 * text that looks at about one byte in ten.
 *
 * Values shorter than 8 bytes and the well-known stand-ins for "no key" are words, not secrets;
 * they are not registered.  The list belongs to the process; one thread fills it at start. */
#ifndef IPW_BASE_SECRET_H
#define IPW_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Copies the value; ignores NULL, words and repetitions. */
void ipw_secret_add(const char *value);
void ipw_secret_forget_all(void);

/* Cleans the bytes [from, len) of the buffer; returns how many occurrences were replaced. */
size_t ipw_secret_clean(struct ipw_buf *b, size_t from);
/* Does the same for a text of *n bytes in place: it never grows.  Writes no NUL. */
size_t ipw_secret_clean_bytes(char *text, size_t *n);
/* Does the same for a C string. */
size_t ipw_secret_clean_text(char *text);

#endif
