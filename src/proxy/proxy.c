#include "proxy/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/secret.h"
#include "proxy/told_spans.h"

enum { WORD_BYTES = 12, IDLE_S = 3600 };
#define BODY_BYTES (64 * IPW_MIB)

/* ---- words ---- */

static char *new_word(void)
{
    unsigned char random[WORD_BYTES];
    char *word = ipw_calloc(2 * WORD_BYTES + 1, 1);

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        IPW_BUG("the kernel has no random bytes");
    for (size_t i = 0; i < WORD_BYTES; i++) snprintf(word + 2 * i, 3, "%02x", random[i]);
    return word;
}

/* Takes as long for a wrong word as for the right one. */
static bool same_word(const char *word, const char *given, size_t n)
{
    unsigned char differ = n != 2 * WORD_BYTES;

    for (size_t i = 0; i < 2 * WORD_BYTES; i++)
        differ |= (unsigned char)(word[i] ^ (i < n ? given[i] : 0));
    return !differ;
}

/* ---- sessions ---- */

static struct ipw_proxy_session *add_session(struct ipw_proxy *p, const char *key, const char *rule,
                                             const char *word)
{
    struct ipw_proxy_session *s = ipw_proxy_session_new(p->o.loop, key, rule, p->n_sessions++);

    s->word = ipw_strdup(word);
    s->url = ipw_asprintf("%s/q/%s", ipw_server_url(p->server), word);
    s->face.word = s->word;
    s->face.url = s->url;
    s->face.model = p->o.model;
    s->next = p->sessions;
    p->sessions = s;
    return s;
}

struct ipw_proxy_session *ipw_proxy_new_session(struct ipw_proxy *p)
{
    char *word = new_word();
    struct ipw_proxy_session *s = add_session(p, word, "path", word);

    s->taken = true;
    free(word);
    return s;
}

struct ipw_proxy_session *ipw_proxy_take_waiting(struct ipw_proxy *p)
{
    struct ipw_proxy_session *oldest = NULL;

    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next)
        if (!s->taken) oldest = s; /* the newest stands first */
    if (oldest) oldest->taken = true;
    return oldest;
}

void ipw_proxy_end_session(struct ipw_proxy *p, struct ipw_proxy_session *s)
{
    struct ipw_proxy_session **at = &p->sessions;

    while (*at != s) at = &(*at)->next;
    *at = s->next;
    if (s->face.argv) ipw_buf_adds(&p->over, s->word);
    ipw_passages_cut(s); /* of a query that ended before its agent took the session */
    ipw_proxy_session_free(s);
}

/* Of that name, or with an agent of that name. */
static struct ipw_proxy_session *find(struct ipw_proxy *p, const char *key)
{
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next)
        if (!s->over && (strcmp(s->key, key) == 0 || ipw_proxy_session_has_agent(s, key))) return s;
    return NULL;
}

static const char *header_of(const void *x, const char *name)
{
    return ipw_exchange_header(x, name);
}

/* The session of a turn that names none: of its connection, or whose conversation it goes on
 * with. */
static struct ipw_proxy_session *unnamed(struct ipw_proxy *p, uint64_t connection,
                                         struct ipw_proxy_call *call)
{
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next)
        if (s->connection == connection && !s->over) return s;
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next)
        if (s->connection && !s->over && ipw_proxy_session_goes_on(s, call)) {
            s->connection = connection;
            call->rule = "conversation";
            return s;
        }
    return NULL;
}

/* The session of a request with the run's word; a new one if it is the first. */
static struct ipw_proxy_session *by_rules(struct ipw_proxy *p, const struct ipw_exchange *x,
                                          struct ipw_proxy_call *call,
                                          struct ipw_session_found *found)
{
    uint64_t connection = ipw_exchange_connection(x);
    struct ipw_proxy_session *s = NULL;
    bool named;

    ipw_session_rules_find(found, p->rules, header_of, x, call->doc);
    named = found->session != NULL;
    if (found->parent) s = find(p, found->parent);
    if (s) return s;
    if (!named && !call->turn) return p->loose;
    s = named ? find(p, found->session) : unnamed(p, connection, call);
    if (s || p->closing) return s;
    if (!named) {
        found->session = ipw_asprintf("connection %llu", (unsigned long long)connection);
        found->rule = "connection";
    }
    s = add_session(p, found->session, found->rule, p->word);
    if (!named) s->connection = connection;
    s->idle_ns = p->o.idle_ns;
    p->o.on_session(p->o.ud);
    return s;
}

/* ---- requests ---- */

static const char *key_of(const struct ipw_exchange *x)
{
    static const char *const names[] = {"authorization", "x-api-key", "api-key"};
    const char *value = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && !value; i++)
        value = ipw_exchange_header(x, names[i]);
    if (!value) return "";
    return strncasecmp(value, "bearer ", 7) == 0 ? value + 7 : value;
}

/* The session that the word opens.  *run: it is the run's own word, which those that clients name
 * share. */
static struct ipw_proxy_session *by_word(struct ipw_proxy *p, const char *word, size_t n, bool *run)
{
    struct ipw_proxy_session *hit = NULL;

    *run = same_word(p->word, word, n);
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next)
        if (same_word(s->word, word, n)) hit = s;
    return hit;
}

static bool is_over(const struct ipw_proxy *p, const char *word, size_t n)
{
    return n == 2 * WORD_BYTES && p->over.len && memmem(p->over.data, p->over.len, word, n);
}

static void refuse(struct ipw_exchange *x, const struct ipw_proxy_call *call, int status,
                   const char *message)
{
    ipw_passage_refuse(x, call, status, "ipw_proxy", message);
}

static void on_request(struct ipw_exchange *x, void *ud)
{
    struct ipw_proxy *p = ud;
    struct ipw_session_found found = {0};
    struct ipw_proxy_session *s;
    struct ipw_proxy_call call;
    const char *path = ipw_exchange_target(x), *word = key_of(x), *body;
    size_t n = strlen(word), body_n;
    bool run;

    if (strncmp(path, "/q/", 3) == 0) {
        word = path + 3;
        n = strcspn(word, "/?");
        path = word + n;
    }
    ipw_proxy_call_of_path(&call, ipw_exchange_method(x), path);
    s = by_word(p, word, n, &run);
    if (*path == '/' && !s && !run && is_over(p, word, n)) {
        ipw_passage_refuse(x, &call, 400, "ipw_limit", "ipw-agent: this query is over");
    } else if (*path != '/' || (!s && !run)) {
        refuse(x, &call, 404, "ipw-agent: this address is not the one that was given");
    } else if (ipw_exchange_header(x, "upgrade")) {
        refuse(x, &call, 426, "ipw-agent: no WebSocket here: use HTTP with server-sent events");
    } else if (strcmp(call.name, "traces") == 0) {
        ipw_told_spans_take(x, run ? NULL : s, &p->sessions);
    } else {
        body = ipw_exchange_body(x, &body_n);
        if (ipw_proxy_call_read(&call, body, body_n, NULL) && call.turn) {
            call.turn = false; /* not for us to judge: the server will say */
            call.name = "unread";
        }
        if (run)
            s = by_rules(p, x, &call, &found);
        else
            ipw_session_rules_find(&found, p->rules, header_of, x, NULL);
        if (s)
            ipw_passage_start(&p->ground, s, x, path, &call, &found);
        else
            refuse(x, &call, 400, "ipw-agent: the run is over");
    }
    ipw_proxy_call_release(&call);
    free(found.session);
}

static void on_room(struct ipw_exchange *x, void *ud)
{
    (void)ud;
    ipw_passage_room(x);
}

static void on_over(struct ipw_exchange *x, bool sent, void *ud)
{
    (void)sent, (void)ud;
    ipw_passage_over(x);
}

/* ---- opening and closing ---- */

int ipw_proxy_open(struct ipw_proxy *p, const struct ipw_proxy_options *o, struct ipw_err *err)
{
    const struct ipw_http_options pool = {.cacert = o->cacert, .user_agent = ""};
    int rc;

    p->o = *o;
    p->over = IPW_BUF(64 * IPW_MIB);
    p->ground.connect_ns = o->connect_ns;
    p->word = new_word();
    p->route = (struct ipw_route){.path = "",
                                  .body_most = BODY_BYTES,
                                  .answer = on_request,
                                  .room = on_room,
                                  .over = on_over,
                                  .ud = p};
    p->served = (struct ipw_server_options){.routes = &p->route,
                                            .n_routes = 1,
                                            .host = o->host,
                                            .port = o->port,
                                            .no_date = true,
                                            .idle_s = IDLE_S};
    rc = ipw_http_new(&p->ground.http, o->loop, &pool, err);
    if (!rc) rc = ipw_server_open(&p->server, &p->served, err);
    if (!rc) rc = ipw_server_attach(p->server, o->loop, err);
    if (rc) return rc;
    p->url = ipw_asprintf("%s/q/%s", ipw_server_url(p->server), p->word);
    p->loose = ipw_proxy_session_new(o->loop, "", "", 0);
    p->loose->word = ipw_strdup(p->word);
    p->loose->loose = true;
    return 0;
}

void ipw_proxy_finish_sessions(struct ipw_proxy *p)
{
    struct ipw_proxy_session *quiet;

    p->closing = true;
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next)
        s->idle_ns = 1; /* over as soon as it is quiet */
    do { /* in the order in which they ended: the book shares what is between two ends */
        quiet = NULL;
        for (struct ipw_proxy_session *s = p->sessions; s; s = s->next)
            if (s->on_over && !s->n_passages && (!quiet || s->last_ns < quiet->last_ns)) quiet = s;
        if (quiet) ipw_proxy_session_finish(quiet);
    } while (quiet);
}

void ipw_proxy_close(struct ipw_proxy *p)
{
    p->closing = true;
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next) s->face.close(s);
    if (p->loose) p->loose->face.close(p->loose);
    ipw_server_close(p->server);
    p->server = NULL;
    if (p->ground.http) ipw_http_free(p->ground.http);
    p->ground.http = NULL;
}

void ipw_proxy_release(struct ipw_proxy *p)
{
    while (p->sessions) {
        struct ipw_proxy_session *s = p->sessions;

        p->sessions = s->next;
        ipw_proxy_session_free(s);
    }
    ipw_proxy_session_free(p->loose);
    ipw_upstreams_release(&p->ground.upstreams);
    ipw_json_free(p->rules);
    ipw_buf_release(&p->over);
    free(p->word);
    free(p->url);
}
