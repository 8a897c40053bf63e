/* base/spill.h: many items of one size, in bounded memory.
 *
 * An array that grows only at its end.  Its latest IPW_SPILL_BYTES are in memory.  Older items are
 * in an unnamed file in a folder of the owner's choice, so nothing is left behind however the
 * program ends.  If the file cannot be made or cannot grow (a full disk, a read-only folder), the
 * items stay in memory, and the file is tried again after as many more items.  So adding never
 * fails.  Reading may fail: the item is then all zeros.  The place, which the spills of one owner
 * share, keeps the errno of the first failed read; the owner checks it before it uses a result.
 * Owns its file and its memory. */
#ifndef IPW_BASE_SPILL_H
#define IPW_BASE_SPILL_H

#include <stddef.h>

enum { IPW_SPILL_BYTES = 256 * 1024 };

struct ipw_spill_place {
    const char *folder; /* borrowed; NULL: everything stays in memory */
    int error;          /* errno of the first read that failed; 0: none failed */
};

struct ipw_spill_window;

struct ipw_spill {
    struct ipw_spill_place *place;
    size_t size;       /* bytes of an item, at most 4 KiB */
    size_t n, in_file; /* all items; the items before the tail */
    char *tail;
    size_t cap; /* capacity of the tail, in items */
    int fd;     /* -1: no file */
    struct ipw_spill_window *window;
};

typedef int ipw_spill_order(const void *a, const void *b); /* as for qsort */

void ipw_spill_init(struct ipw_spill *s, size_t size, struct ipw_spill_place *place);
void ipw_spill_release(struct ipw_spill *s);
void ipw_spill_add(struct ipw_spill *s, const void *item);
/* Returns the i-th item, valid until the next call for this spill.  Fast if i is near the last
 * one. */
const void *ipw_spill_at(const struct ipw_spill *s, size_t i);
/* Fills `out` with the items of `s` in sorted order. */
void ipw_spill_sort(struct ipw_spill *out, const struct ipw_spill *s, ipw_spill_order *order);

#endif
