/* json/guard.h: the strict pass before cJSON.
 *
 * One walk over the bytes checks the grammar of RFC 8259, depth and count.  It finds the bytes to
 * repair and counts the memory that the document needs, so that it is one block.  cJSON then reads
 * the caller's own bytes, or, after a repair, a rewritten copy that the guard owns.  The copy also
 * has null in place of each number, because cJSON reads one through strtod(), which costs several
 * times as much as all else of it.  The guard lists the numbers.  Private to src/json. */
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
    size_t ordinal; /* index among all nulls of cJSON's text, from 0 */
    size_t at, n;   /* its text in the caller's bytes */
    bool is_int64;
    bool plain; /* an integer that a double and its digits describe: at most 15, and not -0 */
};

struct ipw_guard {
    const char *text; /* for cJSON: the value alone, without BOM and outer white space */
    size_t n;
    size_t values, strings, repairs;
    struct ipw_guard_number *numbers;
    size_t number_count, number_cap, number_bytes; /* bytes: of the texts of those not plain */
    struct ipw_guard_number few[16];               /* `numbers` points here as long as they fit */
    struct ipw_buf copy;
    bool bom;
};

/* Fills *g; release it in every case.  `list` false: only check, without copies and lists.  cJSON
 * gets an empty object, list or text in place of each such member of the top object that `unread`
 * names (NULL at its end, or NULL itself: none). */
int ipw_guard_run(struct ipw_guard *g, const char *text, size_t n, unsigned max_depth, bool list,
                  const char *const *unread, struct ipw_err *err);
void ipw_guard_release(struct ipw_guard *g);

#endif
