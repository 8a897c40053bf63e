#include "proxy/session_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { NAME_MAX_BYTES = 256 };

static char *copy(const struct ipw_json *row, const char *key)
{
    return ipw_strdup(ipw_json_get_str(row, key));
}

int ipw_session_rules_read(struct ipw_session_rules *out, const char *json, size_t n,
                           struct ipw_err *err)
{
    struct ipw_json *doc;
    int rc = ipw_json_parse(&doc, json, n, NULL, err);

    if (rc) return rc;
    for (const struct ipw_json *row = ipw_json_first(doc); row; row = ipw_json_next(row)) {
        const char *member = ipw_json_get_str(row, "body");

        IPW_GROW(out->list, out->cap, out->n + 1);
        out->list[out->n++] =
            (struct ipw_session_rule){.name = copy(row, member ? "body" : "session"),
                                      .session = copy(row, member ? "body" : "session"),
                                      .agent = copy(row, "agent"),
                                      .parent = copy(row, "parent"),
                                      .in_body = member != NULL,
                                      .trace = ipw_json_bool(ipw_json_get(row, "trace"), false)};
        if (!out->list[out->n - 1].session)
            rc = ipw_fail(err, IPW_EINVAL, "ipw.sessions: row %zu names no header", out->n);
    }
    ipw_json_free(doc);
    return rc;
}

void ipw_session_rules_release(struct ipw_session_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        free(rules->list[i].name);
        free(rules->list[i].session);
        free(rules->list[i].agent);
        free(rules->list[i].parent);
    }
    free(rules->list);
    *rules = (struct ipw_session_rules){0};
}

static const char *member(const struct ipw_json *body, const char *path)
{
    while (body && strchr(path, '.')) {
        char key[NAME_MAX_BYTES];
        size_t n = strcspn(path, ".");

        if (n >= sizeof key) return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        body = ipw_json_get(body, key);
        path += n + 1;
    }
    return ipw_json_get_str(body, path);
}

/* "00-TRACE-SPAN-FLAGS": a trace is one piece of work; its spans differ. */
static char *trace_of(const char *value)
{
    const char *from = strchr(value, '-');

    if (!from || strcspn(from + 1, "-") != 32) return NULL;
    return ipw_asprintf("%.32s", from + 1);
}

void ipw_session_rules_find(struct ipw_session_found *out, const struct ipw_session_rules *rules,
                            const char *(*header)(const void *of, const char *name), const void *of,
                            const struct ipw_json *body)
{
    bool over = false;

    *out = (struct ipw_session_found){0};
    for (size_t i = 0; i < rules->n && !over; i++) {
        const struct ipw_session_rule *r = &rules->list[i];
        const char *value = r->in_body ? member(body, r->session) : header(of, r->session);

        if (!value || !*value) continue;
        over = !r->trace;
        if (!out->session) {
            out->session = r->trace ? trace_of(value) : ipw_asprintf("%.*s", NAME_MAX_BYTES, value);
            out->rule = out->session ? r->name : NULL;
        }
        if (r->trace) continue;
        out->agent = r->agent ? header(of, r->agent) : NULL;
        out->parent = r->parent ? header(of, r->parent) : NULL;
        /* A row without agents of its own names the agent as a session with a parent. */
        if (!r->agent && out->parent) out->agent = value;
        /* A main agent's own id stands beside those of its children. */
        if (r->agent && r->parent && strcmp(r->agent, "thread-id") == 0 && !out->parent)
            out->agent = NULL;
    }
}
