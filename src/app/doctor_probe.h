/* app/doctor_probe.h: tests what a model server supports, with a few tiny requests.
 *
 * Each finding is a line of the doctor: what was tested, the result, and what to do.  This is not a
 * benchmark: a request has at most some dozen tokens, and there is one request at a time. */
#ifndef IPW_APP_DOCTOR_PROBE_H
#define IPW_APP_DOCTOR_PROBE_H

#include "run/find_server.h"

enum ipw_health { IPW_HEALTH_OK, IPW_HEALTH_WARN, IPW_HEALTH_FAIL };

struct ipw_finding {
    const char *group; /* static: "server" */
    char name[80];     /* "streaming" */
    enum ipw_health health;
    char text[240];   /* the result */
    char remedy[480]; /* what to do, or "" */
};

struct ipw_findings {
    struct ipw_finding *items;
    size_t n, cap;
};

void ipw_findings_add(struct ipw_findings *f, const char *group, const char *name,
                      enum ipw_health health, const char *remedy, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
void ipw_findings_release(struct ipw_findings *f);

/* Sends requests for `model` to the server; false if not even the first one was answered. */
bool ipw_doctor_probe(struct ipw_findings *f, struct ipw_server *server, const char *model);

#endif
