#include "trace/workload_prompt.h"

#include <string.h>

enum { WORD_MAX = 7, CHUNK = 4096 };

static uint64_t draw(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9E3779B97F4A7C15ULL;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
    return z ^ z >> 31;
}

/* In common vocabularies each of these is one token, with the space before it. */
static const char words[64][WORD_MAX + 1] = {
    " the",   " of",   " and",  " to",   " in",    " is",    " that",  " for",   " it",    " as",
    " was",   " with", " be",   " by",   " on",    " not",   " he",    " his",   " but",   " at",
    " are",   " this", " have", " from", " or",    " had",   " an",    " they",  " which", " one",
    " you",   " were", " her",  " all",  " she",   " there", " would", " their", " we",    " him",
    " been",  " has",  " when", " who",  " will",  " more",  " no",    " if",    " out",   " so",
    " said",  " what", " up",   " its",  " about", " into",  " than",  " them",  " can",   " only",
    " other", " new",  " some", " could"};

/* Writes at most CHUNK words at once, because prompts have tens of thousands of words, many per
 * second. */
static void put_chunk(struct ipw_buf *out, uint64_t *seed, size_t n)
{
    char *start = ipw_buf_room(out, n * WORD_MAX + 1), *at = start;
    uint64_t bits = 0;

    if (!start) return;
    for (size_t i = 0; i < n; i++, bits >>= 6) {
        const char *word;

        if (i % 10 == 0) bits = draw(seed);
        word = words[bits & 63];
        memcpy(at, word, WORD_MAX + 1);
        at += strlen(word);
    }
    ipw_buf_added(out, (size_t)(at - start));
}

static void put_words(struct ipw_buf *out, uint64_t seed, int64_t n)
{
    for (; n > 0 && !out->failed; n -= CHUNK)
        put_chunk(out, &seed, n < CHUNK ? (size_t)n : (size_t)CHUNK);
}

void ipw_workload_prompt(struct ipw_buf *out, const struct ipw_workload_turn *turn, uint64_t seed)
{
    int64_t left = turn->input_tokens > 0 ? turn->input_tokens : 1;

    ipw_buf_adds(out, "{\"content\":\"");
    for (size_t i = 0; i < turn->n_blocks && left > 0; i++) {
        int64_t n = left < IPW_WORKLOAD_BLOCK ? left : IPW_WORKLOAD_BLOCK;

        put_words(out, (uint64_t)turn->blocks[i] * 2 + 1, n);
        left -= n;
    }
    put_words(out, ~seed, left);
    ipw_buf_adds(out, "\",\"role\":\"user\"}");
}
