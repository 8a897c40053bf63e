/* data/pytext.h: what Python calls white space, punctuation and a float.
 *
 * GAIA's scorer is Python text semantics; C's isspace, tolower and strtod give wrong scores.  Pure. */
#ifndef IPW_DATA_PYTEXT_H
#define IPW_DATA_PYTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t ipw_py_char(const char *s, size_t len); /* decodes one valid sequence of that length */
bool ipw_py_space(uint32_t c);                   /* str.isspace(), re's \s */
bool ipw_py_punct(char c);                       /* string.punctuation: the 32 ASCII ones */

/* Moves *s and *n past white space at both ends.  The text is valid UTF-8 or at least bytes; an
 * invalid byte is not white space. */
void ipw_py_strip(const char **s, size_t *n);
/* float(text): true and the value, or false. */
bool ipw_py_float(const char *text, double *value);

#endif
