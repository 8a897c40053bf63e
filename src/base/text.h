/* base/text.h: small pure functions over text.
 *
 * Quantities with units as users type them, misspelt names, and UTF-8 from any source.  Nothing
 * here allocates unless its comment says so. */
#ifndef IPW_BASE_TEXT_H
#define IPW_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Parses "30s", "500ms", "2m", "1h", "1.5" (seconds) to nanoseconds. */
int ipw_parse_duration_ns(int64_t *out, const char *text, struct ipw_err *err);
/* Parses "64K", "2M", "1G", "4096": powers of 1024; a trailing B or iB is allowed. */
int ipw_parse_bytes(size_t *out, const char *text, struct ipw_err *err);
/* Parses "500", "2kJ", "1.5 MJ", "3Wh", "0.2kWh" to joules; the value must be above zero. */
int ipw_parse_joules(double *out, const char *text, struct ipw_err *err);
/* Parses a whole decimal integer within [min, max], with nothing after it. */
int ipw_parse_int(int64_t *out, const char *text, int64_t min, int64_t max, struct ipw_err *err);
/* Parses a finite decimal number with nothing after it; the decimal separator is always a point. */
int ipw_parse_double(double *out, const char *text, struct ipw_err *err);

bool ipw_ends_with(const char *text, const char *end);

/* Returns the candidate nearest to `name` by edit distance (a transposition counts one), or NULL if
 * none is near enough to be a slip.  `candidates` ends with NULL; the result is one of its
 * pointers. */
const char *ipw_nearest(const char *name, const char *const *candidates);

/* Upstream's slug rule.  Every byte that is not an ASCII letter or digit becomes '_' (bytes of
 * non-ASCII letters stay), outer '_' are stripped, and an empty result becomes "model". */
void ipw_slug(struct ipw_buf *out, const char *text);

/* Appends s with each invalid byte replaced by U+FFFD; returns how many were replaced. */
size_t ipw_utf8_clean(struct ipw_buf *out, const char *s, size_t n);

/* Appends s as one word of a POSIX shell's command line, quoted if necessary. */
void ipw_text_shell_word(struct ipw_buf *out, const char *s);

/* Appends s so that it is harmless on a terminal.  Control characters, escape sequences and
 * bidirectional marks become visible, line breaks become spaces, and text beyond `max_columns`
 * characters is cut with an ellipsis (0: never cut). */
void ipw_text_printable(struct ipw_buf *out, const char *s, size_t n, size_t max_columns);

/* Appends text of several lines for a person, harmless in the same way: lines, tabs and plain
 * colours stay.  Unless it goes to a terminal, only escape sequences are made visible, because it
 * may be data. */
void ipw_text_shown(struct ipw_buf *out, const char *s, size_t n, bool terminal);

/* The terminal columns that s takes: wide characters take two, combining ones and our own colour
 * sequences none. */
size_t ipw_text_columns(const char *s, size_t n);

/* Appends s, broken at blanks so that no line takes more than `columns`.  The first line begins at
 * column `at`; lines after such a break begin with `indent` blanks.  Text between backquotes is a
 * command to copy and stays whole.  So do words that are longer than a line, and lines of s that
 * begin with a blank. */
void ipw_text_wrapped(struct ipw_buf *out, const char *s, size_t at, size_t indent, size_t columns);

/* Appends the bytes as pairs of hexadecimal digits; and converts n digits into n / 2 bytes at `to`.
 * A character that is not a digit counts as some digit. */
void ipw_text_hex(struct ipw_buf *out, const char *s, size_t n);
void ipw_text_unhex(char *to, const char *s, size_t n);

#endif
