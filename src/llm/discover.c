/* Asks a server for its models, and looks for servers on the usual ports. */
#include "llm/client_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { LIST_MAX_BYTES = 8 * 1024 * 1024 };

struct ipw_llm_probe {
    struct ipw_llm *llm;
    size_t server;
    struct ipw_http_call *http;
    struct ipw_buf body;
    int64_t timeout_ns;
    ipw_llm_models_fn fn;      /* or: */
    ipw_llm_there_fn there_fn; /* only asks whether it is there */
    void *ud;
};

void ipw_llm_models_free(char **names)
{
    for (char **name = names; name && *name; name++) free(*name);
    free(names);
}

static void tell_server(enum ipw_llm_server_kind *server, const char *owner)
{
    static const struct {
        const char *owner;
        enum ipw_llm_server_kind server;
    } known[] = {{"llamacpp", IPW_LLM_LLAMACPP},
                 {"vllm", IPW_LLM_VLLM},
                 {"sglang", IPW_LLM_SGLANG},
                 {"library", IPW_LLM_OLLAMA}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(owner, known[i].owner) == 0) *server = known[i].server;
}

/* OpenAI's {"data": [{"id"}]}, a bare array of those, or {"models": [{"name"}]}. */
static int read_models(char ***out, enum ipw_llm_server_kind *server, const char *body, size_t n,
                       struct ipw_err *err)
{
    struct ipw_json *root;
    const struct ipw_json *list;
    size_t count = 0;
    int rc = ipw_json_parse(&root, body, n, NULL, err);

    if (rc) return rc;
    list = ipw_json_get(root, "data");
    if (ipw_json_is_null(list)) list = ipw_json_get(root, "models");
    if (ipw_json_kind(root) == IPW_JSON_ARR) list = root;
    if (ipw_json_kind(list) != IPW_JSON_ARR &&
        ipw_json_kind(ipw_json_get(root, "data")) != IPW_JSON_NULL) {
        ipw_json_free(root);
        return ipw_fail(err, IPW_EPARSE, "the list of models has no \"data\"");
    }
    *out = ipw_calloc(ipw_json_count(list) + 1, sizeof **out);
    for (const struct ipw_json *m = ipw_json_first(list); m; m = ipw_json_next(m)) {
        const char *name = ipw_json_str(ipw_json_get(m, "id"), NULL);

        if (!name) name = ipw_json_str(ipw_json_get(m, "name"), NULL);
        if (name && *name) (*out)[count++] = ipw_strdup(name);
        tell_server(server, ipw_json_str(ipw_json_get(m, "owned_by"), ""));
    }
    ipw_json_free(root);
    return 0;
}

static int64_t shorter(int64_t a, int64_t b) { return a < b ? a : b; }

/* Describes a failed exchange like a failed attempt (verdict.c). */
static int judge_list(const struct ipw_llm_probe *p, const struct ipw_http_result *r,
                      struct ipw_err *err)
{
    struct ipw_chat_reply none = {0};
    struct ipw_err fold_err = {0};
    struct ipw_llm_verdict v;
    struct ipw_llm_evidence e = {.url = p->llm->servers[p->server].url,
                                 .have_key = p->llm->key != NULL,
                                 .end = r->end,
                                 .deadline = r->deadline,
                                 .deadline_ns = r->deadline == IPW_HTTP_CONNECT_DEADLINE
                                                    ? shorter(p->timeout_ns, p->llm->connect_ns)
                                                    : p->timeout_ns,
                                 .status = r->status,
                                 .http_error = r->error,
                                 .location = ipw_http_field(r->head, "Location"),
                                 .body = ipw_buf_str(&p->body),
                                 .body_n = p->body.len,
                                 .fold_err = &fold_err,
                                 .reply = &none};

    ipw_llm_verdict_from(&v, &e);
    if (r->end == IPW_HTTP_OK) ipw_llm_server_served(p->llm, p->server);
    if (v.outcome == IPW_LM_OK) return 0;
    *err = v.err;
    ipw_llm_redact(p->llm, err->text);
    if (r->end != IPW_HTTP_OK) ipw_llm_server_failed(p->llm, p->server, r->close_ns, err->text);
    return err->code;
}

static int on_list_data(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct ipw_llm_probe *p = ud;

    (void)t_ns;
    return ipw_buf_add(&p->body, bytes, n);
}

static void probe_free(struct ipw_llm_probe *p)
{
    ipw_buf_release(&p->body);
    free(p);
}

/* Any answer shows that the server is there, unless a gateway says that its upstream is not. */
static bool is_there(const struct ipw_llm_probe *p, const struct ipw_http_result *r)
{
    struct ipw_llm_evidence e = {
        .status = r->status, .body = ipw_buf_str(&p->body), .body_n = p->body.len};

    if (r->end != IPW_HTTP_OK) return false;
    if (r->status == 503) return ipw_llm_is_loading(&e); /* calls wait for a loading server */
    return r->status != 502 && r->status != 504;
}

static void on_list_done(void *ud, const struct ipw_http_result *r)
{
    struct ipw_llm_probe *p = ud, copy = *p;
    char **names = NULL;
    struct ipw_err err = {0};
    bool there = p->there_fn && is_there(p, r);
    int rc = p->there_fn ? 0 : judge_list(p, r, &err);

    if (rc == 0 && p->fn) {
        rc = read_models(&names, &p->llm->servers[p->server].kind, ipw_buf_str(&p->body),
                         p->body.len, &err);
        if (rc) ipw_err_prefix(&err, "%s", p->llm->servers[p->server].models_url);
    }
    probe_free(p);
    if (copy.there_fn)
        copy.there_fn(copy.ud, copy.server, there);
    else
        copy.fn(copy.ud, names, rc ? &err : NULL);
}

static int ask(struct ipw_llm_probe **out, const struct ipw_llm_probe *how, struct ipw_err *err)
{
    const struct ipw_llm *llm = how->llm;
    struct ipw_llm_probe *p = ipw_calloc(1, sizeof *p);
    struct ipw_http_request request = {.method = "GET",
                                       .url = llm->servers[how->server].models_url,
                                       .headers = llm->headers[0],
                                       .n_headers = llm->n_headers[0],
                                       .connect_ns = shorter(how->timeout_ns, llm->connect_ns),
                                       .total_ns = how->timeout_ns,
                                       .body_max_bytes = LIST_MAX_BYTES};
    struct ipw_http_callbacks on = {.on_data = on_list_data, .on_done = on_list_done, .ud = p};
    int rc;

    *p = *how;
    p->body = IPW_BUF(LIST_MAX_BYTES);
    rc = ipw_http_start(&p->http, llm->http, &request, &on, err);
    *out = rc ? NULL : p;
    if (rc) probe_free(p);
    return rc;
}

int ipw_llm_models(struct ipw_llm_probe **out, struct ipw_llm *llm, size_t i, int64_t timeout_ns,
                   ipw_llm_models_fn fn, void *ud, struct ipw_err *err)
{
    return ask(out,
               &(struct ipw_llm_probe){
                   .llm = llm, .server = i, .timeout_ns = timeout_ns, .fn = fn, .ud = ud},
               err);
}

struct ipw_llm_probe *ipw_llm_probe_there(struct ipw_llm *llm, size_t i, int64_t timeout_ns,
                                          ipw_llm_there_fn fn, void *ud)
{
    struct ipw_llm_probe *p;

    ask(&p,
        &(struct ipw_llm_probe){
            .llm = llm, .server = i, .timeout_ns = timeout_ns, .there_fn = fn, .ud = ud},
        NULL);
    return p;
}

void ipw_llm_probe_cancel(struct ipw_llm_probe *p)
{
    if (!p) return;
    ipw_http_cancel(p->http);
    probe_free(p);
}

/* ---- the usual ports ---- */

struct search {
    struct ipw_loop *loop;
    char **names;
};

static void on_candidate(void *ud, char **names, const struct ipw_err *err)
{
    struct search *s = ud;

    (void)err;
    s->names = names;
    ipw_loop_stop(s->loop);
}

int ipw_llm_search(char **url, char **model, struct ipw_loop *loop, struct ipw_http *http,
                   const int *ports, int64_t timeout_ns, struct ipw_err *err)
{
    static const int usual[] = {11434, 8080, 8000, 30000, 1234, 0};
    int rc = 0;

    *url = *model = NULL;
    for (ports = ports ? ports : usual; *ports && !*model && !rc; ports++) {
        char *address = ipw_asprintf("http://127.0.0.1:%d/v1", *ports);
        struct ipw_llm_options options = {.base_url = address};
        struct search s = {.loop = loop};
        struct ipw_llm_probe *probe;
        struct ipw_llm *llm;

        rc = ipw_llm_new(&llm, loop, http, &options, err);
        if (!rc) rc = ipw_llm_models(&probe, llm, 0, timeout_ns, on_candidate, &s, err);
        if (!rc) ipw_loop_run(loop);
        /* A server without a model cannot be used; a later port may have one. */
        if (s.names && s.names[0]) *model = ipw_strdup(s.names[0]);
        if (*model) *url = ipw_strdup(address);
        ipw_llm_models_free(s.names);
        ipw_llm_free(llm);
        free(address);
    }
    return rc;
}
