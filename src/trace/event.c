#include "trace/event.h"

#include <math.h>
#include <string.h>

#include "trace/spec_rows.h"

static const char *const kind_names[IPW_EV_KINDS] = {
    [IPW_EV_RUN_START] = "run_start",         [IPW_EV_QUERY_START] = "query_start",
    [IPW_EV_LM_START] = "lm_inference_start", [IPW_EV_LM_END] = "lm_inference_end",
    [IPW_EV_TOOL_START] = "tool_call_start",  [IPW_EV_TOOL_END] = "tool_call_end",
    [IPW_EV_TOOL_SPAN] = "tool_span",         [IPW_EV_SPAN_START] = "span_start",
    [IPW_EV_SPAN_END] = "span_end",           [IPW_EV_NOTE] = "note",
    [IPW_EV_QUERY_END] = "query_end",         [IPW_EV_RUN_END] = "run_end",
};

static const char *const outcome_names[IPW_LM_OUTCOMES + 1] = {
    [IPW_LM_OK] = "ok",
    [IPW_LM_REFUSED] = "refused",
    [IPW_LM_TIMEOUT] = "timeout",
    [IPW_LM_RESET] = "reset",
    [IPW_LM_CUT] = "cut",
    [IPW_LM_HTTP_ERROR] = "http_error",
    [IPW_LM_CONTEXT_FULL] = "context_full",
    [IPW_LM_SERVER_ERROR] = "server_error",
    [IPW_LM_BAD_REPLY] = "bad_reply",
    [IPW_LM_TOO_LARGE] = "too_large",
    [IPW_LM_CANCELLED] = "cancelled",
};

const char *const ipw_child_provenance_words[] = {"rusage", "unknown", NULL};

const char *ipw_event_name(enum ipw_event_kind kind)
{
    return (unsigned)kind < IPW_EV_KINDS ? kind_names[kind] : "unknown";
}

const char *ipw_lm_outcome_name(enum ipw_lm_outcome outcome)
{
    return (unsigned)outcome < IPW_LM_OUTCOMES ? outcome_names[outcome] : "unknown";
}

/* ---- the tables: keys that several kinds of event have, then one table for each kind ---- */

static void put_data(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_event *e = of[0];

    if (e->payload) ipw_jw_kraw(w, s->key, e->payload, e->payload_len);
}

static void put_kind(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    ipw_jw_kstr(w, s->key, ipw_event_name(((const struct ipw_event *)of[0])->kind));
}

/* If there are gaps, their quantiles are known and may be 0. */
static void put_gap(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_event *e = of[0];

    if (e->lm.times.gaps > 0)
        ipw_jw_kint(w, s->key, *(const int64_t *)(const void *)((const char *)e + s->at));
}

static void put_cost(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_event *e = of[0];

    if (e->lm.cost.known) ipw_jw_knum(w, s->key, e->lm.cost.usd);
}

static void put_cost_source(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_event *e = of[0];

    if (e->lm.cost.known) ipw_jw_kstr(w, s->key, e->lm.cost.source);
}

/* clang-format off */
#define DATA                 PUT("data", O | OPT, put_data, 0)
#define EVENT                PUT("event", T | OPEN, put_kind, 0)
#define QUERY                HELD("query", I, 0, struct ipw_event, query)
#define ROWS                 HELD("rows", C | OPT, 0, struct ipw_event, rows)
#define SPAN                 HELD("span", C, 0, struct ipw_event, span)
#define INSIDE               HELD("inside", C | OPT, 0, struct ipw_event, inside)
#define T_NS                 HELD("t_ns", I, 0, struct ipw_event, t_ns)
#define LM(member, kinds)    HELD(#member, kinds, 0, struct ipw_event, lm.member)
#define TIME(member, kinds)  HELD(#member, kinds, 0, struct ipw_event, lm.times.member)
#define LM_PUT(name, kinds, member, function)                                                      \
    {NAME(name), .kind = kinds, .put = function, .at = offsetof(struct ipw_event, lm.member),     \
     .hold = HOLD(struct ipw_event, lm.member)}
#define GAP(member)          LM_PUT(#member, C | OPT, times.member, put_gap)
#define TOOL(member, kinds)  HELD(#member, kinds, 0, struct ipw_event, tool.member)
#define ASKED(member, kinds) HELD(#member, kinds, 0, struct ipw_event, q.member)

static const char *const own_kinds[] = {"event", "http", "agent", NULL};
#define OWN_KIND {NAME("kind"), .kind = T, .words = own_kinds, .hold = IPW_HOLD_TEXT,             \
                  .at = offsetof(struct ipw_event, tool.kind)}

static const struct ipw_spec run_start[] = {
    DATA, EVENT, QUERY, ROWS, HELD("segment", C, 0, struct ipw_event, segment), SPAN, T_NS, END};
static const struct ipw_spec run_end[] = {DATA, EVENT, QUERY, ROWS, SPAN, T_NS, END};
static const struct ipw_spec note[] = {
    DATA, EVENT, TOOL(name, T | OPT | OPEN), QUERY, TOOL(result_bytes, C | OPT), ROWS, SPAN, T_NS, END};
static const struct ipw_spec query_start[] = {
    DATA, EVENT, ASKED(id, T | OPEN), QUERY, ROWS, ASKED(scheduled_ns, C | OPT), ASKED(scope, C | OPT), SPAN,
    T_NS, END};
static const struct ipw_spec query_end[] = {
    ASKED(completed, B), DATA, ASKED(ended_ns, C | OPT), ASKED(error, TZ), EVENT, ASKED(id, T | OPEN), ASKED(outcome, T | OPEN), QUERY, ROWS,
    SPAN, T_NS, END};
static const struct ipw_spec tool_start[] = {
    TOOL(argument_bytes, C | OPT), TOOL(call_id, TZ | OPEN), DATA, EVENT, INSIDE, TOOL(name, T | OPEN), QUERY,
    ROWS, SPAN, T_NS, END};
static const struct ipw_spec tool_end[] = {
    TOOL(call_id, TZ | OPEN), TOOL(child_cpu_ns, C | OPT), TOOL(child_peak_bytes, C | OPT),
    {NAME("child_provenance"), .kind = T | OPT, .words = ipw_child_provenance_words,
     .hold = IPW_HOLD_TEXT, .at = offsetof(struct ipw_event, tool.child_provenance)},
    TOOL(cut_bytes, C | OPT), DATA, TOOL(error, TZ), EVENT, TOOL(name, T | OPEN), TOOL(ok, B), TOOL(outcome, TZ | OPEN),
    QUERY, TOOL(result_bytes, CZ), ROWS, SPAN, T_NS, END};
static const struct ipw_spec tool_span[] = {
    TOOL(call_id, TZ | OPEN), DATA, EVENT, TOOL(from_ns, C), TOOL(name, T | OPEN), TOOL(ok, B), QUERY, ROWS, SPAN, T_NS,
    TOOL(to_ns, C), END};
static const struct ipw_spec own_start[] = {
    DATA, EVENT, INSIDE, OWN_KIND, TOOL(name, T), QUERY, ROWS, SPAN, T_NS, END};
static const struct ipw_spec own_end[] = {
    DATA, TOOL(error, TZ), EVENT, OWN_KIND, TOOL(name, T), TOOL(ok, B), TOOL(outcome, TZ | OPEN), QUERY,
    TOOL(result_bytes, CZ), ROWS, SPAN, T_NS, END};
static const struct ipw_spec lm_start[] = {
    LM(attempt, C), DATA, LM(due_ns, C | OPT), EVENT, LM(held_ns, C | OPT), INSIDE, LM(model, TZ | OPEN), QUERY,
    ROWS, SPAN, T_NS, END};
static const struct ipw_spec lm_end[] = {
    LM(attempt, C),
    LM(bytes_received, CZ),
    LM(bytes_sent, CZ),
    LM(cache_write_1h_tokens, C | OPT),
    LM(cache_write_tokens, C | OPT),
    LM(cached_tokens, CZ),
    LM(calls, C),
    LM(chunks, CZ),
    TIME(connect_ns, C | OPT),
    LM_PUT("cost_source", TZ | OPT | OPEN, cost.source, put_cost_source),
    LM_PUT("cost_usd", N | OPT, cost.usd, put_cost),
    DATA,
    TIME(dns_ns, C | OPT),
    LM(endpoint, T | OPT),
    LM(error, TZ),
    EVENT,
    LM(finish_reason, TZ | OPEN),
    TIME(first_byte_ns, IZ),
    TIME(first_call_ns, C | OPT),
    TIME(first_event_ns, C | OPT),
    TIME(first_reasoning_ns, C | OPT),
    TIME(first_text_ns, C | OPT),
    TIME(first_token_ns, IZ),
    GAP(gap_max_ns),
    GAP(gap_p50_ns),
    GAP(gap_p90_ns),
    GAP(gap_p99_ns),
    TIME(gaps, C | OPT),
    TIME(headers_ns, C | OPT),
    LM(input_tokens, CZ),
    TIME(last_token_ns, IZ),
    LM(malformed, B),
    LM(model, TZ | OPEN),
    {NAME("outcome"), .kind = T, .words = outcome_names, .hold = IPW_HOLD_WORD,
     .at = offsetof(struct ipw_event, lm.outcome)},
    LM(output_tokens, CZ),
    QUERY,
    LM(reasoning_tokens, CZ),
    LM(resent, B | OPT),
    LM(retry_wait_ns, C | OPT),
    LM(retryable, B | OPT),
    LM(reused, B | OPT),
    ROWS,
    TIME(second_token_ns, C | OPT),
    LM(send_cpu_ns, C | OPT),
    TIME(sent_ns, IZ),
    TIME(server_decode_ns, C | OPT),
    TIME(server_prefill_ns, C | OPT),
    TIME(server_queue_ns, C | OPT),
    SPAN,
    LM(status, C),
    T_NS,
    TIME(tls_ns, C | OPT),
    LM(tokens_estimated, B),
    LM(will_retry, B),
    END,
};
/* clang-format on */

static const struct ipw_spec *const tables[IPW_EV_KINDS] = {
    [IPW_EV_RUN_START] = run_start,   [IPW_EV_QUERY_START] = query_start,
    [IPW_EV_LM_START] = lm_start,     [IPW_EV_LM_END] = lm_end,
    [IPW_EV_TOOL_START] = tool_start, [IPW_EV_TOOL_END] = tool_end,
    [IPW_EV_TOOL_SPAN] = tool_span,   [IPW_EV_SPAN_START] = own_start,
    [IPW_EV_SPAN_END] = own_end,      [IPW_EV_NOTE] = note,
    [IPW_EV_QUERY_END] = query_end,   [IPW_EV_RUN_END] = run_end,
};

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (!strcmp(names[i], name)) return i;
    }
    return -1;
}

const struct ipw_spec *ipw_spec_event(const char *name)
{
    int kind = find_name(kind_names, IPW_EV_KINDS, name);

    return kind < 0 ? NULL : tables[kind];
}

void ipw_event_write(struct ipw_buf *out, const struct ipw_event *event)
{
    struct ipw_jw w;

    if ((unsigned)event->kind >= IPW_EV_KINDS) IPW_BUG("no such event kind");
    ipw_jw_init(&w, out);
    ipw_spec_write(&w, tables[event->kind], (const void *const[]){event});
    ipw_buf_addc(out, '\n');
}

/* Behind the object that begins at p; NULL: it does not end. */
static const char *behind_object(const char *p, const char *end)
{
    size_t depth = 0;
    bool quoted = false;

    for (; p < end; p++) {
        if (quoted && *p == '\\')
            p++; /* whatever is escaped */
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && (*p == '{' || *p == '['))
            depth++;
        else if (!quoted && (*p == '}' || *p == ']') && --depth == 0)
            return p + 1;
    }
    return NULL;
}

/* No member before "data" is an object, and a quote inside of a text is escaped. */
void ipw_event_take_payload(struct ipw_event *event, const char *line, size_t n)
{
    static const char key[] = "\"data\":";
    const char *at = memmem(line, n, key, sizeof key - 1), *end;

    event->payload = NULL;
    event->payload_len = 0;
    if (!at || at[sizeof key - 1] != '{') return;
    at += sizeof key - 1;
    end = behind_object(at, line + n);
    if (!end) return;
    event->payload = at;
    event->payload_len = (size_t)(end - at);
}

void ipw_event_move(struct ipw_event *event, int64_t ahead_ns, int64_t latest_ns)
{
    struct ipw_lm_times *t = &event->lm.times;
    int64_t *const instants[] = {&event->t_ns,           &t->sent_ns,        &t->headers_ns,
                                 &t->first_byte_ns,      &t->first_event_ns, &t->first_token_ns,
                                 &t->second_token_ns,    &t->last_token_ns,  &t->first_text_ns,
                                 &t->first_reasoning_ns, &t->first_call_ns,  &event->q.scheduled_ns,
                                 &event->q.ended_ns,     &event->lm.due_ns,  &event->tool.from_ns,
                                 &event->tool.to_ns};

    for (size_t i = 0; i < sizeof instants / sizeof *instants; i++) {
        if (!*instants[i]) continue;
        *instants[i] += ahead_ns;
        if (*instants[i] > latest_ns) *instants[i] = latest_ns;
    }
}

int64_t ipw_event_end_ns(const struct ipw_event *e)
{
    return e->q.ended_ns > 0 && e->q.ended_ns < e->t_ns ? e->q.ended_ns : e->t_ns;
}

void ipw_event_cut(struct ipw_event *event)
{
    ipw_spec_cut(tables[event->kind], (void *const[]){event});
}

static int need_outcome(enum ipw_lm_outcome *outcome, const struct ipw_json *line,
                        struct ipw_err *err)
{
    const char *name;
    int o;

    if (ipw_json_need_str(&name, line, "outcome", "", err) < 0) return IPW_EPARSE;
    o = find_name(outcome_names, IPW_LM_OUTCOMES, name);
    if (o < 0) return ipw_fail(err, IPW_EPARSE, "outcome: unknown value \"%.60s\"", name);
    *outcome = (enum ipw_lm_outcome)o;
    return 0;
}

static bool needs_data(const struct ipw_json *line)
{
    const char *event = ipw_json_str(ipw_json_get(line, "event"), "");

    return !strcmp(event, kind_names[IPW_EV_RUN_START]) ||
           !strcmp(event, kind_names[IPW_EV_QUERY_START]) ||
           !strcmp(event, kind_names[IPW_EV_NOTE]);
}

int ipw_event_parse(struct ipw_json **line, const char *text, size_t n, size_t *repairs,
                    struct ipw_err *err)
{
    static const char *const data[] = {"data", NULL};
    int rc = ipw_json_parse_without(line, text, n, data, repairs, err);

    if (rc || !needs_data(*line)) return rc;
    ipw_json_free(*line);
    return ipw_json_parse(line, text, n, repairs, err);
}

int ipw_event_read(struct ipw_event *out, const struct ipw_json *line, struct ipw_err *err)
{
    struct ipw_event e = {0};
    const char *name;
    int64_t t_ns;
    int kind;

    if (ipw_json_kind(line) != IPW_JSON_OBJ) {
        return ipw_fail(err, IPW_EPARSE, "an event must be a JSON object");
    }
    if (ipw_json_need_str(&name, line, "event", "", err) < 0 ||
        ipw_json_need_int(&t_ns, line, "t_ns", "", err) < 0) {
        return IPW_EPARSE;
    }
    kind = find_name(kind_names, IPW_EV_KINDS, name);
    if (kind < 0) return ipw_fail(err, IPW_EPARSE, "event: unknown kind \"%.60s\"", name);
    e.kind = (enum ipw_event_kind)kind;
    switch (e.kind) {
    case IPW_EV_LM_END:
        if (need_outcome(&e.lm.outcome, line, err) < 0) return IPW_EPARSE;
        break;
    case IPW_EV_TOOL_START:
    case IPW_EV_TOOL_END:
    case IPW_EV_TOOL_SPAN:
    case IPW_EV_SPAN_START:
    case IPW_EV_SPAN_END:
        if (ipw_json_need_str(&name, line, "name", "", err) < 0) return IPW_EPARSE;
        break;
    default: break;
    }
    ipw_spec_read(line, tables[kind], (void *const[]){&e});
    e.query = (int32_t)ipw_json_int(ipw_json_get(line, "query"), -1);
    e.lm.cost.known = e.kind == IPW_EV_LM_END && !isnan(e.lm.cost.usd);
    if (!e.lm.cost.known) e.lm.cost.usd = 0;
    *out = e;
    return 0;
}
