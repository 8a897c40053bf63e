/* json/guard.h: the strict pass before cJSON.
 *
 * One walk over the bytes checks the grammar of RFC 8259, depth and count, finds what has to be
 * repaired, and counts what the document will need, so that its memory is one block.  cJSON then
 * sees the caller's own bytes when nothing was repaired, else a rewritten copy that the guard owns.
 * Numbers that a double and a count of digits do not describe (a point, an exponent, more than 15
 * digits, -0) are listed with their place in the text.  Private to src/json. */
#ifndef IPW_JSON_GUARD_H
#define IPW_JSON_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    IPW_JSON_MAX_DEPTH = 128,
    IPW_JSON_MAX_VALUES = 4 << 20, /* 256 MiB of nodes */
};

struct ipw_guard_number {
    size_t ordinal; /* among all numbers of the text, from 0 */
    size_t at, n;   /* its text in the caller's bytes */
    bool is_int64;
    bool replaced; /* too long for cJSON, which was given a 0 in its place */
};

struct ipw_guard {
    const char *text; /* for cJSON: the value alone, no BOM, no outer white space */
    size_t n;
    size_t values, strings, repairs;
    struct ipw_guard_number *numbers;
    size_t number_count, number_cap, number_bytes;
    struct ipw_guard_number few[16]; /* `numbers` points here until they do not fit */
    struct ipw_buf copy;
    bool bom;
};

/* Fills *g; release it in every case.  `list` false: nothing is copied or listed, only checked. */
int ipw_guard_run(struct ipw_guard *g, const char *text, size_t n, unsigned max_depth, bool list,
                  struct ipw_err *err);
void ipw_guard_release(struct ipw_guard *g);

#endif
