/* json/number.h: writes numbers as decimal text into the caller's memory, and reads them.
 *
 * Private to src/json; other floors use ipw_jw_int, ipw_jw_num and ipw_json_double. */
#ifndef IPW_JSON_NUMBER_H
#define IPW_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IPW_NUMBER_MAX = 40 }; /* longest text of a number */

/* All return the number of bytes written, without a NUL. */
size_t ipw_number_int(char *to, int64_t i);
size_t ipw_number_double(char *to, double x); /* x must be finite */
/* The same of the nearest whole millionth of x. */
size_t ipw_number_micro(char *to, double x);

/* Reads the integer text[0..n) (an optional minus, then digits only); false if it is beyond
 * int64. */
bool ipw_number_read_int(int64_t *out, const char *text, size_t n);
/* Reads the number text[0..n), which is correct JSON, as strtod() does.  A NUL follows it, unless
 * it is an integer of at most 15 digits. */
double ipw_number_read_double(const char *text, size_t n);

#endif
