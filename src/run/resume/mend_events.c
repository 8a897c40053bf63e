#include "run/resume/mend_events.h"

#include <stdlib.h>
#include <string.h>

#include "audit/validate_events.h"
#include "base/mem.h"
#include "json/jsonl.h"
#include "run/resume/line_changes.h"
#include "trace/event.h"

struct query { /* of the session */
    int32_t index;
    char *id;
    bool ended;
    int64_t line, t_ns, rows; /* of its last event that is no note */
};

struct job {
    struct ipw_mended_events *m;
    struct ipw_event_check order;
    struct ipw_line_changes changes;
    struct query *queries;
    size_t n, cap;
    struct ipw_table by_index; /* places in `queries` */
};

/* `over`: it has a run_end.  Else it was killed: the queries in flight end with its readings. */
static void end_session(struct job *j, bool over)
{
    for (size_t i = 0; i < j->n; i++) {
        struct query *q = &j->queries[i];
        struct ipw_event end = {.kind = IPW_EV_QUERY_END,
                                .t_ns = q->t_ns,
                                .query = q->index,
                                .rows = q->rows,
                                .q = {.id = q->id, .outcome = "unfinished"}};
        struct ipw_buf text = IPW_BUF(IPW_MIB);

        if (!q->ended && over) {
            ipw_event_write(&text, &end);
            ipw_buf_truncate(&text, text.len - 1); /* its newline */
            ipw_line_changes_add(
                &j->changes, (struct ipw_line_change){q->line, ipw_buf_take(&text, NULL), true});
            j->m->ended++;
        }
        ipw_buf_release(&text);
        free(q->id);
    }
    j->n = 0;
    ipw_table_release(&j->by_index);
}

/* An event of a query that has started, for the order was checked. */
static void follow(struct job *j, const struct ipw_event *e, int64_t line)
{
    uint32_t *at;
    struct query *q;

    if (e->query < 0) return;
    at = ipw_table_at(&j->by_index, (uint32_t)e->query, NULL);
    if (*at == IPW_TABLE_NONE) {
        *at = (uint32_t)j->n;
        IPW_GROW(j->queries, j->cap, j->n + 1);
        j->queries[j->n++] =
            (struct query){.index = e->query, .id = ipw_strdup(e->q.id ? e->q.id : "")};
    }
    q = &j->queries[*at];
    q->ended |= e->kind == IPW_EV_QUERY_END;
    if (e->kind == IPW_EV_NOTE) return;
    q->line = line;
    q->t_ns = e->t_ns;
    q->rows = e->rows;
}

static int take_line(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    struct job *j = ud;
    bool over = j->order.over;
    struct ipw_err why = {0};
    struct ipw_json *doc;
    struct ipw_event event;
    int rc = ipw_event_parse(&doc, line->text, line->n, NULL, err);

    if (rc) return rc;
    rc = ipw_event_read(&event, doc, err);
    if (!rc && ipw_event_check_line(&j->order, doc, &why) == 0) {
        if (event.kind == IPW_EV_RUN_START) end_session(j, over);
        follow(j, &event, line->number);
    } else if (!rc && j->order.segment >= 0) { /* without any run_start nothing follows */
        ipw_line_changes_add(&j->changes, (struct ipw_line_change){.number = line->number});
        j->m->out++;
    }
    ipw_json_free(doc);
    return rc;
}

int ipw_mend_events(struct ipw_mended_events *m, const char *path, struct ipw_err *err)
{
    struct job j = {.m = m, .order = IPW_EVENT_CHECK};
    int rc;

    *m = (struct ipw_mended_events){0};
    rc = ipw_jsonl_each(path, IPW_LINE_MAX, take_line, &j, err);
    end_session(&j, j.order.over);
    if (!rc && j.changes.n) rc = ipw_line_changes_write(&j.changes, path, err);
    ipw_line_changes_release(&j.changes);
    ipw_event_check_release(&j.order);
    free(j.queries);
    return rc;
}
