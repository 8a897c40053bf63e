#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Where the search for a key begins.  Keys can be small numbers in a row, so their bits are
 * mixed. */
static size_t home_of(uint64_t key, size_t cap)
{
    key = (key ^ key >> 32) * 0xD6E8FEB86659FD93ULL;
    return (size_t)(key ^ key >> 32) & (cap - 1);
}

static void grow(struct ipw_table *t)
{
    struct ipw_table more = {
        .same = t->same, .ud = t->ud, .n = t->n, .cap = t->cap ? 2 * t->cap : 64};

    more.numbers = ipw_malloc(more.cap * sizeof *more.numbers);
    more.keys = ipw_malloc(more.cap * sizeof *more.keys);
    memset(more.numbers, 0xFF, more.cap * sizeof *more.numbers);
    for (size_t i = 0; i < t->cap; i++) {
        size_t at = home_of(t->keys[i], more.cap);

        if (t->numbers[i] == IPW_TABLE_NONE) continue;
        while (more.numbers[at] != IPW_TABLE_NONE) at = (at + 1) & (more.cap - 1);
        more.numbers[at] = t->numbers[i];
        more.keys[at] = t->keys[i];
    }
    ipw_table_release(t);
    *t = more;
}

static size_t find(const struct ipw_table *t, uint64_t key, const void *thing)
{
    size_t at = home_of(key, t->cap);

    while (t->numbers[at] != IPW_TABLE_NONE &&
           !(t->keys[at] == key && (!t->same || t->same(t->ud, t->numbers[at], thing))))
        at = (at + 1) & (t->cap - 1);
    return at;
}

uint32_t *ipw_table_at(struct ipw_table *t, uint64_t key, const void *thing)
{
    size_t at;

    if (t->n * 2 >= t->cap) grow(t);
    at = find(t, key, thing);
    if (t->numbers[at] == IPW_TABLE_NONE) {
        t->keys[at] = key;
        t->n++;
    }
    return &t->numbers[at];
}

uint32_t ipw_table_get(const struct ipw_table *t, uint64_t key, const void *thing)
{
    return t->cap ? t->numbers[find(t, key, thing)] : IPW_TABLE_NONE;
}

void ipw_table_remove(struct ipw_table *t, uint64_t key, const void *thing)
{
    size_t hole, mask = t->cap - 1;

    if (!t->cap) return;
    hole = find(t, key, thing);
    if (t->numbers[hole] == IPW_TABLE_NONE) return;
    t->n--;
    /* Move later entries up, unless an entry would land before its own home. */
    for (size_t at = (hole + 1) & mask; t->numbers[at] != IPW_TABLE_NONE; at = (at + 1) & mask) {
        size_t home = home_of(t->keys[at], t->cap);

        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        t->numbers[hole] = t->numbers[at];
        t->keys[hole] = t->keys[at];
        hole = at;
    }
    t->numbers[hole] = IPW_TABLE_NONE;
}

void ipw_table_release(struct ipw_table *t)
{
    free(t->numbers);
    free(t->keys);
    *t = (struct ipw_table){.same = t->same, .ud = t->ud};
}

uint64_t ipw_table_text_key(const char *text, uint64_t seed)
{
    uint64_t h = 0xCBF29CE484222325ULL ^ seed; /* FNV-1a */

    for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001B3ULL;
    return h;
}
