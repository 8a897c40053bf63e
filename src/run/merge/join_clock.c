#include "run/merge/join_clock.h"

static void move(int64_t *t_ns, const struct ipw_join_clock *c)
{
    if (!*t_ns) return; /* unknown */
    *t_ns += c->ahead_ns;
    if (*t_ns > c->end_ns) *t_ns = c->end_ns;
}

void ipw_join_move_event(struct ipw_event *e, const struct ipw_join_clock *c)
{
    int64_t *all[IPW_EVENT_INSTANTS];
    size_t n = ipw_event_instants(e, all);

    for (size_t i = 0; i < n; i++) move(all[i], c);
}

bool ipw_join_put_note_times(struct ipw_jw *w, const struct ipw_json *data, int64_t ahead_ns)
{
    static const char *const keys[] = {"from_ns", "read_ns", "to_ns", NULL};
    bool any = false;

    for (const char *const *key = keys; *key && ahead_ns; key++) {
        int64_t t_ns = ipw_json_int(ipw_json_get(data, *key), 0);

        if (t_ns) ipw_jw_kint(w, *key, t_ns + ahead_ns);
        any |= t_ns != 0;
    }
    return any;
}
