/* data/html.h: what a person would read of a web page, as plain text.
 *
 * Pure: bytes in, text out.  Scripts, styles and hidden parts are left out; headings, list items,
 * quotes, table rows and preformatted text keep their shape; links can be kept as [text](address).
 * Needs libgumbo; a build without it says so. */
#ifndef IPW_DATA_HTML_H
#define IPW_DATA_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { IPW_HTML_MAX_BYTES = 8 * 1024 * 1024, IPW_HTML_MAX_DEPTH = 2000 };

/* IPW_ELIMIT for a page that is too long, nested too deeply or too costly (2 s of CPU time, 512 MiB: its
 * tags are not closed in order), IPW_EUNSUPPORTED without libgumbo. */
int ipw_html_text(struct ipw_buf *text, struct ipw_buf *title, const char *html, size_t n,
                  bool links, struct ipw_err *err);

#endif
