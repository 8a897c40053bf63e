#include "serve/model_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/server.h"

#define REQUEST_BYTES (64 * IPW_MIB)
enum { ROUTES = 7, POSTED = 4 }; /* the first ones take a body */

struct reply { /* an answer whose parts wait for their time */
    struct ipw_exchange *x;
    struct ipw_loop *loop;
    struct ipw_served_answer answer;
    struct ipw_timer *timer;
    size_t part, sent; /* the next part; bytes pushed in all */
    bool full;
};

struct ipw_serve {
    struct ipw_server *server;
    struct ipw_server_options server_options;
    struct ipw_route routes[ROUTES];
    struct ipw_served_model *model;
    struct ipw_loop *loop;
    char url[96];
};

/* ---- answers in their time ---- */

static void send_whole(struct ipw_exchange *x, const struct ipw_served_answer *a)
{
    if (a->status == 0) {
        ipw_answer_break(x);
        return;
    }
    if (*a->note) ipw_answer_header(x, "X-Ipw-Recorded", a->note);
    ipw_answer(x, a->status, "application/json", ipw_buf_str(&a->bytes), a->bytes.len);
}

static void go_on(void *reply);

static int64_t due_of(const struct reply *r, size_t part)
{
    int64_t due_ns;

    return __builtin_add_overflow(ipw_exchange_whole_ns(r->x), r->answer.parts[part].after_ns,
                                  &due_ns)
               ? INT64_MAX
               : due_ns;
}

static void send_due(struct reply *r)
{
    const struct ipw_served_answer *a = &r->answer;
    int64_t now = ipw_now_ns();
    size_t end = r->sent;

    while (r->part < a->n_parts && due_of(r, r->part) <= now) end = a->parts[r->part++].end;
    r->full = !ipw_answer_push(r->x, ipw_buf_str(&a->bytes) + r->sent, end - r->sent);
    r->sent = end;
    if (r->part < a->n_parts) {
        if (!r->full) r->timer = ipw_timer_start_at(r->loop, due_of(r, r->part), go_on, r);
    } else if (a->breaks) {
        ipw_answer_break(r->x);
    } else {
        ipw_answer_end(r->x);
    }
}

static void go_on(void *reply)
{
    struct reply *r = reply;

    r->timer = NULL;
    if (r->answer.streams)
        send_due(r);
    else /* a whole answer is sent with its last token */
        send_whole(r->x, &r->answer);
}

static void on_room(struct ipw_exchange *x, void *ud)
{
    struct reply *r = ipw_exchange_own(x);

    (void)ud;
    if (r && !r->timer) send_due(r);
}

static void on_over(struct ipw_exchange *x, bool sent, void *ud)
{
    struct reply *r = ipw_exchange_own(x);

    (void)ud, (void)sent;
    if (!r) return;
    ipw_timer_cancel(r->timer);
    ipw_served_answer_release(&r->answer);
    free(r);
}

/* A protocol is a path; what follows "/v1/models" names a model. */
static void on_request(struct ipw_exchange *x, void *serve)
{
    static const char models[] = "/v1/models";
    const char *path = ipw_exchange_path(x), *protocol = "chat", *body;
    struct ipw_serve *s = serve;
    struct reply *r = ipw_calloc(1, sizeof *r);
    size_t n;

    r->x = x;
    r->loop = s->loop;
    ipw_exchange_keep(x, r);
    body = ipw_exchange_body(x, &n);
    if (strcmp(path, "/v1/completions") == 0) protocol = "completions";
    if (strcmp(path, "/v1/responses") == 0) protocol = "responses";
    if (strcmp(path, "/v1/messages") == 0) protocol = "messages";
    if (strncmp(path, models, sizeof models - 1) == 0) {
        protocol = "models";
        body = path + strlen(models) + (path[strlen(models)] == '/');
        n = strlen(body);
    }
    ipw_served_model_answer(s->model, &r->answer, protocol, body, n, (int64_t)time(NULL));
    if (r->answer.streams) {
        ipw_answer_header(x, "Content-Type", "text/event-stream");
        ipw_answer_header(x, "Cache-Control", "no-cache");
        if (*r->answer.note) ipw_answer_header(x, "X-Ipw-Recorded", r->answer.note);
        ipw_answer_begin(x, r->answer.status, -1);
        send_due(r);
    } else if (!r->answer.n_parts || due_of(r, 0) <= ipw_now_ns()) {
        send_whole(x, &r->answer);
    } else {
        r->timer = ipw_timer_start_at(s->loop, due_of(r, 0), go_on, r);
    }
}

/* ---- other answers ---- */

static void refuse(struct ipw_exchange *x, int status, const char *message)
{
    struct ipw_served_answer a;

    if (status == 404) message = "unknown path; try /v1/models or /v1/chat/completions";
    ipw_served_answer_error(&a, status, message);
    send_whole(x, &a);
    ipw_served_answer_release(&a);
}

static void on_health(struct ipw_exchange *x, void *serve)
{
    static const char ok[] = "{\"status\":\"ok\"}";

    (void)serve;
    ipw_answer(x, 200, "application/json", ok, sizeof ok - 1);
}

/* ---- opening ---- */

int ipw_serve_open(struct ipw_serve **out, const struct ipw_serve_options *options,
                   struct ipw_loop *loop, struct ipw_err *err)
{
    struct ipw_served_model_options model = options->model;
    struct ipw_serve *s = ipw_calloc(1, sizeof *s);
    static const char *const paths[] = {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                        "/v1/messages",         "/v1/models",      "/v1/models/"};
    int rc;

    for (size_t i = 0; i < ROUTES - 1; i++)
        s->routes[i] = (struct ipw_route){.path = paths[i],
                                          .methods = i < POSTED ? "POST" : "GET",
                                          .body_most = i < POSTED ? REQUEST_BYTES : 0,
                                          .answer = on_request,
                                          .room = on_room,
                                          .over = on_over,
                                          .ud = s};
    s->routes[ROUTES - 1] =
        (struct ipw_route){.path = "/health", .methods = "GET", .answer = on_health, .ud = s};
    s->loop = loop;
    s->server_options = (struct ipw_server_options){.routes = s->routes,
                                                    .n_routes = ROUTES,
                                                    .host = options->host,
                                                    .port = options->port,
                                                    .allow_hosts = options->allow_hosts,
                                                    .pages = true,
                                                    .stays = true,
                                                    .refuse = refuse};
    if (!model.name) model.name = "demo";
    rc = ipw_served_model_open(&s->model, &model, err);
    if (!rc) rc = ipw_server_open(&s->server, &s->server_options, err);
    if (!rc) rc = ipw_server_attach(s->server, loop, err);
    if (rc) {
        ipw_serve_close(s);
        return rc;
    }
    snprintf(s->url, sizeof s->url, "%s/v1", ipw_server_url(s->server));
    *out = s;
    return 0;
}

const char *ipw_serve_url(const struct ipw_serve *serve) { return serve->url; }

struct ipw_served_counts ipw_serve_counts(const struct ipw_serve *serve)
{
    return ipw_served_model_counts(serve->model);
}

void ipw_serve_close(struct ipw_serve *serve)
{
    if (!serve) return;
    ipw_server_close(serve->server);
    ipw_served_model_close(serve->model);
    free(serve);
}
