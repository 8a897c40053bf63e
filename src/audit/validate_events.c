#include "audit/validate_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/spec.h"

enum { GOES_ON, ENDED }; /* a query that has not begun is in no table */

static int64_t whole(const struct ipw_json *event, const char *key)
{
    return ipw_json_int(ipw_json_get(event, key), -1);
}

/* A session that was killed before its run_start left nothing, so a number may be missing. */
static int check_session(const struct ipw_event_check *c, int64_t segment, int64_t query,
                         struct ipw_err *err)
{
    if (segment <= c->segment)
        return ipw_fail(err, IPW_EPARSE, "segment: %lld after session %d", (long long)segment,
                        c->segment);
    if (query != -1)
        return ipw_fail(err, IPW_EPARSE, "query: %lld has not started", (long long)query);
    return 0;
}

static void begin_session(struct ipw_event_check *c, int64_t segment)
{
    c->segment = (int)segment;
    c->n_open = 0;
    ipw_table_release(&c->by_span);
    ipw_table_release(&c->by_query);
}

static uint64_t key_of(int64_t query, int64_t span)
{
    return (uint64_t)query << 32 | (uint32_t)span;
}

static int span_starts(struct ipw_event_check *c, int64_t query, int64_t span, struct ipw_err *err)
{
    uint32_t *at;

    if (span < 1) return ipw_fail(err, IPW_EPARSE, "span: a start needs a number from 1");
    at = ipw_table_at(&c->by_span, key_of(query, span), NULL);
    if (*at != IPW_TABLE_NONE)
        return ipw_fail(err, IPW_EPARSE, "span: %lld of query %lld has started already",
                        (long long)span, (long long)query);
    *at = (uint32_t)c->n_open;
    IPW_GROW(c->open, c->cap_open, c->n_open + 1);
    c->open[c->n_open++] = (struct ipw_open_span){query, span};
    return 0;
}

/* The last of the open spans takes the place of this one. */
static int span_ends(struct ipw_event_check *c, int64_t query, int64_t span, struct ipw_err *err)
{
    uint32_t at = ipw_table_get(&c->by_span, key_of(query, span), NULL);
    struct ipw_open_span last;

    if (at == IPW_TABLE_NONE)
        return ipw_fail(err, IPW_EPARSE, "span: %lld of query %lld ends without a start",
                        (long long)span, (long long)query);
    last = c->open[--c->n_open];
    c->open[at] = last;
    *ipw_table_at(&c->by_span, key_of(last.query, last.span), NULL) = at;
    ipw_table_remove(&c->by_span, key_of(query, span), NULL);
    return 0;
}

static int check_query_event(struct ipw_event_check *c, const struct ipw_json *event,
                             const char *name, int64_t query, struct ipw_err *err)
{
    bool start = strcmp(name, "query_start") == 0, end = strcmp(name, "query_end") == 0;
    size_t n = strlen(name);
    int64_t span = whole(event, "span");
    uint32_t state = ipw_table_get(&c->by_query, (uint64_t)query, NULL);

    if (query < 0 || query > INT32_MAX)
        return ipw_fail(err, IPW_EPARSE, "query: %lld is not the index of a query",
                        (long long)query);
    if (span != (int32_t)span)
        return ipw_fail(err, IPW_EPARSE, "span: %lld is not the number of a span", (long long)span);
    if (start && state != IPW_TABLE_NONE)
        return ipw_fail(err, IPW_EPARSE, "query: %lld starts a second time", (long long)query);
    if (!start && state == IPW_TABLE_NONE)
        return ipw_fail(err, IPW_EPARSE, "query: %lld has not started", (long long)query);
    if (end && state == ENDED)
        return ipw_fail(err, IPW_EPARSE, "query: %lld ends a second time", (long long)query);
    if (start) {
        *ipw_table_at(&c->by_query, (uint64_t)query, NULL) = GOES_ON;
    } else if (end) {
        if (whole(event, "ended_ns") > whole(event, "t_ns"))
            return ipw_fail(err, IPW_EPARSE, "ended_ns: after t_ns");
        /* No event of the spans that are open still may follow. */
        *ipw_table_at(&c->by_query, (uint64_t)query, NULL) = ENDED;
    } else if (strcmp(name, "note") != 0) {
        if (state == ENDED)
            return ipw_fail(err, IPW_EPARSE, "query: %lld has ended", (long long)query);
        if (strcmp(name, "tool_span") == 0) {
            if (whole(event, "from_ns") > whole(event, "to_ns") ||
                whole(event, "to_ns") > whole(event, "t_ns"))
                return ipw_fail(err, IPW_EPARSE, "to_ns: before from_ns, or after t_ns");
            return 0;
        }
        if (strcmp(name + n - 4, "_end") == 0) return span_ends(c, query, span, err);
        return span_starts(c, query, span, err);
    }
    return 0;
}

/* One thread stamps and appends events, so their times never go back. */
static int check_time(const struct ipw_event_check *c, int64_t t_ns, struct ipw_err *err)
{
    int64_t back_ns;

    if (t_ns >= c->t_ns) return 0;
    return __builtin_sub_overflow(c->t_ns, t_ns, &back_ns)
               ? ipw_fail(err, IPW_EPARSE, "t_ns: not a time of a run")
               : ipw_fail(err, IPW_EPARSE, "t_ns: goes back by %lld ns", (long long)back_ns);
}

int ipw_event_check_line(struct ipw_event_check *c, const struct ipw_json *event,
                         struct ipw_err *err)
{
    const char *name = ipw_json_str(ipw_json_get(event, "event"), NULL);
    const struct ipw_spec *table;
    bool begins, run_note;
    int64_t least_rows, rows, query, t_ns;

    if (!name) return ipw_fail(err, IPW_EPARSE, "event: missing, or not a string");
    table = ipw_spec_event(name);
    if (!table) return ipw_fail(err, IPW_EPARSE, "event: unknown event '%.40s'", name);
    if (ipw_spec_check(event, table, err) < 0) return err->code;
    query = ipw_json_int(ipw_json_get(event, "query"), -1);
    t_ns = whole(event, "t_ns");
    begins = strcmp(name, "run_start") == 0;
    /* Notes of the run are appended when they are noticed, later than their time. */
    run_note = query == -1 && strcmp(name, "note") == 0;
    if (begins) {
        if (check_session(c, whole(event, "segment"), query, err) < 0) return err->code;
    } else if (c->segment < 0) {
        return ipw_fail(err, IPW_EPARSE, "event: '%s' before any run_start", name);
    } else if (c->over) {
        return ipw_fail(err, IPW_EPARSE, "event: '%s' after its session's run_end", name);
    }
    least_rows = begins ? 0 : c->rows;
    rows = ipw_json_int(ipw_json_get(event, "rows"), least_rows);
    if (rows < least_rows)
        return ipw_fail(err, IPW_EPARSE, "rows: %lld after %lld", (long long)rows,
                        (long long)least_rows);
    if (!begins && !run_note && check_time(c, t_ns, err) < 0) return err->code;
    /* The last that can fail, and only before it changes anything. */
    if (query != -1 && check_query_event(c, event, name, query, err) < 0) return err->code;
    if (begins) begin_session(c, whole(event, "segment"));
    if (!run_note) c->t_ns = t_ns;
    c->rows = rows;
    c->over = strcmp(name, "run_end") == 0;
    return 0;
}

void ipw_event_check_release(struct ipw_event_check *c)
{
    free(c->open);
    ipw_table_release(&c->by_query);
    ipw_table_release(&c->by_span);
    *c = IPW_EVENT_CHECK;
}
