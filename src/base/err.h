/* base/err.h: how errors travel.
 *
 * A function that can fail returns 0 or a negative `enum ipw_code`.  It takes a `struct ipw_err *`
 * as its last argument (NULL is allowed).  The deepest function that knows the cause writes the
 * one-line message, with the file, line, field or URL at fault.  Callers pass it up and add at most
 * a prefix.  The message is always valid UTF-8.  Only the command line (src/app) prints it.  On
 * success the struct is left untouched.  It owns nothing and needs no clean-up. */
#ifndef IPW_BASE_ERR_H
#define IPW_BASE_ERR_H

enum ipw_code {
    IPW_OK = 0,
    IPW_EINVAL = -1,        /* the caller's or the user's argument is wrong */
    IPW_EIO = -2,           /* a file or a pipe failed; detail is errno */
    IPW_EPARSE = -3,        /* text that violates its format */
    IPW_EHTTP = -4,         /* the server answered with an error; detail is the HTTP status */
    IPW_ENET = -5,          /* no answer: refused, reset, unreachable, name unknown, TLS */
    IPW_ETIMEOUT = -6,      /* a deadline passed */
    IPW_ECANCELLED = -7,    /* the caller or the user stopped it */
    IPW_ELIMIT = -8,        /* a size, count or budget was exceeded */
    IPW_ELUA = -9,          /* a script raised or misbehaved */
    IPW_ENOTFOUND = -10,    /* no such name */
    IPW_EPERM = -11,        /* permission denied */
    IPW_EUNSUPPORTED = -12, /* not supported by this machine, server or build */
    IPW_EEXISTS = -13,      /* already exists */
    IPW_ECONTEXT = -14,     /* a request is longer than the model's context */
    IPW_CODE_LAST = IPW_ECONTEXT,
};

struct ipw_err {
    enum ipw_code code;
    int detail; /* errno, HTTP status or 0, depending on the code */
    char text[512];
};

#define IPW_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* Fills *err (unless NULL) and returns `code`, so callers can `return ipw_fail(...)`. */
int ipw_fail(struct ipw_err *err, enum ipw_code code, const char *fmt, ...) IPW_PRINTF(3, 4);

/* Like ipw_fail() with ": <strerror(errnum)>" after the text.  EACCES and EPERM become IPW_EPERM,
 * ENOENT becomes IPW_ENOTFOUND, all others IPW_EIO; detail is errnum. */
int ipw_fail_errno(struct ipw_err *err, int errnum, const char *fmt, ...) IPW_PRINTF(3, 4);

/* Puts "<fmt>: " before the message already in *err and returns its code. */
int ipw_err_prefix(struct ipw_err *err, const char *fmt, ...) IPW_PRINTF(2, 3);

/* "invalid", "io", "parse", ...: the stable word in traces and in Lua's error.code. */
const char *ipw_code_name(enum ipw_code code);

/* Reports an impossible state: prints file, line and text on stderr and aborts. */
_Noreturn void ipw_bug(const char *file, int line, const char *fmt, ...) IPW_PRINTF(3, 4);
#define IPW_BUG(...) ipw_bug(__FILE__, __LINE__, __VA_ARGS__)

#endif
