/* proxy/proxy.h: the recording proxy: model calls of any program, as queries of a run.
 *
 * It listens on loopback.  A call carries the run's or a query's word, in its path (/q/WORD/v1/...)
 * or as its API key; without it nothing is passed on.  A query's word names its session; with the
 * run's word the client's own names do (proxy/session_rules.h), and each new one is offered to the
 * owner, which makes a query of it.  Owns the server, the connections to the servers, and all
 * sessions, until they have ended. */
#ifndef IPW_PROXY_PROXY_H
#define IPW_PROXY_PROXY_H

#include "proxy/passage.h"

struct ipw_proxy_options {
    struct ipw_loop *loop;
    const char *host; /* NULL: 127.0.0.1 */
    int port;         /* 0: any */
    const char *model;
    int64_t idle_ns;    /* of sessions that clients name */
    int64_t connect_ns; /* to a server */
    const char *cacert; /* or NULL */
    /* A session that a client began waits for its query. */
    void (*on_session)(void *ud);
    void *ud;
};

struct ipw_proxy {
    struct ipw_proxy_options o;
    struct ipw_passage_ground ground; /* the owner adds the upstreams */
    struct ipw_json *rules;           /* of sessions; the owner gives them */
    struct ipw_server *server;
    struct ipw_server_options served;
    struct ipw_route route;
    char *word, *url; /* of the run; url: http://127.0.0.1:PORT/q/WORD */
    struct ipw_proxy_session *sessions;
    struct ipw_buf over; /* the words of programs that have ended, one after the other */
    struct ipw_proxy_session *loose; /* calls of no session that are no turn, such as models */
    size_t n_sessions;
    bool closing; /* no session begins any more */
};

int ipw_proxy_open(struct ipw_proxy *p, const struct ipw_proxy_options *options,
                   struct ipw_err *err);
/* Calls are refused from now on; the sessions stay until the release. */
void ipw_proxy_close(struct ipw_proxy *p);
void ipw_proxy_release(struct ipw_proxy *p);

/* A session for a program that we start, with a word of its own. */
struct ipw_proxy_session *ipw_proxy_new_session(struct ipw_proxy *p);
/* The oldest session that waits for its query, which it has from now on; NULL: none. */
struct ipw_proxy_session *ipw_proxy_take_waiting(struct ipw_proxy *p);
/* Its query is over and written: frees it. */
void ipw_proxy_end_session(struct ipw_proxy *p, struct ipw_proxy_session *s);
/* No new ones: those that are quiet are over now, the others when their calls have ended. */
void ipw_proxy_finish_sessions(struct ipw_proxy *p);

#endif
