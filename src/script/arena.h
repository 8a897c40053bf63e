/* script/arena.h: memory for one Lua state.
 *
 * Lua asks for very many small blocks and gives them all back at once.  Blocks up to 512 bytes come
 * from pages of the arena and go to free lists by size; larger ones come from malloc and stand in a
 * list.  All of it is given back when the arena is released, whatever was freed before: the pages
 * to a store of spare ones that every arena takes from first (at most 8 MiB of them are kept). */
#ifndef IPW_SCRIPT_ARENA_H
#define IPW_SCRIPT_ARENA_H

#include <stddef.h>

enum { IPW_ARENA_STEP = 16, IPW_ARENA_CLASSES = 32, IPW_ARENA_LARGEST = 16 * 32 };

struct ipw_arena {
    void *free[IPW_ARENA_CLASSES]; /* lists, by size in steps */
    struct ipw_arena_page *pages;
    struct ipw_arena_large *large;
    char *at, *end; /* what is left of the newest page */
};

/* malloc, realloc and free in one, as lua_Alloc has it; NULL when there is no memory. */
void *ipw_arena_resize(struct ipw_arena *a, void *ptr, size_t old_bytes, size_t new_bytes);
void ipw_arena_release(struct ipw_arena *a); /* with every block that is still in use */

#endif
