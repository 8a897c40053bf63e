/* Finds the saved request that equals a client's request, or the most similar one. */
#include "llm/saved_replies.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/json.h"
#include "llm/playback.h"
#include "llm/saved_replies_priv.h"

enum { MAX_TEXTS = 64, MAX_MESSAGE_BYTES = 512 * 1024 * 1024 };

struct question {
    struct ipw_saved_replies *r;
    const struct ipw_json *messages;
    struct ipw_saved_replies_message *said, *other; /* the client's; room for a saved request's */
    size_t n;
    uint64_t hash, roles, rest;
};

const char *ipw_saved_replies_match_name(enum ipw_saved_replies_match match)
{
    static const char *const names[] = {"request", "messages", "place"};

    return names[match];
}

static void open_question(struct question *q, struct ipw_saved_replies *r,
                          const struct ipw_json *request)
{
    size_t longest = 0, i = 0;

    *q = (struct question){.r = r, .messages = ipw_json_get(request, "messages")};
    q->n = ipw_json_count(q->messages);
    for (size_t k = 0; k < r->n; k++)
        if (r->asked[k].n > longest) longest = r->asked[k].n;
    q->said = ipw_calloc(q->n + 1, sizeof *q->said);
    q->other = ipw_calloc(longest + 1, sizeof *q->other);
    for (const struct ipw_json *m = ipw_json_first(q->messages); m; m = ipw_json_next(m))
        ipw_saved_replies_hash_message(&q->said[i++], r, m);
    ipw_saved_replies_hash_all(&q->hash, &q->roles, q->said, q->n);
    q->rest = ipw_saved_replies_hash_rest(r, request);
}

static void close_question(struct question *q)
{
    free(q->said);
    free(q->other);
}

/* The number of equal messages at the beginning. */
static size_t alike(const struct question *q, const struct ipw_asked *a)
{
    size_t i = 0;

    ipw_saved_replies_gather(q->other, q->r, a);
    while (i < q->n && i < a->n && q->said[i].hash == q->other[i].hash) i++;
    return i;
}

/* ---- what matches ---- */

struct choice { /* the first request whose reply was not given yet, else the last one */
    struct ipw_asked *asked;
};

static void consider(struct choice *c, struct ipw_asked *a)
{
    if (!c->asked || c->asked->given) c->asked = a;
}

/* The first index in by_messages of requests with these messages. */
static size_t first_equal(const struct question *q)
{
    size_t from = 0, to = q->r->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (q->r->asked[q->r->by_messages[middle]].messages < q->hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* `any` receives a request with equal messages, even if it has no reply. */
static struct ipw_asked *by_messages(const struct question *q, enum ipw_saved_replies_match *match,
                                     const struct ipw_asked **any)
{
    struct ipw_saved_replies *r = q->r;
    struct choice whole = {0}, messages = {0};

    for (size_t i = first_equal(q); i < r->n; i++) {
        struct ipw_asked *a = &r->asked[r->by_messages[i]];

        if (a->messages != q->hash) break;
        *any = a;
        if (!ipw_saved_replies_can_give(r, a)) continue;
        consider(&messages, a);
        if (a->rest == q->rest) consider(&whole, a);
    }
    *match = whole.asked ? IPW_SAVED_REPLIES_REQUEST : IPW_SAVED_REPLIES_MESSAGES;
    return whole.asked ? whole.asked : messages.asked;
}

/* A request at the same place of a conversation that begins with the same request.  Of several, the
 * one with the most equal messages at the beginning. */
static struct ipw_asked *by_place(const struct question *q)
{
    struct ipw_saved_replies *r = q->r;
    struct choice best = {0};
    size_t furthest = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct ipw_asked *a = &r->asked[i];
        size_t same, opening = r->asked[r->queries[a->query].first].n;

        if (a->n != q->n || a->roles != q->roles || !ipw_saved_replies_can_give(r, a)) continue;
        same = alike(q, a);
        if (same < opening || same < furthest) continue;
        if (same > furthest) best.asked = NULL;
        furthest = same;
        consider(&best, a);
    }
    return best.asked;
}

static int give(struct ipw_saved_reply *out, const struct question *q, struct ipw_asked *a,
                enum ipw_saved_replies_match match, struct ipw_err *err)
{
    int rc;

    *out = (struct ipw_saved_reply){.match = match,
                                    .query = q->r->queries[a->query].index,
                                    .turn = a->turn,
                                    .attempt = a->attempt};
    rc = ipw_saved_replies_line(&out->doc, q->r, a->end_at, a->end_n, err);
    if (!rc) rc = ipw_event_read(&out->event, out->doc, err);
    if (rc) {
        ipw_saved_reply_release(out);
        return rc;
    }
    out->data = ipw_json_get(out->doc, "data");
    a->given = true;
    return 0;
}

void ipw_saved_reply_release(struct ipw_saved_reply *reply)
{
    ipw_json_free(reply->doc);
    *reply = (struct ipw_saved_reply){0};
}

/* ---- the most similar request ---- */

/* The text of a saved request's i-th message; NULL if it has none, or if the file was changed. */
static char *message_text(const struct ipw_saved_replies *r, const struct ipw_asked *a, size_t i)
{
    struct ipw_buf text = IPW_BUF(MAX_MESSAGE_BYTES);
    const struct ipw_json *messages;
    struct ipw_json *doc;

    if (i >= a->n) return NULL;
    while (i < a->kept) a = &r->asked[a->before];
    if (ipw_saved_replies_line(&doc, r, a->start_at, a->start_n, NULL)) return NULL;
    messages = ipw_json_get(ipw_json_get(doc, "data"), "messages");
    ipw_json_print_by_value(&text, ipw_json_at(messages, i - a->kept));
    ipw_json_free(doc);
    return ipw_buf_take(&text, NULL);
}

static char *own_text(const struct question *q, size_t i)
{
    struct ipw_buf text = IPW_BUF(MAX_MESSAGE_BYTES);

    if (i >= q->n) return NULL;
    ipw_json_print_by_value(&text, ipw_json_at(q->messages, i));
    return ipw_buf_take(&text, NULL);
}

static size_t common(const char *a, const char *b)
{
    size_t i = 0;

    while (a && b && a[i] && a[i] == b[i]) i++;
    return i;
}

/* Finds the request with the most equal messages at the beginning.  Of several: the one whose next
 * message has the longest equal beginning, then one with the same number of messages.  To limit the
 * work, only the first MAX_TEXTS different messages are read. */
static const struct ipw_asked *find_nearest(const struct question *q, size_t *at)
{
    const struct ipw_saved_replies *r = q->r;
    const struct ipw_asked *nearest = NULL;
    size_t *same = ipw_calloc(r->n + 1, sizeof *same), most = 0, best = 0, n_seen = 0;
    uint64_t seen[MAX_TEXTS];
    char *own;

    for (size_t i = 0; i < r->n; i++) {
        same[i] = alike(q, &r->asked[i]);
        if (same[i] > most) most = same[i];
    }
    own = own_text(q, most);
    for (size_t i = 0; i < r->n; i++) {
        const struct ipw_asked *a = &r->asked[i];
        size_t score, k = 0;
        uint64_t hash;
        char *text;

        if (same[i] != most) continue;
        ipw_saved_replies_gather(q->other, r, a);
        hash = most < a->n ? q->other[most].hash ^ (a->n == q->n) : 0;
        while (k < n_seen && seen[k] != hash) k++;
        if (k < n_seen || n_seen == MAX_TEXTS) continue;
        seen[n_seen++] = hash;
        text = message_text(r, a, most);
        score = 2 * common(own, text) + (a->n == q->n) + 1;
        free(text);
        if (score <= best) continue;
        best = score;
        nearest = a;
    }
    free(own);
    free(same);
    *at = most;
    return nearest;
}

static void say_nearest(struct ipw_nearest_request *out, const struct question *q)
{
    size_t at;
    const struct ipw_asked *a = find_nearest(q, &at);
    char *was, *now;

    if (!a) return;
    out->any = true;
    out->query = q->r->queries[a->query].index;
    out->query_id = q->r->queries[a->query].id;
    out->turn = a->turn;
    out->message = (int64_t)at;
    was = message_text(q->r, a, at);
    now = own_text(q, at);
    ipw_playback_say_message(&out->text, at, was, now);
    free(was);
    free(now);
}

static void say_failed(struct ipw_nearest_request *out, const struct question *q,
                       const struct ipw_asked *a)
{
    struct ipw_json *doc = NULL;

    out->any = true;
    out->query = q->r->queries[a->query].index;
    out->query_id = q->r->queries[a->query].id;
    out->turn = a->turn;
    out->message = -1;
    if (!a->end_n) {
        ipw_buf_adds(&out->text, "its end is not in the saved run");
        return;
    }
    ipw_buf_addf(&out->text, "it failed (%s", ipw_lm_outcome_name(a->outcome));
    if (!ipw_saved_replies_line(&doc, q->r, a->end_at, a->end_n, NULL)) {
        const char *why = ipw_json_str(ipw_json_get(doc, "error"), NULL);

        if (why) ipw_buf_addf(&out->text, ": %s", why);
    }
    ipw_json_free(doc);
    ipw_buf_adds(&out->text, ")");
}

void ipw_nearest_request_release(struct ipw_nearest_request *nearest)
{
    ipw_buf_release(&nearest->text);
}

int ipw_saved_replies_find(struct ipw_saved_reply *out, struct ipw_nearest_request *nearest,
                           struct ipw_saved_replies *r, const struct ipw_json *request,
                           struct ipw_err *err)
{
    const struct ipw_asked *equal = NULL;
    enum ipw_saved_replies_match match;
    struct ipw_asked *a;
    struct question q;
    int rc;

    *out = (struct ipw_saved_reply){0};
    *nearest = (struct ipw_nearest_request){.text = IPW_BUF(IPW_MIB)};
    open_question(&q, r, request);
    a = by_messages(&q, &match, &equal);
    if (!a && !equal) {
        a = by_place(&q);
        match = IPW_SAVED_REPLIES_PLACE;
    }
    if (a) {
        rc = give(out, &q, a, match, err);
    } else {
        rc = ipw_fail(err, IPW_ENOTFOUND, "the saved run has no reply to this request");
        if (equal)
            say_failed(nearest, &q, equal);
        else
            say_nearest(nearest, &q);
    }
    close_question(&q);
    return rc;
}
