/* data/pytext.h: Python's definitions of white space, punctuation and float.
 *
 * GAIA's scorer follows Python's text rules; C's isspace, tolower and strtod give wrong scores.
 * Pure. */
#ifndef IPW_DATA_PYTEXT_H
#define IPW_DATA_PYTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t ipw_py_char(const char *s, size_t len); /* decodes one valid sequence of that length */
bool ipw_py_space(uint32_t c);                   /* str.isspace(), re's \s */
bool ipw_py_punct(char c);                       /* string.punctuation: 32 ASCII characters */

/* Moves *s and *n past white space at both ends.  The text may hold invalid UTF-8; an invalid byte
 * is not white space. */
void ipw_py_strip(const char **s, size_t *n);
/* float(text): true and the value, or false if it is not a number. */
bool ipw_py_float(const char *text, double *value);

#endif
