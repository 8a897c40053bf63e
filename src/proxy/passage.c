#include "proxy/passage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/sse.h"
#include "llm/arrivals.h"
#include "llm/facts.h"
#include "proxy/usage_filter.h"

#define REPLY_MAX_BYTES (64 * IPW_MIB)
enum { ERROR_MAX_BYTES = 256 * 1024 };

struct answer_read { /* what is read of an answer, beside passing it on */
    struct ipw_chat_fold *fold;
    struct ipw_sse sse;
    struct ipw_buf whole; /* of an answer that is no stream */
    struct ipw_llm_times times;
    struct ipw_arrivals arrivals;
    int64_t data_ns, headers_ns, first_byte_ns, received;
    bool streamed, finished;
    int code; /* not 0: it could not be read any more */
    struct ipw_err err;
};

struct ipw_passage {
    const struct ipw_passage_ground *ground;
    struct ipw_proxy_session *session;
    struct ipw_passage *prev, *next;
    struct ipw_exchange *client; /* its request; NULL: it has gone, or has its answer */
    struct ipw_proxy_call call;
    const char *path, *body; /* of the request */
    size_t body_n;
    char *agent, *parent; /* inside of the session */
    int attempt;

    const struct ipw_upstream *upstream;
    struct ipw_http_call *hop;
    int status;
    bool answered;   /* status and headers went to the client */
    bool asks_usage; /* in the client's place */
    bool held;       /* perhaps a refusal of that question, which the client did not ask */
    struct ipw_usage_filter filter;

    int32_t span;
    bool begun; /* its first event was written */
    bool here;  /* in the session's list */
    int64_t start_ns;
    struct answer_read read;
};

/* ---- its place in the session ---- */

static void enter(struct ipw_passage *x)
{
    struct ipw_proxy_session *s = x->session;

    x->next = s->passages;
    if (s->passages) s->passages->prev = x;
    s->passages = x;
    s->n_passages++;
    x->here = true;
}

static void leave(struct ipw_passage *x)
{
    struct ipw_proxy_session *s = x->session;

    if (!x->here) return;
    x->here = false;
    if (x->prev)
        x->prev->next = x->next;
    else
        s->passages = x->next;
    if (x->next) x->next->prev = x->prev;
    s->n_passages--;
}

static void release_read(struct answer_read *r)
{
    ipw_chat_fold_free(r->fold);
    if (r->fold) ipw_sse_release(&r->sse);
    ipw_buf_release(&r->whole);
    ipw_buf_release(&r->arrivals.text);
    ipw_llm_times_release(&r->times);
    *r = (struct answer_read){0};
}

static void free_passage(struct ipw_passage *x)
{
    leave(x);
    release_read(&x->read);
    ipw_usage_filter_release(&x->filter);
    ipw_proxy_call_release(&x->call);
    free(x->agent);
    free(x->parent);
    free(x);
}

/* ---- answers of our own ---- */

void ipw_passage_refuse(struct ipw_exchange *client, const struct ipw_proxy_call *call, int status,
                        const char *code, const char *message)
{
    struct ipw_buf text = IPW_BUF(64 * IPW_KIB);

    ipw_proxy_call_refusal(&text, call, code, message);
    ipw_answer(client, status, "application/json", ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
}

/* The client's exchange, which knows nothing of the passage from now on. */
static struct ipw_exchange *let_go(struct ipw_passage *x)
{
    struct ipw_exchange *client = x->client;

    x->client = NULL;
    if (client) ipw_exchange_keep(client, NULL);
    return client;
}

static void refuse(struct ipw_passage *x, int status, const char *code, const char *message)
{
    struct ipw_exchange *client = let_go(x);

    if (!client) return;
    if (x->answered)
        ipw_answer_break(client);
    else
        ipw_passage_refuse(client, &x->call, status, code, message);
}

/* ---- reading the answer ---- */

static int on_sse(void *ud, const struct ipw_sse_event *event, struct ipw_err *err)
{
    struct ipw_passage *x = ud;
    struct answer_read *r = &x->read;
    bool first = !r->times.first_token_ns;
    int seen = ipw_chat_fold_event(r->fold, event->name, event->data, event->data_len, err);

    if (seen < 0) return seen;
    ipw_llm_times_event(&r->times, r->data_ns, seen);
    ipw_arrivals_add(&r->arrivals, r->data_ns, ipw_chat_fold_so_far(r->fold));
    if (seen & (IPW_SEEN_FINISH | IPW_SEEN_DONE)) r->finished = true;
    if (first && r->times.first_token_ns) ipw_proxy_session_first_token(x->session, r->data_ns);
    return 0;
}

static void begin_read(struct ipw_passage *x, const char *content_type)
{
    struct answer_read *r = &x->read;
    bool ok = x->status >= 200 && x->status <= 299;

    r->streamed = ok && strncasecmp(content_type, "text/event-stream", 17) == 0;
    r->fold = ipw_chat_fold_new(REPLY_MAX_BYTES);
    ipw_chat_fold_set_protocol(r->fold, x->call.protocol);
    ipw_sse_init(&r->sse, REPLY_MAX_BYTES, on_sse, x);
    r->whole = IPW_BUF(ok ? REPLY_MAX_BYTES : ERROR_MAX_BYTES);
}

static void read_bytes(struct ipw_passage *x, int64_t t_ns, const char *bytes, size_t n)
{
    struct answer_read *r = &x->read;

    r->data_ns = t_ns;
    if (!r->first_byte_ns) r->first_byte_ns = t_ns;
    r->received += (int64_t)n;
    if (!x->call.turn || r->code) return;
    if (r->streamed)
        r->code = ipw_sse_feed(&r->sse, bytes, n, &r->err);
    else if (ipw_buf_add(&r->whole, bytes, n) && x->status < 300)
        r->code =
            ipw_fail(&r->err, IPW_ELIMIT, "the answer is larger than %zu bytes", REPLY_MAX_BYTES);
}

/* ---- the facts of a turn ---- */

/* How it ended.  After a finish reason it does not matter how the connection ends: many clients
 * close theirs as soon as they have read [DONE]. */
static enum ipw_lm_outcome outcome_of(const struct ipw_passage *x,
                                      const struct ipw_http_result *result, int code)
{
    bool token = x->read.times.first_token_ns != 0;

    if (!result && (code || !x->read.finished)) return IPW_LM_CANCELLED;
    if (x->status && (x->status < 200 || x->status > 299)) return IPW_LM_HTTP_ERROR;
    if (!x->read.finished) switch (result->end) {
        case IPW_HTTP_REFUSED:
        case IPW_HTTP_NO_ROOM:
        case IPW_HTTP_DNS:
        case IPW_HTTP_TLS: return IPW_LM_REFUSED;
        case IPW_HTTP_TIMEOUT: return IPW_LM_TIMEOUT;
        case IPW_HTTP_RESET:
        case IPW_HTTP_CUT: return token ? IPW_LM_CUT : IPW_LM_RESET;
        case IPW_HTTP_TOO_LARGE: return IPW_LM_TOO_LARGE;
        case IPW_HTTP_PROTOCOL:
        case IPW_HTTP_ABORTED: return IPW_LM_BAD_REPLY;
        case IPW_HTTP_OK: break;
        }
    switch (code) {
    case 0: return IPW_LM_OK;
    case IPW_EHTTP: return IPW_LM_SERVER_ERROR;
    case IPW_ELIMIT: return IPW_LM_TOO_LARGE;
    case IPW_EPARSE: return IPW_LM_BAD_REPLY;
    default: return token ? IPW_LM_CUT : IPW_LM_RESET;
    }
}

/* Reads what there is; *out always has it.  Returns a code, and its reason in *err. */
static int read_reply(struct ipw_passage *x, struct ipw_chat_reply *out, struct ipw_err *err)
{
    struct answer_read *r = &x->read;
    struct ipw_err end_err = {0};
    int rc = r->code, end;

    if (rc) *err = r->err;
    if (!rc && r->streamed) rc = ipw_sse_end(&r->sse, err);
    if (!rc && !r->streamed && x->status >= 200 && x->status <= 299) {
        rc = ipw_chat_fold_whole(r->fold, ipw_buf_str(&r->whole), r->whole.len, err);
        if (rc > 0) rc = 0;
    }
    end = ipw_chat_fold_end(r->fold, out, &end_err);
    ipw_arrivals_take(&out->arrivals, &r->arrivals);
    if (!rc && end) *err = end_err;
    return rc ? rc : end;
}

static void say_error(char *out, size_t size, struct ipw_lm_facts *f, const struct ipw_passage *x,
                      const struct ipw_http_result *result, const struct ipw_err *err)
{
    char text[400], type[64];

    if (f->outcome == IPW_LM_OK) return;
    f->error = out;
    if (f->outcome == IPW_LM_CANCELLED) {
        snprintf(out, size, "%s",
                 x->session->over || x->session->limited ? "cut: its query ended"
                                                         : "the client went away");
    } else if (f->outcome == IPW_LM_HTTP_ERROR) {
        ipw_chat_error_text(text, sizeof text, type, sizeof type, ipw_buf_str(&x->read.whole),
                            x->read.whole.len);
        if (ipw_chat_error_is_context(type, text)) f->outcome = IPW_LM_CONTEXT_FULL;
        snprintf(out, size, "HTTP %d%s%s", x->status, *text ? ": " : "", text);
    } else {
        snprintf(out, size, "%s", *err->text ? err->text : result->error ? result->error : "");
    }
}

/* Writes the last event of a turn; `result` NULL: it was cancelled. */
static void end_turn(struct ipw_passage *x, const struct ipw_http_result *result, int64_t t_ns)
{
    struct ipw_chat_reply reply;
    struct ipw_lm_facts f = {0};
    struct ipw_err err = {0};
    char why[512] = "";
    int code;

    if (!x->read.fold) begin_read(x, "");
    code = read_reply(x, &reply, &err);
    f.attempt = x->attempt;
    f.status = x->status;
    f.outcome = outcome_of(x, result, code);
    say_error(why, sizeof why, &f, x, result, &err);
    ipw_llm_facts_reply(&f, &reply, x->read.streamed);
    ipw_llm_facts_times(&f.times, &x->read.times, result, reply.timings);
    f.times.sent_ns = result && result->sent_ns ? result->sent_ns : x->start_ns;
    f.times.headers_ns = x->read.headers_ns;
    f.times.first_byte_ns = x->read.first_byte_ns;
    f.endpoint = x->upstream ? x->upstream->url : NULL;
    f.bytes_sent = (int64_t)x->body_n;
    f.bytes_received = x->read.received;
    f.reused = result && result->reused;
    ipw_proxy_session_end(x->session, &x->call, x->span, t_ns, &f, &reply);
    ipw_chat_reply_release(&reply);
}

static void end_events(struct ipw_passage *x, const struct ipw_http_result *result)
{
    int64_t t_ns = result ? result->close_ns : ipw_now_ns();

    if (!x->begun || !x->session->host) return;
    x->begun = false;
    if (x->call.turn)
        end_turn(x, result, t_ns);
    else
        ipw_proxy_session_other_end(x->session, x->call.name, x->span, t_ns, x->status,
                                    x->read.received);
}

/* ---- the hop ---- */

static int start_hop(struct ipw_passage *x, struct ipw_err *err);

/* A body that is not passed as it is has another length. */
static void answer_client(struct ipw_passage *x, const struct ipw_http_head *head)
{
    int64_t length = -1;

    if (x->answered || !x->client) return;
    x->answered = true;
    if (!(x->asks_usage && x->read.streamed) &&
        ipw_parse_int(&length, ipw_http_field(head, "content-length"), 0, INT64_MAX, NULL))
        length = -1;
    for (size_t i = 0; i < head->n_fields; i++)
        ipw_answer_header(x->client, head->fields[i].name, head->fields[i].value);
    ipw_answer_begin(x->client, x->status, length);
}

static void on_headers(void *ud, int64_t t_ns, const struct ipw_http_head *head)
{
    struct ipw_passage *x = ud;

    x->status = head->status;
    x->read.headers_ns = t_ns;
    if (x->call.turn) begin_read(x, ipw_http_field(head, "content-type"));
    x->held = x->asks_usage && (x->status == 400 || x->status == 422);
    if (!x->held) answer_client(x, head);
}

/* A client that reads slowly makes the server wait. */
static void push(struct ipw_passage *x, const char *bytes, size_t n)
{
    if (n && x->client && !ipw_answer_push(x->client, bytes, n) && x->hop) ipw_http_pause(x->hop);
}

static int on_data(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct ipw_passage *x = ud;
    struct ipw_buf out = IPW_BUF(n + 2 * IPW_MIB);

    if (x->asks_usage && x->read.streamed) {
        ipw_usage_filter_feed(&x->filter, &out, bytes, n);
        push(x, ipw_buf_str(&out), out.len);
        ipw_buf_release(&out);
    } else if (!x->held) {
        push(x, bytes, n);
    }
    read_bytes(x, t_ns, bytes, n);
    return 0;
}

/* The server does not know the question that the client did not ask: without it, then. */
static bool ask_without_usage(struct ipw_passage *x)
{
    const struct ipw_buf *said = &x->read.whole;
    struct ipw_err err;

    if (!x->held || !said->len ||
        !(memmem(said->data, said->len, "stream_options", 14) ||
          memmem(said->data, said->len, "include_usage", 13)))
        return false;
    x->asks_usage = x->held = false;
    x->status = 0;
    release_read(&x->read);
    return start_hop(x, &err) == 0;
}

static void end_answer(struct ipw_passage *x, const struct ipw_http_result *result)
{
    struct ipw_buf rest = IPW_BUF(2 * IPW_MIB);
    struct ipw_exchange *client;

    answer_client(x, result->head);
    if (x->held) push(x, ipw_buf_str(&x->read.whole), x->read.whole.len);
    if (x->asks_usage && x->read.streamed) {
        ipw_usage_filter_end(&x->filter, &rest);
        push(x, ipw_buf_str(&rest), rest.len);
        ipw_buf_release(&rest);
    }
    client = let_go(x);
    if (!client) return;
    if (result->end == IPW_HTTP_OK)
        ipw_answer_end(client);
    else
        ipw_answer_break(client);
}

static void on_done(void *ud, const struct ipw_http_result *result)
{
    struct ipw_passage *x = ud;
    char message[600];

    x->hop = NULL;
    if (ask_without_usage(x)) return;
    leave(x); /* writing its last event can end the session */
    if (x->status) {
        end_answer(x, result);
    } else {
        snprintf(message, sizeof message, "ipw-agent: the model's server cannot be reached: %s",
                 result->error);
        refuse(x, 502, "ipw_upstream", message);
    }
    end_events(x, result);
    free_passage(x);
}

struct going { /* the headers on their way out */
    struct ipw_proxy_headers headers;
    const struct ipw_passage *x;
};

static void add_header(const char *name, const char *value, void *ud)
{
    struct going *g = ud;

    ipw_upstream_header(&g->headers, g->x->upstream, name, value, g->x->session->word);
}

static int start_hop(struct ipw_passage *x, struct ipw_err *err)
{
    const struct ipw_http_callbacks callbacks = {
        .on_headers = on_headers, .on_data = on_data, .on_done = on_done, .ud = x};
    struct going going = {.x = x};
    struct ipw_buf body = IPW_BUF(x->body_n + IPW_ASK_USAGE_BYTES);
    char *url = ipw_upstream_url(x->upstream, &x->call, x->path);
    int rc;

    if (x->asks_usage) ipw_proxy_call_ask_usage(&body, x->body, x->body_n);
    ipw_exchange_headers(x->client, add_header, &going);
    rc = ipw_http_start(
        &x->hop, x->ground->http,
        &(struct ipw_http_request){.method = ipw_exchange_method(x->client),
                                   .url = url,
                                   .headers = going.headers.list,
                                   .n_headers = going.headers.n,
                                   .body = x->asks_usage ? ipw_buf_str(&body) : x->body,
                                   .body_len = x->asks_usage ? body.len : x->body_n,
                                   .connect_ns = x->ground->connect_ns,
                                   .raw = true,
                                   .body_max_bytes = (size_t)1 << 40},
        &callbacks, err);
    free(url);
    ipw_buf_release(&body);
    ipw_proxy_headers_release(&going.headers);
    return rc;
}

/* ---- its beginning and its end ---- */

void ipw_passage_room(struct ipw_exchange *client)
{
    struct ipw_passage *x = ipw_exchange_own(client);

    if (x && x->hop) ipw_http_resume(x->hop);
}

void ipw_passage_over(struct ipw_exchange *client)
{
    struct ipw_passage *x = ipw_exchange_own(client);

    if (!x) return;
    x->client = NULL;
    if (x->hop) ipw_http_cancel(x->hop);
    x->hop = NULL;
    leave(x);
    end_events(x, NULL);
    free_passage(x);
}

static void go_on(struct ipw_passage *x)
{
    struct ipw_err err;

    if (!ipw_proxy_session_admits(x->session)) {
        refuse(x, 400, "ipw_limit",
               x->session->over ? "ipw-agent: this query is over"
                                : "ipw-agent: a limit of this query is reached");
        free_passage(x);
        return;
    }
    x->start_ns = ipw_now_ns();
    x->asks_usage = ipw_proxy_call_wants_usage(&x->call);
    x->upstream = ipw_upstreams_for(&x->ground->upstreams, &x->call, x->path);
    if (!x->upstream || start_hop(x, &err)) {
        refuse(x, 502, "ipw_upstream",
               x->upstream ? err.text : "ipw-agent: no --upstream serves this call");
        free_passage(x);
        return;
    }
    x->begun = true;
    x->call.inside = ipw_proxy_session_agent(x->session, x->agent, x->parent, x->start_ns);
    x->span = x->call.turn ? ipw_proxy_session_begin(x->session, &x->call, x->attempt, x->start_ns)
                           : ipw_proxy_session_other(x->session, &x->call, x->start_ns);
}

/* SDKs say how often they have sent a request before. */
static int attempt_of(const struct ipw_exchange *client)
{
    const char *told = ipw_exchange_header(client, "x-stainless-retry-count");
    int64_t n;

    return told && ipw_parse_int(&n, told, 0, 1000, NULL) == 0 ? (int)n + 1 : 1;
}

void ipw_passage_start(const struct ipw_passage_ground *ground, struct ipw_proxy_session *session,
                       struct ipw_exchange *client, const char *path, struct ipw_proxy_call *call,
                       const struct ipw_session_found *found)
{
    struct ipw_passage *x = ipw_calloc(1, sizeof *x);

    x->ground = ground;
    x->session = session;
    x->client = client;
    x->path = path;
    x->body = ipw_exchange_body(client, &x->body_n);
    x->agent = ipw_strdup(found->agent);
    x->parent = ipw_strdup(found->parent);
    x->attempt = attempt_of(client);
    x->call = *call;
    *call = (struct ipw_proxy_call){.name = call->name};
    ipw_usage_filter_init(&x->filter);
    enter(x);
    ipw_exchange_keep(client, x);
    if (session->host || session->over || session->loose) go_on(x);
}

void ipw_passages_go_on(struct ipw_proxy_session *s)
{
    for (struct ipw_passage *x = s->passages, *next; x && s->host; x = next) {
        next = x->next;
        if (!x->hop) go_on(x);
    }
}

void ipw_passages_cut(struct ipw_proxy_session *s)
{
    while (s->passages) {
        struct ipw_passage *x = s->passages;

        leave(x);
        if (x->hop) ipw_http_cancel(x->hop);
        x->hop = NULL;
        end_events(x, NULL);
        refuse(x, 400, "ipw_limit", "ipw-agent: this query is over");
        free_passage(x);
    }
}
