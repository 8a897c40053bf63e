#include "data/encoding.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>

enum { PIECE = 1 << 16 };

static long long count_lines(const struct ipw_buf *text, size_t from)
{
    const char *p = text->data + from, *end = text->data + text->len;
    long long n = 1;

    while (p && p < end && (p = memchr(p, '\n', (size_t)(end - p)))) p++, n++;
    return n;
}

/* iconv() wants a pointer to plain char, though it only reads. */
static int convert(struct ipw_buf *out, iconv_t how, char **at, size_t *left)
{
    size_t room = PIECE;
    char *to = ipw_buf_room(out, room);

    if (!to) return E2BIG;
    errno = 0;
    if (iconv(how, at, left, &to, &room) != (size_t)-1) errno = 0;
    ipw_buf_added(out, PIECE - room);
    return errno;
}

int ipw_encoding_to_utf8(struct ipw_buf *out, const char *encoding, const char *name,
                         const char *bytes, size_t n, struct ipw_err *err)
{
    iconv_t how = iconv_open("UTF-8", encoding);
    size_t left = n, from = out->len;
    char *at = (char *)bytes;
    int why = E2BIG;

    if (how == (iconv_t)-1)
        return ipw_fail(err, IPW_EINVAL,
                        "%s: unknown encoding '%s'. Try latin1, windows-1252 or utf-16; "
                        "`iconv -l` lists the names",
                        name, encoding);
    while (why == E2BIG && !out->failed) why = convert(out, how, &at, &left);
    iconv_close(how);
    if (out->failed) return ipw_fail(err, IPW_ELIMIT, "%s: the text is too long as UTF-8", name);
    if (!why) return 0;
    return ipw_fail(err, IPW_EPARSE,
                    "%s:%lld: byte %zu of the file (0x%02X) is not %s. Choose another --encoding",
                    name, count_lines(out, from), n - left + 1, (unsigned)(unsigned char)*at,
                    encoding);
}
