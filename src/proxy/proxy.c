#include "proxy/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/secret.h"

enum { WORD_BYTES = 12 };

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
    s->url = ipw_asprintf("%s/q/%s", ipw_door_url(p->door), word);
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

static struct ipw_proxy_session *find(struct ipw_proxy *p, const char *key)
{
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next)
        if (!s->over && strcmp(s->key, key) == 0) return s;
    return NULL;
}

/* The session of a request with the run's word; a new one if it is the first. */
static struct ipw_proxy_session *by_rules(struct ipw_proxy *p, const struct ipw_door_request *r,
                                          const struct ipw_proxy_call *call,
                                          struct ipw_session_found *found)
{
    struct ipw_proxy_session *s = NULL;
    struct ipw_json *body = NULL;

    ipw_json_parse(&body, r->body, r->n, NULL, NULL);
    ipw_session_rules_find(found, &p->rules, r->headers, r->n_headers, body);
    ipw_json_free(body);
    if (found->parent) s = find(p, found->parent);
    if (s) return s;
    if (!found->session && !call->turn) return p->loose;
    if (!found->session) {
        found->session = ipw_asprintf("connection %llu", (unsigned long long)r->connection);
        found->rule = "connection";
    }
    s = find(p, found->session);
    if (s || p->closing) return s;
    s = add_session(p, found->session, found->rule, p->word);
    s->idle_ns = p->o.idle_ns;
    p->o.on_session(p->o.ud);
    return s;
}

/* ---- requests ---- */

static const char *key_of(const struct ipw_door_request *r)
{
    static const char *const names[] = {"authorization", "x-api-key", "api-key"};

    for (size_t i = 0; i < r->n_headers; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const char *value = r->headers[i].value;

            if (strcasecmp(r->headers[i].name, names[k]) != 0) continue;
            return strncasecmp(value, "bearer ", 7) == 0 ? value + 7 : value;
        }
    return "";
}

static bool is_upgrade(const struct ipw_door_request *r)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcasecmp(r->headers[i].name, "upgrade") == 0) return true;
    return false;
}

/* The session that the word opens.  *run: it is the run's own word. */
static struct ipw_proxy_session *by_word(struct ipw_proxy *p, const char *word, size_t n, bool *run)
{
    struct ipw_proxy_session *hit = NULL;

    *run = same_word(p->word, word, n);
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next)
        if (!s->idle_ns && same_word(s->word, word, n)) hit = s;
    return hit;
}

static void refuse(struct ipw_visit *visit, const struct ipw_proxy_call *call, int status,
                   const char *message)
{
    ipw_passage_refuse(visit, call, status, "ipw_proxy", message);
}

static void on_request(void *ud, struct ipw_visit *visit, const struct ipw_door_request *r)
{
    struct ipw_proxy *p = ud;
    struct ipw_session_found found = {0};
    struct ipw_proxy_session *s;
    struct ipw_proxy_call call;
    const char *path = r->target, *word = key_of(r);
    size_t n = strlen(word);
    bool run;

    if (strncmp(path, "/q/", 3) == 0) {
        word = path + 3;
        n = strcspn(word, "/?");
        path = word + n;
    }
    ipw_proxy_call_of_path(&call, r->method, path);
    s = by_word(p, word, n, &run);
    if (*path != '/' || (!s && !run)) {
        refuse(visit, &call, 404, "ipw-agent: this address is not the one that was given");
    } else if (is_upgrade(r)) {
        refuse(visit, &call, 426, "ipw-agent: no WebSocket here: use HTTP with server-sent events");
    } else {
        if (run)
            s = by_rules(p, r, &call, &found);
        else
            ipw_session_rules_find(&found, &p->rules, r->headers, r->n_headers, NULL);
        if (s)
            ipw_passage_start(&p->ground, s, visit, r, path, found.agent);
        else
            refuse(visit, &call, 400, "ipw-agent: the run is over");
    }
    free(found.session);
}

/* ---- opening and closing ---- */

int ipw_proxy_open(struct ipw_proxy *p, const struct ipw_proxy_options *o, struct ipw_err *err)
{
    const struct ipw_http_options pool = {.cacert = o->cacert, .user_agent = ""};
    const struct ipw_door_options door = {
        .loop = o->loop, .host = o->host, .port = o->port, .on_request = on_request, .ud = p};
    int rc;

    p->o = *o;
    p->ground.connect_ns = o->connect_ns;
    p->word = new_word();
    rc = ipw_http_new(&p->ground.http, o->loop, &pool, err);
    if (!rc) rc = ipw_door_open(&p->door, &door, err);
    if (rc) return rc;
    p->url = ipw_asprintf("%s/q/%s", ipw_door_url(p->door), p->word);
    p->loose = ipw_proxy_session_new(o->loop, "", "", 0);
    p->loose->word = ipw_strdup(p->word);
    p->loose->loose = true;
    return 0;
}

void ipw_proxy_finish_sessions(struct ipw_proxy *p)
{
    p->closing = true;
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next) {
        s->idle_ns = 1; /* over as soon as it is quiet */
        if (!s->n_passages) ipw_proxy_session_finish(s);
    }
}

void ipw_proxy_close(struct ipw_proxy *p)
{
    p->closing = true;
    for (struct ipw_proxy_session *s = p->sessions; s; s = s->next) s->face.close(s);
    if (p->loose) p->loose->face.close(p->loose);
    ipw_door_close(p->door);
    p->door = NULL;
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
    ipw_session_rules_release(&p->rules);
    free(p->word);
    free(p->url);
}
