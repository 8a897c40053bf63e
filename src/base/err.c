#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Messages quote foreign names and texts, and truncation may cut a character in two.  Replace each
 * byte that is not UTF-8 by '?' and each line break by a blank, so that a message is one valid
 * line. */
static void clean(char *text)
{
    size_t n = strlen(text), len;

    for (size_t i = 0; i < n; i += len) {
        len = ipw_utf8_len(text + i, n - i);
        if (len == 0) text[i] = '?', len = 1;
        if (text[i] == '\n' || text[i] == '\r') text[i] = ' ';
    }
}

int ipw_fail(struct ipw_err *err, enum ipw_code code, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        err->code = code;
        err->detail = 0;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        clean(err->text);
    }
    return code;
}

int ipw_fail_errno(struct ipw_err *err, int errnum, const char *fmt, ...)
{
    enum ipw_code code = IPW_EIO;

    if (errnum == EACCES || errnum == EPERM) code = IPW_EPERM;
    if (errnum == ENOENT) code = IPW_ENOTFOUND;
    if (err) {
        va_list ap;
        size_t n;

        err->code = code;
        err->detail = errnum;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n, ": %s", strerror(errnum));
        clean(err->text);
    }
    return code;
}

int ipw_err_prefix(struct ipw_err *err, const char *fmt, ...)
{
    char old[sizeof err->text];
    va_list ap;
    size_t n;

    if (!err) return IPW_EINVAL;
    memcpy(old, err->text, sizeof old);
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n, ": %s", old);
    clean(err->text);
    return err->code;
}

const char *ipw_code_name(enum ipw_code code)
{
    switch (code) {
    case IPW_OK: return "ok";
    case IPW_EINVAL: return "invalid";
    case IPW_EIO: return "io";
    case IPW_EPARSE: return "parse";
    case IPW_EHTTP: return "http";
    case IPW_ENET: return "network";
    case IPW_ETIMEOUT: return "timeout";
    case IPW_ECANCELLED: return "cancelled";
    case IPW_ECONTEXT: return "context_full";
    case IPW_ELIMIT: return "limit";
    case IPW_ELUA: return "script";
    case IPW_ENOTFOUND: return "not_found";
    case IPW_EPERM: return "permission";
    case IPW_EUNSUPPORTED: return "unsupported";
    case IPW_EEXISTS: return "exists";
    }
    return "unknown";
}

void ipw_bug(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "ipw-agent: bug at %s:%d: ", file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}
