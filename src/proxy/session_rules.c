#include "proxy/session_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { NAME_MAX_BYTES = 256 };

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

static const char *header_at(const struct ipw_json *row, const char *key,
                             const char *(*header)(const void *of, const char *name),
                             const void *of)
{
    const char *name = ipw_json_get_str(row, key);

    return name ? header(of, name) : NULL;
}

void ipw_session_rules_find(struct ipw_session_found *out, const struct ipw_json *rules,
                            const char *(*header)(const void *of, const char *name), const void *of,
                            const struct ipw_json *body)
{
    bool over = false;

    *out = (struct ipw_session_found){0};
    for (const struct ipw_json *r = ipw_json_first(rules); r && !over; r = ipw_json_next(r)) {
        const char *in_body = ipw_json_get_str(r, "body");
        bool threads = ipw_json_bool(ipw_json_get(r, "threads"), false);
        const char *value = in_body ? member(body, in_body) : header_at(r, "session", header, of);
        bool trace = ipw_json_bool(ipw_json_get(r, "trace"), false);

        if (!value || !*value) continue;
        over = !trace;
        if (!out->session) {
            out->session = trace ? trace_of(value) : ipw_asprintf("%.*s", NAME_MAX_BYTES, value);
            out->rule = !out->session ? NULL : in_body ? in_body : ipw_json_get_str(r, "session");
        }
        if (trace) continue;
        out->agent = header_at(r, "agent", header, of);
        out->parent = header_at(r, "parent", header, of);
        /* A row without agents of its own names the agent as a session with a parent. */
        if (!ipw_json_get(r, "agent") && out->parent) out->agent = value;
        /* The main agent is no agent inside of its own session. */
        if (out->parent ? out->agent && strcmp(out->parent, out->agent) == 0 : threads)
            out->agent = out->parent = NULL;
    }
}
