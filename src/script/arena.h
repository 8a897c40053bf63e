/* script/arena.h: memory for one Lua state.
 *
 * Lua allocates very many small blocks and frees them all at once.  Blocks up to 512 bytes come
 * from the arena's pages and go to free lists by size; larger blocks come from malloc and are kept
 * in a list.  Releasing the arena frees all of them, whatever was freed before.  Its pages go to a
 * store of spare pages (at most 8 MiB), from which every arena takes first. */
#ifndef IPW_SCRIPT_ARENA_H
#define IPW_SCRIPT_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { IPW_ARENA_STEP = 16, IPW_ARENA_CLASSES = 32, IPW_ARENA_LARGEST = 16 * 32 };

struct ipw_arena {
    void *free[IPW_ARENA_CLASSES]; /* lists, by size in steps */
    struct ipw_arena_page *pages;
    struct ipw_arena_large *large;
    char *at, *end; /* the free part of the newest page */
};

/* malloc, realloc and free in one, like lua_Alloc; NULL if there is no memory. */
void *ipw_arena_resize(struct ipw_arena *a, void *ptr, size_t old_bytes, size_t new_bytes);
void ipw_arena_release(struct ipw_arena *a); /* with every block that is still in use */

/* Takes a small block (1 to IPW_ARENA_LARGEST bytes), or gives it back.  Inline, because Lua does
 * so for each value. */
bool ipw_arena_add_page(struct ipw_arena *a);

static inline size_t ipw_arena_class(size_t bytes) { return (bytes - 1) / IPW_ARENA_STEP; }

static inline void *ipw_arena_take(struct ipw_arena *a, size_t bytes)
{
    size_t k = ipw_arena_class(bytes), need = (k + 1) * IPW_ARENA_STEP;
    void *block = a->free[k];

    if (block) {
        memcpy(&a->free[k], block, sizeof a->free[k]);
        return block;
    }
    if ((size_t)(a->end - a->at) < need && !ipw_arena_add_page(a)) return NULL;
    block = a->at;
    a->at += need;
    return block;
}

static inline void ipw_arena_give(struct ipw_arena *a, void *block, size_t bytes)
{
    size_t k = ipw_arena_class(bytes);

    memcpy(block, &a->free[k], sizeof a->free[k]);
    a->free[k] = block;
}

#endif
