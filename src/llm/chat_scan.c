/* Reads the usual events of a stream without a JSON tree.
 *
 * Nearly all events have only known members, each at most once, with plain values.  Such an event
 * has the same effect here as by the full path.  The whole event is read before the fold is
 * changed.  Any other event (an unknown member, a repair, a number that is not a count, several
 * choices, a long event) takes the full path, which costs several times as much.
 * tests/unit/llm/test_chat_scan.c compares both over all captures and mutated events. */
#include "llm/chat_priv.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
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
};

struct scan {
    const char *p, *end;
    char *room; /* the next text is written here */
    struct event *event;
    struct text skipped;
};

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

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Writes \uXXXX (s is after the u) as UTF-8.  0: the full path must decide. */
static size_t unescape_unicode(char *to, const char *s, size_t n)
{
    unsigned code = 0;

    if (n < 4) return 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(s[i]);

        if (digit < 0) return 0;
        code = code * 16 + (unsigned)digit;
    }
    if (code == 0 || (code >= 0xd800 && code <= 0xdfff)) return 0;
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | (code >> 6));
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    to[0] = (char)(0xe0 | (code >> 12));
    to[1] = (char)(0x80 | ((code >> 6) & 0x3f));
    to[2] = (char)(0x80 | (code & 0x3f));
    return 3;
}

static char unescape_simple(char c)
{
    switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '/': return '/';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    }
    return 0;
}

/* Decodes the n bytes of a string's body into `to`.  False: it has more than simple escapes. */
static bool unescape(char *to, size_t *written, const char *s, size_t n)
{
    size_t i = 0, o = 0;

    while (i < n) {
        unsigned char c = (unsigned char)s[i];

        if (c == '\\') {
            size_t k;

            if (i + 1 >= n) return false;
            if (s[i + 1] == 'u') {
                k = unescape_unicode(to + o, s + i + 2, n - i - 2);
                if (k == 0) return false;
                o += k;
                i += 6;
            } else {
                to[o] = unescape_simple(s[i + 1]);
                if (to[o++] == 0) return false;
                i += 2;
            }
        } else if (c < 0x20 || c == '"') {
            return false;
        } else if (c < 0x80) {
            to[o++] = (char)c;
            i++;
        } else {
            size_t k = ipw_utf8_len(s + i, n - i);

            if (k == 0) return false;
            memcpy(to + o, s + i, k);
            o += k;
            i += k;
        }
    }
    *written = o;
    return true;
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
    else if (!unescape(s->room, &out->n, from, out->n))
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

static bool text_or_null(struct scan *s, struct text *out)
{
    *out = (struct text){0};
    return next_is(s, '"') ? read_text(s, out) : read_null(s);
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

static bool count_or_null(struct scan *s, int64_t *out)
{
    int64_t n;

    if (next_is(s, 'n')) return read_null(s);
    if (!read_count(s, &n)) return false;
    *out = n;
    return true;
}

/* Reads a member's name and its colon: its place in `names`, or -1.  Our names are plain text, so
 * that a name with an escape is none of them. */
static int read_name(struct scan *s, const char *const *names)
{
    const char *name;
    size_t n;

    if (!take(s, '"')) return -1;
    name = s->p;
    n = ipw_scan_plain(name, (size_t)(s->end - name));
    s->p += n;
    if (s->p >= s->end || *s->p++ != '"' || !take(s, ':')) return -1;
    for (int i = 0; names[i]; i++)
        if (names[i][0] == name[0] && strncmp(names[i], name, n) == 0 && !names[i][n]) return i;
    return -1;
}

/* Reads an object whose members are all in `names`, each at most once. */
static bool read_object(struct scan *s, const char *const *names,
                        bool (*member)(struct scan *s, int which))
{
    unsigned found = 0;

    if (!take(s, '{')) return false;
    if (take(s, '}')) return true;
    do {
        int which = read_name(s, names);

        if (which < 0 || found >> which & 1) return false;
        found |= 1u << which;
        if (!member(s, which)) return false;
    } while (take(s, ','));
    return take(s, '}');
}

/* ---- the parts of an event ---- */

static bool function_member(struct scan *s, int which)
{
    struct call *call = &s->event->calls[s->event->n_calls - 1];

    return text_or_null(s, which == 0 ? &call->arguments : &call->name);
}

static bool call_member(struct scan *s, int which)
{
    static const char *const names[] = {"arguments", "name", NULL};
    struct call *call = &s->event->calls[s->event->n_calls - 1];

    switch (which) {
    case 0: return read_object(s, names, function_member);
    case 1: return text_or_null(s, &call->id);
    case 2: return call->has_index = read_count(s, &call->index);
    default: return text_or_null(s, &s->skipped); /* type */
    }
}

static bool read_calls(struct scan *s)
{
    static const char *const names[] = {"function", "id", "index", "type", NULL};

    if (next_is(s, 'n')) return read_null(s);
    if (!take(s, '[')) return false;
    if (take(s, ']')) return true;
    do {
        if (s->event->n_calls++ == MAX_CALLS_AT_ONCE) return false;
        if (!read_object(s, names, call_member)) return false;
    } while (take(s, ','));
    return take(s, ']');
}

static bool delta_member(struct scan *s, int which)
{
    switch (which) {
    case 0: return text_or_null(s, &s->event->content);
    case 1: return text_or_null(s, &s->event->reasoning_content);
    case 2: return text_or_null(s, &s->event->reasoning);
    case 3: return text_or_null(s, &s->skipped); /* role */
    case 4: return read_calls(s);
    default: return read_null(s); /* refusal, function_call */
    }
}

static bool choice_member(struct scan *s, int which)
{
    static const char *const names[] = {"content",    "reasoning_content", "reasoning",     "role",
                                        "tool_calls", "refusal",           "function_call", NULL};
    int64_t index;

    switch (which) {
    case 0: s->event->has_delta = true; return read_object(s, names, delta_member);
    case 1: return text_or_null(s, &s->event->finish);
    case 2: return read_count(s, &index) && index == 0;
    case 3: return text_or_null(s, &s->skipped); /* native_finish_reason */
    default: return read_null(s);
    }
}

static bool read_choices(struct scan *s)
{
    static const char *const names[] = {
        "delta",        "finish_reason", "index", "native_finish_reason", "logprobs", "stop_reason",
        "matched_stop", "token_ids",     NULL};

    if (!take(s, '[')) return false;
    if (take(s, ']')) return true;
    if (!read_object(s, names, choice_member)) return false;
    /* A choice without a delta can be a whole message: the full path reads it. */
    return s->event->has_delta && take(s, ']');
}

static bool prompt_detail(struct scan *s, int which)
{
    int64_t other;

    return count_or_null(s, which == 0 ? &s->event->cached : &other);
}

static bool completion_detail(struct scan *s, int which)
{
    int64_t other;

    return count_or_null(s, which == 0 ? &s->event->reasoned : &other);
}

static bool usage_member(struct scan *s, int which)
{
    static const char *const of_prompt[] = {"cached_tokens", "audio_tokens", NULL};
    static const char *const of_completion[] = {"reasoning_tokens", "audio_tokens",
                                                "accepted_prediction_tokens",
                                                "rejected_prediction_tokens", NULL};
    struct event *e = s->event;
    int64_t other;

    switch (which) {
    case 0: return count_or_null(s, &e->prompt);
    case 1: return count_or_null(s, &e->completion);
    case 2: return count_or_null(s, &e->total);
    case 3: return count_or_null(s, &e->hit);
    case 4: return count_or_null(s, &e->thought);
    case 5: return count_or_null(s, &other); /* prompt_cache_miss_tokens */
    case 6: return next_is(s, 'n') ? read_null(s) : read_object(s, of_prompt, prompt_detail);
    default:
        return next_is(s, 'n') ? read_null(s) : read_object(s, of_completion, completion_detail);
    }
}

static bool root_member(struct scan *s, int which)
{
    static const char *const names[] = {
        "prompt_tokens",           "completion_tokens",         "total_tokens",
        "prompt_cache_hit_tokens", "reasoning_tokens",          "prompt_cache_miss_tokens",
        "prompt_tokens_details",   "completion_tokens_details", NULL};
    int64_t created;

    switch (which) {
    case 0: return read_choices(s);
    case 1: return read_count(s, &created);
    case 2: return text_or_null(s, &s->event->id);
    case 3: return text_or_null(s, &s->event->model);
    case 4: return read_text(s, &s->skipped) && !strcmp(s->skipped.s, "chat.completion.chunk");
    case 5:
        if (next_is(s, 'n')) return read_null(s);
        s->event->has_usage = true;
        return read_object(s, names, usage_member);
    default: return text_or_null(s, &s->skipped);
    }
}

static bool read_event(struct scan *s, struct event *e, const char *data, size_t n, char *room)
{
    static const char *const names[] = {
        "choices",      "created",  "id",          "model", "object", "usage", "system_fingerprint",
        "service_tier", "provider", "obfuscation", NULL};

    *e = (struct event){.prompt = -1,
                        .completion = -1,
                        .total = -1,
                        .hit = -1,
                        .cached = -1,
                        .thought = -1,
                        .reasoned = -1};
    *s = (struct scan){.p = data, .end = data + n, .room = room, .event = e};
    return read_object(s, names, root_member) && s->p == s->end;
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
        ipw_chat_set_finish(&fold->reply, e.finish.s);
    }
    if (e.has_usage) {
        fold_usage(&fold->reply.usage, &e);
        seen |= IPW_SEEN_USAGE;
    }
    if (seen & IPW_SEEN_TOKEN) fold->reply.chunks++;
    *result = seen;
    return true;
}
