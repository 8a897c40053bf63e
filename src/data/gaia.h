/* data/gaia.h: GAIA's official scoring rule and the extraction of a final answer.
 *
 * Exact, not approximate: Python's float() grammar, Unicode lower-casing (libunistring) and
 * Python's white space, as in the benchmark's own scorer (tests/data/oracle_gaia.py compares both).
 * Pure; text is UTF-8 (invalid bytes count as U+FFFD). */
#ifndef IPW_DATA_GAIA_H
#define IPW_DATA_GAIA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* An answer of NULL counts as the text "None". */
bool ipw_gaia_score(const char *answer, const char *truth);
/* The route that the reference answer takes: "number", "list" or "string". */
const char *ipw_gaia_route(const char *truth);

/* Extracts the final answer from a reply: the text after the last "FINAL ANSWER" marker.  Returns
 * "marker", "last_line" or "none" (then out is empty). */
const char *ipw_gaia_extract(struct ipw_buf *out, const char *text, size_t n);

#endif
