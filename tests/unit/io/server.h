/* A small HTTP server for tests: plain blocking sockets, a thread a connection, nothing shared with
 * src/.  The request's path chooses what it does, see server.c.  What it saw is counted. */
#ifndef TEST_IO_SERVER_H
#define TEST_IO_SERVER_H

#include <stdatomic.h>

struct server {
    int fd, port;
    atomic_int connections;  /* accepted */
    atomic_int requests;     /* read to their end */
    atomic_int open;         /* connections whose thread runs */
    atomic_int peer_closed;  /* stalled answers that ended because the client went away */
    char last_request[8192]; /* the head of the latest one; read it when the server is quiet */
    int redirect_port;
    struct server_state *state;
};

void server_start(struct server *s);
void server_stop(struct server *s); /* waits for all its threads */

#endif
