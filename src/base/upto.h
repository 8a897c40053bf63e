/* base/upto.h: binary search in a list that is sorted by an integer.
 *
 * The integer is a member of each item; the caller passes that of the first.  Pure; owns
 * nothing. */
#ifndef IPW_BASE_UPTO_H
#define IPW_BASE_UPTO_H

#include <stddef.h>
#include <stdint.h>

/* How many of n items have at most `key`; `size` is that of an item. */
static inline size_t ipw_upto(const int64_t *first, size_t n, size_t size, int64_t key)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (*(const int64_t *)((const char *)first + mid * size) <= key) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* For qsort: by the integer at the beginning of an item. */
static inline int ipw_by_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

#endif
