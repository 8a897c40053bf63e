#include "io/connections.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/mem.h"

struct ipw_connection {
    struct ipw_connection *older, *newer;
    int fd;
    uint64_t number;
    bool busy, closing;
};

static void take_out(struct ipw_connections *t, struct ipw_connection *c)
{
    if (c->older)
        c->older->newer = c->newer;
    else
        t->oldest = c->newer;
    if (c->newer)
        c->newer->older = c->older;
    else
        t->newest = c->older;
}

static void put_newest(struct ipw_connections *t, struct ipw_connection *c)
{
    c->older = t->newest;
    c->newer = NULL;
    if (t->newest)
        t->newest->newer = c;
    else
        t->oldest = c;
    t->newest = c;
}

/* libmicrohttpd then reads the end of the connection and closes it. */
static void close_oldest_idle(struct ipw_connections *t)
{
    struct ipw_connection *c = t->oldest;

    while (c && (c->busy || c->closing)) c = c->newer;
    if (!c) return;
    shutdown(c->fd, SHUT_RDWR);
    c->closing = true;
    t->n--;
}

void ipw_connections_notify(void *table, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode what)
{
    struct ipw_connections *t = table;
    struct ipw_connection *c = *context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        c = ipw_calloc(1, sizeof *c);
        c->fd = info ? info->connect_fd : -1;
        c->number = ++t->opened;
        put_newest(t, c);
        *context = c;
        if (++t->n > t->most) close_oldest_idle(t);
    } else if (c) {
        take_out(t, c);
        if (!c->closing) t->n--;
        free(c);
        *context = NULL;
    }
}

static struct ipw_connection *of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void ipw_connections_busy(struct MHD_Connection *connection)
{
    struct ipw_connection *c = of(connection);

    if (c) c->busy = true;
}

void ipw_connections_idle(struct ipw_connections *table, struct MHD_Connection *connection)
{
    struct ipw_connection *c = of(connection);

    if (!c) return;
    c->busy = false;
    take_out(table, c);
    put_newest(table, c);
}

uint64_t ipw_connections_number(struct MHD_Connection *connection)
{
    struct ipw_connection *c = of(connection);

    return c ? c->number : 0;
}
