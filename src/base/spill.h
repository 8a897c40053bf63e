/* base/spill.h: many records of one size, in bounded memory.
 *
 * An array that grows at its end only.  The latest IPW_SPILL_BYTES of it are in memory; what is
 * older is in a file without a name in a folder that the owner names, so nothing is left behind
 * however the program ends.  Where the file cannot be made or cannot grow (a full disk, a folder
 * that is read-only), the records stay in memory, and the file is tried again after as many more:
 * adding never fails.  Reading may: the record is then all zeros, and the place, which the spills of
 * one owner share, keeps the errno of the first such failure.  The owner looks at it before it uses
 * a result.  Owns its file and its memory. */
#ifndef IPW_BASE_SPILL_H
#define IPW_BASE_SPILL_H

#include <stddef.h>

enum { IPW_SPILL_BYTES = 256 * 1024 };

struct ipw_spill_place {
    const char *folder; /* borrowed; NULL: everything stays in memory */
    int error;          /* errno of the first read that failed; 0: none did */
};

struct ipw_spill_window;

struct ipw_spill {
    struct ipw_spill_place *place;
    size_t size;       /* of a record, no more than 4 KiB */
    size_t n, in_file; /* records in all; those before the tail */
    char *tail;
    size_t cap; /* of the tail, in records */
    int fd;     /* -1: no file */
    struct ipw_spill_window *window;
};

typedef int ipw_spill_order(const void *a, const void *b); /* as for qsort */

void ipw_spill_init(struct ipw_spill *s, size_t size, struct ipw_spill_place *place);
void ipw_spill_release(struct ipw_spill *s);
void ipw_spill_add(struct ipw_spill *s, const void *record);
/* The i-th record, until the next call for this spill.  Quick when i is near the last one asked for. */
const void *ipw_spill_at(const struct ipw_spill *s, size_t i);
/* Makes `out` the records of `s` in order. */
void ipw_spill_sort(struct ipw_spill *out, const struct ipw_spill *s, ipw_spill_order *order);

#endif
