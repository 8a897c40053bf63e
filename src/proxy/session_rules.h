/* proxy/session_rules.h: which session a request belongs to, and which agent inside of it.
 *
 * Pure.  lua/ipw/sessions.lua lists the headers and members of bodies by which programs name their
 * sessions, the strongest first.  The first row of which a request has the session's name decides;
 * an agent inside of a trace is told by the next one. */
#ifndef IPW_PROXY_SESSION_RULES_H
#define IPW_PROXY_SESSION_RULES_H

#include "base/err.h"
#include "json/json.h"

struct ipw_session_rule {
    char *name;           /* for the manifest: "x-claude-code-session-id" */
    char *session;        /* a header; or a member of the body, with dots ("metadata.user_id") */
    char *agent, *parent; /* headers; or NULL */
    bool in_body;
    bool trace; /* a traceparent: the trace's id is the session's */
};

struct ipw_session_rules {
    struct ipw_session_rule *list;
    size_t n, cap;
};

struct ipw_session_found {
    const char *rule;
    char *session;      /* malloc'ed; NULL: no row fits */
    const char *parent; /* the session that it is an agent of; borrowed; or NULL */
    const char *agent;  /* inside of the session; borrowed; or NULL */
};

/* `json`: the table as a JSON list. */
int ipw_session_rules_read(struct ipw_session_rules *out, const char *json, size_t n,
                           struct ipw_err *err);
void ipw_session_rules_release(struct ipw_session_rules *rules);
/* `header` gives the request's header of that name in any case, or NULL; `body` can be NULL. */
void ipw_session_rules_find(struct ipw_session_found *out, const struct ipw_session_rules *rules,
                            const char *(*header)(const void *of, const char *name), const void *of,
                            const struct ipw_json *body);

#endif
