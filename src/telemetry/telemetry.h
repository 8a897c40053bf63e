/* telemetry/telemetry.h: what the sensors say, live.
 *
 * Opens a selection of sensors, samples them in the background, and keeps for each channel its
 * newest value, its cumulative energy since the start (wraps undone) and its power over the last
 * second; the self-test is fed with the first seconds.  Rows are taken by ipw_telemetry_take() on
 * the owner's thread; the listener's threads read under the lock.  telemetry_live.c keeps the
 * values, telemetry_print.c turns them into a table or JSON, telemetry_listen.c serves them as
 * Prometheus text, telemetry_read.c reads a recording back. */
#ifndef IPW_TELEMETRY_TELEMETRY_H
#define IPW_TELEMETRY_TELEMETRY_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "energy/sampler.h"
#include "energy/select.h"
#include "energy/selftest.h"

enum { IPW_LIVE_EDGES = 32 };

struct ipw_live {
    struct ipw_channel channel;
    const char *source;
    bool seen;
    int64_t t_ns, value; /* newest reading that succeeded */
    int64_t uj;          /* counter: as the device counts, wraps undone; gauge: integrated */
    double rest_uj;      /* of the integral, below a microjoule */
    /* counter: the last instants at which it moved; gauge: the last readings */
    struct {
        int64_t t_ns, uj;
    } edges[IPW_LIVE_EDGES];
    unsigned n_edges;
};

struct ipw_telemetry {
    struct ipw_source_set set;
    struct ipw_sampler *sampler;
    struct ipw_selftest *selftest;
    struct ipw_live *live;
    size_t n;
    int64_t start_ns, interval_ns;
    pthread_mutex_t lock;                                        /* over `live` */
    void (*on_row)(void *ud, const struct ipw_sampler_row *row); /* or NULL: sees each row */
    void *ud;
};

/* Without any sensor it is open all the same, with verdicts alone. */
int ipw_telemetry_open(struct ipw_telemetry *t, const struct ipw_source_options *options,
                       int64_t interval_ns, bool adapt, struct ipw_err *err);
void ipw_telemetry_take(struct ipw_telemetry *t);
void ipw_telemetry_stop(struct ipw_telemetry *t); /* one more reading of all, and no more after */
void ipw_telemetry_close(struct ipw_telemetry *t);
/* Power over the last second, in watts; NAN: not known. */
double ipw_live_watts(const struct ipw_live *l, int64_t now_ns);
/* Sum over the domain's covering set; NAN when one of it is not known or there is none. */
double ipw_telemetry_domain_watts(const struct ipw_telemetry *t, enum ipw_domain d, int64_t now_ns);

struct ipw_telemetry_style {
    size_t width;
    bool colour, brief; /* brief: without what was not found */
};
void ipw_telemetry_table(struct ipw_buf *out, struct ipw_telemetry *t,
                         const struct ipw_telemetry_style *style);
void ipw_telemetry_json(struct ipw_buf *out, struct ipw_telemetry *t);

/* The Prometheus text format. */
void ipw_telemetry_metrics(struct ipw_buf *out, struct ipw_telemetry *t);

/* Prints a recording, or the power.jsonl of a run (a folder).  A damaged line is named and passed over,
 * and makes it an error at the end. */
int ipw_telemetry_read(const char *path, struct ipw_err *err);

struct ipw_listen_options { /* borrowed until the listener is closed */
    const char *where;      /* "127.0.0.1:9440", ":9440", "9440"; without an address loopback */
    bool expose;            /* an address beyond loopback is meant */
    const char *const *allow_hosts; /* names that a request's Host may have as well; or NULL */
};
struct ipw_listener;
int ipw_telemetry_listen(struct ipw_listener **out, struct ipw_telemetry *t,
                         const struct ipw_listen_options *options, struct ipw_err *err);
bool ipw_listener_exposed(const struct ipw_listener *l); /* other machines may reach it */
const char *ipw_listener_url(const struct ipw_listener *l);
void ipw_listener_close(struct ipw_listener *l); /* NULL is fine */

#endif
