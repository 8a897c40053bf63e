/* base/table.h: a hash table that finds the number of a thing by its key.
 *
 * Holds numbers below IPW_TABLE_NONE, mostly indices of the caller's array, and a key of 64 bits
 * for each.  It holds no things: a key that packs the numbers of a thing (a session and an index)
 * is enough by itself.  The key of a text is its hash, which two texts can share; `same` then tells
 * whether a number has the text that is looked for.
 *
 *     struct ipw_table by_id = {.same = has_id, .ud = cases};
 *     uint32_t *at = ipw_table_at(&by_id, ipw_table_text_key(id, 0), id);
 *     if (*at == IPW_TABLE_NONE) *at = number;   // it is new: the caller gives it a number at once
 *
 * Zero the struct (or set only `same` and `ud`) to start; release it at the end. */
#ifndef IPW_BASE_TABLE_H
#define IPW_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IPW_TABLE_NONE UINT32_MAX

struct ipw_table {
    /* Is `number` the thing that is looked for?  NULL: things with equal keys are the same. */
    bool (*same)(const void *ud, uint32_t number, const void *thing);
    const void *ud;
    uint32_t *numbers; /* IPW_TABLE_NONE: free */
    uint64_t *keys;
    size_t n, cap; /* cap: a power of 2, or 0 */
};

/* Returns the place of the thing's number, valid until the next call.  If the thing is new, the
 * place holds IPW_TABLE_NONE, and the caller stores its number there. */
uint32_t *ipw_table_at(struct ipw_table *t, uint64_t key, const void *thing);
uint32_t ipw_table_get(const struct ipw_table *t, uint64_t key, const void *thing);
void ipw_table_remove(struct ipw_table *t, uint64_t key, const void *thing);
void ipw_table_release(struct ipw_table *t); /* empties it; `same` and `ud` stay */

/* The seed tells texts of several kinds apart (an id in several epochs). */
uint64_t ipw_table_text_key(const char *text, uint64_t seed);

#endif
