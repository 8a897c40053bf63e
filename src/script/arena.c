#include "script/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Pages are small, because thousands of states that wait for a model each have a page that is half
 * empty.  Pages of closed states are kept for new states, mapped and warm in the cache. */
enum { PAGE = 2 * 1024 - 32, MAX_SPARE = 4096 };
#define SMALL ((size_t)IPW_ARENA_LARGEST)

struct ipw_arena_page {
    struct ipw_arena_page *next;
    size_t pad; /* so that blocks begin at a multiple of 16 */
};

struct ipw_arena_large { /* in front of the block */
    struct ipw_arena_large *next, *prev;
};

static struct ipw_arena_page *spare; /* Lua runs in one thread only */
static size_t n_spare;

static struct ipw_arena_page *take_page(void)
{
    struct ipw_arena_page *page = spare;

    if (!page) return malloc(PAGE);
    spare = page->next;
    n_spare--;
    return page;
}

static void give_page(struct ipw_arena_page *page)
{
    if (n_spare == MAX_SPARE) {
        free(page);
        return;
    }
    page->next = spare;
    spare = page;
    n_spare++;
}

bool ipw_arena_add_page(struct ipw_arena *a)
{
    struct ipw_arena_page *page = take_page();

    if (!page) return false;
    if (a->end > a->at) ipw_arena_give(a, a->at, (size_t)(a->end - a->at));
    page->next = a->pages;
    a->pages = page;
    a->at = (char *)(page + 1);
    a->end = (char *)page + PAGE;
    return true;
}

static void *enlist(struct ipw_arena *a, struct ipw_arena_large *large)
{
    if (!large) return NULL;
    large->prev = NULL;
    large->next = a->large;
    if (large->next) large->next->prev = large;
    a->large = large;
    return large + 1;
}

static struct ipw_arena_large *delist(struct ipw_arena *a, void *block)
{
    struct ipw_arena_large *large = (struct ipw_arena_large *)block - 1;

    if (large->prev)
        large->prev->next = large->next;
    else
        a->large = large->next;
    if (large->next) large->next->prev = large->prev;
    return large;
}

static void *get(struct ipw_arena *a, size_t bytes)
{
    if (bytes <= SMALL) return ipw_arena_take(a, bytes);
    if (bytes > SIZE_MAX - sizeof(struct ipw_arena_large)) return NULL;
    return enlist(a, malloc(sizeof(struct ipw_arena_large) + bytes));
}

static void drop(struct ipw_arena *a, void *block, size_t bytes)
{
    if (bytes <= SMALL)
        ipw_arena_give(a, block, bytes);
    else
        free(delist(a, block));
}

static void *resize_large(struct ipw_arena *a, void *block, size_t bytes)
{
    struct ipw_arena_large *large, *moved;

    if (bytes > SIZE_MAX - sizeof *large) return NULL;
    large = delist(a, block);
    moved = realloc(large, sizeof *large + bytes);
    if (!moved) { /* the old block stays */
        enlist(a, large);
        return NULL;
    }
    return enlist(a, moved);
}

void *ipw_arena_resize(struct ipw_arena *a, void *ptr, size_t old_bytes, size_t new_bytes)
{
    void *block;

    if (!ptr || old_bytes == 0) return new_bytes == 0 ? NULL : get(a, new_bytes);
    if (new_bytes == 0) {
        drop(a, ptr, old_bytes);
        return NULL;
    }
    if (old_bytes > SMALL && new_bytes > SMALL) return resize_large(a, ptr, new_bytes);
    if (old_bytes <= SMALL && new_bytes <= SMALL &&
        ipw_arena_class(old_bytes) == ipw_arena_class(new_bytes))
        return ptr;
    block = get(a, new_bytes);
    if (!block) return NULL;
    memcpy(block, ptr, old_bytes < new_bytes ? old_bytes : new_bytes);
    drop(a, ptr, old_bytes);
    return block;
}

void ipw_arena_release(struct ipw_arena *a)
{
    while (a->pages) {
        struct ipw_arena_page *page = a->pages;
        a->pages = page->next;
        give_page(page);
    }
    while (a->large) free(delist(a, a->large + 1));
    memset(a, 0, sizeof *a);
}
