/* json/number.h: numbers as decimal text, into memory the caller has.
 *
 * Private to src/json; everybody else uses ipw_jw_int, ipw_jw_num and ipw_json_double. */
#ifndef IPW_JSON_NUMBER_H
#define IPW_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IPW_NUMBER_MAX = 40 }; /* no text these write is longer */

/* Both return how many bytes they wrote; no NUL is put after them. */
size_t ipw_number_int(char *to, int64_t i);
size_t ipw_number_double(char *to, double x); /* finite */

/* The integer text[0..n) (an optional minus, then digits only): false when beyond int64. */
bool ipw_number_read_int(int64_t *out, const char *text, size_t n);

#endif
