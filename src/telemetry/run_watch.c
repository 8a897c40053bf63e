#include "telemetry/run_watch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "serve/listener.h"
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
    struct ipw_listen_options listen;
    struct ipw_run_metrics *metrics; /* of --listen, or NULL */
    struct ipw_run_page *page;       /* of --watch, or NULL */
    struct ipw_listener *listener;
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
    ipw_run_metrics_event(((struct ipw_run_watch *)o)->metrics, e);
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

static bool any_port(const char *where)
{
    const char *colon = strrchr(where, ':');

    return atoi(colon ? colon + 1 : where) == 0;
}

/* The first page's address is the one that is said. */
static int open_pages(struct ipw_run_watch *w, const struct ipw_watch_options *o,
                      struct ipw_err *err)
{
    struct ipw_listen_page *page = w->listen.pages;
    const char *where = o->listen ? o->listen : "127.0.0.1:0";
    int rc;

    w->listen.where = where;
    w->listen.not_exposed = "other machines could read the run's metrics there; listen on "
                            "127.0.0.1";
    w->listen.about = "ipw-agent run: see /metrics\n";
    if (o->watch) {
        w->page = ipw_run_page_new();
        w->observer.progress = progress;
        *page++ =
            (struct ipw_listen_page){"/", "text/html; charset=utf-8", ipw_run_page_html, w->page};
        *page++ =
            (struct ipw_listen_page){"/live.json", "application/json", ipw_run_page_json, w->page};
    }
    if (o->listen) {
        w->metrics = ipw_run_metrics_new();
        w->observer.event = event;
        w->observer.energy = energy;
        *page++ = (struct ipw_listen_page){"/metrics", IPW_LISTEN_METRICS, ipw_run_metrics_write,
                                           w->metrics};
    }
    rc = ipw_listener_open(&w->listener, &w->listen, err);
    if (!rc && (!w->quiet || any_port(where)))
        ipw_say("%s %s", o->watch ? "watch the run at" : "listening",
                ipw_listener_url(w->listener));
    return rc;
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
    w->observer = (struct ipw_observer){.begun = begun, .cpu_ns = cpu_ns};
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

/* An open page asks for the figures about twice a second: it gets the last ones before the program
 * ends. */
static void show_end(struct ipw_run_page *page)
{
    const struct timespec a_second = {.tv_sec = 1};

    if (ipw_run_page_is_read(page)) nanosleep(&a_second, NULL); /* a signal ends it */
}

void ipw_run_watch_close(struct ipw_run_watch *w)
{
    if (!w) return;
    if (w->page) ipw_run_page_ended(w->page);
    ipw_run_exporter_finish(&w->exporter);
    if (w->page) show_end(w->page);
    ipw_listener_close(w->listener);
    ipw_run_metrics_free(w->metrics);
    ipw_run_page_free(w->page);
    free(w);
}
