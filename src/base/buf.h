/* base/buf.h: a byte buffer with a size limit that remembers a failure.
 *
 * The caller sets the limit when it makes the buffer.  An append beyond the limit leaves the
 * content unchanged and sets `failed`; every later append does nothing.  So a caller makes ten
 * appends and one check.  A NUL byte follows the content; `len` does not count it, so text can be
 * used as a C string once `data` is not NULL (ipw_buf_str() never returns NULL).  The buffer owns
 * its bytes; ipw_buf_take() hands them to the caller, who frees them with free(). */
#ifndef IPW_BASE_BUF_H
#define IPW_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define IPW_KIB ((size_t)1024)
#define IPW_MIB (1024 * IPW_KIB)

struct ipw_buf {
    char *data; /* NULL while nothing was appended */
    size_t len, cap;
    size_t max; /* `len` never exceeds this */
    bool failed;
};

#define IPW_BUF(limit_bytes) ((struct ipw_buf){.max = (limit_bytes)})

void ipw_buf_init(struct ipw_buf *b, size_t max_bytes); /* does not allocate */
/* Frees the bytes; the buffer stays usable, with the same limit. */
void ipw_buf_release(struct ipw_buf *b);
void ipw_buf_clear(struct ipw_buf *b); /* empties it and clears `failed`; keeps the memory */

/* All of these return 0, or IPW_ELIMIT if the limit is or was reached. */
int ipw_buf_add(struct ipw_buf *b, const void *bytes, size_t n);
int ipw_buf_adds(struct ipw_buf *b, const char *text);
int ipw_buf_addc(struct ipw_buf *b, char c);
int ipw_buf_addf(struct ipw_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int ipw_buf_vaddf(struct ipw_buf *b, const char *fmt, va_list ap);

char *ipw_buf_more_room(struct ipw_buf *b, size_t n); /* for ipw_buf_room() */

/* Makes room for n more bytes at the end: returns where to write, or NULL at the limit.  Then call
 * ipw_buf_added() with the number of bytes written.  Inline, because a JSON writer calls it for
 * every key. */
static inline char *ipw_buf_room(struct ipw_buf *b, size_t n)
{
    bool there = n < b->cap - b->len && b->cap <= b->max && !b->failed;

    return there ? b->data + b->len : ipw_buf_more_room(b, n);
}

static inline void ipw_buf_added(struct ipw_buf *b, size_t n)
{
    b->len += n;
    b->data[b->len] = '\0';
}

/* Of a new buffer: its text will have about n bytes, so take the memory for them at once. */
void ipw_buf_expect(struct ipw_buf *b, size_t n);

/* Gives unused memory back, if it is much. */
void ipw_buf_fit(struct ipw_buf *b);

void ipw_buf_drop_front(struct ipw_buf *b, size_t n);
void ipw_buf_truncate(struct ipw_buf *b, size_t len);
char *ipw_buf_take(struct ipw_buf *b, size_t *len); /* never NULL; the buffer is empty afterwards */
const char *ipw_buf_str(const struct ipw_buf *b);   /* "" if empty */

#endif
