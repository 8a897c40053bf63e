#include "serve/model_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/server.h"
#include "json/write.h"

#define REQUEST_BYTES (64 * IPW_MIB)
enum { ROUTES = 4 };

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

static void on_chat(struct ipw_exchange *x, void *serve)
{
    struct ipw_serve *s = serve;
    struct reply *r = ipw_calloc(1, sizeof *r);
    const char *body;
    size_t n;

    r->x = x;
    r->loop = s->loop;
    ipw_exchange_keep(x, r);
    body = ipw_exchange_body(x, &n);
    ipw_served_model_answer(s->model, &r->answer, body, n, (int64_t)time(NULL));
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

/* ---- the models ---- */

static void refuse(struct ipw_exchange *x, int status, const char *message)
{
    struct ipw_served_answer a;

    if (status == 404) message = "unknown path; try /v1/models or /v1/chat/completions";
    ipw_served_answer_error(&a, status, message);
    send_whole(x, &a);
    ipw_served_answer_release(&a);
}

static void write_model(struct ipw_jw *w, const char *name)
{
    ipw_jw_obj(w);
    ipw_jw_kint(w, "created", 0);
    ipw_jw_kstr(w, "id", name);
    ipw_jw_kstr(w, "object", "model");
    ipw_jw_kstr(w, "owned_by", "ipw-agent");
    ipw_jw_obj_end(w);
}

static void answer_json(struct ipw_exchange *x, struct ipw_buf *text)
{
    ipw_answer(x, 200, "application/json", ipw_buf_str(text), text->len);
    ipw_buf_release(text);
}

static void on_models(struct ipw_exchange *x, void *serve)
{
    const struct ipw_serve *s = serve;
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    const char *name;
    struct ipw_jw w;

    ipw_jw_init(&w, &text);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "data");
    ipw_jw_arr(&w);
    for (size_t i = 0; (name = ipw_served_model_name(s->model, i)); i++) write_model(&w, name);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "object", "list");
    ipw_jw_obj_end(&w);
    answer_json(x, &text);
}

static void on_model(struct ipw_exchange *x, void *serve)
{
    const struct ipw_serve *s = serve;
    const char *asked = ipw_exchange_path(x) + strlen("/v1/models/"), *known;
    struct ipw_served_answer a;
    char message[256];

    for (size_t i = 0; (known = ipw_served_model_name(s->model, i)); i++) {
        struct ipw_buf text = IPW_BUF(IPW_MIB);
        struct ipw_jw w;

        if (strcmp(known, asked) != 0) continue;
        ipw_jw_init(&w, &text);
        write_model(&w, asked);
        answer_json(x, &text);
        return;
    }
    snprintf(message, sizeof message, "the model '%.80s' does not exist; this server has '%s'",
             asked, ipw_serve_model(s));
    ipw_served_answer_error(&a, 404, message);
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
    const struct ipw_route routes[ROUTES] = {
        {.path = "/v1/chat/completions",
         .methods = "POST",
         .body_most = REQUEST_BYTES,
         .answer = on_chat,
         .room = on_room,
         .over = on_over,
         .ud = s},
        {.path = "/v1/models", .methods = "GET", .answer = on_models, .ud = s},
        {.path = "/v1/models/", .methods = "GET", .answer = on_model, .ud = s},
        {.path = "/health", .methods = "GET", .answer = on_health, .ud = s}};
    int rc;

    memcpy(s->routes, routes, sizeof routes);
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

const char *ipw_serve_model(const struct ipw_serve *serve)
{
    const char *name = ipw_served_model_name(serve->model, 0);

    return name ? name : "";
}

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
