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

static void put(struct ipw_splice *changes, const struct ipw_json *doc, const char *const *keys,
                const struct ipw_join_clock *c)
{
    for (; *keys && (c->ahead_ns || c->end_ns < INT64_MAX); keys++) {
        int64_t was_ns = ipw_json_int(ipw_json_get(doc, *keys), 0), t_ns = was_ns;

        move(&t_ns, c);
        if (t_ns != was_ns) ipw_splice_int(changes, *keys, t_ns);
    }
}

void ipw_join_put_times(struct ipw_splice *changes, const struct ipw_json *doc,
                        const struct ipw_join_clock *c)
{
    static const char *const keys[] = {"first_byte_ns",
                                       "first_call_ns",
                                       "first_event_ns",
                                       "first_text_ns",
                                       "first_reasoning_ns",
                                       "first_token_ns",
                                       "headers_ns",
                                       "last_token_ns",
                                       "second_token_ns",
                                       "scheduled_ns",
                                       "sent_ns",
                                       "t_ns",
                                       NULL};

    put(changes, doc, keys, c);
}

void ipw_join_put_note_times(struct ipw_splice *changes, const struct ipw_json *data,
                             int64_t ahead_ns)
{
    static const char *const keys[] = {"from_ns", "read_ns", "to_ns", NULL};

    put(changes, data, keys, &(struct ipw_join_clock){ahead_ns, INT64_MAX});
}
