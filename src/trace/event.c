#include "trace/event.h"

#include <string.h>

#include "json/write.h"
#include "trace/schema_priv.h"

static const char *const kind_names[IPW_EV_KINDS] = {
    [IPW_EV_RUN_START] = "run_start",
    [IPW_EV_QUERY_START] = "query_start",
    [IPW_EV_LM_START] = "lm_inference_start",
    [IPW_EV_LM_END] = "lm_inference_end",
    [IPW_EV_TOOL_START] = "tool_call_start",
    [IPW_EV_TOOL_END] = "tool_call_end",
    [IPW_EV_SPAN_START] = "span_start",
    [IPW_EV_SPAN_END] = "span_end",
    [IPW_EV_NOTE] = "note",
    [IPW_EV_QUERY_END] = "query_end",
    [IPW_EV_RUN_END] = "run_end",
};

static const char *const outcome_names[IPW_LM_OUTCOMES] = {
    [IPW_LM_OK] = "ok",
    [IPW_LM_REFUSED] = "refused",
    [IPW_LM_TIMEOUT] = "timeout",
    [IPW_LM_RESET] = "reset",
    [IPW_LM_CUT] = "cut",
    [IPW_LM_HTTP_ERROR] = "http_error",
    [IPW_LM_SERVER_ERROR] = "server_error",
    [IPW_LM_BAD_REPLY] = "bad_reply",
    [IPW_LM_TOO_LARGE] = "too_large",
    [IPW_LM_CANCELLED] = "cancelled",
};

const char *ipw_event_name(enum ipw_event_kind kind)
{
    return (unsigned)kind < IPW_EV_KINDS ? kind_names[kind] : "unknown";
}

const char *ipw_lm_outcome_name(enum ipw_lm_outcome outcome)
{
    return (unsigned)outcome < IPW_LM_OUTCOMES ? outcome_names[outcome] : "unknown";
}

/* Writing.  An event is written for every request, reply and tool call while the model's own joules
 * are being counted, so this goes around the general writer: literals and numbers are gathered in a
 * small array and handed over in front of each text.  Those of one event together are far below
 * the array's size: 48 members of at most 24 bytes of key and 21 of value. */

struct put {
    struct ipw_buf *out;
    size_t n;
    char text[2560];
};

#define LIT(w, literal)                                                                            \
    (memcpy((w)->text + (w)->n, (literal), sizeof(literal) - 1),                                   \
     (void)((w)->n += sizeof(literal) - 1))

static void hand_over(struct put *w)
{
    ipw_buf_add(w->out, w->text, w->n);
    w->n = 0;
}

static void put_int(struct put *w, int64_t i)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;

    do {
        digits[--at] = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (i < 0) digits[--at] = '-';
    memcpy(w->text + w->n, digits + at, sizeof digits - at);
    w->n += sizeof digits - at;
}

/* A count that is not known is null, never -1 or 0. */
static void put_count(struct put *w, int64_t i)
{
    if (i < 0) {
        LIT(w, "null");
    } else {
        put_int(w, i);
    }
}

static void put_stamp(struct put *w, int64_t t_ns)
{
    if (t_ns == 0) {
        LIT(w, "null");
    } else {
        put_int(w, t_ns);
    }
}

static void put_bool(struct put *w, bool b)
{
    if (b) {
        LIT(w, "true");
    } else {
        LIT(w, "false");
    }
}

static void put_str(struct put *w, const char *s)
{
    if (s) {
        hand_over(w);
        ipw_json_escape(w->out, s, strlen(s));
    } else {
        LIT(w, "null");
    }
}

/* One of our own short names, which need no escaping. */
static void put_name(struct put *w, const char *name)
{
    size_t n = strlen(name);

    memcpy(w->text + w->n, name, n);
    w->n += n;
}

static void put_data(struct put *w, const struct ipw_event *e)
{
    if (!e->payload) return;
    LIT(w, "\"data\":");
    hand_over(w);
    ipw_buf_add(w->out, e->payload, e->payload_len);
    LIT(w, ",");
}

/* `key` with its comma and colon; only what is known is written. */
static void put_known(struct put *w, const char *key, int64_t value)
{
    if (value <= 0) return;
    put_name(w, key);
    put_int(w, value);
}

static void put_phases(struct put *w, const struct ipw_lm_facts *f)
{
    put_known(w, ",\"first_call_ns\":", f->first_call_ns);
    put_known(w, ",\"first_event_ns\":", f->first_event_ns);
    put_known(w, ",\"first_reasoning_ns\":", f->first_reasoning_ns);
    put_known(w, ",\"first_text_ns\":", f->first_text_ns);
}

static void put_gaps(struct put *w, const struct ipw_lm_facts *f)
{
    if (f->gaps <= 0) return;
    LIT(w, ",\"gap_max_ns\":");
    put_int(w, f->gap_max_ns);
    LIT(w, ",\"gap_p50_ns\":");
    put_int(w, f->gap_p50_ns);
    LIT(w, ",\"gap_p90_ns\":");
    put_int(w, f->gap_p90_ns);
    LIT(w, ",\"gap_p99_ns\":");
    put_int(w, f->gap_p99_ns);
    LIT(w, ",\"gaps\":");
    put_int(w, f->gaps);
}

static void put_cost(struct put *w, const struct ipw_lm_facts *f)
{
    struct ipw_jw number;

    if (!f->cost_known) return;
    LIT(w, ",\"cost_source\":");
    put_str(w, f->cost_source);
    LIT(w, ",\"cost_usd\":");
    hand_over(w);
    ipw_jw_init(&number, w->out);
    ipw_jw_num(&number, f->cost_usd);
}

static void put_lm_end(struct put *w, const struct ipw_event *e)
{
    const struct ipw_lm_facts *f = &e->lm;

    LIT(w, "{\"attempt\":");
    put_int(w, f->attempt);
    LIT(w, ",\"bytes_received\":");
    put_count(w, f->bytes_received);
    LIT(w, ",\"bytes_sent\":");
    put_count(w, f->bytes_sent);
    LIT(w, ",\"cached_tokens\":");
    put_count(w, f->cached_tokens);
    LIT(w, ",\"calls\":");
    put_int(w, f->calls);
    LIT(w, ",\"chunks\":");
    put_count(w, f->chunks);
    put_known(w, ",\"connect_ns\":", f->connect_ns);
    put_cost(w, f);
    LIT(w, ",");
    put_data(w, e);
    if (f->dns_ns > 0) {
        LIT(w, "\"dns_ns\":");
        put_int(w, f->dns_ns);
        LIT(w, ",");
    }
    if (f->endpoint) {
        LIT(w, "\"endpoint\":");
        put_str(w, f->endpoint);
        LIT(w, ",");
    }
    LIT(w, "\"error\":");
    put_str(w, f->error);
    LIT(w, ",\"event\":\"lm_inference_end\",\"finish_reason\":");
    put_str(w, f->finish_reason);
    LIT(w, ",\"first_byte_ns\":");
    put_stamp(w, f->first_byte_ns);
    put_phases(w, f);
    LIT(w, ",\"first_token_ns\":");
    put_stamp(w, f->first_token_ns);
    put_gaps(w, f);
    put_known(w, ",\"headers_ns\":", f->headers_ns);
    LIT(w, ",\"input_tokens\":");
    put_count(w, f->input_tokens);
    LIT(w, ",\"last_token_ns\":");
    put_stamp(w, f->last_token_ns);
    LIT(w, ",\"malformed\":");
    put_bool(w, f->malformed);
    LIT(w, ",\"model\":");
    put_str(w, f->model);
    LIT(w, ",\"outcome\":\"");
    put_name(w, ipw_lm_outcome_name(f->outcome));
    LIT(w, "\",\"output_tokens\":");
    put_count(w, f->output_tokens);
    LIT(w, ",\"query\":");
    put_int(w, e->query);
    LIT(w, ",\"reasoning_tokens\":");
    put_count(w, f->reasoning_tokens);
    if (f->resent) LIT(w, ",\"resent\":true");
    put_known(w, ",\"retry_wait_ns\":", f->retry_wait_ns);
    if (f->retryable) LIT(w, ",\"retryable\":true");
    if (f->reused) LIT(w, ",\"reused\":true");
    put_known(w, ",\"rows\":", e->rows);
    put_known(w, ",\"second_token_ns\":", f->second_token_ns);
    LIT(w, ",\"sent_ns\":");
    put_stamp(w, f->sent_ns);
    put_known(w, ",\"server_decode_ns\":", f->server_decode_ns);
    put_known(w, ",\"server_prefill_ns\":", f->server_prefill_ns);
    put_known(w, ",\"server_queue_ns\":", f->server_queue_ns);
    LIT(w, ",\"span\":");
    put_int(w, e->span);
    LIT(w, ",\"status\":");
    put_int(w, f->status);
    LIT(w, ",\"t_ns\":");
    put_int(w, e->t_ns);
    put_known(w, ",\"tls_ns\":", f->tls_ns);
    LIT(w, ",\"tokens_estimated\":");
    put_bool(w, f->tokens_estimated);
    LIT(w, ",\"will_retry\":");
    put_bool(w, f->will_retry);
    LIT(w, "}\n");
}

static void put_tail(struct put *w, const struct ipw_event *e)
{
    LIT(w, "\"query\":");
    put_int(w, e->query);
}

static void put_span_and_time(struct put *w, const struct ipw_event *e)
{
    put_known(w, ",\"rows\":", e->rows);
    if (e->kind == IPW_EV_RUN_START) {
        LIT(w, ",\"segment\":");
        put_int(w, e->segment);
    }
    LIT(w, ",\"span\":");
    put_int(w, e->span);
    LIT(w, ",\"t_ns\":");
    put_int(w, e->t_ns);
    LIT(w, "}\n");
}

static void put_lm_start(struct put *w, const struct ipw_event *e)
{
    LIT(w, "{\"attempt\":");
    put_int(w, e->lm.attempt);
    LIT(w, ",");
    put_data(w, e);
    LIT(w, "\"event\":\"lm_inference_start\"");
    put_known(w, ",\"held_ns\":", e->lm.held_ns);
    LIT(w, ",\"model\":");
    put_str(w, e->lm.model);
    LIT(w, ",");
    put_tail(w, e);
    put_span_and_time(w, e);
}

/* A tool call and a script's own span are the same from the name on. */
static void put_from_name(struct put *w, const struct ipw_event *e, bool end)
{
    const struct ipw_tool_facts *f = &e->tool;

    LIT(w, ",\"name\":");
    put_str(w, f->name);
    if (end) {
        LIT(w, ",\"ok\":");
        put_bool(w, f->ok);
        LIT(w, ",\"outcome\":");
        put_str(w, f->outcome);
    }
    LIT(w, ",");
    put_tail(w, e);
    if (end) {
        LIT(w, ",\"result_bytes\":");
        put_count(w, f->result_bytes);
    }
    put_span_and_time(w, e);
}

static void put_error(struct put *w, const struct ipw_event *e)
{
    LIT(w, "\"error\":");
    put_str(w, e->tool.error);
    LIT(w, ",");
}

static void put_tool(struct put *w, const struct ipw_event *e)
{
    bool end = e->kind == IPW_EV_TOOL_END;

    LIT(w, "{\"call_id\":");
    put_str(w, e->tool.call_id);
    LIT(w, ",");
    put_data(w, e);
    if (end) {
        put_error(w, e);
        LIT(w, "\"event\":\"tool_call_end\"");
    } else {
        LIT(w, "\"event\":\"tool_call_start\"");
    }
    put_from_name(w, e, end);
}

static void put_own_span(struct put *w, const struct ipw_event *e)
{
    bool end = e->kind == IPW_EV_SPAN_END;

    LIT(w, "{");
    put_data(w, e);
    if (end) {
        put_error(w, e);
        LIT(w, "\"event\":\"span_end\",\"kind\":");
    } else {
        LIT(w, "\"event\":\"span_start\",\"kind\":");
    }
    put_str(w, e->tool.kind);
    put_from_name(w, e, end);
}

static void put_query(struct put *w, const struct ipw_event *e)
{
    const struct ipw_query_facts *f = &e->q;

    LIT(w, "{");
    if (e->kind == IPW_EV_QUERY_END) {
        LIT(w, "\"completed\":");
        put_bool(w, f->completed);
        LIT(w, ",");
        put_data(w, e);
        LIT(w, "\"error\":");
        put_str(w, f->error);
        LIT(w, ",\"event\":\"query_end\",\"id\":");
        put_str(w, f->id);
        LIT(w, ",\"outcome\":");
        put_str(w, f->outcome);
        LIT(w, ",");
    } else {
        put_data(w, e);
        LIT(w, "\"event\":\"query_start\",\"id\":");
        put_str(w, f->id);
        LIT(w, ",");
    }
    put_tail(w, e);
    put_span_and_time(w, e);
}

static void put_plain(struct put *w, const struct ipw_event *e)
{
    LIT(w, "{");
    put_data(w, e);
    LIT(w, "\"event\":\"");
    put_name(w, ipw_event_name(e->kind));
    LIT(w, "\",");
    if (e->tool.name && e->kind == IPW_EV_NOTE) {
        LIT(w, "\"name\":");
        put_str(w, e->tool.name);
        LIT(w, ",");
    }
    put_tail(w, e);
    put_span_and_time(w, e);
}

void ipw_event_write(struct ipw_buf *out, const struct ipw_event *event)
{
    struct put gathered, *w = &gathered;

    gathered.out = out;
    gathered.n = 0;
    switch (event->kind) {
    case IPW_EV_LM_START: put_lm_start(w, event); break;
    case IPW_EV_LM_END: put_lm_end(w, event); break;
    case IPW_EV_TOOL_START:
    case IPW_EV_TOOL_END: put_tool(w, event); break;
    case IPW_EV_SPAN_START:
    case IPW_EV_SPAN_END: put_own_span(w, event); break;
    case IPW_EV_QUERY_START:
    case IPW_EV_QUERY_END: put_query(w, event); break;
    case IPW_EV_RUN_START:
    case IPW_EV_NOTE:
    case IPW_EV_RUN_END: put_plain(w, event); break;
    case IPW_EV_KINDS: IPW_BUG("no such event kind");
    }
    hand_over(w);
}

/* Reading. */

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (!strcmp(names[i], name)) return i;
    }
    return -1;
}

static int64_t get_int(const struct ipw_json *line, const char *key, int64_t fallback)
{
    return ipw_json_int(ipw_json_get(line, key), fallback);
}

static const char *get_str(const struct ipw_json *line, const char *key)
{
    return ipw_json_str(ipw_json_get(line, key), NULL);
}

static bool get_bool(const struct ipw_json *line, const char *key)
{
    return ipw_json_bool(ipw_json_get(line, key), false);
}

static int read_lm(struct ipw_event *e, const struct ipw_json *line, struct ipw_err *err)
{
    struct ipw_lm_facts *f = &e->lm;
    const char *outcome;
    int o;

    f->attempt = (int)get_int(line, "attempt", 0);
    f->model = get_str(line, "model");
    if (e->kind == IPW_EV_LM_START) {
        f->held_ns = get_int(line, "held_ns", 0);
        return 0;
    }
    if (ipw_json_need_str(&outcome, line, "outcome", "", err) < 0) return IPW_EPARSE;
    o = find_name(outcome_names, IPW_LM_OUTCOMES, outcome);
    if (o < 0) return ipw_fail(err, IPW_EPARSE, "outcome: unknown value \"%.60s\"", outcome);
    f->outcome = (enum ipw_lm_outcome)o;
    f->will_retry = get_bool(line, "will_retry");
    f->retryable = get_bool(line, "retryable");
    f->status = (int)get_int(line, "status", 0);
    f->error = get_str(line, "error");
    f->finish_reason = get_str(line, "finish_reason");
    f->sent_ns = get_int(line, "sent_ns", 0);
    f->first_byte_ns = get_int(line, "first_byte_ns", 0);
    f->first_token_ns = get_int(line, "first_token_ns", 0);
    f->last_token_ns = get_int(line, "last_token_ns", 0);
    f->input_tokens = get_int(line, "input_tokens", -1);
    f->output_tokens = get_int(line, "output_tokens", -1);
    f->cached_tokens = get_int(line, "cached_tokens", -1);
    f->reasoning_tokens = get_int(line, "reasoning_tokens", -1);
    f->tokens_estimated = get_bool(line, "tokens_estimated");
    f->calls = (int)get_int(line, "calls", 0);
    f->chunks = get_int(line, "chunks", -1);
    f->bytes_sent = get_int(line, "bytes_sent", -1);
    f->bytes_received = get_int(line, "bytes_received", -1);
    f->malformed = get_bool(line, "malformed");
    f->cost_known = !ipw_json_is_null(ipw_json_get(line, "cost_usd"));
    f->cost_usd = ipw_json_num(ipw_json_get(line, "cost_usd"), 0);
    f->cost_source = get_str(line, "cost_source");
    f->headers_ns = get_int(line, "headers_ns", 0);
    f->first_event_ns = get_int(line, "first_event_ns", 0);
    f->first_text_ns = get_int(line, "first_text_ns", 0);
    f->first_reasoning_ns = get_int(line, "first_reasoning_ns", 0);
    f->first_call_ns = get_int(line, "first_call_ns", 0);
    f->second_token_ns = get_int(line, "second_token_ns", 0);
    f->dns_ns = get_int(line, "dns_ns", 0);
    f->connect_ns = get_int(line, "connect_ns", 0);
    f->tls_ns = get_int(line, "tls_ns", 0);
    f->gaps = get_int(line, "gaps", 0);
    f->gap_p50_ns = get_int(line, "gap_p50_ns", 0);
    f->gap_p90_ns = get_int(line, "gap_p90_ns", 0);
    f->gap_p99_ns = get_int(line, "gap_p99_ns", 0);
    f->gap_max_ns = get_int(line, "gap_max_ns", 0);
    f->server_queue_ns = get_int(line, "server_queue_ns", 0);
    f->server_prefill_ns = get_int(line, "server_prefill_ns", 0);
    f->server_decode_ns = get_int(line, "server_decode_ns", 0);
    f->retry_wait_ns = get_int(line, "retry_wait_ns", 0);
    f->endpoint = get_str(line, "endpoint");
    f->reused = get_bool(line, "reused");
    f->resent = get_bool(line, "resent");
    return 0;
}

static int read_tool(struct ipw_event *e, const struct ipw_json *line, struct ipw_err *err)
{
    struct ipw_tool_facts *f = &e->tool;

    if (ipw_json_need_str(&f->name, line, "name", "", err) < 0) return IPW_EPARSE;
    f->call_id = get_str(line, "call_id");
    f->kind = get_str(line, "kind");
    if (e->kind == IPW_EV_TOOL_START || e->kind == IPW_EV_SPAN_START) return 0;
    f->ok = get_bool(line, "ok");
    f->outcome = get_str(line, "outcome");
    f->error = get_str(line, "error");
    f->result_bytes = get_int(line, "result_bytes", -1);
    return 0;
}

int ipw_event_read(struct ipw_event *out, const struct ipw_json *line, struct ipw_err *err)
{
    struct ipw_event e = {0};
    const char *name;
    int kind, rc = 0;

    if (ipw_json_kind(line) != IPW_JSON_OBJ) {
        return ipw_fail(err, IPW_EPARSE, "an event must be a JSON object");
    }
    if (ipw_json_need_str(&name, line, "event", "", err) < 0 ||
        ipw_json_need_int(&e.t_ns, line, "t_ns", "", err) < 0) {
        return IPW_EPARSE;
    }
    kind = find_name(kind_names, IPW_EV_KINDS, name);
    if (kind < 0) return ipw_fail(err, IPW_EPARSE, "event: unknown kind \"%.60s\"", name);
    e.kind = (enum ipw_event_kind)kind;
    e.query = (int32_t)get_int(line, "query", -1);
    e.span = (int32_t)get_int(line, "span", 0);
    e.rows = get_int(line, "rows", 0);
    switch (e.kind) {
    case IPW_EV_LM_START:
    case IPW_EV_LM_END: rc = read_lm(&e, line, err); break;
    case IPW_EV_TOOL_START:
    case IPW_EV_TOOL_END:
    case IPW_EV_SPAN_START:
    case IPW_EV_SPAN_END: rc = read_tool(&e, line, err); break;
    case IPW_EV_QUERY_END:
        e.q.completed = get_bool(line, "completed");
        e.q.outcome = get_str(line, "outcome");
        e.q.error = get_str(line, "error");
        /* fall through */
    case IPW_EV_QUERY_START: e.q.id = get_str(line, "id"); break;
    case IPW_EV_NOTE: e.tool.name = get_str(line, "name"); break;
    case IPW_EV_RUN_START: e.segment = (int32_t)get_int(line, "segment", 0); break;
    case IPW_EV_RUN_END:
    case IPW_EV_KINDS: break;
    }
    ipw_schema_cut_event(&e);
    if (rc == 0) *out = e;
    return rc;
}
