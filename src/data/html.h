/* data/html.h: the readable text of a web page.
 *
 * Pure: bytes in, text out.  Scripts, styles and hidden parts are left out.  Headings, list items,
 * quotes, table rows and preformatted text keep their shape.  Links can be kept as
 * [text](address). */
#ifndef IPW_DATA_HTML_H
#define IPW_DATA_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { IPW_HTML_MAX_BYTES = 8 * 1024 * 1024, IPW_HTML_MAX_DEPTH = 2000 };

/* Returns IPW_ELIMIT if the page is too long, nested too deeply or too costly (over 2 s of CPU time
 * or 512 MiB, because its tags are not closed in order). */
int ipw_html_text(struct ipw_buf *text, struct ipw_buf *title, const char *html, size_t n,
                  bool links, struct ipw_err *err);

#endif
