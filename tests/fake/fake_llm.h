/* tests/fake/fake_llm.h: what the three files of the scripted server share.
 *
 * llm_server.c owns sockets, HTTP and time; llm_replies.c scans requests and composes answers;
 * llm_script.c reads cassettes.  None of them uses anything from src/: a mistake there must not be
 * able to hide behind the same mistake here.  A reply is a list of steps that the server carries
 * out one after the other; bench replies are composed once and lent, script replies are composed
 * for each request and owned. */
#ifndef FAKE_LLM_H
#define FAKE_LLM_H

#include <stdbool.h>
#include <stddef.h>

#define FAKE_MODEL "fake-model"

enum step_kind {
    STEP_BYTES,   /* send them */
    STEP_SLEEP,   /* wait ms */
    STEP_SLOW,    /* from here on one byte each ms; ms < 0: whole again */
    STEP_CUT,     /* close the connection in an orderly way */
    STEP_RESET,   /* close it with a RST */
    STEP_STALL,   /* say nothing more, keep the connection */
    STEP_ENDLESS, /* the bytes, again and again */
};

struct step {
    enum step_kind kind;
    int ms;
    char *bytes;
    size_t n;
};

struct reply {
    struct step *steps;
    size_t n, cap;
    bool owned; /* freed by the server once it is sent */
    bool close; /* the connection is closed after it */
};

/* A growing text; out of memory ends the program. */
struct text {
    char *s;
    size_t n, cap;
};
void text_add(struct text *t, const char *bytes, size_t n);
void text_addf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_json(struct text *t, const char *bytes, size_t n); /* a JSON string, quoted */
void *need(void *p);                                         /* exits when NULL */

void reply_step(struct reply *r, enum step_kind kind, int ms);
void reply_bytes(struct reply *r, struct text *bytes); /* takes the bytes, empties the text */
void reply_free(struct reply *r);

/* One Server-Sent Event with `data`, as an HTTP chunk of its own when `chunked`. */
void add_event(struct text *t, bool chunked, const char *data, size_t n);
void add_chunk(struct text *t, const char *bytes, size_t n);

/* A request, as far as the composers need it. */
struct request {
    const char *path, *body;
    size_t path_n, body_n;
    unsigned long number; /* 1, 2, 3, ... of chat requests */
};
bool request_streams(const struct request *q); /* "stream": true */
/* The raw value of a member of the body's top-level object; false when there is none. */
bool request_member(const struct request *q, const char *name, const char **value, size_t *n);
size_t request_tool_results(const struct request *q); /* messages with role tool */
size_t request_observations(const struct request *q); /* lines "Observation:" not of the system's */

/* The chat.completion.chunk around a delta (JSON text); finish NULL: null. */
void add_delta(struct text *t, bool chunked, const char *delta, const char *finish);
void add_usage_event(struct text *t, bool chunked, long prompt, long completion);
struct reply *plain_reply(int status, const char *reason, const char *type, const char *body,
                          bool close);

struct bench_options {
    int turns;  /* tool calls before the final answer */
    bool react; /* as text, not as native calls */
    int events; /* content events of a streamed answer */
    long prompt_tokens;
    int delay_ms;
};
void bench_build(const struct bench_options *o);
const struct reply *bench_reply(const struct request *q);
void bench_free(void);

/* Cassettes.  script_load() exits with a message that names file and line. */
void script_load(const char *path);
/* NULL: no block for this path.  A probe uses up no block. */
struct reply *script_reply(const struct request *q, bool probe);
void script_free(void);

#endif
