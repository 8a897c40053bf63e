#include "app/doctor_probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/sse.h"
#include "json/json.h"
#include "json/write.h"

enum { MAX_REPLY_BYTES = 4 * 1024 * 1024 };
#define PROBE_NS (120 * IPW_NS_PER_S)
#define ASKED    8 /* tokens */

void ipw_findings_add(struct ipw_findings *f, const char *group, const char *name,
                      enum ipw_health health, const char *remedy, const char *fmt, ...)
{
    struct ipw_finding *item;
    va_list ap;

    IPW_GROW(f->items, f->cap, f->n + 1);
    item = &f->items[f->n++];
    *item = (struct ipw_finding){.group = group, .health = health};
    snprintf(item->name, sizeof item->name, "%s", name);
    va_start(ap, fmt);
    vsnprintf(item->text, sizeof item->text, fmt, ap);
    va_end(ap);
    snprintf(item->remedy, sizeof item->remedy, "%s", remedy ? remedy : "");
}

void ipw_findings_release(struct ipw_findings *f)
{
    free(f->items);
    *f = (struct ipw_findings){0};
}

/* ---- one exchange ---- */

struct exchange {
    struct ipw_loop *loop;
    struct ipw_buf body;
    bool stop_at_first;            /* close the stream at its first bytes */
    bool over, streamed, answered; /* answered: a readable answer with status 2xx */
    int status;
    int64_t start_ns, first_ns, end_ns;
    char error[200];
    struct ipw_chat_reply reply;
};

static int on_data(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct exchange *x = ud;

    if (!x->first_ns) x->first_ns = t_ns;
    if (ipw_buf_add(&x->body, bytes, n)) return 1;
    return x->stop_at_first;
}

static int on_event(void *ud, const struct ipw_sse_event *e, struct ipw_err *err)
{
    int seen = ipw_chat_fold_event(ud, e->name, e->data, e->data_len, err);

    return seen < 0 ? seen : 0;
}

static int read_answer(struct exchange *x, struct ipw_err *err)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(MAX_REPLY_BYTES);
    int rc, end;

    if (x->streamed) {
        struct ipw_sse sse;

        ipw_sse_init(&sse, MAX_REPLY_BYTES, on_event, fold);
        rc = ipw_sse_feed(&sse, ipw_buf_str(&x->body), x->body.len, err);
        if (!rc) rc = ipw_sse_end(&sse, err);
        ipw_sse_release(&sse);
    } else {
        rc = ipw_chat_fold_whole(fold, ipw_buf_str(&x->body), x->body.len, err);
    }
    end = ipw_chat_fold_end(fold, &x->reply, rc ? NULL : err);
    ipw_chat_fold_free(fold);
    return rc < 0 ? rc : end;
}

static void on_done(void *ud, const struct ipw_http_result *r)
{
    struct exchange *x = ud;
    struct ipw_err err = {0};

    x->over = true;
    x->status = r->status;
    x->end_ns = r->close_ns;
    x->streamed = strstr(r->content_type, "event-stream") != NULL;
    if (r->end != IPW_HTTP_OK) {
        snprintf(x->error, sizeof x->error, "%.190s", r->error ? r->error : "no answer");
    } else if (r->status < 200 || r->status > 299) {
        char type[64];
        size_t used = (size_t)snprintf(x->error, sizeof x->error, "HTTP %d: ", r->status);
        ipw_chat_error_text(x->error + used, sizeof x->error - used, type, sizeof type,
                            ipw_buf_str(&x->body), x->body.len);
    } else if (read_answer(x, &err)) {
        snprintf(x->error, sizeof x->error, "%.190s", err.text);
    } else {
        x->answered = true;
    }
    ipw_loop_stop(x->loop);
}

/* Sends a body with these members and the model's name; `fields` is JSON without braces. */
static void ask(struct exchange *x, struct ipw_server *s, const char *model, const char *prompt,
                const char *fields, bool stop_at_first)
{
    struct ipw_buf body = IPW_BUF(64 * IPW_KIB), url = IPW_BUF(16 * IPW_KIB),
                   key = IPW_BUF(16 * IPW_KIB);
    struct ipw_http_header headers[3] = {{"Content-Type", "application/json"},
                                         {"Accept", "text/event-stream, application/json"}};
    struct ipw_http_request request = {.method = "POST",
                                       .headers = headers,
                                       .n_headers = 2,
                                       .connect_ns = 10 * IPW_NS_PER_S,
                                       .total_ns = PROBE_NS,
                                       .body_max_bytes = MAX_REPLY_BYTES};
    struct ipw_http_callbacks callbacks = {.on_data = on_data, .on_done = on_done, .ud = x};
    struct ipw_http_call *call;
    struct ipw_err err = {0};
    struct ipw_jw w;

    *x = (struct exchange){.loop = s->loop,
                           .body = IPW_BUF(MAX_REPLY_BYTES),
                           .stop_at_first = stop_at_first,
                           .start_ns = ipw_now_ns()};
    ipw_buf_adds(&body, "{\"messages\":[{\"content\":");
    ipw_jw_init(&w, &body);
    ipw_jw_str(&w, prompt);
    ipw_buf_adds(&body, ",\"role\":\"user\"}],\"model\":");
    ipw_jw_init(&w, &body);
    ipw_jw_str(&w, model);
    ipw_buf_addf(&body, ",%s}", fields);
    ipw_buf_addf(&url, "%s/chat/completions", s->url);
    if (s->key) {
        ipw_buf_addf(&key, "Bearer %s", s->key);
        headers[request.n_headers++] = (struct ipw_http_header){"Authorization", ipw_buf_str(&key)};
    }
    request.url = ipw_buf_str(&url);
    request.body = ipw_buf_str(&body);
    request.body_len = body.len;
    if (ipw_http_start(&call, s->http, &request, &callbacks, &err))
        snprintf(x->error, sizeof x->error, "%.190s", err.text);
    else
        while (!x->over) ipw_loop_run(s->loop);
    ipw_buf_release(&body);
    ipw_buf_release(&url);
    ipw_buf_release(&key);
}

static void forget(struct exchange *x)
{
    ipw_chat_reply_release(&x->reply);
    ipw_buf_release(&x->body);
}

/* ---- the checks ---- */

struct probe {
    struct ipw_findings *f;
    struct ipw_server *s;
    const char *model;
    const char *tokens; /* the field that limits a reply */
};

static const char hello[] = "Say hello.";
static const char tool[] =
    "\"tools\":[{\"function\":{\"description\":\"Tells the weather.\",\"name\":"
    "\"weather\",\"parameters\":{\"properties\":{\"city\":{\"type\":\"string\"}},"
    "\"required\":[\"city\"],\"type\":\"object\"}},\"type\":\"function\"}]";

static void say(struct probe *p, const char *name, enum ipw_health health, const char *remedy,
                const char *text)
{
    ipw_findings_add(p->f, "model", name, health, remedy, "%s", text);
}

/* A request had no answer.  A server that is busy or fails has not said that it cannot do it. */
static void say_unanswered(struct probe *p, const char *name, const struct exchange *x,
                           const char *remedy)
{
    bool refused = x->status >= 200 && x->status < 500 && x->status != 408 && x->status != 429;

    say(p, name, IPW_HEALTH_WARN,
        refused ? remedy : "not known: ask again when the server is less busy", x->error);
}

/* Sends a request with the given fields and a limit on the tokens; the caller frees the
 * exchange. */
static void try_fields(struct probe *p, struct exchange *x, const char *prompt, int tokens,
                       const char *fields)
{
    struct ipw_buf all = IPW_BUF(16 * IPW_KIB);

    ipw_buf_addf(&all, "%s%s\"%s\":%d", fields, fields[0] ? "," : "", p->tokens, tokens);
    ask(x, p->s, p->model, prompt, ipw_buf_str(&all), false);
    ipw_buf_release(&all);
}

static bool probe_stream(struct probe *p)
{
    static const char fields[] = "\"stream\":true,\"stream_options\":{\"include_usage\":true}";
    struct exchange x;
    bool usage;

    try_fields(p, &x, hello, ASKED, fields);
    if (x.status == 400 && strstr(x.error, "max_tokens")) {
        forget(&x);
        p->tokens = "max_completion_tokens";
        try_fields(p, &x, hello, ASKED, fields);
    }
    if (!x.answered) {
        ipw_findings_add(p->f, "model", "answers", IPW_HEALTH_FAIL,
                         "see the server's log; name the model with --model", "'%.60s': %.150s",
                         p->model, x.error);
        forget(&x);
        return false;
    }
    ipw_findings_add(p->f, "model", "answers", IPW_HEALTH_OK, NULL, "'%.80s' in %.2f s", p->model,
                     ipw_ns_to_s(x.end_ns - x.start_ns));
    if (x.streamed)
        say(p, "streaming", IPW_HEALTH_OK, NULL, "the reply is streamed");
    else
        say(p, "streaming", IPW_HEALTH_WARN, "time to first token cannot be measured here",
            "the reply came in one piece");
    usage = x.reply.usage.prompt >= 0 && x.reply.usage.completion >= 0;
    ipw_findings_add(p->f, "model", "usage", usage ? IPW_HEALTH_OK : IPW_HEALTH_WARN,
                     usage ? NULL
                           : "token counts are null in the traces; token limits count events",
                     usage ? "%lld tokens in, %lld out, told with the stream" : "not told",
                     (long long)x.reply.usage.prompt, (long long)x.reply.usage.completion);
    ipw_findings_add(
        p->f, "model", "reply limit",
        x.reply.usage.completion <= ASKED ? IPW_HEALTH_OK : IPW_HEALTH_WARN,
        x.reply.usage.completion <= ASKED ? NULL : "--max-tokens has no effect on this server",
        "%s is %s", p->tokens,
        x.reply.usage.completion < 0        ? "accepted"
        : x.reply.usage.completion <= ASKED ? "honoured"
                                            : "ignored");
    forget(&x);
    return true;
}

static void probe_tools(struct probe *p)
{
    static const char *const choices[] = {"", ",\"tool_choice\":\"required\""};
    static const char *const names[] = {"tools", "tool_choice"};

    for (int i = 0; i < 2; i++) {
        char fields[600];
        struct exchange x;

        snprintf(fields, sizeof fields, "%s%s", tool, choices[i]);
        try_fields(p, &x, "What is the weather in Paris? Use the tool.", 256, fields);
        if (!x.answered)
            say_unanswered(p, names[i], &x,
                           i ? "agents that force a call do not work here"
                             : "use the text agent: ipw-agent run react (llama.cpp needs --jinja)");
        else if (x.reply.n_calls == 0)
            say(p, names[i], IPW_HEALTH_WARN,
                i ? "the server ignores it" : "use the text agent: ipw-agent run react",
                "accepted, but the model called no tool");
        else
            say(p, names[i], IPW_HEALTH_OK, NULL, "the model called the tool");
        forget(&x);
    }
}

static void probe_seed(struct probe *p)
{
    static const char fields[] = "\"seed\":7,\"temperature\":1";
    struct exchange a, b;

    try_fields(p, &a, "Name a random animal.", ASKED, fields);
    try_fields(p, &b, "Name a random animal.", ASKED, fields);
    if (!a.answered || !b.answered)
        say_unanswered(p, "seed", a.answered ? &b : &a, "leave --seed away");
    else if (strcmp(ipw_buf_str(&a.reply.text), ipw_buf_str(&b.reply.text)) == 0 &&
             strcmp(ipw_buf_str(&a.reply.reasoning), ipw_buf_str(&b.reply.reasoning)) == 0)
        say(p, "seed", IPW_HEALTH_OK, NULL, "the same seed gave the same reply twice");
    else
        say(p, "seed", IPW_HEALTH_WARN, "runs cannot be repeated by seed; replay can",
            "the same seed gave two replies");
    forget(&a);
    forget(&b);
}

static void probe_forced(struct probe *p)
{
    struct exchange x;

    try_fields(p, &x, "Say yes.", ASKED * 4, "\"ignore_eos\":true,\"min_tokens\":32");
    if (!x.answered)
        say_unanswered(p, "forced length", &x, "replies of one length cannot be forced");
    else if (x.reply.usage.completion == ASKED * 4)
        say(p, "forced length", IPW_HEALTH_OK, NULL, "ignore_eos and min_tokens are honoured");
    else
        say(p, "forced length", IPW_HEALTH_WARN, "replies of one length cannot be forced",
            "ignore_eos and min_tokens are ignored");
    forget(&x);
}

static void probe_format(struct probe *p)
{
    struct exchange x;

    try_fields(p, &x, "Answer with a JSON object that has one member, \"ok\".", 64,
               "\"response_format\":{\"type\":\"json_object\"}");
    if (!x.answered)
        say_unanswered(p, "response_format", &x, "JSON cannot be asked for");
    else if (ipw_json_valid(ipw_buf_str(&x.reply.text), x.reply.text.len))
        say(p, "response_format", IPW_HEALTH_OK, NULL, "the reply is JSON");
    else
        say(p, "response_format", IPW_HEALTH_WARN, "JSON cannot be relied on",
            "accepted, but the reply is not JSON");
    forget(&x);
}

/* A server must stop to compute when its stream is closed, or the next request waits. */
static void probe_cancel(struct probe *p)
{
    struct exchange before, cut, after;
    struct ipw_buf fields = IPW_BUF(IPW_KIB);
    double free_s, after_s;

    try_fields(p, &before, hello, ASKED, "");
    ipw_buf_addf(&fields, "\"stream\":true,\"%s\":4096", p->tokens);
    ask(&cut, p->s, p->model, "Count from 1 to 2000, one number a line.", ipw_buf_str(&fields),
        true);
    try_fields(p, &after, hello, ASKED, "");
    free_s = ipw_ns_to_s(before.end_ns - before.start_ns);
    after_s = ipw_ns_to_s(after.end_ns - after.start_ns);
    if (!before.answered || !after.answered || !cut.first_ns)
        say(p, "cancel", IPW_HEALTH_WARN, NULL, "could not be tried");
    else
        ipw_findings_add(
            p->f, "model", "cancel", after_s <= 2 * free_s + 1 ? IPW_HEALTH_OK : IPW_HEALTH_WARN,
            after_s <= 2 * free_s + 1 ? NULL
                                      : "queries that time out go on costing energy on the server",
            "after a closed stream a reply took %.2f s, before it %.2f s", after_s, free_s);
    forget(&before);
    forget(&cut);
    forget(&after);
    ipw_buf_release(&fields);
}

bool ipw_doctor_probe(struct ipw_findings *f, struct ipw_server *server, const char *model)
{
    struct probe p = {f, server, model, "max_tokens"};

    if (!probe_stream(&p)) return false;
    probe_tools(&p);
    probe_seed(&p);
    probe_forced(&p);
    probe_format(&p);
    probe_cancel(&p);
    return true;
}
