/* io/connections.h: the open connections of a server, so that idle ones do not block new ones.
 *
 * libmicrohttpd stops accepting at its maximum of connections, and a client that sends nothing, or
 * a byte now and then, keeps its connection.  The server tells this table of each connection and
 * each request.  If there are more than `most`, the table closes the connection that has been idle
 * longest. It never closes a connection whose request is being answered.  All calls come from the
 * server's thread. */
#ifndef IPW_SERVE_CONNECTIONS_H
#define IPW_SERVE_CONNECTIONS_H

#include <microhttpd.h>
#include <stddef.h>
#include <stdint.h>

struct ipw_connections {
    struct ipw_connection *oldest, *newest; /* by the end of their last request */
    size_t n, most;                         /* open, without those that are being closed */
    uint64_t opened;                        /* in all */
};

/* For MHD_OPTION_NOTIFY_CONNECTION; `table` is a struct ipw_connections. */
void ipw_connections_notify(void *table, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode what);
/* Its request was read and is being answered; it was answered. */
void ipw_connections_busy(struct MHD_Connection *connection);
void ipw_connections_idle(struct ipw_connections *table, struct MHD_Connection *connection);
/* Which of all connections it is, from 1. */
uint64_t ipw_connections_number(struct MHD_Connection *connection);

#endif
