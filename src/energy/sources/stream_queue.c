#include "energy/sources/stream_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define SILENT_NS (3 * IPW_NS_PER_S)    /* nothing for so long is a failure */
#define FAIL_NS   (500 * IPW_NS_PER_MS) /* distance of failed readings */
#define MOST_NS   (3600 * IPW_NS_PER_S)
#define CLOSE_NS  (200 * IPW_NS_PER_US) /* no sensor is read more often: left out */

enum { HEAD = 3 }; /* numbers before a row's values */
enum { LOST_GAUGES = 1, LOST_OWN_ZERO = 2, LOST_COUNTERS = 4 };

static void add_clock(struct ipw_channel *c, const char *source, size_t index, const char *host,
                      bool remote)
{
    *c = (struct ipw_channel){.domain = IPW_DOMAIN_MACHINE,
                              .scope = IPW_SCOPE_MACHINE,
                              .kind = IPW_CHANNEL_METRIC,
                              .remote = remote,
                              .unit = IPW_UNIT_CLOCK,
                              .method = "round trips"};
    snprintf(c->name, sizeof c->name, "%.30s/%.18s.%zu/clock", host, source, index);
    snprintf(c->device, sizeof c->device, "clock of %.50s", host);
}

void ipw_stream_queue_init(struct ipw_stream_queue *q, const struct ipw_stream_hello *hello,
                           size_t source, const char *host, bool remote)
{
    size_t n = hello->sources[source].n, first = hello->sources[source].first;

    *q = (struct ipw_stream_queue){.n_channels = n + 1,
                                   .period_ns = hello->sources[source].period_ns};
    q->channels = ipw_calloc(n + 1, sizeof *q->channels);
    q->own_zero = ipw_calloc(n + 1, sizeof *q->own_zero);
    q->lost = ipw_calloc(n + 1, sizeof *q->lost);
    q->newest = ipw_calloc(n + 1, sizeof *q->newest);
    q->rows = ipw_calloc(IPW_STREAM_QUEUE * (HEAD + n + 1), sizeof *q->rows);
    for (size_t i = 0; i <= n; i++) q->newest[i] = IPW_NO_VALUE;
    for (size_t i = 0; i < n; i++) {
        const struct ipw_channel *far = &hello->channels[first + i];
        struct ipw_channel *c = &q->channels[i];
        size_t room = sizeof c->name - 2 - strlen(far->name);

        *c = *far;
        c->remote = remote;
        c->own_zero = false; /* its zero is the far process's, for all that read it */
        q->own_zero[i] = far->own_zero;
        if (room > sizeof c->name) room = 0;
        snprintf(c->name, sizeof c->name, "%.*s/%.61s", (int)room, host, far->name);
        snprintf(c->method, sizeof c->method, "stream");
    }
    add_clock(&q->channels[n], hello->sources[source].name, source, host, remote);
}

void ipw_stream_queue_release(struct ipw_stream_queue *q)
{
    free(q->channels);
    free(q->own_zero);
    free(q->lost);
    free(q->newest);
    free(q->rows);
    *q = (struct ipw_stream_queue){0};
}

/* A row without values. */
static int64_t *add_row(struct ipw_stream_queue *q, int64_t t_ns, int64_t half_ns)
{
    size_t stride = HEAD + q->n_channels;
    int64_t *row = q->rows + (q->first + q->n) % IPW_STREAM_QUEUE * stride;

    row[0] = t_ns;
    row[1] = half_ns;
    row[2] = 0;
    for (size_t i = 0; i < q->n_channels; i++) row[HEAD + i] = IPW_NO_VALUE;
    q->last_ns = t_ns;
    q->n++;
    return row;
}

void ipw_stream_queue_gap(struct ipw_stream_queue *q, bool fresh, bool rebooted)
{
    q->gap = true;
    q->fresh |= fresh;
    q->rebooted |= rebooted;
    if (rebooted) q->far_ns = 0; /* the far clock began anew */
}

static void mark_gap(struct ipw_stream_queue *q)
{
    int64_t *row = add_row(q, q->last_ns + IPW_NS_PER_US, 0);

    row[2] = LOST_GAUGES | (q->fresh ? LOST_OWN_ZERO : 0) | (q->rebooted ? LOST_COUNTERS : 0);
    q->gap = q->fresh = q->rebooted = false;
}

int ipw_stream_queue_row(struct ipw_stream_queue *q, int64_t far_ns, int64_t t_ns, int64_t half_ns,
                         const int64_t *values, struct ipw_err *err)
{
    int64_t *row, up = t_ns + IPW_NS_PER_US - 1;

    if (q->far_ns && far_ns <= q->far_ns)
        return ipw_fail(err, IPW_EPARSE, "mono_ns: %lld after %lld of the same sensor",
                        (long long)far_ns, (long long)q->far_ns);
    q->far_ns = far_ns;
    up -= up % IPW_NS_PER_US; /* as the sampler stamps */
    if (up < q->last_ns + CLOSE_NS || q->n + 2 > IPW_STREAM_QUEUE) {
        q->late++;
        q->gap |= q->n + 2 > IPW_STREAM_QUEUE;
        return 0;
    }
    if (q->gap && q->last_ns) mark_gap(q);
    q->gap = q->fresh = q->rebooted = false;
    /* The far side may have its readings from a third machine, whose clock it knows as well. */
    for (size_t i = 0; i + 1 < q->n_channels; i++)
        if (!strcmp(q->channels[i].unit, IPW_UNIT_CLOCK) && values[i] > 0 && values[i] < MOST_NS)
            half_ns += values[i];
    row = add_row(q, up, half_ns);
    memcpy(row + HEAD, values, (q->n_channels - 1) * sizeof *values);
    row[HEAD + q->n_channels - 1] = half_ns; /* microseconds times 1000 */
    memcpy(q->newest, row + HEAD, q->n_channels * sizeof *values);
    q->heard_ns = up;
    q->any = true;
    return 0;
}

void ipw_stream_queue_fail(struct ipw_stream_queue *q, int64_t now_ns)
{
    int64_t silent = 5 * q->period_ns > SILENT_NS ? 5 * q->period_ns : SILENT_NS;

    if (!q->heard_ns) q->heard_ns = now_ns;
    if (now_ns - q->heard_ns < silent || now_ns - q->last_ns < FAIL_NS) return;
    add_row(q, now_ns - now_ns % IPW_NS_PER_US, 0);
    q->gap = true;
}

bool ipw_stream_queue_take(struct ipw_stream_queue *q, int64_t *values, int64_t *t_ns,
                           int64_t *half_ns)
{
    const int64_t *row = q->rows + q->first * (HEAD + q->n_channels);

    if (!q->n) return false;
    *t_ns = row[0];
    *half_ns = row[1];
    memcpy(values, row + HEAD, q->n_channels * sizeof *values);
    for (size_t i = 0; i < q->n_channels; i++) {
        bool gauge = q->channels[i].kind == IPW_CHANNEL_GAUGE;
        bool counter = q->channels[i].kind == IPW_CHANNEL_COUNTER;

        if (values[i] != IPW_NO_VALUE) q->lost[i] = false;
        q->lost[i] |= (row[2] & LOST_GAUGES && gauge) || (row[2] & LOST_COUNTERS && counter) ||
                      (row[2] & LOST_OWN_ZERO && counter && q->own_zero[i]);
    }
    q->first = (q->first + 1) % IPW_STREAM_QUEUE;
    q->n--;
    return true;
}

void ipw_stream_queue_newest(const struct ipw_stream_queue *q, int64_t *values)
{
    memcpy(values, q->newest, q->n_channels * sizeof *values);
}
