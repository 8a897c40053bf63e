#include "run/merge/join_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool begins(const struct ipw_jsonl_line *line)
{
    static const char mark[] = "\"event\":\"run_start\"";

    return memmem(line->text, line->n, mark, sizeof mark - 1) != NULL;
}

int ipw_join_events_next(struct ipw_join_events *m, bool inside, struct ipw_err *err)
{
    struct ipw_jsonl_line *line = &m->line;
    size_t repairs = 0;
    int rc = 0;

    ipw_json_free(m->doc);
    m->doc = NULL;
    while (!m->doc && (rc = ipw_jsonl_next(m->events, line, err)) > 0) {
        if (line->torn)
            return ipw_fail(err, IPW_EPARSE, "%s/events.jsonl: its last line is torn",
                            m->run->path);
        if (!inside && !begins(line)) continue;
        rc = ipw_event_parse(&m->doc, line->text, line->n, &repairs, err);
        if (!rc) rc = ipw_json_need_no_repair(repairs, err);
        if (!rc) rc = ipw_event_check_line(&m->order, m->doc, err);
        if (!rc) rc = ipw_event_read(&m->event, m->doc, err);
        if (rc)
            return ipw_err_prefix(err, "%s/events.jsonl:%lld", m->run->path,
                                  (long long)line->number);
        ipw_join_move_event(&m->event, &m->clock);
        if (m->event.kind == IPW_EV_RUN_START && (inside || m->event.segment != m->session)) {
            ipw_json_free(m->doc);
            m->doc = NULL;
            if (inside) return 0;
        }
    }
    return rc < 0 ? rc : 0;
}

/* INT64_MAX: it was not killed, or was not resumed since. */
static int64_t killed_ns(const struct ipw_shard_session *s)
{
    bool killed = !strcmp(ipw_json_str(ipw_json_get(s->doc, "end"), ""), "killed");

    return killed && s->end_ns ? s->end_ns : INT64_MAX;
}

int ipw_join_events_open(struct ipw_join_events *m, const struct ipw_shard_run *run, int session,
                         int64_t ahead_ns, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/events.jsonl", run->path);
    int64_t end_ns = killed_ns(&run->sessions[session]);
    int rc;

    if (end_ns < INT64_MAX) end_ns += ahead_ns;
    *m = (struct ipw_join_events){
        .run = run, .session = session, .clock = {ahead_ns, end_ns}, .order = IPW_EVENT_CHECK};
    rc = ipw_jsonl_open(&m->events, path, IPW_LINE_MAX, err);
    if (!rc) rc = ipw_join_events_next(m, false, err);
    if (!rc && !m->doc)
        rc = ipw_fail(err, IPW_EPARSE, "%s: no run_start of session %d", path, m->session);
    free(path);
    return rc;
}

void ipw_join_events_close(struct ipw_join_events *m)
{
    ipw_jsonl_close(m->events);
    ipw_event_check_release(&m->order);
    ipw_json_free(m->doc);
    free(m->numbers);
}

bool ipw_join_events_is_cut(const struct ipw_join_events *m)
{
    return !m->doc && !m->ended && !m->cut;
}

int64_t ipw_join_events_cut_ns(const struct ipw_join_events *m)
{
    return m->clock.end_ns < INT64_MAX && m->clock.end_ns > m->now_ns ? m->clock.end_ns : m->now_ns;
}

bool ipw_join_events_at_note(const struct ipw_join_events *m)
{
    return m->event.query < 0 && m->event.kind == IPW_EV_NOTE;
}

int64_t ipw_join_events_due_ns(const struct ipw_join_events *m)
{
    if (!m->doc) return ipw_join_events_cut_ns(m);
    return ipw_join_events_at_note(m) || m->event.t_ns < m->now_ns ? m->now_ns : m->event.t_ns;
}
