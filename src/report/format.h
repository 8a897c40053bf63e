/* report/format.h: quantities and text for a person at a terminal.
 *
 * Numbers have three significant digits, because sensors are not more exact; an unknown number is
 * an en dash.  Widths are counted in terminal columns (wide and combining characters, our own
 * colour sequences).  ipw_format_cell() is for text from outside: it makes the text harmless, cuts
 * it with an ellipsis and pads it. */
#ifndef IPW_REPORT_FORMAT_H
#define IPW_REPORT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define IPW_UNKNOWN_TEXT "\xE2\x80\x93" /* en dash */

/* All write into out[32] and return it. */
char *ipw_format_si(char *out, double x, const char *unit); /* "9.71 kJ" of " J", "9.71kJ" of "J" */
char *ipw_format_seconds(char *out, double s);              /* "421ms", "58.2s", "1m42s" */

enum ipw_format_align { IPW_ALIGN_LEFT, IPW_ALIGN_RIGHT, IPW_ALIGN_NONE /* cut, not padded */ };
void ipw_format_cell(struct ipw_buf *out, const char *s, size_t columns,
                     enum ipw_format_align align);

/* Terminal styles; empty texts without colour. */
enum ipw_style { IPW_PLAIN, IPW_BOLD, IPW_DIM, IPW_GREEN, IPW_RED, IPW_YELLOW, IPW_CYAN };
const char *ipw_style(enum ipw_style style, bool colour);

#endif
