/* tests/fake/llm_script.c: cassettes.
 *
 * A cassette is a text file of blocks, separated by lines "---".  Blank lines and lines that begin
 * with # are skipped.  A line is a directive and its argument.
 *
 * Which block answers a request: the first in file order that was not used yet (or says `always`)
 * and whose conditions all hold.  Blocks without conditions so answer in order.  When none is left
 * the server answers 500 "the cassette is over".
 *
 *   when TEXT        the body holds TEXT (escapes: \n \r \t \\ \xHH); may be repeated
 *   unless TEXT      the body does not
 *   path PATH        for requests to PATH instead of /v1/chat/completions
 *   always           the block is not used up
 *
 * The head:
 *   status 429 [Reason]   header Name: value   type text/html
 *   close                 no framing: the body ends when the connection does
 *
 * The answer, in the order of the lines:
 *   text WORDS            a reply with that text: a role event, one event a word (escapes as
 *                         above), finish reason, usage, [DONE]; one JSON body when "stream" was
 *                         not asked
 *   reasoning WORDS       the same as reasoning_content
 *   call NAME {args}      a tool call in the reply (three deltas); may be repeated, may follow text
 *   usage P C             tokens told (without it: 10, and one a word or call delta)
 *   finish WORD           finish reason (without it: stop or tool_calls); `finish -`: none at all
 *   no-usage, no-done     leave these away
 *   itl MS                wait between the events of text, reasoning and call that follow
 *   sse {json}            one event as it stands
 *   done                  data: [DONE]
 *   sse-raw TEXT          bytes of the stream (escapes), in one HTTP chunk
 *   json {json}           a whole body, application/json
 *   body TEXT             a whole body (escapes), text/plain unless `type` says otherwise
 *   headers               send the head now, not with the first bytes
 *   delay MS              wait
 *   raw TEXT              bytes (escapes) in place of a head; the connection is closed in the end
 *   slow MS               from here on one byte each MS ms (0: each byte in its own packet)
 *   cut                   close here; before any byte when nothing was to be sent yet; a whole body
 *                         is announced longer than it is
 *   reset                 the same with a RST
 *   stall                 never say more
 *   endless               the same text event until the client goes away
 */
#include "fake_llm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum word {
    W_WHEN,
    W_UNLESS,
    W_PATH,
    W_ALWAYS,
    W_STATUS,
    W_HEADER,
    W_TYPE,
    W_CLOSE,
    W_TEXT,
    W_REASONING,
    W_CALL,
    W_USAGE,
    W_FINISH,
    W_NO_USAGE,
    W_NO_DONE,
    W_ITL,
    W_SSE,
    W_DONE,
    W_SSE_RAW,
    W_RAW,
    W_JSON,
    W_BODY,
    W_HEADERS,
    W_DELAY,
    W_SLOW,
    W_CUT,
    W_RESET,
    W_STALL,
    W_ENDLESS,
    WORDS
};

static const char *const words[WORDS] = {
    "when", "unless",    "path",    "always", "status",  "header",   "type",    "close",
    "text", "reasoning", "call",    "usage",  "finish",  "no-usage", "no-done", "itl",
    "sse",  "done",      "sse-raw", "raw",    "json",    "body",     "headers", "delay",
    "slow", "cut",       "reset",   "stall",  "endless",
};

struct line {
    enum word word;
    char *arg;
    size_t n;
};

struct block {
    struct line *lines;
    size_t n;
    bool used, always;
};

static struct block *blocks;
static size_t n_blocks;

static bool escaped(enum word w)
{
    return w == W_WHEN || w == W_UNLESS || w == W_TEXT || w == W_REASONING || w == W_SSE_RAW ||
           w == W_RAW || w == W_BODY;
}

static size_t unescape(char *s)
{
    char *out = s;
    for (const char *p = s; *p; p++) {
        unsigned v;
        if (*p != '\\' || !p[1]) {
            *out++ = *p;
        } else if (p[1] == 'x' && sscanf(p + 2, "%2x", &v) == 1) {
            *out++ = (char)v;
            p += 3;
        } else {
            p++;
            *out++ = *p == 'n' ? '\n' : *p == 'r' ? '\r' : *p == 't' ? '\t' : *p;
        }
    }
    *out = '\0';
    return (size_t)(out - s);
}

static void add_line(struct block *b, enum word w, const char *arg)
{
    b->lines = need(realloc(b->lines, (b->n + 1) * sizeof *b->lines));
    struct line *l = &b->lines[b->n++];
    l->word = w;
    l->arg = need(strdup(arg));
    l->n = escaped(w) ? unescape(l->arg) : strlen(l->arg);
    if (w == W_ALWAYS) b->always = true;
}

void script_load(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) {
        fprintf(stderr, "fake_llm: cannot read %s\n", path);
        exit(2);
    }
    char *line = NULL;
    size_t cap = 0;
    bool fresh = true;
    for (int number = 1; getline(&line, &cap, f) >= 0; number++) {
        line[strcspn(line, "\n")] = '\0';
        if (!*line || *line == '#') continue;
        if (!strcmp(line, "---")) {
            fresh = true;
            continue;
        }
        size_t n = strcspn(line, " ");
        int w = 0;
        while (w < WORDS && (strlen(words[w]) != n || memcmp(words[w], line, n) != 0)) w++;
        if (w == WORDS) {
            fprintf(stderr, "fake_llm: %s:%d: unknown directive: %s\n", path, number, line);
            exit(2);
        }
        if (fresh) {
            blocks = need(realloc(blocks, (n_blocks + 1) * sizeof *blocks));
            blocks[n_blocks++] = (struct block){0};
            fresh = false;
        }
        add_line(&blocks[n_blocks - 1], (enum word)w, line[n] ? line + n + 1 : "");
    }
    free(line);
    fclose(f);
}

void script_free(void)
{
    for (size_t i = 0; i < n_blocks; i++) {
        for (size_t k = 0; k < blocks[i].n; k++) free(blocks[i].lines[k].arg);
        free(blocks[i].lines);
    }
    free(blocks);
    blocks = NULL;
    n_blocks = 0;
}

/* --- composing --- */

struct composer {
    struct reply *r;
    struct text t;    /* bytes not yet made a step */
    struct text head; /* extra header lines */
    int status;
    const char *reason, *type;
    bool stream, chunked, head_sent, close;
    /* the reply that text, reasoning and call lines make up */
    struct text content, reasoning, calls;
    int n_calls, itl;
    long prompt, completion, told;
    bool composed, opened, usage, done;
    const char *finish;
    unsigned long number;
};

static const char *reason_of(int status)
{
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 429: return "Too Many Requests";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "Status";
    }
}

static void head(struct composer *c, const char *type, long long length)
{
    if (c->head_sent) return;
    c->head_sent = true;
    text_addf(&c->t, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n", c->status,
              c->reason ? c->reason : reason_of(c->status), c->type ? c->type : type);
    if (c->close)
        text_addf(&c->t, "Connection: close\r\n");
    else if (length >= 0)
        text_addf(&c->t, "Content-Length: %lld\r\n", length);
    else
        text_addf(&c->t, "Transfer-Encoding: chunked\r\n");
    c->chunked = !c->close && length < 0;
    if (c->head.n) text_add(&c->t, c->head.s, c->head.n);
    text_addf(&c->t, "\r\n");
}

static void stream_head(struct composer *c) { head(c, "text/event-stream", -1); }

static void step(struct composer *c, enum step_kind kind, int ms)
{
    reply_bytes(c->r, &c->t);
    reply_step(c->r, kind, ms);
}

static void delta(struct composer *c, const char *json, const char *finish)
{
    stream_head(c);
    if (!c->opened) add_delta(&c->t, c->chunked, "{\"role\":\"assistant\",\"content\":\"\"}", NULL);
    c->opened = true;
    add_delta(&c->t, c->chunked, json, finish);
}

static void token(struct composer *c, const char *json)
{
    if (c->itl && c->opened) step(c, STEP_SLEEP, c->itl);
    delta(c, json, NULL);
}

/* One event a word; the blanks belong to the word before them. */
static void say(struct composer *c, const char *field, const struct line *l)
{
    for (size_t i = 0; i < l->n;) {
        size_t k = i;
        while (k < l->n && l->arg[k] != ' ') k++;
        while (k < l->n && l->arg[k] == ' ') k++;
        c->completion++;
        if (c->stream) {
            struct text d = {0};
            text_addf(&d, "{\"%s\":", field);
            text_json(&d, l->arg + i, k - i);
            text_addf(&d, "}");
            token(c, d.s);
            free(d.s);
        }
        i = k;
    }
}

static void call(struct composer *c, const struct line *l)
{
    size_t name = strcspn(l->arg, " ");
    const char *args = l->arg[name] ? l->arg + name + 1 : "";
    size_t args_n = strlen(args), half = args_n / 2;
    struct text d = {0};
    c->completion += 3;
    if (c->stream) {
        text_addf(&d,
                  "{\"tool_calls\":[{\"index\":%d,\"id\":\"call_%lu_%d\",\"type\":\"function\","
                  "\"function\":{\"name\":\"%.*s\",\"arguments\":\"\"}}]}",
                  c->n_calls, c->number, c->n_calls, (int)name, l->arg);
        token(c, d.s);
        for (int part = 0; part < 2; part++) {
            d.n = 0;
            text_addf(&d,
                      "{\"tool_calls\":[{\"index\":%d,\"function\":{\"arguments\":", c->n_calls);
            text_json(&d, part ? args + half : args, part ? args_n - half : half);
            text_addf(&d, "}}]}");
            token(c, d.s);
        }
        free(d.s);
    } else {
        text_addf(&c->calls,
                  "%s{\"id\":\"call_%lu_%d\",\"type\":\"function\",\"function\":{\"name\":",
                  c->n_calls ? "," : "", c->number, c->n_calls);
        text_json(&c->calls, l->arg, name);
        text_addf(&c->calls, ",\"arguments\":");
        text_json(&c->calls, args, args_n);
        text_addf(&c->calls, "}}");
    }
    c->n_calls++;
}

static void event(struct composer *c, const char *data, size_t n)
{
    stream_head(c);
    add_event(&c->t, c->chunked, data, n);
}

static void whole(struct composer *c, const char *type, const char *bytes, size_t n, bool cut)
{
    head(c, type, (long long)n + (cut ? 1000 : 0));
    text_add(&c->t, bytes, n);
}

static void finish_whole(struct composer *c)
{
    /* Clients take two messages of one id for the same; another request gets the same bytes. */
    struct text b = {0};
    text_addf(
        &b,
        "{\"id\":\"chatcmpl-fake-%zu-%d\",\"object\":\"chat.completion\",\"created\":1700000000,"
        "\"model\":\"" FAKE_MODEL "\",\"choices\":[{\"index\":0,\"message\":"
        "{\"role\":\"assistant\",\"content\":",
        c->content.n, (int)c->n_calls);
    if (c->content.n || !c->n_calls)
        text_json(&b, c->content.n ? c->content.s : "", c->content.n);
    else
        text_addf(&b, "null");
    if (c->reasoning.n) {
        text_addf(&b, ",\"reasoning_content\":");
        text_json(&b, c->reasoning.s, c->reasoning.n);
    }
    if (c->n_calls) text_addf(&b, ",\"tool_calls\":[%s]", c->calls.s);
    text_addf(&b, "},\"finish_reason\":");
    if (c->finish)
        text_addf(&b, "\"%s\"}]", c->finish);
    else
        text_addf(&b, "null}]");
    if (c->usage)
        text_addf(&b,
                  ",\"usage\":{\"prompt_tokens\":%ld,\"completion_tokens\":%ld,"
                  "\"total_tokens\":%ld}",
                  c->prompt, c->told, c->prompt + c->told);
    text_addf(&b, "}");
    whole(c, "application/json", b.s, b.n, false);
    free(b.s);
}

/* The end of a reply that text, reasoning and call lines made up. */
static void finish_reply(struct composer *c)
{
    if (!c->composed) return;
    if (c->told < 0) c->told = c->completion;
    if (c->finish && !*c->finish) c->finish = c->n_calls ? "tool_calls" : "stop";
    if (!c->stream) {
        finish_whole(c);
        return;
    }
    if (c->finish) delta(c, "{}", c->finish);
    stream_head(c);
    if (c->usage) add_usage_event(&c->t, c->chunked, c->prompt, c->told);
    if (c->done) add_event(&c->t, c->chunked, "[DONE]", 6);
}

static void add_endless(struct composer *c)
{
    stream_head(c);
    step(c, STEP_ENDLESS, 0);
    struct text t = {0};
    add_delta(&t, c->chunked, "{\"content\":\"more \"}", NULL);
    c->r->steps[c->r->n - 1].bytes = t.s;
    c->r->steps[c->r->n - 1].n = t.n;
}

/* What stands anywhere in the block but concerns the whole of it.  Returns whether it ends early.
 */
static bool read_settings(struct composer *c, const struct block *b, bool *cut)
{
    bool early = false;
    for (size_t i = 0; i < b->n; i++) {
        const struct line *l = &b->lines[i];
        switch (l->word) {
        case W_STATUS:
            c->status = atoi(l->arg);
            c->reason = strchr(l->arg, ' ') ? strchr(l->arg, ' ') + 1 : NULL;
            break;
        case W_HEADER:
            text_addf(&c->head, "%s\r\n", l->arg);
            if (!strcasecmp(l->arg, "Connection: close")) c->r->close = true;
            break;
        case W_TYPE: c->type = l->arg; break;
        case W_CLOSE: c->close = c->r->close = true; break;
        case W_USAGE: sscanf(l->arg, "%ld %ld", &c->prompt, &c->told); break;
        case W_FINISH: c->finish = strcmp(l->arg, "-") != 0 ? l->arg : NULL; break;
        case W_NO_USAGE: c->usage = false; break;
        case W_NO_DONE: c->done = false; break;
        case W_TEXT:
            text_add(&c->content, l->arg, l->n);
            c->composed = true;
            break;
        case W_REASONING:
            text_add(&c->reasoning, l->arg, l->n);
            c->composed = true;
            break;
        case W_CALL: c->composed = true; break;
        case W_CUT:
        case W_RESET: *cut = early = true; break;
        case W_STALL:
        case W_ENDLESS: early = true; break;
        default: break;
        }
    }
    return early;
}

static void compose_line(struct composer *c, const struct line *l, bool cut)
{
    switch (l->word) {
    case W_TEXT: say(c, "content", l); break;
    case W_REASONING: say(c, "reasoning_content", l); break;
    case W_CALL: call(c, l); break;
    case W_ITL: c->itl = atoi(l->arg); break;
    case W_SSE: event(c, l->arg, l->n); break;
    case W_DONE: event(c, "[DONE]", 6); break;
    case W_SSE_RAW:
        stream_head(c);
        if (c->chunked)
            add_chunk(&c->t, l->arg, l->n);
        else
            text_add(&c->t, l->arg, l->n);
        break;
    case W_RAW:
        c->head_sent = c->r->close = true;
        text_add(&c->t, l->arg, l->n);
        break;
    case W_JSON: whole(c, "application/json", l->arg, l->n, cut); break;
    case W_BODY: whole(c, "text/plain", l->arg, l->n, cut); break;
    case W_HEADERS: stream_head(c); break;
    case W_DELAY: step(c, STEP_SLEEP, atoi(l->arg)); break;
    case W_SLOW: step(c, STEP_SLOW, atoi(l->arg)); break;
    case W_CUT: step(c, STEP_CUT, 0); break;
    case W_RESET: step(c, STEP_RESET, 0); break;
    case W_STALL: step(c, STEP_STALL, 0); break;
    case W_ENDLESS: add_endless(c); break;
    default: break;
    }
}

static struct reply *compose(const struct block *b, const struct request *q)
{
    struct composer c = {.r = need(calloc(1, sizeof *c.r)),
                         .status = 200,
                         .prompt = 10,
                         .told = -1,
                         .stream = request_streams(q),
                         .usage = true,
                         .done = true,
                         .finish = "",
                         .number = q->number};
    bool cut = false, early;
    c.r->owned = true;
    early = read_settings(&c, b, &cut);
    for (size_t i = 0; i < b->n; i++) compose_line(&c, &b->lines[i], cut);
    if (!early) {
        finish_reply(&c);
        if (!c.head_sent) head(&c, "text/plain", 0);
        if (c.chunked) text_addf(&c.t, "0\r\n\r\n");
    }
    reply_bytes(c.r, &c.t);
    free(c.head.s);
    free(c.content.s);
    free(c.reasoning.s);
    free(c.calls.s);
    return c.r;
}

static bool fits(const struct block *b, const struct request *q)
{
    const char *path = "/v1/chat/completions";
    if (b->used && !b->always) return false;
    for (size_t i = 0; i < b->n; i++) {
        const struct line *l = &b->lines[i];
        if (l->word == W_PATH) path = l->arg;
        if (l->word != W_WHEN && l->word != W_UNLESS) continue;
        bool held = memmem(q->body, q->body_n, l->arg, l->n) != NULL;
        if (held != (l->word == W_WHEN)) return false;
    }
    return strlen(path) == q->path_n && !memcmp(path, q->path, q->path_n);
}

struct reply *script_reply(const struct request *q, bool probe)
{
    for (size_t i = 0; i < n_blocks; i++) {
        if (!fits(&blocks[i], q) || (probe && !blocks[i].always)) continue;
        blocks[i].used = true;
        return compose(&blocks[i], q);
    }
    return NULL;
}
