#include "run/server_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/keyring.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/text.h"
#include "json/write.h"
#include "llm/adaptive.h"
#include "run/query_state.h"

enum { MOST_ADAPTIVE = 256 };

struct ipw_net {
    struct ipw_run *run;
    bool adaptive, said_length, said_truncated;
    int64_t said_loading_ns; /* since when the loading was that was told of last */
    struct ipw_adaptive controller;
};

/* ---- options ---- */

/* clang-format off */
#define AT(field) offsetof(struct ipw_net_options, field)
const struct ipw_opt ipw_net_option_rows[] = {
    {"base-url", 'u', IPW_OPT_LIST, AT(base_urls), "URL", "OpenAI-compatible server; repeat for several"},
    {"insecure-key", 0, IPW_OPT_FLAG, AT(insecure_key), NULL, "send the key over plain http to other hosts too"},
    {"cacert", 0, IPW_OPT_STR, AT(cacert), "FILE", "trust these PEM certificates, not the system's"},
    {"header", 0, IPW_OPT_LIST, AT(headers), "'NAME: VALUE'", "add a header; 'NAME: env:VAR' reads a variable", .holds = IPW_HOLDS_HEADER},
    {"body", 0, IPW_OPT_STR, AT(body), "JSON", "add or override fields of every request", .holds = IPW_HOLDS_JSON},
    {"max-tokens-field", 0, IPW_OPT_STR, AT(tokens_field), "NAME", "field for --max-tokens (default: by server)"},
    {"force-output-tokens", 0, IPW_OPT_INT, AT(force_tokens), "N", "make every reply exactly N tokens long", 1, INT64_MAX},
    {"max-reply", 0, IPW_OPT_STR, AT(max_reply), "SIZE", "largest reply in bytes (default: 64M)"},
    {"max-connections", 0, IPW_OPT_INT, AT(max_connections), "N", "open connections (default: no limit)", 1, 100000},
    {"adaptive", 0, IPW_OPT_FLAG, AT(adaptive), NULL, "tune the concurrency, up to --concurrency (default: 256)"},
    {"retry-truncated", 0, IPW_OPT_FLAG, AT(retry_cut), NULL, "also retry a reply that broke off"},
    {"connect-timeout", 0, IPW_OPT_DURATION, AT(connect_ns), "TIME", "time to connect (default: 10s)"},
    {"first-token-timeout", 0, IPW_OPT_DURATION, AT(first_token_ns), "TIME", "time to the first token (default: 600s to the first byte)"},
    {"stall-timeout", 0, IPW_OPT_DURATION, AT(stall_ns), "TIME", "longest silence in a reply (default: 120s)"},
    {"comment-timeout", 0, IPW_OPT_DURATION, AT(comment_ns), "TIME", "longest time with keep-alive comments only (default: 600s)"},
    {"request-timeout", 0, IPW_OPT_DURATION, AT(request_ns), "TIME", "one model call with its retries (default: none)"},
    {"retry-cut", 0, IPW_OPT_OLD, 0, NULL, "retry-truncated"},
    {"ttft-timeout", 0, IPW_OPT_OLD, 0, "TIME", "first-token-timeout"},
    {"first-byte-timeout", 0, IPW_OPT_OLD, 0, "TIME", "first-token-timeout"},
    IPW_OPT_END,
};
/* clang-format on */

/* "Name: value", or "Name: env:VAR". */
static int read_header(struct ipw_net_borrowed *b, const char *text, struct ipw_err *err)
{
    const char *colon = strchr(text, ':'), *value;
    char *name;

    if (!colon || colon == text)
        return ipw_fail(err, IPW_EINVAL, "--header: expected 'Name: value'");
    name = ipw_asprintf("%.*s", (int)(colon - text), text);
    value = colon + 1 + strspn(colon + 1, " \t");
    b->texts[b->n] = name;
    if (strncmp(value, "env:", 4) == 0) {
        const char *from = ipw_keyring_env(value + 4);

        if (!from)
            return ipw_fail(err, IPW_EINVAL, "--header %s: the variable %s is not set", name,
                            value + 4);
        ipw_secret_add(from);
        b->secret = true;
        value = from;
    }
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
            return ipw_fail(err, IPW_EINVAL, "--header: a name has no spaces in it");
    if (strpbrk(value, "\r\n"))
        return ipw_fail(err, IPW_EINVAL, "--header %s: a line break in its value", name);
    b->headers[b->n] = (struct ipw_http_header){name, value};
    return 0;
}

/* The client checks it too, but does not know what the option is called. */
static int check_body(const char *body, struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int rc = body ? ipw_json_parse(&doc, body, strlen(body), NULL, err) : 0;

    if (!rc && doc && ipw_json_kind(doc) != IPW_JSON_OBJ)
        rc = ipw_fail(err, IPW_EINVAL, "expected a JSON object");
    ipw_json_free(doc);
    if (!rc) return 0;
    err->code = IPW_EINVAL; /* wrong usage, whatever is wrong with it */
    return ipw_err_prefix(err, "--body");
}

int ipw_net_fill(struct ipw_llm_options *out, struct ipw_net_borrowed *b,
                 const struct ipw_net_options *o, struct ipw_err *err)
{
    int rc = 0;

    *b = (struct ipw_net_borrowed){0};
    b->headers = ipw_calloc(o->headers.n + 1, sizeof *b->headers);
    b->texts = ipw_calloc(o->headers.n + 1, sizeof *b->texts);
    for (size_t i = 0; i < o->headers.n && rc == 0; i++) {
        rc = read_header(b, o->headers.items[i], err);
        if (b->texts[b->n]) b->n++;
    }
    if (rc) return rc;
    out->headers = b->headers;
    out->n_headers = b->n;
    out->more_urls =
        o->base_urls.n > 1 ? (const char *const *)&o->base_urls.items[1] : out->more_urls;
    rc = check_body(o->body, err);
    if (rc) return rc;
    out->body = o->body;
    if (o->tokens_field && strcmp(o->tokens_field, "max_tokens") == 0)
        out->tokens_field = IPW_LLM_MAX_TOKENS;
    else if (o->tokens_field && strcmp(o->tokens_field, "max_completion_tokens") == 0)
        out->tokens_field = IPW_LLM_MAX_COMPLETION_TOKENS;
    else if (o->tokens_field)
        return ipw_fail(err, IPW_EINVAL,
                        "--max-tokens-field %s: expected max_tokens or max_completion_tokens",
                        o->tokens_field);
    if (o->max_reply) {
        rc = ipw_parse_bytes(&out->reply_max_bytes, o->max_reply, err);
        if (rc) return ipw_err_prefix(err, "--max-reply");
    }
    out->force_tokens = o->force_tokens;
    out->connect_ns = o->connect_ns;
    out->first_token_ns = out->first_byte_ns = o->first_token_ns;
    out->idle_ns = o->stall_ns;
    out->comment_ns = o->comment_ns;
    out->total_ns = o->request_ns;
    out->retry_cut = o->retry_cut;
    out->insecure_key = o->insecure_key;
    out->secret_headers = b->secret;
    return 0;
}

void ipw_net_release(struct ipw_net_borrowed *b)
{
    for (size_t i = 0; i < b->n; i++) free(b->texts[i]);
    free(b->texts);
    free(b->headers);
    *b = (struct ipw_net_borrowed){0};
}

/* ---- watching ---- */

static size_t most_queries(const struct ipw_run *run)
{
    if (!run->o->net.adaptive || run->o->concurrency > 1) return (size_t)run->o->concurrency;
    return MOST_ADAPTIVE;
}

static void set_most(const struct ipw_net *net)
{
    ipw_llm_set_most(net->run->llm, (size_t)ipw_adaptive_limit(&net->controller));
}

static void note(struct ipw_run *run, int32_t query, struct ipw_buf *data)
{
    struct ipw_event event = {.kind = IPW_EV_NOTE, .query = query, .t_ns = ipw_now_ns()};

    event.payload = data->failed ? NULL : data->data;
    event.payload_len = data->len;
    ipw_rundir_event(run->dir, &event);
}

/* ---- a server that is away ---- */

static void note_away(struct ipw_run *run, const char *name, double away_s, const char *why)
{
    struct ipw_buf data = IPW_BUF(4 * IPW_KIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "name", name);
    ipw_jw_kstr(&w, "reason", why);
    ipw_jw_knum(&w, "seconds", away_s);
    ipw_jw_obj_end(&w);
    note(run, -1, &data);
    ipw_buf_release(&data);
}

static void servers_away(void *ud, enum ipw_llm_away what, double away_s, const char *why)
{
    static const char *const names[] = {[IPW_LLM_AWAY] = "server_away",
                                        [IPW_LLM_BACK] = "server_back",
                                        [IPW_LLM_LOST] = "server_lost"};
    struct ipw_run *run = ud;

    note_away(run, names[what], away_s, why);
    switch (what) {
    case IPW_LLM_AWAY:
        ipw_log(IPW_LOG_WARN,
                "no server answers: the run waits for %.3g s at most (--server-wait): %s",
                ipw_ns_to_s(run->o->server_wait_ns), why);
        break;
    case IPW_LLM_BACK:
        ipw_log(IPW_LOG_WARN, "the server answers again after %.1f s: the run goes on", away_s);
        break;
    case IPW_LLM_LOST:
        run->server_lost = true;
        snprintf(run->lost_note, sizeof run->lost_note,
                 "no server came back within %.3g s: the run stops: %s",
                 ipw_ns_to_s(run->o->server_wait_ns), why);
        break;
    }
    ipw_run_step_soon(run);
}

/* What holds all queries up, for the progress line; "" when nothing does. */
static void say_standstill(void *ud, char *out, size_t size)
{
    const struct ipw_run *run = ud;
    double away_s = ipw_llm_away_s(run->llm);
    int64_t loading_ns = ipw_llm_loading_since_ns(run->llm);

    out[0] = '\0';
    if (away_s > 0)
        snprintf(out, size, "no server answers (%.0f s)", away_s);
    else if (loading_ns)
        snprintf(out, size, "the server is loading its model (%.0f s)",
                 ipw_ns_to_s(ipw_now_ns() - loading_ns));
}

struct ipw_net *ipw_net_new(struct ipw_run *run)
{
    struct ipw_net *net = ipw_calloc(1, sizeof *net);

    net->run = run;
    net->adaptive = run->o->net.adaptive;
    ipw_adaptive_init(&net->controller, 1, (int)most_queries(run));
    if (net->adaptive) set_most(net);
    ipw_llm_on_away(run->llm, servers_away, run);
    return net;
}

void ipw_net_free(struct ipw_net *net) { free(net); }

void ipw_net_watch(struct ipw_run *run)
{
    ipw_progress_standstill(run->progress, say_standstill, run);
}

/* With --adaptive a query begins when its first request could: while the others' tools run, the
 * server is not to be idle. */
bool ipw_net_room(const struct ipw_run *run)
{
    size_t wanted;

    if (run->n_active >= most_queries(run)) return false;
    if (run->llm && ipw_llm_away_s(run->llm) > 0) return false;
    if (!run->net || !run->net->adaptive) return true;
    wanted = ipw_llm_calls(run->llm);
    for (const struct ipw_query *q = run->active; q; q = q->next) wanted += !q->asked;
    return wanted < (size_t)ipw_adaptive_limit(&run->net->controller);
}

static void adapt(struct ipw_net *net, const struct ipw_lm_facts *f, int64_t t_ns)
{
    struct ipw_adaptive_change change;
    struct ipw_adaptive_sample s = {
        .seen = f->outcome == IPW_LM_OK ? IPW_ADAPTIVE_GOOD
                : f->status == 429      ? IPW_ADAPTIVE_BUSY
                                        : IPW_ADAPTIVE_OTHER,
        .sent_ns = f->sent_ns,
        .t_ns = t_ns,
        .ttft_ns = f->first_token_ns ? f->first_token_ns - f->sent_ns : 0,
        .in_flight = (int)ipw_llm_in_flight(net->run->llm) + 1,
    };
    struct ipw_buf data = IPW_BUF(IPW_KIB);
    struct ipw_jw w;

    ipw_run_step_soon(net->run); /* there may be room for another query */
    if (!ipw_adaptive_sample(&net->controller, &s, &change)) return;
    set_most(net);
    ipw_log(IPW_LOG_INFO, "concurrency %d -> %d (%s)", change.from, change.to, change.reason);
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "from", change.from);
    ipw_jw_kstr(&w, "name", "concurrency");
    ipw_jw_kstr(&w, "reason", change.reason);
    ipw_jw_kint(&w, "to", change.to);
    ipw_jw_obj_end(&w);
    note(net->run, -1, &data);
    ipw_buf_release(&data);
}

static void say_wait(const struct ipw_query *q, const struct ipw_lm_facts *f)
{
    double s = ipw_ns_to_s(f->retry_wait_ns);
    struct ipw_net *net = q->run->net;
    int64_t loading_ns = ipw_llm_loading_since_ns(q->run->llm);

    if (loading_ns && loading_ns != net->said_loading_ns) {
        net->said_loading_ns = loading_ns;
        ipw_log(IPW_LOG_WARN, "the server is loading its model: the run waits for it");
    }

    /* Short waits are nobody's worry. */
    ipw_log(s >= 2 ? IPW_LOG_WARN : IPW_LOG_INFO, "query %s: %s; next try in %.3g s", q->c->id,
            f->error ? f->error : "failed", s);
}

static void check_length(struct ipw_query *q, const struct ipw_lm_facts *f)
{
    struct ipw_net *net = q->run->net;
    int64_t want = f->forced_tokens;

    if (want <= 0 || f->tokens_estimated || f->output_tokens < 0 || f->output_tokens == want)
        return;
    ipw_log(net->said_length ? IPW_LOG_INFO : IPW_LOG_WARN,
            "query %s: a reply of %lld tokens in place of the %lld that were forced", q->c->id,
            (long long)f->output_tokens, (long long)want);
    net->said_length = true;
}

/* Ollama drops the oldest messages without a word: the only sign is a prompt that counts fewer
 * tokens than the one before, though it holds more. */
static void check_prompt(struct ipw_query *q, const struct ipw_lm_facts *f)
{
    struct ipw_net *net = q->run->net;
    int64_t last = q->last_prompt_tokens;
    struct ipw_buf data = IPW_BUF(IPW_KIB);
    struct ipw_jw w;

    q->last_prompt_tokens = f->input_tokens;
    if (!q->host.sent.extended || last <= 0 || f->input_tokens < 0 || f->input_tokens >= last)
        return;
    ipw_log(
        net->said_truncated ? IPW_LOG_INFO : IPW_LOG_WARN,
        "query %s: the server counts %lld prompt tokens after %lld for a shorter prompt: has it "
        "dropped messages? (its context may be too small)",
        q->c->id, (long long)f->input_tokens, (long long)last);
    net->said_truncated = true;
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "before", last);
    ipw_jw_kstr(&w, "name", "prompt_truncated");
    ipw_jw_kint(&w, "prompt_tokens", f->input_tokens);
    ipw_jw_obj_end(&w);
    note(q->run, (int32_t)q->index, &data);
    ipw_buf_release(&data);
}

void ipw_net_event(struct ipw_query *q, const struct ipw_event *event)
{
    const struct ipw_lm_facts *f = &event->lm;

    if (event->kind != IPW_EV_LM_END || !q->run->net) return;
    if (f->will_retry) say_wait(q, f);
    if (f->outcome == IPW_LM_OK) {
        check_length(q, f);
        check_prompt(q, f);
    }
    if (q->run->net->adaptive && f->outcome != IPW_LM_CANCELLED) adapt(q->run->net, f, event->t_ns);
}
