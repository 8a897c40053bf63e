#include "run/connect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/keyring.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/text.h"
#include "io/proc.h"
#include "io/url.h"
#include "run/find_server.h"

#define PROBE_NS      (10 * IPW_NS_PER_S) /* besides the time to connect */
#define ASK_AGAIN_NS  (500 * IPW_NS_PER_MS)
#define DEMO_START_NS (20 * IPW_NS_PER_S)

/* ---- the demo server ---- */

static void service_over(struct ipw_connection *c)
{
    c->service_told = true;
    ipw_loop_stop(c->loop);
}

static void service_says(void *ud, const char *bytes, size_t n)
{
    struct ipw_connection *c = ud;
    static const char word[] = "listening ";
    size_t had = strlen(c->said);

    snprintf(c->said + had, sizeof c->said - had, "%.*s", (int)n, bytes);
    if (c->service_told || !strchr(c->said, '\n') || strncmp(c->said, word, strlen(word))) return;
    c->said[strcspn(c->said, "\n")] = '\0';
    c->base_url = ipw_strdup(c->said + strlen(word));
    ipw_proc_background(c->service);
    service_over(c);
}

static void service_ended(void *ud, const struct ipw_proc_result *result)
{
    struct ipw_connection *c = ud;

    c->service = NULL;
    if (c->service_told) return; /* if it dies later, requests fail */
    c->service_exit = result->exec_errno    ? 127
                      : result->term_signal ? result->term_signal
                                            : result->exit_code;
    service_over(c);
}

static void service_late(void *ud) { service_over(ud); }

static int start_demo(struct ipw_connection *c, struct ipw_err *err)
{
    char self[1024];
    const char *argv[] = {self, "serve", "--port", "0", "--exit-with-parent", NULL};
    const struct ipw_proc_request request = {
        .argv = argv, .whose = IPW_PROC_OURS, .on_output = service_says};
    struct ipw_timer *timer;
    int rc;

    if (ipw_proc_own_file(self, sizeof self, err))
        return ipw_err_prefix(err, "cannot start the demo model");
    rc = ipw_proc_start(&c->service, c->loop, &request, service_ended, c, err);
    if (rc) return rc;
    timer = ipw_timer_start(c->loop, DEMO_START_NS, service_late, c);
    while (!c->service_told) ipw_loop_run(c->loop);
    if (c->base_url || c->service_exit) ipw_timer_cancel(timer);
    if (!c->base_url)
        return ipw_fail(err, IPW_ENET, "the demo model's server did not start (exit status %d)",
                        c->service_exit);
    c->demo = true;
    c->model = ipw_strdup("demo");
    return 0;
}

/* ---- the server that was named ---- */

struct probe {
    struct ipw_connection *c;
    char **names; /* its models; NULL: it does not list them */
    size_t n;
    struct ipw_err err;
};

static void probed(void *ud, char **names, const struct ipw_err *err)
{
    struct probe *p = ud;

    if (err && err->code) p->err = *err;
    p->names = names;
    while (names && names[p->n]) p->n++;
    ipw_loop_stop(p->c->loop);
}

static bool lists(const struct probe *p, const char *model)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->names[i], model) == 0) return true;
    return false;
}

static int ask_models_once(struct probe *p, size_t i, struct ipw_err *err)
{
    struct ipw_llm_probe *probe;
    int64_t timeout_ns = PROBE_NS + p->c->o->net.connect_ns;
    int rc;

    p->err.code = 0;
    rc = ipw_llm_models(&probe, p->c->llm, i, timeout_ns, probed, p, err);
    if (!rc) ipw_loop_run(p->c->loop);
    return rc;
}

static void waited(void *ud) { ipw_loop_stop(ud); }

/* Without the model's name the list is needed: a server that still loads is asked again. */
static int ask_models(struct probe *p, size_t i, struct ipw_err *err)
{
    struct ipw_connection *c = p->c;
    int64_t until_ns = ipw_now_ns() + c->o->server_wait_ns;
    bool told = c->quiet;
    int rc = ask_models_once(p, i, err);

    while (!rc && !c->model && p->err.code == IPW_EHTTP && p->err.detail == 503 &&
           ipw_now_ns() < until_ns) {
        if (!told) ipw_say("waiting for %s: %s", ipw_llm_url_at(c->llm, i), p->err.text);
        told = true;
        ipw_timer_start(c->loop, ASK_AGAIN_NS, waited, c->loop);
        ipw_loop_run(c->loop);
        rc = ask_models_once(p, i, err);
    }
    if (rc) return rc;
    if (p->err.code == IPW_ENET || p->err.code == IPW_ETIMEOUT ||
        (p->err.code == IPW_EHTTP && (p->err.detail == 401 || p->err.detail == 403))) {
        *err = p->err;
        rc = p->err.code;
    }
    return rc;
}

static void tried(void *ud, int code, struct ipw_chat_reply *reply, const struct ipw_err *err,
                  bool retryable)
{
    struct probe *p = ud;

    (void)code;
    (void)reply;
    (void)retryable;
    if (err) p->err = *err;
    ipw_loop_stop(p->c->loop);
}

/* Asks for one token of a model, before anything is measured. */
static int try_model(struct probe *p, const char *model, struct ipw_err *err)
{
    static const char text[] = "{\"content\":\"Hi\",\"role\":\"user\"}";
    const struct ipw_chat_text message = {text, sizeof text - 1};
    const struct ipw_llm_callbacks callbacks = {.on_done = tried, .ud = p};
    const struct ipw_chat_request request = {.model = model,
                                             .messages = &message,
                                             .n_messages = 1,
                                             .temperature = NAN,
                                             .top_p = NAN,
                                             .seed = INT64_MIN,
                                             .max_tokens = 1,
                                             .stream = true};
    struct ipw_llm_call *call;
    int rc;

    rc = ipw_llm_start(&call, p->c->llm, &request, &callbacks, err);
    if (!rc) ipw_loop_run(p->c->loop);
    return rc;
}

/* A model that the server does not list: an error only if the server does not know it (HTTP 404).
 * Many servers answer under any name, or under names that they do not list. */
static int check_unlisted(struct probe *p, const char *model, struct ipw_err *err)
{
    const char *near = ipw_nearest(model, (const char *const *)p->names);
    int rc = try_model(p, model, err);

    if (rc) return rc;
    if (p->err.code == IPW_EHTTP && p->err.detail == 404)
        return near ? ipw_fail(err, IPW_EINVAL, "the server has no model '%s': did you mean '%s'?",
                               model, near)
                    : ipw_fail(err, IPW_EINVAL, "the server has no model '%s': it lists '%s'%s",
                               model, p->names[0], p->n > 1 ? " and others" : "");
    if (near && !p->c->quiet)
        ipw_say("the server does not list the model '%s': did you mean '%s'?", model, near);
    return 0;
}

/* A remark if several servers do not all serve the run's model: their answers are in one run. */
static void tell_different(const struct ipw_connection *c, const struct probe *probes, size_t n)
{
    enum { SHOWN = 3 };
    struct ipw_buf text = IPW_BUF(64 * IPW_KIB);
    const char *first = NULL;
    size_t with = 0, without = 0;
    bool differ = false;

    for (size_t i = 0; i < n; i++) {
        if (!probes[i].n) continue;
        if (first && strcmp(first, probes[i].names[0])) differ = true;
        first = probes[i].names[0];
        if (lists(&probes[i], c->model))
            with++;
        else
            without++;
        ipw_buf_addf(&text, "%s %s serves", text.len ? ";" : "", ipw_llm_url_at(c->llm, i));
        for (size_t k = 0; k < probes[i].n && k < SHOWN; k++)
            ipw_buf_addf(&text, "%s '%s'", k ? "," : "", probes[i].names[k]);
        if (probes[i].n > SHOWN) ipw_buf_addf(&text, " and %zu more", probes[i].n - SHOWN);
    }
    if (without && (with || differ))
        ipw_say("warning: not every server lists the model '%s':%s", c->model, ipw_buf_str(&text));
    ipw_buf_release(&text);
}

/* The server answers, but it will not list its models soon.  A run waits for a server that loads
 * its model, if the run knows the name of the model. */
static int tell_unlisted(const struct probe *p, const char *url, struct ipw_err *err)
{
    if (p->err.code == IPW_EHTTP)
        return ipw_fail(err, IPW_EINVAL,
                        "%s: the server does not list its models; name one with --model",
                        p->err.text);
    return ipw_fail(err, IPW_EINVAL, "%s does not list its models: name one with --model", url);
}

/* Requests the lists of models of all servers.  This detects a dead server or a missing key before
 * a run begins, and finds the model's name if none was given.  If a model was named, a server
 * without a list is accepted; of several base URLs one must answer. */
static int check_server(struct ipw_connection *c, struct ipw_err *err)
{
    size_t n = ipw_llm_n_urls(c->llm), n_alive = 0;
    struct probe *probes = ipw_calloc(n, sizeof *probes);
    struct ipw_err first_err = {0};
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        struct probe *p = &probes[i];
        int failed;

        p->c = c;
        failed = ask_models(p, i, err);
        if (failed && !first_err.code) first_err = *err;
        if (!failed) n_alive++;
        if (!failed && !c->model && p->n) {
            c->model = ipw_strdup(p->names[0]);
            if (p->n > 1 && !c->quiet)
                ipw_say("the server has %zu models; taking the first, '%s' "
                        "(--model names another)",
                        p->n, c->model);
        }
    }
    if (n == 1 && probes[0].n && !lists(&probes[0], c->model))
        rc = check_unlisted(&probes[0], c->model, err);
    if (rc) {
        /* the server does not know the model */
    } else if (!n_alive) {
        *err = first_err;
        rc = first_err.code;
    } else if (!c->model) {
        rc = tell_unlisted(&probes[0], c->base_url, err);
    } else if (n > 1 && !c->quiet) {
        tell_different(c, probes, n);
    }
    for (size_t i = 0; i < n; i++) ipw_llm_models_free(probes[i].names);
    free(probes);
    return rc;
}

/* The server that the user chose; base_url stays NULL without one. */
static int choose(struct ipw_connection *c, bool *named, struct ipw_err *err)
{
    const struct ipw_opt_list *urls = &c->o->net.base_urls;
    char *first_model;
    int rc = ipw_server_choose(&c->base_url, &first_model, named, c->loop, c->http,
                               urls->n ? urls->items[0] : NULL, err);

    c->model = ipw_strdup(c->o->model ? c->o->model : first_model);
    free(first_model);
    if (!rc && c->base_url && !*named && !c->quiet)
        ipw_say("found a model server at %s, model '%s'", c->base_url, c->model ? c->model : "?");
    return rc;
}

/* The server of --sub-url.  It gets its own key only, and none of the run's headers. */
static int open_sub(struct ipw_connection *c, struct ipw_llm_options options, struct ipw_err *err)
{
    const struct ipw_sub_model_options *o = &c->o->sub;
    int rc;

    options.base_url = o->url;
    options.api_key = o->key_env ? ipw_keyring_env(o->key_env) : NULL;
    options.insecure_key = c->o->net.insecure_key;
    options.total_ns = c->o->net.request_ns;
    options.server_failures = 0; /* the tool's call fails, the run does not wait */
    ipw_secret_add(options.api_key);
    rc = ipw_llm_new(&c->sub, c->loop, c->http, &options, err);
    return rc ? ipw_err_prefix(err, "--sub-url") : 0;
}

int ipw_connect(struct ipw_connection *c, uint64_t jitter_seed, struct ipw_err *err)
{
    const struct ipw_connect_options *o = c->o;
    struct ipw_http_options pool = {.max_connections = (size_t)o->net.max_connections,
                                    .cacert = o->net.cacert};
    struct ipw_llm_options options = {
        .max_retries = (int)o->max_retries,
        .jitter_seed = jitter_seed,
        .server_failures = (int)o->server_failures,
        .server_wait_ns = o->server_wait_ns,
    };
    bool demo = o->model && strcmp(o->model, "demo") == 0 && !o->net.base_urls.n, named = false;
    struct ipw_net_borrowed borrowed;
    const char *key;
    int rc = ipw_sub_model_options_check(&o->sub, err);

    if (!rc) rc = ipw_http_new(&c->http, c->loop, &pool, err);

    if (!rc) rc = ipw_server_key(&key, o->api_key_env, err);
    if (!rc && !demo) rc = choose(c, &named, err);
    if (!rc && !c->base_url && !demo) {
        if (o->model)
            return ipw_fail(err, IPW_ENET,
                            "no model server answers on this machine (looked at 127.0.0.1 ports "
                            "11434, 8080, 8000, 30000, 1234): name yours with -u URL");
        c->demo_why = "no model server was named (-u URL) or found on this machine";
    }
    if (!rc && !c->base_url) rc = start_demo(c, err);
    if (!rc && o->sub.url) rc = open_sub(c, options, err);
    if (rc) return rc;
    options.base_url = c->base_url;
    /* The key goes only to the server that the user named. */
    options.api_key = c->key = named ? key : NULL;
    rc = ipw_net_fill(&options, &borrowed, &o->net, err);
    if (!rc) rc = ipw_llm_new(&c->llm, c->loop, c->http, &options, err);
    ipw_net_release(&borrowed);
    if (!rc && o->any_model && !c->model) c->model = ipw_strdup("any");
    if (!rc && !c->demo && !o->any_model) rc = check_server(c, err);
    if (!rc && o->net.force_tokens > 0 && ipw_llm_can_force(c->llm, err)) {
        ipw_err_prefix(err, "--force-output-tokens");
        rc = IPW_EINVAL;
    }
    return rc;
}

const char **ipw_connection_urls(const struct ipw_connection *c)
{
    size_t n = c->llm ? ipw_llm_n_urls(c->llm) : 0;
    const char **urls = ipw_calloc(n + 1, sizeof *urls);

    for (size_t i = 0; i < n; i++) urls[i] = ipw_llm_url_at(c->llm, i);
    return urls;
}

const char *ipw_connection_elsewhere(const struct ipw_connection *c)
{
    for (size_t i = 0; c->llm && i < ipw_llm_n_urls(c->llm); i++)
        if (!ipw_url_is_local(ipw_llm_url_at(c->llm, i))) return ipw_llm_url_at(c->llm, i);
    return NULL;
}

const char *ipw_connection_sub_elsewhere(const struct ipw_connection *c)
{
    const char *url = c->sub ? ipw_llm_url_at(c->sub, 0) : NULL;

    return url && !ipw_url_is_local(url) ? url : NULL;
}

void ipw_connection_close(struct ipw_connection *c)
{
    ipw_llm_free(c->llm);
    ipw_llm_free(c->sub);
    if (c->http) ipw_http_free(c->http);
    if (c->service) ipw_proc_cancel(c->service);
    free(c->base_url);
    free(c->model);
    c->llm = c->sub = NULL;
    c->http = NULL;
    c->base_url = c->model = NULL;
}
