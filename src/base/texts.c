#include "base/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    LONGEST = 255,      /* of a shared text: its length is in one byte before it */
    FIRST_BYTES = 200,  /* of the first block: thousands of owners wait with little in it */
    BLOCK_BYTES = 1000, /* of later ones; bounds the search */
};

struct ipw_texts_block {
    struct ipw_texts_block *next;
    size_t used, cap;
    unsigned char bytes[]; /* of each text: its length, then the text and a NUL */
};

static struct ipw_texts_block *new_block(size_t cap)
{
    struct ipw_texts_block *block = ipw_malloc(sizeof *block + cap);

    block->next = NULL;
    block->used = 0;
    block->cap = cap;
    return block;
}

/* A long text has a block of its own, behind the first. */
static const char *keep_long(struct ipw_texts *texts, const char *text, size_t n)
{
    struct ipw_texts_block *block = new_block(n + 1);

    memcpy(block->bytes, text, n + 1);
    if (!texts->first) texts->first = new_block(FIRST_BYTES);
    block->next = texts->first->next;
    texts->first->next = block;
    return (const char *)block->bytes;
}

const char *ipw_texts_keep(struct ipw_texts *texts, const char *text)
{
    struct ipw_texts_block *block = texts->first;
    unsigned char *to;
    size_t n;

    if (!text) return NULL;
    n = strlen(text);
    if (n > LONGEST) return keep_long(texts, text, n);
    for (size_t at = 0; block && at < block->used; at += 2 + (size_t)block->bytes[at]) {
        if (block->bytes[at] == n && !memcmp(block->bytes + at + 1, text, n))
            return (const char *)block->bytes + at + 1;
    }
    if (!block || block->cap - block->used < n + 2) {
        texts->first = new_block(block ? BLOCK_BYTES : n + 2 > FIRST_BYTES ? n + 2 : FIRST_BYTES);
        texts->first->next = block;
        block = texts->first;
    }
    to = block->bytes + block->used;
    to[0] = (unsigned char)n;
    memcpy(to + 1, text, n + 1);
    block->used += n + 2;
    return (const char *)to + 1;
}

void ipw_texts_release(struct ipw_texts *texts)
{
    struct ipw_texts_block *block = texts->first;

    while (block) {
        struct ipw_texts_block *next = block->next;

        free(block);
        block = next;
    }
    texts->first = NULL;
}
