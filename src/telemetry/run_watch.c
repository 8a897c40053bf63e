#include "telemetry/run_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "serve/listener.h"
#include "telemetry/run_exporter.h"
#include "telemetry/run_metrics.h"

/* clang-format off */
#define AT(field) offsetof(struct ipw_watch_options, field)
const struct ipw_opt ipw_watch_option_rows[] = {
    {"listen", 0, IPW_OPT_STR, AT(listen), "[ADDR:]PORT", "serve Prometheus metrics of the run (at 127.0.0.1)"},
    {"otlp", 0, IPW_OPT_URL, AT(otlp), "[URL]", "send spans and power to an OpenTelemetry collector"},
    IPW_OPT_END,
};
/* clang-format on */

struct ipw_run_watch {
    struct ipw_observer observer; /* first: the run hands it back */
    struct ipw_listen_options listen;
    struct ipw_run_metrics *metrics;
    struct ipw_listener *listener;
    struct ipw_run_exporter exporter;
    const char *otlp; /* or NULL */
    bool quiet;
};

static void begun(struct ipw_observer *o, const struct ipw_observed_run *run)
{
    struct ipw_run_watch *w = (struct ipw_run_watch *)o;

    if (w->metrics) ipw_run_metrics_begun(w->metrics, run);
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

static int64_t cpu_ns(const struct ipw_observer *o)
{
    return ipw_run_exporter_cpu_ns(&((const struct ipw_run_watch *)o)->exporter);
}

static bool any_port(const char *where)
{
    const char *colon = strrchr(where, ':');

    return atoi(colon ? colon + 1 : where) == 0;
}

static int open_page(struct ipw_run_watch *w, const char *where, struct ipw_err *err)
{
    int rc;

    w->metrics = ipw_run_metrics_new();
    w->listen = (struct ipw_listen_options){
        .where = where,
        .not_exposed = "other machines could read the run's metrics there; listen on 127.0.0.1",
        .about = "ipw-agent run: see /metrics\n",
        .write = ipw_run_metrics_write,
        .ud = w->metrics};
    rc = ipw_listener_open(&w->listener, &w->listen, err);
    if (rc) return rc;
    w->observer.event = event;
    w->observer.energy = energy;
    if (!w->quiet || any_port(where)) ipw_say("listening %s", ipw_listener_url(w->listener));
    return 0;
}

int ipw_run_watch_open(struct ipw_run_watch **out, const struct ipw_watch_options *options,
                       bool quiet, struct ipw_err *err)
{
    struct ipw_run_watch *w;
    int rc = options->otlp ? ipw_run_exporter_check(options->otlp, err) : 0;

    *out = NULL;
    if (rc || (!options->listen && !options->otlp)) return rc;
    w = ipw_calloc(1, sizeof *w);
    w->otlp = options->otlp;
    w->quiet = quiet;
    w->observer = (struct ipw_observer){.begun = begun, .cpu_ns = cpu_ns};
    if (options->listen) rc = open_page(w, options->listen, err);
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
    ipw_run_exporter_finish(&w->exporter);
    ipw_listener_close(w->listener);
    ipw_run_metrics_free(w->metrics);
    free(w);
}
