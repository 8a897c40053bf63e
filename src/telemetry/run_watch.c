#include "telemetry/run_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/server.h"
#include "telemetry/metrics_text.h"
#include "telemetry/run_exporter.h"
#include "telemetry/run_metrics.h"
#include "telemetry/run_page.h"

/* clang-format off */
#define AT(field) offsetof(struct ipw_watch_options, field)
const struct ipw_opt ipw_watch_option_rows[] = {
    {"listen", 0, IPW_OPT_STR, AT(listen), "[ADDR:]PORT", "serve Prometheus metrics of the run (at 127.0.0.1)"},
    {"watch", 0, IPW_OPT_FLAG, AT(watch), NULL, "show the run as a page at 127.0.0.1 while it goes on"},
    {"otlp", 0, IPW_OPT_URL, AT(otlp), "[URL]", "send spans and power to an OpenTelemetry collector"},
    IPW_OPT_END,
};
/* clang-format on */

struct ipw_run_watch {
    struct ipw_observer observer; /* first: the run hands it back */
    struct ipw_server_options server_options;
    struct ipw_route routes[3];
    char host[64];
    struct ipw_run_metrics *metrics; /* of --listen, or NULL */
    struct ipw_run_page *page;       /* of --watch, or NULL */
    struct ipw_server *server;       /* of --listen and --watch, or NULL */
    struct ipw_run_exporter exporter;
    const char *otlp; /* or NULL */
    bool quiet;
};

static void begun(struct ipw_observer *o, const struct ipw_observed_run *run)
{
    struct ipw_run_watch *w = (struct ipw_run_watch *)o;

    if (w->metrics) ipw_run_metrics_begun(w->metrics, run);
    if (w->page) ipw_run_page_begun(w->page, run);
    if (w->otlp) ipw_run_exporter_start(&w->exporter, w->otlp, run->folder, run->session, w->quiet);
}

static void event(struct ipw_observer *o, const struct ipw_event *e)
{
    struct ipw_run_watch *w = (struct ipw_run_watch *)o;

    if (w->metrics) ipw_run_metrics_event(w->metrics, e);
    if (w->page) ipw_run_page_event(w->page, e);
}

static void energy(struct ipw_observer *o, const struct ipw_observed_energy *e)
{
    ipw_run_metrics_energy(((struct ipw_run_watch *)o)->metrics, e);
}

static void progress(struct ipw_observer *o, const struct ipw_progress_state *state)
{
    ipw_run_page_progress(((struct ipw_run_watch *)o)->page, state);
}

static int64_t cpu_ns(const struct ipw_observer *o)
{
    return ipw_run_exporter_cpu_ns(&((const struct ipw_run_watch *)o)->exporter);
}

/* ---- the server ---- */

enum { CONNECTIONS_MAX = 64, IDLE_S = 10 };
#define PAGE_BYTES   (4 * IPW_MIB)
#define LAST_LOOK_NS IPW_NS_PER_S

static void answer_with(struct ipw_exchange *x, const char *type,
                        void (*write)(struct ipw_buf *out, void *ud), void *ud)
{
    struct ipw_buf page = IPW_BUF(PAGE_BYTES);

    write(&page, ud);
    ipw_answer_page(x, type, ipw_buf_str(&page), page.len);
    ipw_buf_release(&page);
}

static void on_html(struct ipw_exchange *x, void *watch)
{
    answer_with(x, "text/html; charset=utf-8", ipw_run_page_html,
                ((struct ipw_run_watch *)watch)->page);
}

static void on_figures(struct ipw_exchange *x, void *watch)
{
    ipw_run_page_answer(x, ((struct ipw_run_watch *)watch)->page);
}

static void on_metrics(struct ipw_exchange *x, void *watch)
{
    answer_with(x, IPW_METRICS_TYPE, ipw_run_metrics_write,
                ((struct ipw_run_watch *)watch)->metrics);
}

static void on_root(struct ipw_exchange *x, void *watch)
{
    static const char about[] = "ipw-agent run: see /metrics\n";

    (void)watch;
    ipw_answer_page(x, "text/plain; charset=utf-8", about, sizeof about - 1);
}

static void add_route(struct ipw_run_watch *w, const char *path,
                      void (*answer)(struct ipw_exchange *x, void *watch))
{
    w->routes[w->server_options.n_routes++] =
        (struct ipw_route){.path = path, .methods = "GET", .answer = answer, .ud = w};
}

static void opened(struct ipw_observer *o, struct ipw_loop *loop)
{
    struct ipw_run_watch *w = (struct ipw_run_watch *)o;
    struct ipw_err err = {0};

    if (w->server && ipw_server_attach(w->server, loop, &err))
        ipw_log(IPW_LOG_WARN, "%s", err.text);
}

static void stop(void *loop) { ipw_loop_stop(loop); }

/* An open page asks for the figures about twice a second: it gets the last ones before the program
 * ends. */
static void show_end(const struct ipw_run_page *page, struct ipw_loop *loop)
{
    if (!ipw_run_page_is_read(page)) return;
    ipw_timer_start(loop, LAST_LOOK_NS, stop, loop);
    ipw_loop_run(loop);
}

static void closing(struct ipw_observer *o, struct ipw_loop *loop)
{
    struct ipw_run_watch *w = (struct ipw_run_watch *)o;

    if (w->page) ipw_run_page_ended(w->page);
    ipw_run_exporter_finish(&w->exporter);
    if (w->page) show_end(w->page, loop);
    ipw_server_close(w->server);
    w->server = NULL;
}

/* The first page's address is the one that is said. */
static int open_pages(struct ipw_run_watch *w, const struct ipw_watch_options *o,
                      struct ipw_err *err)
{
    const char *where = o->listen ? o->listen : "127.0.0.1:0";
    struct ipw_server_options *server = &w->server_options;
    int rc = ipw_server_address(w->host, sizeof w->host, &server->port, where, err);

    if (rc) return ipw_err_prefix(err, "--listen %s", where);
    if (o->watch) {
        w->page = ipw_run_page_new(false);
        w->observer.progress = progress;
        w->observer.event = event;
        add_route(w, "/", on_html);
        add_route(w, "/live.json", on_figures);
    } else {
        add_route(w, "/", on_root);
    }
    if (o->listen) {
        w->metrics = ipw_run_metrics_new();
        w->observer.event = event;
        w->observer.energy = energy;
        add_route(w, "/metrics", on_metrics);
    }
    server->routes = w->routes;
    server->host = w->host;
    server->not_exposed = "other machines could read the run's metrics there; listen on 127.0.0.1";
    server->connections = CONNECTIONS_MAX;
    server->idle_s = IDLE_S;
    rc = ipw_server_open(&w->server, server, err);
    if (rc) return ipw_err_prefix(err, "--listen %s", where);
    if (!w->quiet || !server->port)
        ipw_say("%s %s%s", o->watch ? "watch the run at" : "listening", ipw_server_url(w->server),
                o->watch ? "/" : "/metrics");
    return 0;
}

int ipw_run_watch_open(struct ipw_run_watch **out, const struct ipw_watch_options *options,
                       bool quiet, struct ipw_err *err)
{
    struct ipw_run_watch *w;
    int rc = options->otlp ? ipw_run_exporter_check(options->otlp, err) : 0;

    *out = NULL;
    if (rc || (!options->listen && !options->watch && !options->otlp)) return rc;
    w = ipw_calloc(1, sizeof *w);
    w->otlp = options->otlp;
    w->quiet = quiet;
    w->observer = (struct ipw_observer){
        .opened = opened, .closing = closing, .begun = begun, .cpu_ns = cpu_ns};
    if (options->listen || options->watch) rc = open_pages(w, options, err);
    if (rc)
        ipw_run_watch_close(w);
    else
        *out = w;
    return rc;
}

struct ipw_observer *ipw_run_watch_observer(struct ipw_run_watch *w)
{
    return w ? &w->observer : NULL;
}

void ipw_run_watch_close(struct ipw_run_watch *w)
{
    if (!w) return;
    ipw_server_close(w->server);
    ipw_run_metrics_free(w->metrics);
    ipw_run_page_free(w->page);
    free(w);
}
