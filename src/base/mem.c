#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks up to this size come from the cache of malloc(), which the C library's calloc() passes
 * by. */
enum { CACHED_MOST = 1024 };

static _Noreturn void out_of_memory(size_t n)
{
    fprintf(stderr, "ipw-agent: out of memory (%zu bytes asked for)\n", n);
    abort();
}

void *ipw_malloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p) out_of_memory(n);
    return p;
}

void *ipw_calloc(size_t count, size_t size)
{
    size_t n;
    void *p;

    if (!__builtin_mul_overflow(count, size, &n) && n <= CACHED_MOST)
        return memset(ipw_malloc(n), 0, n);
    p = calloc(count ? count : 1, size ? size : 1);
    if (!p) out_of_memory(count * size);
    return p;
}

void *ipw_realloc(void *p, size_t n)
{
    p = realloc(p, n ? n : 1);
    if (!p) out_of_memory(n);
    return p;
}

char *ipw_strdup(const char *s) { return s ? ipw_memdup(s, strlen(s)) : NULL; }

char *ipw_memdup(const void *p, size_t n)
{
    char *copy = ipw_malloc(n + 1);
    if (n) memcpy(copy, p, n);
    copy[n] = '\0';
    return copy;
}

char *ipw_asprintf(const char *fmt, ...)
{
    va_list ap;
    char *text;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) n = 0;
    text = ipw_malloc((size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}

void ipw_grow(void **array, size_t *cap, size_t need, size_t size)
{
    /* Lists of large elements (turns, spans) mostly stay short, and each query holds some. */
    size_t n = *cap ? *cap : size > 64 ? 2 : 8;

    if (need <= *cap) return;
    while (n < need) n += n / 2 + 1;
    if (n > SIZE_MAX / size) out_of_memory(SIZE_MAX);
    *array = ipw_realloc(*array, n * size);
    *cap = n;
}
