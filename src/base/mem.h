/* base/mem.h: allocation that cannot fail.
 *
 * If memory runs out, these functions print one line and abort, as git and tmux do.  Data whose
 * size comes from outside goes through base/buf.h, which has a limit and reports it as an ordinary
 * error.  The results are freed with free(). */
#ifndef IPW_BASE_MEM_H
#define IPW_BASE_MEM_H

#include <stddef.h>

void *ipw_malloc(size_t n);
void *ipw_calloc(size_t count, size_t size);
void *ipw_realloc(void *p, size_t n);
char *ipw_strdup(const char *s);           /* NULL gives NULL */
char *ipw_memdup(const void *p, size_t n); /* puts a NUL after the n bytes */
char *ipw_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Grows *array (elements of `size` bytes, `*cap` allocated) so that it holds `need` elements. */
void ipw_grow(void **array, size_t *cap, size_t need, size_t size);
#define IPW_GROW(array, cap, need) ipw_grow((void **)&(array), &(cap), (need), sizeof *(array))

#endif
