/* base/err.h: how errors travel.
 *
 * A function that can fail returns 0 or a negative `enum ipw_code` and takes a `struct ipw_err *`
 * as its last argument (NULL is allowed).  The deepest function that knows what went wrong writes
 * the one-line message, naming the file, line, field or URL at fault; callers pass it up, at most
 * putting a prefix before it.  The message is valid UTF-8, whatever was put into it.  Only the command line
 * (src/app) prints.  The struct is left
 * untouched on success.  It owns nothing and needs no clean-up. */
#ifndef IPW_BASE_ERR_H
#define IPW_BASE_ERR_H

enum ipw_code {
    IPW_OK = 0,
    IPW_EINVAL = -1,        /* the caller's or the user's argument is wrong */
    IPW_EIO = -2,           /* a file or a pipe failed; detail is errno */
    IPW_EPARSE = -3,        /* text that does not follow its format */
    IPW_EHTTP = -4,         /* the server answered with an error; detail is the HTTP status */
    IPW_ENET = -5,          /* no answer: refused, reset, unreachable, name unknown, TLS */
    IPW_ETIMEOUT = -6,      /* a deadline passed */
    IPW_ECANCELLED = -7,    /* somebody asked for it to stop */
    IPW_ELIMIT = -8,        /* a size, count or budget was exceeded */
    IPW_ELUA = -9,          /* a script raised or misbehaved */
    IPW_ENOTFOUND = -10,    /* a name that does not exist */
    IPW_EPERM = -11,        /* permission denied */
    IPW_EUNSUPPORTED = -12, /* this machine, server or build cannot do it */
    IPW_EEXISTS = -13,      /* something is there already */
};

struct ipw_err {
    enum ipw_code code;
    int detail; /* errno, HTTP status or 0: see the code */
    char text[512];
};

#define IPW_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* Fills *err (when not NULL) and returns `code`, so that one can `return ipw_fail(...)`. */
int ipw_fail(struct ipw_err *err, enum ipw_code code, const char *fmt, ...) IPW_PRINTF(3, 4);

/* The same with ": <strerror(errnum)>" after the text; EACCES and EPERM become IPW_EPERM, ENOENT
 * becomes IPW_ENOTFOUND, all others IPW_EIO; detail is errnum. */
int ipw_fail_errno(struct ipw_err *err, int errnum, const char *fmt, ...) IPW_PRINTF(3, 4);

/* Puts "<fmt>: " before the message already in *err and returns its code. */
int ipw_err_prefix(struct ipw_err *err, const char *fmt, ...) IPW_PRINTF(2, 3);

/* "invalid", "io", "parse", ...: the stable word used in traces and by Lua's error.code. */
const char *ipw_code_name(enum ipw_code code);

/* An impossible state: prints file, line and text on stderr and aborts. */
_Noreturn void ipw_bug(const char *file, int line, const char *fmt, ...) IPW_PRINTF(3, 4);
#define IPW_BUG(...) ipw_bug(__FILE__, __LINE__, __VA_ARGS__)

#endif
