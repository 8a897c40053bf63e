/* data/pytext.h: the two tables of Unicode that GAIA's rule needs (lua/ipw/gaia_rule.lua), as
 * Python has them: lower case, and decimal digits.
 *
 * Pure.  tests/data/oracle_gaia.py compares them with Python itself. */
#ifndef IPW_DATA_PYTEXT_H
#define IPW_DATA_PYTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends the text as Python's str.lower() has it; invalid UTF-8 becomes U+FFFD, as when Python
 * reads the same text. */
void ipw_py_lower(struct ipw_buf *out, const char *s, size_t n);
/* Appends the text as float() reads it: decimal digits of any script are '0' to '9', and white
 * space beyond ASCII is a blank.  false: another character beyond ASCII, with which it is no
 * number. */
bool ipw_py_digits(struct ipw_buf *out, const char *s, size_t n);

#endif
