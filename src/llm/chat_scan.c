/* Reads the usual events of a stream without a JSON tree.
 *
 * Nearly all events have only known members, each at most once, with plain values.  Such an event
 * has the same effect here as by the full path.  The whole event is read before the fold is
 * changed.  Any other event (an unknown member, a repair, a number that is not a count, several
 * choices, a long event) takes the full path, which costs several times as much.
 * tests/unit/llm/test_chat_scan.c compares both over all captures and mutated events. */
#include "llm/chat_priv.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "json/scan.h"

enum { SCAN_MAX = 4096, MAX_CALLS_AT_ONCE = 4, MAX_DIGITS = 12 };

struct text { /* ends with a NUL; s NULL: null or absent */
    const char *s;
    size_t n;
};

struct call {
    struct text id, name, arguments;
    bool has_index;
    int64_t index;
};

struct event {
    struct text id, model, content, reasoning_content, reasoning, finish;
    struct call calls[MAX_CALLS_AT_ONCE];
    size_t n_calls;
    bool has_delta, has_usage;
    /* -1: not reported.  hit: DeepSeek's cached tokens; thought: SGLang's reasoning tokens */
    int64_t prompt, completion, total, hit, cached, thought, reasoned;
    struct text skipped;
    int64_t other;
};

struct scan {
    const char *p, *end;
    char *room; /* the next text is written here */
    struct event *event;
};

/* ---- what an event may have ---- */

/* clang-format off */
enum kind {
    ZERO, NUMBER, INDEX, CHUNK, CHOICES, DELTA,
    TEXT, SKIPPED, COUNT, NOTHING, USAGE, OBJECT, CALLS, /* these can be null */
};

/* The members of an object.  Each is there at most once; with any other the event is parsed. */
struct row {
    const char *name;
    enum kind kind;
    size_t at; /* in the event, or in the call */
    const struct row *members;
};

#define E(field) offsetof(struct event, field)
#define C(field) offsetof(struct call, field)
static const struct row of_function[] = {
    {"arguments", TEXT, C(arguments)}, {"name", TEXT, C(name)}, {NULL}};
static const struct row of_call[] = {
    {"function", OBJECT, 0, of_function}, {"id", TEXT, C(id)}, {"index", INDEX},
    {"type", SKIPPED}, {NULL}};
static const struct row of_delta[] = {
    {"content", TEXT, E(content)}, {"reasoning_content", TEXT, E(reasoning_content)},
    {"reasoning", TEXT, E(reasoning)}, {"role", SKIPPED}, {"tool_calls", CALLS},
    {"refusal", NOTHING}, {"function_call", NOTHING}, {NULL}};
static const struct row of_choice[] = {
    {"delta", DELTA, 0, of_delta}, {"finish_reason", TEXT, E(finish)}, {"index", ZERO},
    {"native_finish_reason", SKIPPED}, {"logprobs", NOTHING}, {"stop_reason", NOTHING},
    {"matched_stop", NOTHING}, {"token_ids", NOTHING}, {NULL}};
static const struct row of_prompt[] = {
    {"cached_tokens", COUNT, E(cached)}, {"audio_tokens", COUNT, E(other)}, {NULL}};
static const struct row of_completion[] = {
    {"reasoning_tokens", COUNT, E(reasoned)}, {"audio_tokens", COUNT, E(other)},
    {"accepted_prediction_tokens", COUNT, E(other)},
    {"rejected_prediction_tokens", COUNT, E(other)}, {NULL}};
static const struct row of_usage[] = {
    {"prompt_tokens", COUNT, E(prompt)}, {"completion_tokens", COUNT, E(completion)},
    {"total_tokens", COUNT, E(total)}, {"prompt_cache_hit_tokens", COUNT, E(hit)},
    {"reasoning_tokens", COUNT, E(thought)}, {"prompt_cache_miss_tokens", COUNT, E(other)},
    {"prompt_tokens_details", OBJECT, 0, of_prompt},
    {"completion_tokens_details", OBJECT, 0, of_completion}, {NULL}};
static const struct row of_event[] = {
    {"choices", CHOICES}, {"created", NUMBER, E(other)}, {"id", TEXT, E(id)},
    {"model", TEXT, E(model)}, {"object", CHUNK}, {"usage", USAGE, 0, of_usage},
    {"system_fingerprint", SKIPPED}, {"service_tier", SKIPPED},
    {"provider", SKIPPED}, {"obfuscation", SKIPPED}, {NULL}};
#undef E
#undef C
/* clang-format on */

/* ---- values ---- */

static bool next_is(struct scan *s, char c)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
    return s->p < s->end && *s->p == c;
}

static bool take(struct scan *s, char c)
{
    if (!next_is(s, c)) return false;
    s->p++;
    return true;
}

/* Writes the text of a string with escapes, which is parsed alone. */
static bool unescape(char *to, size_t *written, const char *quoted, size_t n)
{
    struct ipw_json *text = NULL;
    size_t repairs = 0;
    bool good = ipw_json_parse(&text, quoted, n, &repairs, NULL) == 0 && !repairs;

    *written = ipw_json_str_len(text);
    if (good) memcpy(to, ipw_json_str(text, ""), *written);
    ipw_json_free(text);
    return good && !memchr(to, '\0', *written);
}

/* Reads a string.  False: the full path must repair or refuse it. */
static bool read_text(struct scan *s, struct text *out)
{
    const char *from, *p;
    bool escaped = false;

    if (!take(s, '"')) return false;
    for (from = p = s->p;;) {
        p += ipw_scan_plain(p, (size_t)(s->end - p));
        if (p >= s->end || *p == '"') break;
        if (*p == '\\') {
            escaped = true;
            p += 2;
            if (p > s->end) return false;
        } else {
            size_t k = ipw_scan_wide(p, (size_t)(s->end - p));

            if (k == 0) return false;
            p += k;
        }
    }
    if (p >= s->end) return false;
    *out = (struct text){s->room, (size_t)(p - from)};
    if (!escaped)
        memcpy(s->room, from, out->n);
    else if (!unescape(s->room, &out->n, from - 1, out->n + 2))
        return false;
    s->room[out->n] = '\0';
    s->room += out->n + 1;
    s->p = p + 1;
    return true;
}

static bool read_null(struct scan *s)
{
    if (!take(s, 'n')) return false;
    if (s->end - s->p < 3 || memcmp(s->p, "ull", 3) != 0) return false;
    s->p += 3;
    return true;
}

/* Reads a count: digits without a leading zero.  After a fraction or a further digit the caller's
 * take() fails. */
static bool read_count(struct scan *s, int64_t *out)
{
    int digits = 0;

    *out = 0;
    if (take(s, '0')) return true;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9' && digits <= MAX_DIGITS; digits++)
        *out = *out * 10 + (*s->p++ - '0');
    return digits > 0 && digits <= MAX_DIGITS;
}

/* Reads a member's name and its colon.  Our names are plain text, so that a name with an escape is
 * none of them. */
static const struct row *read_name(struct scan *s, const struct row *rows)
{
    const char *name;
    size_t n;

    if (!take(s, '"')) return NULL;
    name = s->p;
    n = ipw_scan_plain(name, (size_t)(s->end - name));
    s->p += n;
    if (s->p >= s->end || *s->p++ != '"' || !take(s, ':')) return NULL;
    for (; rows->name; rows++)
        if (rows->name[0] == name[0] && strncmp(rows->name, name, n) == 0 && !rows->name[n])
            return rows;
    return NULL;
}

/* ---- the parts of an event ---- */

static bool read_member(struct scan *s, const struct row *row, char *to);

static bool read_object(struct scan *s, const struct row *rows, void *to)
{
    unsigned found = 0;

    if (!take(s, '{')) return false;
    if (take(s, '}')) return true;
    do {
        const struct row *row = read_name(s, rows);

        if (!row || found >> (row - rows) & 1) return false;
        found |= 1u << (row - rows);
        if (!read_member(s, row, to)) return false;
    } while (take(s, ','));
    return take(s, '}');
}

static bool read_calls(struct scan *s)
{
    struct event *e = s->event;

    if (!take(s, '[')) return false;
    if (take(s, ']')) return true;
    do {
        if (e->n_calls == MAX_CALLS_AT_ONCE) return false;
        if (!read_object(s, of_call, &e->calls[e->n_calls++])) return false;
    } while (take(s, ','));
    return take(s, ']');
}

/* One choice.  Without a delta it can be a whole message: the full path reads it. */
static bool read_choices(struct scan *s)
{
    if (!take(s, '[')) return false;
    if (take(s, ']')) return true;
    return read_object(s, of_choice, s->event) && s->event->has_delta && take(s, ']');
}

static bool read_member(struct scan *s, const struct row *row, char *to)
{
    struct event *e = s->event;
    struct call *call = (struct call *)(void *)to;

    if (next_is(s, 'n')) return row->kind >= TEXT && read_null(s);
    switch (row->kind) {
    case TEXT: return read_text(s, (struct text *)(void *)(to + row->at));
    case SKIPPED: return read_text(s, &e->skipped);
    case COUNT:
    case NUMBER: return read_count(s, (int64_t *)(void *)(to + row->at));
    case ZERO: return read_count(s, &e->other) && e->other == 0;
    case INDEX: return call->has_index = read_count(s, &call->index);
    case CHUNK: return read_text(s, &e->skipped) && !strcmp(e->skipped.s, "chat.completion.chunk");
    case NOTHING: return false;
    case DELTA: e->has_delta = true; return read_object(s, row->members, to);
    case USAGE: e->has_usage = true; return read_object(s, row->members, to);
    case OBJECT: return read_object(s, row->members, to);
    case CHOICES: return read_choices(s);
    case CALLS: return read_calls(s);
    }
    return false;
}

static bool read_event(struct scan *s, struct event *e, const char *data, size_t n, char *room)
{
    *e = (struct event){.prompt = -1,
                        .completion = -1,
                        .total = -1,
                        .hit = -1,
                        .cached = -1,
                        .thought = -1,
                        .reasoned = -1};
    *s = (struct scan){.p = data, .end = data + n, .room = room, .event = e};
    return read_object(s, of_event, e) && s->p == s->end;
}

/* ---- the effect on the reply ---- */

static void keep_first(char **slot, const struct text *t)
{
    if (!*slot && t->n) *slot = ipw_strdup(t->s);
}

static int fold_delta(struct ipw_chat_fold *fold, const struct event *e, int *seen,
                      struct ipw_err *err)
{
    const struct text *thought = e->reasoning_content.n ? &e->reasoning_content : &e->reasoning;
    int rc = 0;

    if (thought->n) {
        *seen |= IPW_SEEN_REASONING;
        rc = ipw_chat_gather(fold, &fold->reply.reasoning, thought->s, thought->n, err);
    }
    if (rc == 0 && e->content.n) {
        *seen |= IPW_SEEN_TEXT;
        rc = ipw_chat_gather(fold, &fold->reply.text, e->content.s, e->content.n, err);
    }
    for (size_t i = 0; i < e->n_calls && rc == 0; i++) {
        const struct call *c = &e->calls[i];
        struct ipw_chat_call_delta delta = {.id = c->id.n ? c->id.s : NULL,
                                            .name = c->name.n ? c->name.s : NULL,
                                            .has_index = c->has_index,
                                            .index = c->index,
                                            .arguments = c->arguments.s,
                                            .arguments_n = c->arguments.n};

        rc = ipw_chat_call_fold_one(fold, &delta, seen, err);
    }
    return rc;
}

static void fold_usage(struct ipw_chat_usage *u, const struct event *e)
{
    if (e->prompt >= 0) u->prompt = e->prompt;
    if (e->completion >= 0) u->completion = e->completion;
    if (e->total >= 0) u->total = e->total;
    if (e->hit >= 0) u->cached = e->hit;
    if (e->cached >= 0) u->cached = e->cached;
    if (e->thought >= 0) u->reasoning = e->thought;
    if (e->reasoned >= 0) u->reasoning = e->reasoned;
}

bool ipw_chat_scan(struct ipw_chat_fold *fold, const char *data, size_t n, int *result,
                   struct ipw_err *err)
{
    char room[SCAN_MAX + 1];
    struct event e;
    struct scan s;
    int seen = 0, rc;

    if (n > SCAN_MAX || !read_event(&s, &e, data, n, room)) return false;
    keep_first(&fold->reply.id, &e.id);
    keep_first(&fold->reply.model, &e.model);
    rc = fold_delta(fold, &e, &seen, err);
    *result = rc;
    if (rc) return true;
    if (e.finish.n) {
        seen |= IPW_SEEN_FINISH;
        ipw_chat_set_finish(&fold->reply, e.finish.s, ipw_chat_finish_of(e.finish.s));
    }
    if (e.has_usage) {
        fold_usage(&fold->reply.usage, &e);
        seen |= IPW_SEEN_USAGE;
    }
    if (seen & IPW_SEEN_TOKEN) fold->reply.chunks++;
    *result = seen;
    return true;
}
