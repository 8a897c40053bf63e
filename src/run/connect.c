/* Which model answers: the server that was named, one found on the usual local ports, or the demo
 * model in a child process of our own.  Nothing is ever sent to a cloud that was not named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/find_server.h"
#include "run/run.h"

#define PROBE_NS      (10 * IPW_NS_PER_S) /* besides the time to connect */
#define DEMO_START_NS (20 * IPW_NS_PER_S)

/* ---- the demo server ---- */

struct demo_wait {
    struct ipw_run *run;
    bool over;
    int exit_code;
};

static void demo_line(void *ud, const char *line)
{
    struct demo_wait *w = ud;
    static const char word[] = "listening ";

    if (w->over || strncmp(line, word, strlen(word))) return;
    w->run->base_url = ipw_strdup(line + strlen(word));
    w->over = true;
    ipw_loop_stop(w->run->loop);
}

static void demo_exit(void *ud, int exit_code, int term_signal)
{
    struct demo_wait *w = ud;

    w->run->service = NULL;
    if (w->over) return; /* it dies later: requests will say so */
    w->exit_code = exit_code ? exit_code : term_signal;
    w->over = true;
    ipw_loop_stop(w->run->loop);
}

static void demo_late(void *ud)
{
    struct demo_wait *w = ud;

    w->over = true;
    ipw_loop_stop(w->run->loop);
}

static int start_demo(struct ipw_run *run, struct ipw_err *err)
{
    static struct demo_wait wait; /* outlives the service's callbacks */
    char self[1024];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *argv[] = {self, "serve", "--port", "0", "--exit-with-parent", NULL};
    struct ipw_timer *timer;
    int rc;

    if (n < 0) return ipw_fail(err, IPW_EIO, "cannot find this program's own file");
    self[n] = '\0';
    wait = (struct demo_wait){.run = run};
    rc = ipw_service_start(&run->service, run->loop, argv, demo_line, demo_exit, &wait, err);
    if (rc) return rc;
    timer = ipw_timer_start(run->loop, DEMO_START_NS, demo_late, &wait);
    while (!wait.over) ipw_loop_run(run->loop);
    if (run->base_url || wait.exit_code) ipw_timer_cancel(timer);
    if (!run->base_url)
        return ipw_fail(err, IPW_ENET, "the demo model's server did not start (exit status %d)",
                        wait.exit_code);
    run->demo = true;
    run->model = ipw_strdup("demo");
    return 0;
}

/* ---- the server that was named ---- */

struct probe {
    struct ipw_run *run;
    char **names; /* what it serves; NULL: it does not say */
    size_t n;
    struct ipw_err err;
};

static void probed(void *ud, char **names, const struct ipw_err *err)
{
    struct probe *p = ud;

    if (err && err->code) p->err = *err;
    p->names = names;
    while (names && names[p->n]) p->n++;
    ipw_loop_stop(p->run->loop);
}

static bool lists(const struct probe *p, const char *model)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->names[i], model) == 0) return true;
    return false;
}

static int ask_models(struct probe *p, size_t i, struct ipw_err *err)
{
    struct ipw_llm_probe *probe;
    int64_t timeout_ns = PROBE_NS + p->run->o->net.connect_ns;
    int rc = ipw_llm_models_at(&probe, p->run->llm, i, timeout_ns, probed, p, err);

    if (rc) return rc;
    ipw_loop_run(p->run->loop);
    if (p->err.code == IPW_ENET || p->err.code == IPW_ETIMEOUT ||
        (p->err.code == IPW_EHTTP && (p->err.detail == 401 || p->err.detail == 403))) {
        *err = p->err;
        rc = p->err.code;
    }
    return rc;
}

/* Many servers answer under any name, so that this is no error. */
static void tell_near(const struct probe *p, const char *model)
{
    const char *near;

    if (!p->n || lists(p, model)) return;
    near = ipw_nearest(model, (const char *const *)p->names);
    if (near) ipw_say("the server does not list the model '%s': did you mean '%s'?", model, near);
}

/* Several servers that do not all serve the model of the run: their answers are one run's all the
 * same, and whoever reads it should know. */
static void tell_different(const struct ipw_run *run, const struct probe *probes, size_t n)
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
        if (lists(&probes[i], run->model))
            with++;
        else
            without++;
        ipw_buf_addf(&text, "%s %s serves", text.len ? ";" : "", ipw_llm_url_at(run->llm, i));
        for (size_t k = 0; k < probes[i].n && k < SHOWN; k++)
            ipw_buf_addf(&text, "%s '%s'", k ? "," : "", probes[i].names[k]);
        if (probes[i].n > SHOWN) ipw_buf_addf(&text, " and %zu more", probes[i].n - SHOWN);
    }
    if (without && (with || differ))
        ipw_say("warning: not every server lists the model '%s':%s", run->model,
                ipw_buf_str(&text));
    ipw_buf_release(&text);
}

/* The server lives, and its list is what nobody can wait for here: a run waits for one that loads
 * its model, if it knows which. */
static int tell_unlisted(const struct probe *p, const char *url, struct ipw_err *err)
{
    if (p->err.code == IPW_EHTTP)
        return ipw_fail(err, IPW_EINVAL,
                        "%s: the server does not list its models; name one with --model",
                        p->err.text);
    return ipw_fail(err, IPW_EINVAL, "%s does not list its models: name one with --model", url);
}

/* Asks all of them for their lists of models: tells a dead server or a missing key before a run
 * begins, and the model's name when none was given.  A server without that list is fine when a model
 * was named; of several base URLs one has to answer. */
static int check_server(struct ipw_run *run, struct ipw_err *err)
{
    size_t n = ipw_llm_n_urls(run->llm), n_alive = 0;
    struct probe *probes = ipw_calloc(n, sizeof *probes);
    struct ipw_err first_err = {0};
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        struct probe *p = &probes[i];
        int failed;

        p->run = run;
        failed = ask_models(p, i, err);
        if (failed && !first_err.code) first_err = *err;
        if (!failed) n_alive++;
        if (!failed && !run->model && p->n) {
            run->model = ipw_strdup(p->names[0]);
            if (p->n > 1 && !run->o->quiet)
                ipw_say("the server has %zu models; taking the first, '%s' "
                        "(--model names another)",
                        p->n, run->model);
        }
        if (n == 1 && run->model && !run->o->quiet) tell_near(p, run->model);
    }
    if (!n_alive) {
        *err = first_err;
        rc = first_err.code;
    } else if (!run->model) {
        rc = tell_unlisted(&probes[0], run->base_url, err);
    } else if (n > 1 && !run->o->quiet) {
        tell_different(run, probes, n);
    }
    for (size_t i = 0; i < n; i++) ipw_llm_models_free(probes[i].names);
    free(probes);
    return rc;
}

/* The server that the user means; NULL stays in base_url where there is none. */
static int choose(struct ipw_run *run, bool *named, struct ipw_err *err)
{
    char *first_model;
    int rc = ipw_server_choose(&run->base_url, &first_model, named, run->loop, run->http,
                               run->o->base_url, err);

    run->model = ipw_strdup(run->o->model ? run->o->model : first_model);
    free(first_model);
    if (!rc && run->base_url && !*named && !run->o->quiet)
        ipw_say("found a model server at %s, model '%s'", run->base_url,
                run->model ? run->model : "?");
    return rc;
}

int ipw_run_connect(struct ipw_run *run, struct ipw_err *err)
{
    const struct ipw_run_options *o = run->o;
    struct ipw_llm_options options = {
        .max_retries = (int)o->max_retries,
        .jitter_seed = (uint64_t)run->anchor.wall_ns,
        .server_failures = (int)o->server_failures,
        .server_wait_ns = o->server_wait_ns,
    };
    bool demo = o->model && strcmp(o->model, "demo") == 0 && !o->base_url, named = false;
    struct ipw_net_borrowed borrowed;
    const char *key;
    int rc = ipw_server_key(&key, o->api_key_env, err);

    if (!rc && !demo) rc = choose(run, &named, err);
    if (!rc && !run->base_url && !demo) {
        if (o->model)
            return ipw_fail(err, IPW_ENET,
                            "no model server answers on this machine (looked at 127.0.0.1 ports "
                            "11434, 8080, 8000, 30000, 1234): name yours with --base-url");
        run->demo_why = "no model server was named (--base-url) or found on this machine";
    }
    if (!rc && !run->base_url) rc = start_demo(run, err);
    if (rc) return rc;
    options.base_url = run->base_url;
    /* The key goes to the server that the user named, and to nobody else. */
    options.api_key = named ? key : NULL;
    rc = ipw_net_fill(&options, &borrowed, &o->net, err);
    if (!rc) rc = ipw_llm_new(&run->llm, run->loop, run->http, &options, err);
    ipw_net_release(&borrowed);
    if (!rc) run->net = ipw_net_new(run);
    if (!rc && !run->demo) rc = check_server(run, err);
    if (!rc && o->net.force_tokens > 0 && ipw_llm_can_force(run->llm, err)) {
        ipw_err_prefix(err, "--force-output-tokens");
        rc = IPW_EINVAL;
    }
    return rc;
}
