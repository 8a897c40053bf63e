#include "energy/sources/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "energy/far_clock.h"
#include "json/json.h"

#define OPEN_NS    (5 * IPW_NS_PER_S)
#define STALL_NS   (5 * IPW_NS_PER_S) /* so long without a byte, and the link counts as broken */
#define RETRY_NS   IPW_NS_PER_S
#define TRIP_NS    IPW_NS_PER_S /* between two round trips, or ten times as long as they take */
#define TRIP_MOST  (2 * IPW_NS_PER_S)
#define ANSWER_MAX (4 * IPW_KIB)
#define AHEAD_NS   (100 * IPW_NS_PER_MS) /* a reading so far in the future is nonsense */
#define SILENT_NS  (3 * IPW_NS_PER_S)    /* nothing for so long is a failure */
#define FAIL_NS    (500 * IPW_NS_PER_MS) /* distance of failed readings */
#define MOST_NS    (3600 * IPW_NS_PER_S)
#define CLOSE_NS   (200 * IPW_NS_PER_US) /* no sensor is read more often: left out */
enum { PIECE = 8192, PIECES = 32, FIRST_TRIPS = 8, HELLO_TRIPS = 3 };

struct queue {
    struct ipw_channel *channels;
    size_t n_channels; /* with that of the clock, the last */
    bool *own_zero;    /* counter: begins anew with the far process */
    bool *lost;        /* of the reading that was taken last */
    int64_t *rows;     /* IPW_STREAM_QUEUE of: time, half, what is lost, values */
    size_t first, n;
    int64_t *newest; /* values of the newest reading that had any */
    bool any;
    int64_t far_ns, last_ns; /* of the newest row in the queue; 0: none yet */
    int64_t heard_ns;        /* the last time of a row that was no failure */
    int64_t period_ns;
    bool gap, fresh, rebooted; /* before the next row */
    uint64_t late;             /* rows that came after a later one was taken */
};

struct member {
    struct ipw_source source;
    struct hub *hub;
    struct queue queue;
    bool closed;
};

struct hub {
    pthread_mutex_t lock;
    size_t open; /* members that are not closed */
    int64_t (*now)(void);
    struct ipw_stream_link link;
    struct ipw_page_fetch fetch;
    char *url, *clock_url;
    char host[128]; /* "host:port", for the channels' names */
    bool here;      /* the other machine is this one */
    void *conn;     /* NULL: not connected */
    void *kept;     /* state of `fetch` */
    bool greeted;   /* this link has said hello */
    bool drained;   /* all that has come was read */
    bool gap;       /* readings are missing before those that come next */
    bool fresh;     /* ... and counters of the far process began anew */
    bool rebooted;  /* ... and all counters */
    bool dead;      /* its sensors have changed: never asked again */
    struct ipw_buf line, answer;
    struct ipw_stream_hello hello; /* of the first link */
    char instance[40], boot_id[40];
    struct ipw_far_clock clock;
    int64_t seq;      /* of the last reading that came; -1: none */
    int64_t retry_ns; /* not connected: when to try again */
    int64_t heard_ns; /* when bytes last came */
    int64_t trip_ns;  /* when the next round trip is due */
    uint64_t breaks, dropped, odd;
    struct member *members[IPW_STREAM_SOURCES_MAX];
    int64_t values[IPW_STREAM_CHANNELS_MAX];
};

/* ---- the readings of one far sensor, on their way to the sampler ---- */

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

static void queue_init(struct queue *q, const struct ipw_stream_hello *hello, size_t source,
                       const char *host, bool remote)
{
    size_t n = hello->sources[source].n, first = hello->sources[source].first;

    *q = (struct queue){.n_channels = n + 1, .period_ns = hello->sources[source].period_ns};
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

static void queue_release(struct queue *q)
{
    free(q->channels);
    free(q->own_zero);
    free(q->lost);
    free(q->newest);
    free(q->rows);
    *q = (struct queue){0};
}

/* A row without values. */
static int64_t *add_row(struct queue *q, int64_t t_ns, int64_t half_ns)
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

/* Readings are missing before the next one.  fresh: of another far process; rebooted: of another
 * boot of the far machine. */
static void queue_gap(struct queue *q, bool fresh, bool rebooted)
{
    q->gap = true;
    q->fresh |= fresh;
    q->rebooted |= rebooted;
    if (rebooted) q->far_ns = 0; /* the far clock began anew */
}

static void mark_gap(struct queue *q)
{
    int64_t *row = add_row(q, q->last_ns + IPW_NS_PER_US, 0);

    row[2] = LOST_GAUGES | (q->fresh ? LOST_OWN_ZERO : 0) | (q->rebooted ? LOST_COUNTERS : 0);
    q->gap = q->fresh = q->rebooted = false;
}

/* far_ns: the far clock's time, which must increase (IPW_EPARSE); t_ns: the same on this machine's.
 * A row that is not later than the one before is counted and left out. */
static int queue_row(struct queue *q, int64_t far_ns, int64_t t_ns, int64_t half_ns,
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

/* Nothing has come up to now: adds a failed reading if that is so for long. */
static void queue_fail(struct queue *q, int64_t now_ns)
{
    int64_t silent = 5 * q->period_ns > SILENT_NS ? 5 * q->period_ns : SILENT_NS;

    if (!q->heard_ns) q->heard_ns = now_ns;
    if (now_ns - q->heard_ns < silent || now_ns - q->last_ns < FAIL_NS) return;
    add_row(q, now_ns - now_ns % IPW_NS_PER_US, 0);
    q->gap = true;
}

static bool queue_take(struct queue *q, int64_t *values, int64_t *t_ns, int64_t *half_ns)
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

static void queue_newest(const struct queue *q, int64_t *values)
{
    memcpy(values, q->newest, q->n_channels * sizeof *values);
}

/* ---- the far clock ---- */

static int take_trip(struct hub *h, struct ipw_err *err)
{
    int64_t sent_ns = h->now(), far_ns, back_ns;
    int rc;

    rc = h->fetch.get(&h->kept, h->clock_url, &h->answer, TRIP_MOST, &h->here, err);
    back_ns = h->now();
    h->trip_ns = back_ns + TRIP_NS;
    if (back_ns - sent_ns > TRIP_NS / 10) h->trip_ns = back_ns + 10 * (back_ns - sent_ns);
    if (rc) return rc;
    rc = ipw_stream_clock_read(&far_ns, ipw_buf_str(&h->answer), h->answer.len, err);
    if (rc) return ipw_err_prefix(err, "%.200s", h->clock_url);
    ipw_far_clock_add(&h->clock, sent_ns, far_ns, back_ns);
    return 0;
}

static int take_trips(struct hub *h, int n, struct ipw_err *err)
{
    int64_t begun_ns = h->now();
    int rc = 0;

    /* Over a slow link fewer must do. */
    for (int i = 0; i < n && !rc && (i < HELLO_TRIPS || h->now() - begun_ns < IPW_NS_PER_S); i++)
        rc = take_trip(h, err);
    return rc;
}

/* ---- lines ---- */

/* Without a clock in common the readings that follow would have no times. */
static int greet_again(struct hub *h, const struct ipw_stream_hello *hello, struct ipw_err *err)
{
    bool other = strcmp(h->instance, hello->instance) != 0;

    h->rebooted |= strcmp(h->boot_id, hello->boot_id) != 0;
    if (!ipw_stream_hello_same(&h->hello, hello)) {
        h->dead = true;
        return ipw_fail(err, IPW_EUNSUPPORTED, "the sensors have changed since the start");
    }
    if (other) { /* how many readings it made before we came is unknown */
        h->gap = h->fresh = true;
        h->seq = -1;
    }
    if (h->rebooted) h->clock = (struct ipw_far_clock){0};
    snprintf(h->instance, sizeof h->instance, "%s", hello->instance);
    snprintf(h->boot_id, sizeof h->boot_id, "%s", hello->boot_id);
    return take_trips(h, HELLO_TRIPS, err);
}

static int take_hello(struct hub *h, const char *text, size_t n, struct ipw_err *err)
{
    struct ipw_stream_hello hello;
    int rc = ipw_stream_hello_read(&hello, text, n, err);

    if (rc) return rc;
    h->greeted = true;
    if (!h->hello.channels) {
        h->hello = hello;
        snprintf(h->instance, sizeof h->instance, "%s", hello.instance);
        snprintf(h->boot_id, sizeof h->boot_id, "%s", hello.boot_id);
        return 0;
    }
    rc = greet_again(h, &hello, err);
    ipw_stream_hello_release(&hello);
    return rc;
}

/* What is missing is known to be missing in every sensor, also in those that read later. */
static void tell_gap(struct hub *h)
{
    for (size_t i = 0; h->gap && i < h->hello.n_sources; i++)
        queue_gap(&h->members[i]->queue, h->fresh, h->rebooted);
    h->gap = h->fresh = h->rebooted = false;
}

static int take_row(struct hub *h, const struct ipw_stream_line *line, struct ipw_err *err)
{
    int64_t t_ns, half_ns;

    if (h->seq >= 0 && line->seq <= h->seq)
        return ipw_fail(err, IPW_EPARSE, "seq: %lld after %lld", (long long)line->seq,
                        (long long)h->seq);
    if (h->seq >= 0 && line->seq != h->seq + 1) h->gap = true;
    h->seq = line->seq;
    tell_gap(h);
    if (!ipw_far_clock_at(&h->clock, line->mono_ns, &t_ns, &half_ns) ||
        t_ns - half_ns > h->now() + AHEAD_NS) {
        h->odd++;
        return 0;
    }
    return queue_row(&h->members[line->source]->queue, line->mono_ns, t_ns, half_ns, h->values,
                     err);
}

static int take_line(struct hub *h, const char *text, size_t n, struct ipw_err *err)
{
    struct ipw_stream_line line;
    int rc;

    if (n == 0) return 0;
    if (!h->greeted) return take_hello(h, text, n, err);
    rc = ipw_stream_line_read(&line, h->values, &h->hello, text, n, err);
    if (rc) return rc;
    if (line.is_row) return h->members[0] ? take_row(h, &line, err) : 0;
    h->dropped += (uint64_t)line.dropped;
    h->gap |= line.dropped > 0;
    if (line.seq > 0 && line.seq - 1 > h->seq) h->seq = line.seq - 1;
    return 0;
}

static int take_bytes(struct hub *h, const char *bytes, size_t n, struct ipw_err *err)
{
    int rc = 0;

    while (n && !rc) {
        const char *end = memchr(bytes, '\n', n);
        size_t piece = end ? (size_t)(end - bytes) : n;

        ipw_buf_add(&h->line, bytes, piece);
        if (h->line.failed)
            return ipw_fail(err, IPW_ELIMIT, "a line is over %d KiB", IPW_STREAM_LINE_MAX / 1024);
        if (!end) break;
        rc = take_line(h, ipw_buf_str(&h->line), h->line.len, err);
        ipw_buf_clear(&h->line);
        bytes += piece + 1;
        n -= piece + 1;
    }
    return rc ? ipw_err_prefix(err, "%.200s", h->url) : 0;
}

/* ---- the link ---- */

static void connect_link(struct hub *h)
{
    char *url = h->seq < 0 ? ipw_strdup(h->url)
                           : ipw_asprintf("%s?after=%lld&instance=%s", h->url, (long long)h->seq,
                                          h->instance);

    h->conn = h->link.open(url);
    free(url);
    h->greeted = false;
    h->heard_ns = h->now();
    ipw_buf_clear(&h->line);
}

static void say(struct hub *h, const struct ipw_err *why)
{
    if (!h->members[0]) return;
    ipw_source_set_note(&h->members[0]->source,
                        "%llu break%s of the link, %llu readings dropped, %llu not usable; last: "
                        "%.90s",
                        (unsigned long long)h->breaks, h->breaks == 1 ? "" : "s",
                        (unsigned long long)h->dropped, (unsigned long long)h->odd, why->text);
}

static void disconnect(struct hub *h, const struct ipw_err *why)
{
    h->link.close(h->conn);
    h->conn = NULL;
    h->greeted = false;
    h->breaks++;
    h->retry_ns = h->now() + RETRY_NS;
    say(h, why);
}

/* While a queue is half full nothing is read: the far side waits, and drops what is too old. */
static bool has_room(const struct hub *h)
{
    for (size_t i = 0; i < h->hello.n_sources; i++)
        if (h->members[i] && !h->members[i]->closed &&
            h->members[i]->queue.n > IPW_STREAM_QUEUE / 2)
            return false;
    return true;
}

static int read_link(struct hub *h, struct ipw_err *err)
{
    char piece[PIECE];
    size_t n;
    int rc = 0;

    h->drained = false;
    for (int i = 0; i < PIECES && !rc && has_room(h); i++) {
        rc = h->link.read(h->conn, piece, sizeof piece, &n, err);
        h->drained = !rc && !n;
        if (rc || !n) break;
        h->heard_ns = h->now();
        rc = take_bytes(h, piece, n, err);
        if (!rc) continue;
        h->seq = -1; /* what it said of its numbers is not believed either */
        h->gap = true;
    }
    return rc;
}

static int64_t stall_ns(const struct hub *h)
{
    int64_t most = STALL_NS;

    for (size_t i = 0; i < h->hello.n_sources; i++)
        if (5 * h->hello.sources[i].period_ns > most) most = 5 * h->hello.sources[i].period_ns;
    return most;
}

static void move_on(struct hub *h)
{
    struct ipw_err err = {0};
    int64_t now_ns = h->now();
    int rc;

    if (!h->conn && !h->dead && now_ns >= h->retry_ns) connect_link(h);
    if (!h->conn) return;
    /* Round trips only while the link lives: each waits for its answer. */
    if (h->greeted && now_ns >= h->trip_ns && now_ns - h->heard_ns < IPW_NS_PER_S)
        take_trip(h, &err);
    rc = read_link(h, &err);
    if (!rc && has_room(h) && h->now() - h->heard_ns > stall_ns(h))
        rc = ipw_fail(&err, IPW_ETIMEOUT, "%.200s: nothing came for %.0f s", h->url,
                      ipw_ns_to_s(stall_ns(h)));
    if (rc) disconnect(h, &err);
}

/* ---- the sources ---- */

static int stream_next(struct ipw_source *self, int64_t *values, int64_t *t_ns, int64_t *half_ns)
{
    struct member *m = (struct member *)self;
    struct hub *h = m->hub;
    int rc;

    pthread_mutex_lock(&h->lock);
    if (m->queue.n == 0) move_on(h);
    if (m->queue.n == 0 && (h->drained || !h->conn)) queue_fail(&m->queue, h->now());
    rc = queue_take(&m->queue, values, t_ns, half_ns) ? 1 : h->conn ? 0 : -1;
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static void stream_read(struct ipw_source *self, int64_t *values)
{
    struct member *m = (struct member *)self;
    int64_t t_ns, half_ns;

    while (stream_next(self, values, &t_ns, &half_ns) > 0) continue;
    queue_newest(&m->queue, values);
}

static void free_hub(struct hub *h)
{
    h->link.close(h->conn);
    h->fetch.release(h->kept);
    for (size_t i = 0; i < h->hello.n_sources && h->members[i]; i++) {
        queue_release(&h->members[i]->queue);
        free(h->members[i]);
    }
    ipw_stream_hello_release(&h->hello);
    ipw_buf_release(&h->line);
    ipw_buf_release(&h->answer);
    free(h->url);
    free(h->clock_url);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static void stream_close(struct ipw_source *self)
{
    struct member *m = (struct member *)self;
    struct hub *h = m->hub;
    bool last;

    pthread_mutex_lock(&h->lock);
    m->closed = true;
    last = --h->open == 0;
    pthread_mutex_unlock(&h->lock);
    if (last) free_hub(h);
}

static void add_member(struct hub *h, size_t i)
{
    struct member *m = ipw_calloc(1, sizeof *m);
    struct ipw_source *s = &m->source;

    queue_init(&m->queue, &h->hello, i, h->host, !h->here);
    m->hub = h;
    s->name = "stream";
    s->read = stream_read;
    s->next = stream_next;
    s->close = stream_close;
    s->now = h->now;
    s->machine = h;
    s->period_ns = h->hello.sources[i].period_ns;
    s->channels = m->queue.channels;
    s->n_channels = m->queue.n_channels;
    s->lost = m->queue.lost;
    h->members[i] = m;
    h->open++;
    if (i) h->members[i - 1]->source.also = s;
}

/* ---- opening ---- */

/* "http://host[:port][/path]": the paths /stream and /clock of that server. */
static int take_url(struct hub *h, const char *url, struct ipw_err *err)
{
    const char *path;
    int rc = ipw_page_host(h->host, sizeof h->host, &path, url, err);

    if (rc) return rc;
    if (*path && strcmp(path, "/") && strcmp(path, "/metrics") && strcmp(path, "/stream"))
        return ipw_fail(err, IPW_EINVAL,
                        "%.300s: expected the address of `ipw-agent telemetry --listen`, such as "
                        "http://gpu-box:9440",
                        url);
    h->url = ipw_asprintf("%.*s/stream", (int)(path - url), url);
    h->clock_url = ipw_asprintf("%.*s/clock", (int)(path - url), url);
    return 0;
}

static void pause_shortly(void)
{
    struct timespec ts = {.tv_nsec = 2 * IPW_NS_PER_MS};

    nanosleep(&ts, NULL);
}

static int wait_for_hello(struct hub *h, struct ipw_err *err)
{
    int64_t give_up_ns = h->now() + OPEN_NS;
    int rc = 0;

    connect_link(h);
    while (!rc && !h->greeted) {
        rc = read_link(h, err);
        if (rc || h->greeted) break;
        if (h->now() > give_up_ns)
            rc = ipw_fail(err, IPW_ETIMEOUT, "%.200s: no answer in time", h->url);
        pause_shortly();
    }
    return rc;
}

static bool all_read(const struct hub *h)
{
    for (size_t i = 0; i < h->hello.n_sources; i++)
        if (!h->members[i]->queue.any) return false;
    return true;
}

/* The checks before a run want a value; a sensor that has none yet is not waited for for long. */
static void wait_for_readings(struct hub *h)
{
    int64_t give_up_ns = h->now() + OPEN_NS / 2;

    while (!all_read(h) && h->conn && h->now() < give_up_ns) {
        move_on(h);
        if (!all_read(h)) pause_shortly();
    }
}

static int open_hub(struct hub *h, const char *url, struct ipw_err *err)
{
    int rc = take_url(h, url, err);

    if (!rc) rc = wait_for_hello(h, err);
    if (!rc && h->hello.n_sources == 0)
        rc = ipw_fail(err, IPW_EUNSUPPORTED, "%.200s: that machine has no sensor", h->url);
    if (!rc) rc = take_trips(h, FIRST_TRIPS, err);
    if (rc) return rc;
    for (size_t i = 0; i < h->hello.n_sources; i++) add_member(h, i);
    wait_for_readings(h);
    return 0;
}

int ipw_stream_open(struct ipw_source **out, const struct ipw_source_place *place, const char *url,
                    struct ipw_err *err)
{
    struct hub *h = ipw_calloc(1, sizeof *h);
    int rc;

    *out = NULL;
    pthread_mutex_init(&h->lock, NULL);
    h->now = place->now ? place->now : ipw_now_ns;
    h->link = *place->link;
    h->fetch = *place->fetch;
    h->seq = -1;
    ipw_buf_init(&h->line, IPW_STREAM_LINE_MAX);
    ipw_buf_init(&h->answer, ANSWER_MAX);
    rc = open_hub(h, url, err);
    if (rc < 0) {
        free_hub(h);
        return rc;
    }
    *out = &h->members[0]->source;
    return 0;
}

/* ---- lines ---- */

#define MOST_PERIOD_NS (3600 * IPW_NS_PER_S)
#define MOST_NUMBER    (INT64_C(1) << 61)

static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) *text = ' ';
}

static int need_text(char *out, size_t size, const struct ipw_json *doc, const char *key,
                     struct ipw_err *err)
{
    const char *text;
    int rc = ipw_json_need_str(&text, doc, key, "", err);

    if (rc) return rc;
    if (!*text || strlen(text) >= size)
        return ipw_fail(err, IPW_EPARSE, "%s: expected 1 to %zu characters", key, size - 1);
    snprintf(out, size, "%s", text);
    clean(out);
    return 0;
}

static int need_number(int64_t *out, const struct ipw_json *doc, const char *key, int64_t most,
                       struct ipw_err *err)
{
    int rc = ipw_json_need_int(out, doc, key, "", err);

    if (rc) return rc;
    if (*out < 0 || *out > most)
        return ipw_fail(err, IPW_EPARSE, "%s: %lld is out of range", key, (long long)*out);
    return 0;
}

/* ---- hello ---- */

static int add_channel(struct ipw_stream_hello *h, const struct ipw_json *node, const char *where,
                       struct ipw_err *err)
{
    struct ipw_channel *c;
    int rc;

    if (h->n_channels == IPW_STREAM_CHANNELS_MAX)
        return ipw_fail(err, IPW_ELIMIT, "%s: more than %d channels", where,
                        IPW_STREAM_CHANNELS_MAX);
    c = &h->channels[h->n_channels];
    rc = ipw_channel_read(c, node, where, err);
    if (rc) return rc;
    clean(c->name);
    clean(c->device);
    clean(c->unit);
    if (!c->name[0] || c->kind == IPW_CHANNEL_ESTIMATE || c->period_ns > MOST_PERIOD_NS ||
        c->window_ns > MOST_PERIOD_NS || c->modulus_uj > MOST_NUMBER || c->max_w > 1000000)
        return ipw_fail(err, IPW_EPARSE, "%s: not a channel of a sensor", where);
    for (size_t i = 0; i < h->n_channels; i++)
        if (!strcmp(h->channels[i].name, c->name))
            return ipw_fail(err, IPW_EPARSE, "%s: a second channel '%s'", where, c->name);
    h->n_channels++;
    return 0;
}

static int add_source(struct ipw_stream_hello *h, const struct ipw_json *node, int64_t interval_ns,
                      struct ipw_err *err)
{
    const struct ipw_json *channels;
    size_t at = h->n_sources, first = h->n_channels;
    char where[64];
    int rc;

    if (at == IPW_STREAM_SOURCES_MAX)
        return ipw_fail(err, IPW_ELIMIT, "more than %d sensors", IPW_STREAM_SOURCES_MAX);
    rc = need_text(h->sources[at].name, sizeof h->sources[at].name, node, "name", err);
    if (!rc) rc = need_number(&h->sources[at].period_ns, node, "period_ns", MOST_PERIOD_NS, err);
    if (!rc) rc = ipw_json_need_arr(&channels, node, "channels", "", err);
    if (rc) return rc;
    for (const struct ipw_json *c = ipw_json_first(channels); c && !rc; c = ipw_json_next(c)) {
        snprintf(where, sizeof where, "sources[%zu].channels[%zu]", at, h->n_channels - first);
        rc = add_channel(h, c, where, err);
    }
    if (interval_ns > h->sources[at].period_ns) h->sources[at].period_ns = interval_ns;
    h->sources[at].first = first;
    h->sources[at].n = h->n_channels - first;
    h->n_sources++;
    return rc;
}

int ipw_stream_hello_read(struct ipw_stream_hello *out, const char *text, size_t n,
                          struct ipw_err *err)
{
    const struct ipw_json *power, *sources;
    struct ipw_json *doc = NULL;
    int64_t format = 0, interval_ns = 0;
    int rc = ipw_json_parse(&doc, text, n, NULL, err);

    *out = (struct ipw_stream_hello){0};
    if (rc) return rc;
    out->channels = ipw_calloc(IPW_STREAM_CHANNELS_MAX, sizeof *out->channels);
    rc = need_number(&format, doc, "stream", MOST_NUMBER, err);
    if (!rc && format != IPW_STREAM_FORMAT)
        rc = ipw_fail(err, IPW_EUNSUPPORTED, "format %lld of the stream; this program reads %d",
                      (long long)format, IPW_STREAM_FORMAT);
    if (!rc) rc = need_text(out->boot_id, sizeof out->boot_id, doc, "boot_id", err);
    if (!rc) rc = need_text(out->instance, sizeof out->instance, doc, "instance", err);
    if (!rc) rc = ipw_json_need_obj(&power, doc, "power", "", err);
    if (!rc) rc = need_number(&interval_ns, power, "interval_ns", MOST_PERIOD_NS, err);
    if (!rc) rc = ipw_json_need_arr(&sources, power, "sources", "", err);
    for (const struct ipw_json *s = rc ? NULL : ipw_json_first(sources); s && !rc;
         s = ipw_json_next(s))
        rc = add_source(out, s, interval_ns, err);
    ipw_json_free(doc);
    if (rc) ipw_stream_hello_release(out);
    return rc;
}

void ipw_stream_hello_release(struct ipw_stream_hello *hello)
{
    free(hello->channels);
    *hello = (struct ipw_stream_hello){0};
}

bool ipw_stream_hello_same(const struct ipw_stream_hello *a, const struct ipw_stream_hello *b)
{
    if (a->n_sources != b->n_sources || a->n_channels != b->n_channels) return false;
    for (size_t i = 0; i < a->n_sources; i++)
        if (a->sources[i].n != b->sources[i].n || strcmp(a->sources[i].name, b->sources[i].name))
            return false;
    for (size_t i = 0; i < a->n_channels; i++) {
        const struct ipw_channel *x = &a->channels[i], *y = &b->channels[i];

        if (strcmp(x->name, y->name) || strcmp(x->device, y->device) || x->kind != y->kind ||
            x->domain != y->domain || x->modulus_uj != y->modulus_uj)
            return false;
    }
    return true;
}

/* ---- the other lines ---- */

static int read_values(int64_t *values, size_t n, const struct ipw_json *doc, struct ipw_err *err)
{
    const struct ipw_json *list, *v;
    size_t i = 0;
    int rc = ipw_json_need_arr(&list, doc, "values", "", err);

    if (rc) return rc;
    for (v = ipw_json_first(list); v && i < n; v = ipw_json_next(v), i++) {
        values[i] = IPW_NO_VALUE;
        if (ipw_json_is_null(v)) continue;
        values[i] = ipw_json_kind(v) == IPW_JSON_INT ? ipw_json_int(v, -1) : -1;
        if (values[i] < 0 || values[i] > MOST_NUMBER)
            return ipw_fail(err, IPW_EPARSE, "values[%zu]: not a whole number from 0", i);
    }
    if (v || i != n) return ipw_fail(err, IPW_EPARSE, "values: expected %zu", n);
    return 0;
}

int ipw_stream_line_read(struct ipw_stream_line *out, int64_t *values,
                         const struct ipw_stream_hello *hello, const char *text, size_t n,
                         struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int64_t source = 0;
    int rc = ipw_json_parse(&doc, text, n, NULL, err);

    *out = (struct ipw_stream_line){0};
    if (rc) return rc;
    rc = need_number(&out->seq, doc, "seq", MOST_NUMBER, err);
    if (!rc && ipw_json_get(doc, "dropped")) {
        rc = need_number(&out->dropped, doc, "dropped", MOST_NUMBER, err);
        ipw_json_free(doc);
        return rc;
    }
    out->is_row = true;
    if (!rc) rc = need_number(&out->mono_ns, doc, "mono_ns", MOST_NUMBER, err);
    if (!rc) rc = need_number(&source, doc, "source", INT32_MAX, err);
    if (!rc && (size_t)source >= hello->n_sources)
        rc = ipw_fail(err, IPW_EPARSE, "source: there are %zu", hello->n_sources);
    if (!rc) {
        out->source = (size_t)source;
        rc = read_values(values, hello->sources[source].n, doc, err);
    }
    ipw_json_free(doc);
    return rc;
}

int ipw_stream_clock_read(int64_t *mono_ns, const char *text, size_t n, struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int rc = ipw_json_parse(&doc, text, n, NULL, err);

    if (!rc) rc = need_number(mono_ns, doc, "mono_ns", MOST_NUMBER, err);
    ipw_json_free(doc);
    return rc;
}
