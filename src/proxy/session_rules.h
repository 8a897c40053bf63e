/* proxy/session_rules.h: which session a request belongs to, and which agent inside of it.
 *
 * Pure.  lua/ipw/sessions.lua lists the headers and members of bodies by which programs name their
 * sessions, the strongest first.  The first row of which a request has the session's name decides;
 * an agent inside of a trace is told by the next one. */
#ifndef IPW_PROXY_SESSION_RULES_H
#define IPW_PROXY_SESSION_RULES_H

#include "json/json.h"

struct ipw_session_found {
    const char *rule;   /* the table's */
    char *session;      /* malloc'ed; NULL: no row fits */
    const char *parent; /* the session that it is an agent of; borrowed; or NULL */
    const char *agent;  /* inside of the session; borrowed; or NULL */
};

/* `rules`: the table.  `header` gives the request's header of that name in any case, or NULL;
 * `body` can be NULL. */
void ipw_session_rules_find(struct ipw_session_found *out, const struct ipw_json *rules,
                            const char *(*header)(const void *of, const char *name), const void *of,
                            const struct ipw_json *body);

#endif
