#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "telemetry/telemetry.h"

#define WINDOW_NS (11 * IPW_NS_PER_S / 10)
#define FAST_NS   (2 * IPW_NS_PER_MS)

/* A fast source is read 150 times, a millisecond apart, before the sampler starts, to learn how
 * often it changes. */
static void look_closely(struct ipw_telemetry *t, size_t source)
{
    struct ipw_source *s = t->set.sources[source];
    int64_t *values = ipw_calloc(s->n_channels + 1, sizeof *values), start = ipw_now_ns();
    struct ipw_sampler_row row = {.source = source,
                                  .first_channel = ipw_source_set_first(&t->set, source),
                                  .n = s->n_channels,
                                  .values = values};

    for (int i = 0; i < 150; i++) {
        int64_t due = start + i * IPW_NS_PER_MS, before;
        struct timespec ts = {(time_t)(due / IPW_NS_PER_S), (long)(due % IPW_NS_PER_S)};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) continue;
        before = ipw_now_ns();
        s->read(s, values);
        row.t_ns = before + (ipw_now_ns() - before) / 2;
        ipw_trust_row(t->trust, &row);
    }
    free(values);
}

int ipw_telemetry_open(struct ipw_telemetry *t, const struct ipw_source_options *options,
                       int64_t interval_ns, bool adapt, struct ipw_err *err)
{
    struct ipw_sampler_options so = {.interval_ns = interval_ns, .adapt = adapt, .retake = true};
    size_t at = 0;
    int rc;

    *t = (struct ipw_telemetry){.interval_ns = interval_ns};
    rc = ipw_source_set_open_with(&t->set, options, err);
    if (rc) return rc;
    t->n = t->set.n_channels;
    t->live = ipw_calloc(t->n + 1, sizeof *t->live);
    for (size_t i = 0; i < t->set.n; i++) {
        for (size_t k = 0; k < t->set.sources[i]->n_channels; k++, at++) {
            t->live[at].channel = t->set.channels[at];
            t->live[at].source = t->set.sources[i]->name;
        }
    }
    t->trust = ipw_trust_new(t->set.channels, t->set.n_channels);
    for (size_t i = 0; i < t->set.n; i++)
        if (!t->set.sources[i]->next && t->set.sources[i]->period_ns <= FAST_NS) look_closely(t, i);
    t->start_ns = ipw_now_ns();
    return t->set.n ? ipw_sampler_start(&t->sampler, &t->set, &so, err) : 0;
}

static void add_edge(struct ipw_live *l, int64_t t_ns)
{
    if (l->n_edges == IPW_LIVE_EDGES) {
        /* Drops every second value, so that the window keeps its length for a counter of any
         * speed. */
        unsigned n = 0;
        if (l->edges[IPW_LIVE_EDGES - 1].t_ns - l->edges[0].t_ns > WINDOW_NS) {
            memmove(l->edges, l->edges + 1, (IPW_LIVE_EDGES - 1) * sizeof *l->edges);
            n = IPW_LIVE_EDGES - 1;
        } else {
            for (unsigned i = 0; i < IPW_LIVE_EDGES; i += 2) l->edges[n++] = l->edges[i];
        }
        l->n_edges = n;
    }
    l->edges[l->n_edges].t_ns = t_ns;
    l->edges[l->n_edges++].uj = l->uj;
}

/* What a break hides is in no value: the count goes on with the steps after it. */
static void push_counter(struct ipw_live *l, int64_t t_ns, int64_t value)
{
    int64_t step, moved_ns = l->counter.moved_ns;

    switch (ipw_counter_take(&l->counter, &l->channel, l->channel.period_ns, IPW_COUNTER_QUIET_NS,
                             t_ns, value, &step)) {
    case IPW_COUNTER_SUSPECT: return;
    case IPW_COUNTER_ANEW: l->n_edges = 0; break;
    case IPW_COUNTER_STEP: break;
    }
    l->uj += step;
    if (l->counter.moved_ns != moved_ns) add_edge(l, t_ns);
}

static void push_gauge(struct ipw_live *l, int64_t t_ns, int64_t value)
{
    double uj = (double)(l->value + value) / 2 * (double)(t_ns - l->t_ns) / 1e6 + l->rest_uj;

    l->uj += (int64_t)uj;
    l->rest_uj = uj - (double)(int64_t)uj;
    add_edge(l, t_ns);
}

static void push(struct ipw_live *l, int64_t t_ns, int64_t value)
{
    bool counter = l->channel.kind == IPW_CHANNEL_COUNTER;

    if (value == IPW_NO_VALUE) return;
    if (!l->seen) {
        l->seen = true;
        if (counter) l->uj = value;
        if (counter) ipw_counter_begin(&l->counter, t_ns, value);
        /* The first value of a slow counter belongs to an earlier instant. */
        if (!counter || (l->channel.period_ns > 0 && l->channel.period_ns <= FAST_NS))
            add_edge(l, t_ns);
    } else if (counter) {
        push_counter(l, t_ns, value);
    } else if (l->channel.kind == IPW_CHANNEL_GAUGE) {
        push_gauge(l, t_ns, value);
    }
    l->value = value;
    l->t_ns = t_ns;
}

static void take(void *ud, const struct ipw_sampler_row *row)
{
    struct ipw_telemetry *t = ud;

    for (size_t i = 0; i < row->n && row->first_channel + i < t->n; i++)
        push(&t->live[row->first_channel + i], row->t_ns, row->values[i]);
    ipw_trust_row(t->trust, row);
    if (t->on_row) t->on_row(t->ud, row);
}

void ipw_telemetry_take(struct ipw_telemetry *t)
{
    if (!t->sampler) return;
    ipw_sampler_drain(t->sampler, take, t);
}

double ipw_live_watts(const struct ipw_live *l, int64_t now_ns)
{
    unsigned first = 0, last = l->n_edges ? l->n_edges - 1 : 0;
    int64_t dt;

    if (!l->seen || l->channel.kind == IPW_CHANNEL_METRIC) return NAN;
    if (now_ns - l->t_ns > 5 * WINDOW_NS && now_ns - l->t_ns > 5 * l->channel.period_ns) return NAN;
    while (first < last && l->edges[last].t_ns - l->edges[first].t_ns > WINDOW_NS &&
           l->edges[last].t_ns - l->edges[first + 1].t_ns > WINDOW_NS / 2)
        first++;
    dt = l->n_edges ? l->edges[last].t_ns - l->edges[first].t_ns : 0;
    if (l->channel.kind == IPW_CHANNEL_GAUGE && dt <= 0) return (double)l->value / 1e3;
    if (dt <= 0) return NAN;
    if (l->channel.kind == IPW_CHANNEL_COUNTER && l->t_ns - l->edges[last].t_ns > 2 * WINDOW_NS)
        return NAN; /* it is read but does not change, which is not a power of 0 */
    return (double)(l->edges[last].uj - l->edges[first].uj) * 1e3 / (double)dt;
}

double ipw_telemetry_domain_watts(const struct ipw_telemetry *t, enum ipw_domain d, int64_t now_ns)
{
    double sum = 0;
    bool any = false;

    for (size_t i = 0; i < t->n; i++) {
        if (!t->live[i].channel.in_sum || t->live[i].channel.domain != d) continue;
        if (!ipw_trust_verdict(t->trust, i).believed) return NAN;
        sum += ipw_live_watts(&t->live[i], now_ns);
        any = true;
    }
    return any ? sum : NAN;
}

void ipw_telemetry_stop(struct ipw_telemetry *t)
{
    if (!t->sampler) return;
    ipw_sampler_stop(t->sampler);
    ipw_telemetry_take(t);
}

void ipw_telemetry_close(struct ipw_telemetry *t)
{
    ipw_sampler_free(t->sampler);
    ipw_trust_free(t->trust);
    ipw_source_set_close(&t->set);
    free(t->live);
    *t = (struct ipw_telemetry){0};
}
