/* io/http_download.h: one answer over HTTP into a file or into memory, while the caller waits.
 *
 * For `ipw-agent fetch`, which does nothing else meanwhile; what runs beside queries uses
 * io/http.h.  One request is one hop: a redirect is an answer whose location the caller may ask for
 * next, so that he decides what the next host is told.  http and https are spoken, TLS is verified,
 * proxies of the environment are used as libcurl does.  A server that sends nothing for a minute
 * has stalled.  Whether a cut answer is asked for again, from where it was cut, is the caller's
 * business. */
#ifndef IPW_IO_HTTP_DOWNLOAD_H
#define IPW_IO_HTTP_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_download {
    const char *url, *bearer; /* the token, or NULL: none is sent */
    const char *cacert;       /* file of PEM certificates in place of the system's, or NULL */
    int fd; /* where the body of a 200 or 206 goes, at `from`; -1: into the answer's body */
    bool public_only; /* connect to public addresses only (http_guard.h) */
    int64_t from;     /* bytes that the file has already: the rest is asked for */
    int64_t file_max; /* how long the file may become */
    /* From time to time, with the file's length: not 0 ends the request (IPW_ECANCELLED).  Or
     * NULL. */
    int (*progress)(void *ud, int64_t length);
    void *ud;
};

struct ipw_download_answer {
    int status;
    bool met_private;        /* the connection's address was not public: a server, or a proxy */
    int64_t length;          /* of the file now */
    char location[4096];     /* of a redirect, absolute; or "" */
    char error_code[64];     /* the hub's X-Error-Code and X-Error-Message, or "" */
    char error_message[256]; /* printable */
    char retry_after[32], link[2048];
    struct ipw_buf body; /* in memory; of an error the beginning.  The caller releases it */
};

/* 0: an answer came, whatever its status.  IPW_EINVAL (the URL), IPW_ENET (cut; the file keeps what
 * came), IPW_ENOTFOUND (no such host, or nobody answers there), IPW_ETIMEOUT, IPW_EPERM (its
 * address is not public), IPW_ELIMIT (more than file_max), IPW_EIO (the file; detail is errno),
 * IPW_EPARSE (an answer that makes no sense) or IPW_ECANCELLED. */
int ipw_download(struct ipw_download_answer *out, const struct ipw_download *d,
                 struct ipw_err *err);

#endif
