/* data/data_url.h: the bytes of a data URL (RFC 2397), as datasets keep pictures in a column.
 *
 * Pure.  Only base64, with or without its padding; white space is skipped. */
#ifndef IPW_DATA_DATA_URL_H
#define IPW_DATA_DATA_URL_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the bytes.  IPW_EPARSE if the text is no such URL, IPW_ELIMIT if `out` cannot hold
 * them. */
int ipw_data_url_decode(struct ipw_buf *out, const char *url, struct ipw_err *err);

#endif
