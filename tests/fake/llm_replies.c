/* tests/fake/llm_replies.c: requests scanned and answers composed, without a JSON library. */
#include "fake_llm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *need(void *p)
{
    if (!p) {
        fputs("fake_llm: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

/* --- texts and replies --- */

static char *text_room(struct text *t, size_t n)
{
    if (t->n + n + 1 > t->cap) {
        t->cap = (t->n + n + 1) * 2;
        t->s = need(realloc(t->s, t->cap));
    }
    return t->s + t->n;
}

void text_add(struct text *t, const char *bytes, size_t n)
{
    memcpy(text_room(t, n), bytes, n);
    t->n += n;
    t->s[t->n] = '\0';
}

void text_addf(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *room = text_room(t, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(room, (size_t)n + 1, fmt, ap);
    va_end(ap);
    t->n += (size_t)n;
}

void text_json(struct text *t, const char *bytes, size_t n)
{
    text_add(t, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\')
            text_addf(t, "\\%c", c);
        else if (c == '\n')
            text_add(t, "\\n", 2);
        else if (c < 0x20)
            text_addf(t, "\\u%04x", c);
        else
            text_add(t, (const char *)&bytes[i], 1);
    }
    text_add(t, "\"", 1);
}

void reply_step(struct reply *r, enum step_kind kind, int ms)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 4;
        r->steps = need(realloc(r->steps, r->cap * sizeof *r->steps));
    }
    r->steps[r->n++] = (struct step){.kind = kind, .ms = ms};
}

void reply_bytes(struct reply *r, struct text *bytes)
{
    if (bytes->n) {
        reply_step(r, STEP_BYTES, 0);
        r->steps[r->n - 1].bytes = bytes->s;
        r->steps[r->n - 1].n = bytes->n;
    } else {
        free(bytes->s);
    }
    *bytes = (struct text){0};
}

void reply_free(struct reply *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n; i++) free(r->steps[i].bytes);
    free(r->steps);
    free(r);
}

void add_chunk(struct text *t, const char *bytes, size_t n)
{
    text_addf(t, "%zx\r\n", n);
    text_add(t, bytes, n);
    text_add(t, "\r\n", 2);
}

void add_event(struct text *t, bool chunked, const char *data, size_t n)
{
    struct text event = {0};
    text_add(&event, "data: ", 6);
    text_add(&event, data, n);
    text_add(&event, "\n\n", 2);
    if (chunked)
        add_chunk(t, event.s, event.n);
    else
        text_add(t, event.s, event.n);
    free(event.s);
}

#define CHUNK_HEAD                                                                                 \
    "\"id\":\"chatcmpl-fake\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"        \
    "\"model\":\"" FAKE_MODEL "\""

void add_delta(struct text *t, bool chunked, const char *delta, const char *finish)
{
    struct text data = {0};
    text_addf(&data,
              "{" CHUNK_HEAD ",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":", delta);
    if (finish)
        text_addf(&data, "\"%s\"}]}", finish);
    else
        text_addf(&data, "null}]}");
    add_event(t, chunked, data.s, data.n);
    free(data.s);
}

void add_usage_event(struct text *t, bool chunked, long prompt, long completion)
{
    struct text data = {0};
    text_addf(&data,
              "{" CHUNK_HEAD ",\"choices\":[],\"usage\":{\"prompt_tokens\":%ld,"
              "\"completion_tokens\":%ld,\"total_tokens\":%ld}}",
              prompt, completion, prompt + completion);
    add_event(t, chunked, data.s, data.n);
    free(data.s);
}

static void add_whole_head(struct text *t, int status, const char *reason, const char *type,
                           size_t n, bool close)
{
    text_addf(t, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", status,
              reason, type, n, close ? "Connection: close\r\n" : "");
}

struct reply *plain_reply(int status, const char *reason, const char *type, const char *body,
                          bool close)
{
    struct reply *r = need(calloc(1, sizeof *r));
    struct text t = {0};
    add_whole_head(&t, status, reason, type, strlen(body), close);
    text_addf(&t, "%s", body);
    reply_bytes(r, &t);
    r->owned = true;
    r->close = close;
    return r;
}

/* --- requests --- */

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* Past a string whose opening quote is at p. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\') p++;
    return p < end ? p + 1 : end;
}

static const char *skip_value(const char *p, const char *end)
{
    int depth = 0;
    p = skip_space(p, end);
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            if (!depth) return p;
            continue;
        }
        if (*p == '{' || *p == '[') {
            depth++;
        } else if (*p == '}' || *p == ']') {
            if (!depth) return p;
            if (!--depth) return p + 1;
        } else if (!depth && *p == ',') {
            return p;
        }
        p++;
    }
    return end;
}

/* The raw value of member `name` of the object that begins at p. */
static bool member(const char *p, const char *end, const char *name, const char **value, size_t *n)
{
    size_t name_n = strlen(name);
    p = skip_space(p, end);
    if (p >= end || *p != '{') return false;
    p = skip_space(p + 1, end);
    while (p < end && *p == '"') {
        const char *key = p + 1;
        p = skip_string(p, end);
        bool same = (size_t)(p - 1 - key) == name_n && !memcmp(key, name, name_n);
        p = skip_space(p, end);
        if (p >= end || *p != ':') return false;
        const char *start = skip_space(p + 1, end);
        p = skip_value(start, end);
        if (same) {
            *value = start;
            *n = (size_t)(p - start);
            return true;
        }
        p = skip_space(p, end);
        if (p < end && *p == ',') p = skip_space(p + 1, end);
    }
    return false;
}

bool request_member(const struct request *q, const char *name, const char **value, size_t *n)
{
    return member(q->body, q->body + q->body_n, name, value, n);
}

/* Counts `"key" : word`.  A quote inside a JSON string is written \", so a key that is only quoted
 * in some text never matches. */
static size_t count_pairs(const struct request *q, const char *key, const char *word)
{
    const char *p = q->body, *end = q->body + q->body_n;
    size_t key_n = strlen(key), word_n = strlen(word), count = 0;
    while (p < end && (p = memmem(p, (size_t)(end - p), key, key_n))) {
        p = skip_space(p + key_n, end);
        if (p >= end || *p != ':') continue;
        p = skip_space(p + 1, end);
        if ((size_t)(end - p) >= word_n && !memcmp(p, word, word_n)) count++;
    }
    return count;
}

bool request_streams(const struct request *q) { return count_pairs(q, "\"stream\"", "true") > 0; }

size_t request_tool_results(const struct request *q)
{
    return count_pairs(q, "\"role\"", "\"tool\"");
}

/* "Observation:" at the start of a string or behind an escaped newline. */
static size_t count_observation_lines(const char *p, const char *end)
{
    static const char word[] = "Observation:";
    size_t count = 0;
    while (p < end && (p = memmem(p, (size_t)(end - p), word, sizeof word - 1))) {
        if (p[-1] == '"' || (p[-1] == 'n' && p[-2] == '\\')) count++;
        p += sizeof word - 1;
    }
    return count;
}

size_t request_observations(const struct request *q)
{
    const char *list, *value;
    size_t n, count = 0;
    if (!request_member(q, "messages", &list, &n) || *list != '[') return 0;
    const char *end = list + n, *p = skip_space(list + 1, end);
    while (p < end && *p == '{') {
        const char *next = skip_value(p, end);
        size_t value_n;
        bool counts = member(p, next, "role", &value, &value_n) && value_n == 6 &&
                      !memcmp(value, "\"user\"", 6);
        if (counts) count += count_observation_lines(p + 2, next);
        p = skip_space(next, end);
        if (p < end && *p == ',') p = skip_space(p + 1, end);
    }
    return count;
}

/* --- bench replies: composed once --- */

static struct reply **bench[2]; /* [stream][turn], the last one is the final answer */
static struct bench_options opt;

static void filler(struct text *content, int events, int i)
{
    text_addf(content, i == 0 ? "Thought: step" : " word%d", i);
    if (i == events - 1) text_addf(content, ".");
}

static void bench_tail(struct text *content, bool final, int turn)
{
    if (final)
        text_addf(content, opt.react ? "\nFinal Answer: 42" : "\nFINAL ANSWER: 42");
    else if (opt.react)
        text_addf(content, "\nAction: calculator\nAction Input: {\"expression\":\"2+3*%d\"}", turn);
}

static void add_content(struct text *t, const struct text *content)
{
    struct text delta = {0};
    text_addf(&delta, "{\"content\":");
    text_json(&delta, content->s, content->n);
    text_addf(&delta, "}");
    add_delta(t, true, delta.s, NULL);
    free(delta.s);
}

static struct reply *bench_stream(bool final, int turn, long completion)
{
    struct reply *r = need(calloc(1, sizeof *r));
    struct text t = {0};
    text_addf(&t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n");
    add_delta(&t, true, "{\"role\":\"assistant\",\"content\":\"\"}", NULL);
    for (int i = 0; i < opt.events; i++) {
        struct text content = {0};
        filler(&content, opt.events, i);
        if (i == opt.events - 1) bench_tail(&content, final, turn);
        add_content(&t, &content);
        free(content.s);
    }
    bool call = !final && !opt.react;
    if (call) {
        struct text delta = {0};
        text_addf(&delta,
                  "{\"tool_calls\":[{\"index\":0,\"id\":\"call_bench_%d\",\"type\":\"function\","
                  "\"function\":{\"name\":\"calculator\",\"arguments\":\"\"}}]}",
                  turn);
        add_delta(&t, true, delta.s, NULL);
        delta.n = 0;
        text_addf(&delta, "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
                          "\"{\\\"expression\\\":\"}}]}");
        add_delta(&t, true, delta.s, NULL);
        delta.n = 0;
        text_addf(&delta,
                  "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
                  "\"\\\"2+3*%d\\\"}\"}}]}",
                  turn);
        add_delta(&t, true, delta.s, NULL);
        free(delta.s);
    }
    add_delta(&t, true, "{}", call ? "tool_calls" : "stop");
    add_usage_event(&t, true, opt.prompt_tokens, completion);
    add_event(&t, true, "[DONE]", 6);
    text_addf(&t, "0\r\n\r\n");
    if (opt.delay_ms) reply_step(r, STEP_SLEEP, opt.delay_ms);
    reply_bytes(r, &t);
    return r;
}

static struct reply *bench_whole(bool final, int turn, long completion)
{
    struct reply *r = need(calloc(1, sizeof *r));
    struct text content = {0}, body = {0}, t = {0};
    for (int i = 0; i < opt.events; i++) filler(&content, opt.events, i);
    bench_tail(&content, final, turn);
    bool call = !final && !opt.react;
    text_addf(&body,
              "{\"id\":\"chatcmpl-fake\",\"object\":\"chat.completion\",\"created\":1700000000,"
              "\"model\":\"" FAKE_MODEL "\",\"choices\":[{\"index\":0,\"message\":"
              "{\"role\":\"assistant\",\"content\":");
    text_json(&body, content.s, content.n);
    if (call)
        text_addf(
            &body,
            ",\"tool_calls\":[{\"id\":\"call_bench_%d\",\"type\":\"function\",\"function\":"
            "{\"name\":\"calculator\",\"arguments\":\"{\\\"expression\\\":\\\"2+3*%d\\\"}\"}}]",
            turn, turn);
    text_addf(&body,
              "},\"finish_reason\":\"%s\"}],\"usage\":{\"prompt_tokens\":%ld,"
              "\"completion_tokens\":%ld,\"total_tokens\":%ld}}",
              call ? "tool_calls" : "stop", opt.prompt_tokens, completion,
              opt.prompt_tokens + completion);
    add_whole_head(&t, 200, "OK", "application/json", body.n, false);
    text_add(&t, body.s, body.n);
    free(body.s);
    free(content.s);
    if (opt.delay_ms) reply_step(r, STEP_SLEEP, opt.delay_ms);
    reply_bytes(r, &t);
    return r;
}

void bench_build(const struct bench_options *o)
{
    opt = *o;
    if (opt.events < 1) opt.events = 1;
    for (int stream = 0; stream < 2; stream++) {
        bench[stream] = need(calloc((size_t)opt.turns + 1, sizeof *bench[stream]));
        for (int turn = 0; turn <= opt.turns; turn++) {
            bool final = turn == opt.turns;
            long completion = opt.events + (final || opt.react ? 0 : 3);
            bench[stream][turn] = stream ? bench_stream(final, turn, completion)
                                         : bench_whole(final, turn, completion);
        }
    }
}

const struct reply *bench_reply(const struct request *q)
{
    size_t seen = opt.turns == 0 ? 0
                  : opt.react    ? request_observations(q)
                                 : request_tool_results(q);
    if (seen > (size_t)opt.turns) seen = (size_t)opt.turns;
    return bench[request_streams(q)][seen];
}

void bench_free(void)
{
    for (int stream = 0; stream < 2; stream++) {
        for (int turn = 0; bench[stream] && turn <= opt.turns; turn++)
            reply_free(bench[stream][turn]);
        free(bench[stream]);
        bench[stream] = NULL;
    }
}
