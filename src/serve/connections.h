/* serve/connections.h: a server's open connections, so that idle ones keep nobody out.
 *
 * libmicrohttpd stops accepting when it holds as many connections as it may, and a client that says
 * nothing, or a byte now and then, keeps one for as long as it likes.  A table of these, told of each
 * connection and each request, closes the connection that has been idle the longest when there are
 * more than `most`; one whose request is being answered is never closed.  All calls come from the
 * thread that runs the server. */
#ifndef IPW_SERVE_CONNECTIONS_H
#define IPW_SERVE_CONNECTIONS_H

#include <microhttpd.h>
#include <stddef.h>

struct ipw_connections {
    struct ipw_connection *oldest, *newest; /* by the end of their last request */
    size_t n, most;                         /* open, without those that are being closed */
};

/* For MHD_OPTION_NOTIFY_CONNECTION; `table` is a struct ipw_connections. */
void ipw_connections_notify(void *table, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode what);
/* Its request has been read and is being answered; it has been answered. */
void ipw_connections_busy(struct MHD_Connection *connection);
void ipw_connections_idle(struct ipw_connections *table, struct MHD_Connection *connection);

#endif
