/* telemetry/telemetry.h: live values of the sensors.
 *
 * Opens a selection of sensors and samples them in the background.  For each channel it keeps the
 * newest value, the cumulative energy since the start (wraps undone) and the power over the last
 * second.  Each reading also goes to energy/trust.h, which says what is believed.
 * telemetry_live.c keeps the values, telemetry_facts.c writes them as JSON,
 * telemetry_page.c writes them as Prometheus text, and telemetry_read.c prints a recording. */
#ifndef IPW_TELEMETRY_TELEMETRY_H
#define IPW_TELEMETRY_TELEMETRY_H

#include <stdbool.h>

#include "base/buf.h"
#include "energy/counter.h"
#include "energy/sampler.h"
#include "energy/select.h"
#include "energy/trust.h"

enum { IPW_LIVE_EDGES = 32 };

struct ipw_live {
    struct ipw_channel channel;
    const char *source;
    bool seen;
    int64_t t_ns, value; /* newest successful reading */
    int64_t uj;          /* counter: its first value and the steps since; gauge: integrated */
    struct ipw_counter counter;
    double rest_uj; /* of the integral, below a microjoule */
    /* counter: the last instants at which it changed; gauge: the last readings */
    struct {
        int64_t t_ns, uj;
    } edges[IPW_LIVE_EDGES];
    unsigned n_edges;
};

struct ipw_telemetry {
    struct ipw_source_set set;
    struct ipw_sampler *sampler;
    struct ipw_trust *trust;
    struct ipw_live *live;
    size_t n;
    int64_t start_ns, interval_ns;
    void (*on_row)(void *ud, const struct ipw_sampler_row *row); /* or NULL: called for each row */
    void *ud;
};

/* Without any sensor it opens as well, with verdicts alone. */
int ipw_telemetry_open(struct ipw_telemetry *t, const struct ipw_source_options *options,
                       int64_t interval_ns, bool adapt, struct ipw_err *err);
void ipw_telemetry_take(struct ipw_telemetry *t);
void ipw_telemetry_stop(struct ipw_telemetry *t); /* reads all sensors once more, then ends */
void ipw_telemetry_close(struct ipw_telemetry *t);
/* Power over the last second, in watts; NAN: unknown. */
double ipw_live_watts(const struct ipw_live *l, int64_t now_ns);
/* Sum over the channels that cover the domain; NAN if one of them is unknown or not believed, or if
 * there is none. */
double ipw_telemetry_domain_watts(const struct ipw_telemetry *t, enum ipw_domain d, int64_t now_ns);

/* Appends one JSON object {channels, hardware, notes}: `telemetry --json`, of which the screen is
 * made, too (lua/ipw/report/sensors.lua). */
void ipw_telemetry_facts(struct ipw_buf *out, struct ipw_telemetry *t);

/* Appends the page of Prometheus metrics. */
void ipw_telemetry_metrics(struct ipw_buf *out, const struct ipw_telemetry *t);

/* Prints a recording, or the power.jsonl of a run (a folder).  A damaged line is reported and left
 * out, and makes the result an error. */
int ipw_telemetry_read(const char *path, struct ipw_err *err);

#endif
