/* proxy/session.h: the calls of one program, or of one conversation, as the events of a query.
 *
 * A session is one query of the run.  Its query's agent opens it (script/host.h); until then its
 * calls wait.  Each model call is a turn.  The tools between two turns are inferred: a reply asks
 * for a call, and a later request of the session carries its result; the span between is the
 * tool's, and is marked `inferred`.  Agents inside of the session are spans of their own.  Calls
 * that are no turn are spans under their own name.
 *
 * The proxy owns sessions; a passage (proxy/passage.h) reports what passes. */
#ifndef IPW_PROXY_SESSION_H
#define IPW_PROXY_SESSION_H

#include "io/loop.h"
#include "proxy/call.h"
#include "script/host.h"

struct ipw_passage;
struct ipw_session_tool;
struct ipw_session_agent;

struct ipw_proxy_session {
    char *key;        /* what tells it from others: the word of its path, or what a client sent */
    const char *rule; /* the rule that named it */
    uint64_t connection; /* of a session without a name: the newest connection of its client */
    char *id;            /* of its query */
    char *word, *url;
    struct ipw_host_session face; /* what the query's agent sees */
    struct ipw_loop *loop;
    int64_t idle_ns; /* silent for so long, it is over; 0: its program's end tells */

    struct ipw_host *host; /* NULL: its query has not begun, or is over */
    bool limited;          /* a limit was reached: calls are refused */
    bool taken;            /* a query was begun for it */
    bool over;             /* its query is over; later calls are refused */
    bool loose;            /* it is none: calls of no session pass, and are not recorded */
    void (*on_over)(void *ud, bool limited);
    void *over_ud;
    struct ipw_timer *idle;
    int64_t last_ns;              /* its newest event */
    struct ipw_passage *passages; /* waiting and in flight */
    size_t n_passages;

    struct ipw_session_tool *tools; /* called, and their results have not come back */
    size_t n_tools, cap_tools;
    struct ipw_session_tool *past; /* those that are over, and those that the program told */
    size_t n_past, cap_past;
    struct ipw_session_agent *agents;
    size_t n_agents, cap_agents;
    uint64_t *hashes; /* of the messages of its last request */
    size_t n_hashes;
    bool failed;    /* that request: a client sends it again as it was */
    char *reply_id; /* of the newest reply that was whole; or NULL */
    char *answer;   /* what the model last said without calling a tool; or NULL */
    struct ipw_proxy_session *next;
};

struct ipw_proxy_session *ipw_proxy_session_new(struct ipw_loop *loop, const char *key,
                                                const char *rule, size_t number);
void ipw_proxy_session_free(struct ipw_proxy_session *s);
/* Its query may end: no call is in flight and none will come. */
void ipw_proxy_session_finish(struct ipw_proxy_session *s);

/* Whether the request begins with all messages of the session's last one, and has more (or no
 * others, if that one failed); or names its last reply as what came before. */
bool ipw_proxy_session_goes_on(const struct ipw_proxy_session *s,
                               const struct ipw_proxy_call *call);
/* False: a limit forbids it, or the query is over. */
bool ipw_proxy_session_admits(struct ipw_proxy_session *s);
bool ipw_proxy_session_has_agent(const struct ipw_proxy_session *s, const char *id);
/* The span of an agent inside of the session, which begins with its first call; 0: it has none.
 * `parent`: the id of the agent that started it; NULL or unknown: the main one. */
int32_t ipw_proxy_session_agent(struct ipw_proxy_session *s, const char *id, const char *parent,
                                int64_t t_ns);
/* A turn begins, and the tools whose results it carries end.  `attempt`: from 1, as the client
 * tells.  Takes the call's hashes.  Returns its span. */
int32_t ipw_proxy_session_begin(struct ipw_proxy_session *s, struct ipw_proxy_call *call,
                                int attempt, int64_t t_ns);
void ipw_proxy_session_first_token(struct ipw_proxy_session *s, int64_t t_ns);
/* Its end, and the beginning of the tools that the reply calls. */
void ipw_proxy_session_end(struct ipw_proxy_session *s, const struct ipw_proxy_call *call,
                           int32_t span, int64_t t_ns, const struct ipw_lm_facts *facts,
                           const struct ipw_chat_reply *reply);
struct ipw_told_tool {
    const char *id, *name, *call_id; /* of its span; of the tool; of the call, or NULL */
    int64_t from_ns, to_ns;
    bool failed;
};
/* The program told when a tool ran: one that a reply called, or one of its own. */
void ipw_proxy_session_tell(struct ipw_proxy_session *s, const struct ipw_told_tool *told);
bool ipw_proxy_session_called(const struct ipw_proxy_session *s, const char *call_id);
/* A call that is no turn. */
int32_t ipw_proxy_session_other(struct ipw_proxy_session *s, const struct ipw_proxy_call *call,
                                int64_t t_ns);
void ipw_proxy_session_other_end(struct ipw_proxy_session *s, const char *name, int32_t span,
                                 int64_t t_ns, int status, int64_t bytes);

/* passage.c: the session has opened: what waits goes on; it has closed: what goes on is cut. */
void ipw_passages_go_on(struct ipw_proxy_session *s);
void ipw_passages_cut(struct ipw_proxy_session *s);

#endif
