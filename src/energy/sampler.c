#include "energy/sampler.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/poll_rate.h"

/* The last two rows of a ring are reserved for a thread that must stop while the ring is full: the
 * row it holds, and the last reading.  So stopping never waits for a drain. */
#define RING_ROWS (IPW_SAMPLER_ROWS + 2)
#define NOTIFY_NS (20 * IPW_NS_PER_MS)
#define GAP_NS    (250 * IPW_NS_PER_MS)
#define FAST_NS   (2 * IPW_NS_PER_MS)

/* Of a source whose readings have their own times: how often it is asked for those that have come,
 * and how long the last one is waited for. */
#define ASK_NS  (20 * IPW_NS_PER_MS)
#define LAST_NS (3 * IPW_NS_PER_S)

/* In the ring alone: no value, because the device is lost. */
#define LOST_VALUE (IPW_NO_VALUE + 1)

/* A reading that took this much longer than four usual ones was interrupted; take it again. */
#define DISTURBED_NS  (200 * IPW_NS_PER_US)
#define MOST_READINGS 3

/* A row in the ring is t_ns, half_ns, then the values. */
struct worker {
    struct ipw_sampler *sampler;
    struct ipw_source *source;
    size_t index, first_channel;
    bool marked;   /* has CPU counters for ipw_sampler_mark() */
    int64_t *ring; /* RING_ROWS rows of `stride` */
    size_t stride;
    atomic_size_t head; /* number of rows ever written; only written under `reading` */
    atomic_size_t tail; /* number of rows ever taken; only written by the drain */
    /* The newest row that was taken; used by the drain only, like the next one. */
    int64_t drained_ns;
    bool *lost; /* which channels were lost in that row; NULL: the source does not report losses */

    /* Held from before a reading until its row is in the ring, so that rows are in order of time,
     * whichever thread reads.  It then also protects the next three members. */
    pthread_mutex_t reading;
    int64_t *row;                /* the row being read */
    int64_t quick_ns;            /* duration of an undisturbed reading; 0: none yet */
    atomic_int_fast64_t read_ns; /* when it was read */
    int64_t notified_ns;
    struct ipw_poll_rate pace;
    atomic_int_fast64_t poll_ns; /* the pace's interval, for other threads */
    atomic_int_fast64_t rest_ns; /* no reading outside the schedule for so long: none is left */

    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool kicked, stopping; /* protected by `lock`, like: */
    int64_t deadline_ns;   /* the thread sleeps until then; INT64_MIN: it does not sleep */
    atomic_bool waiting;   /* the thread waits for room in the ring */
    pthread_t thread;
    bool started;
    clockid_t clock;
    atomic_int_fast64_t cpu_ns; /* final value; -1 while the thread runs */
};

struct ipw_sampler {
    struct worker *workers;
    size_t n;
    struct ipw_sampler_options o;
    atomic_int_fast64_t apart_ns; /* minimum distance of readings outside the schedule */
};

static int64_t now_of(const struct worker *w)
{
    const struct ipw_sampler_options *o = &w->sampler->o;

    return o->now ? o->now(o->clock) : ipw_now_ns();
}

/* Was the reader interrupted during the reading?  Then the instant of its values is unknown, and
 * bounds based on its time would be wrong. */
static bool was_disturbed(const struct worker *w, int64_t took_ns)
{
    return w->sampler->o.retake && w->quick_ns > 0 && took_ns > 4 * w->quick_ns + DISTURBED_NS;
}

/* The recent minimum.  It creeps up, so that it follows a driver that became slower. */
static void learn_duration(struct worker *w, int64_t took_ns)
{
    int64_t creep = w->quick_ns + w->quick_ns / 16 + 1;

    w->quick_ns = !w->quick_ns || took_ns < creep ? took_ns + 1 : creep;
}

static void take_reading(struct worker *w)
{
    int64_t begun = now_of(w), before = begun, after = 0, mid;

    for (int i = 0; i < MOST_READINGS; i++) {
        if (i > 0) before = after;
        w->source->read(w->source, w->row + 2);
        after = now_of(w);
        if (!was_disturbed(w, after - before)) break;
    }
    learn_duration(w, after - before);
    /* A reading takes longer than a microsecond, so finer digits would be noise on disk.  Round up,
     * so that the stamp does not lie before the event that the reading followed. */
    mid = before + (after - before) / 2 + IPW_NS_PER_US - 1;
    mid -= mid % IPW_NS_PER_US;
    w->row[0] = mid > w->row[0] ? mid : w->row[0] + IPW_NS_PER_US;
    w->row[1] = (after - begun) / 2;
    atomic_store_explicit(&w->read_ns, before, memory_order_relaxed);
    ipw_poll_rate_push(&w->pace, w->row[0], w->row + 2);
    atomic_store_explicit(&w->poll_ns, w->pace.poll_ns, memory_order_relaxed);
    atomic_store_explicit(&w->rest_ns, ipw_poll_rate_rest(&w->pace), memory_order_relaxed);
}

static bool has_room(struct worker *w, size_t limit)
{
    return atomic_load_explicit(&w->head, memory_order_relaxed) -
               atomic_load_explicit(&w->tail, memory_order_acquire) <
           limit;
}

static void put_row(struct worker *w)
{
    size_t head = atomic_load_explicit(&w->head, memory_order_relaxed);

    memcpy(w->ring + head % RING_ROWS * w->stride, w->row, w->stride * sizeof *w->row);
    for (size_t i = 0; w->lost && i < w->source->n_channels; i++) {
        int64_t *value = &w->ring[head % RING_ROWS * w->stride + 2 + i];

        if (*value == IPW_NO_VALUE && w->source->lost[i]) *value = LOST_VALUE;
    }
    atomic_store_explicit(&w->head, head + 1, memory_order_release);
}

/* Wakes the owner: at once after a kick, else from time to time. */
static void tell(struct worker *w, bool awaited)
{
    const struct ipw_sampler_options *o = &w->sampler->o;

    if (!o->notify) return;
    if (!awaited && w->row[0] - w->notified_ns < NOTIFY_NS && has_room(w, IPW_SAMPLER_ROWS / 2))
        return;
    w->notified_ns = w->row[0];
    o->notify(o->ud);
}

/* Waits until the drain has made room in the ring, or until the end, for which room is reserved.
 * `waiting` and `tail` are sequentially consistent here: either the drain sees that we wait, or we
 * see that it made room. */
static void wait_for_room(struct worker *w)
{
    if (has_room(w, IPW_SAMPLER_ROWS)) return;
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->waiting, true);
    while (!w->stopping && atomic_load(&w->head) - atomic_load(&w->tail) >= IPW_SAMPLER_ROWS) {
        pthread_cond_wait(&w->wake, &w->lock);
    }
    atomic_store(&w->waiting, false);
    pthread_mutex_unlock(&w->lock);
}

/* Takes the readings that have come, of a source that tells their times.  Returns what its next()
 * said last. */
static int take_stamped(struct worker *w)
{
    int64_t newest_ns = w->row[0], t_ns, half_ns;
    int more = 1;

    atomic_store_explicit(&w->read_ns, now_of(w), memory_order_relaxed);
    for (size_t i = 0; i < IPW_SAMPLER_ROWS && more > 0; i++) {
        more = has_room(w, RING_ROWS) ? w->source->next(w->source, w->row + 2, &t_ns, &half_ns)
                                      : -1; /* only at the end: nobody drains any more */
        if (more <= 0) break;
        w->row[0] = t_ns;
        w->row[1] = half_ns;
        wait_for_room(w);
        put_row(w);
    }
    if (w->row[0] != newest_ns) tell(w, true);
    return more;
}

/* The end of the run lies before the last reading, as with other sources. */
static void take_last_stamped(struct worker *w)
{
    int64_t end_ns = now_of(w), give_up_ns = end_ns + LAST_NS;
    struct timespec pause = {.tv_nsec = ASK_NS / 2};

    while (take_stamped(w) >= 0 && w->row[0] < end_ns && now_of(w) < give_up_ns)
        nanosleep(&pause, NULL);
}

static void take_one(struct worker *w, bool awaited)
{
    if (w->source->next) {
        take_stamped(w);
        return;
    }
    take_reading(w);
    wait_for_room(w);
    put_row(w);
    tell(w, awaited);
}

static int64_t kick_time(const struct worker *w)
{
    int64_t apart = atomic_load_explicit(&w->sampler->apart_ns, memory_order_relaxed);
    int64_t rest = atomic_load_explicit(&w->rest_ns, memory_order_relaxed);

    if (apart < rest) apart = rest;
    if (apart < w->source->period_ns) apart = w->source->period_ns;
    return atomic_load_explicit(&w->read_ns, memory_order_relaxed) + apart;
}

/* Sleeps until the deadline, a kick or the end; returns false at the end.  *kicked: a caller waits
 * for the reading. */
static bool sleep_until(struct worker *w, int64_t deadline_ns, bool *kicked)
{
    const struct ipw_sampler_options *o = &w->sampler->o;
    bool go_on;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        int64_t until = deadline_ns;
        struct timespec ts;

        if (w->stopping) break;
        /* A kick asks for an early reading, but not before the value can have moved. */
        if (w->kicked && kick_time(w) < until) until = kick_time(w);
        w->deadline_ns = until;
        if (now_of(w) >= until) break;
        if (o->sleep_until) {
            pthread_mutex_unlock(&w->lock);
            o->sleep_until(o->clock, until);
            pthread_mutex_lock(&w->lock);
            continue;
        }
        ts.tv_sec = (time_t)(until / IPW_NS_PER_S);
        ts.tv_nsec = (long)(until % IPW_NS_PER_S);
        pthread_cond_timedwait(&w->wake, &w->lock, &ts);
    }
    *kicked = w->kicked;
    w->kicked = false;
    w->deadline_ns = INT64_MIN;
    go_on = !w->stopping;
    pthread_mutex_unlock(&w->lock);
    return go_on;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    int64_t deadline;
    bool awaited;

    /* By default the kernel may wake us 50 us late, to wake several sleepers at once.  Precise
     * wake-ups make the distances of readings even.  (If refused, we are as late as other
     * programs.) */
    (void)prctl(PR_SET_TIMERSLACK, 1);
    deadline = ipw_poll_rate_next(&w->pace, now_of(w));
    while (sleep_until(w, deadline, &awaited)) {
        pthread_mutex_lock(&w->reading);
        take_one(w, awaited);
        deadline = ipw_poll_rate_next(&w->pace, now_of(w));
        pthread_mutex_unlock(&w->reading);
    }
    pthread_mutex_lock(&w->reading);
    if (w->source->next)
        take_last_stamped(w);
    else
        take_one(w, true);
    pthread_mutex_unlock(&w->reading);
    atomic_store(&w->cpu_ns, ipw_cpu_thread_ns());
    return NULL;
}

static void worker_init(struct worker *w)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->reading, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attr);
    pthread_condattr_destroy(&attr);
    atomic_init(&w->head, 0);
    atomic_init(&w->tail, 0);
    atomic_init(&w->waiting, false);
    atomic_init(&w->cpu_ns, -1);
}

/* Take the first reading here, so that it lies before all later actions of the caller. */
static int worker_start(struct worker *w, struct ipw_err *err)
{
    char name[16];
    int rc;

    ipw_poll_rate_init(&w->pace, w->source, w->sampler->o.interval_ns, w->sampler->o.adapt,
                       now_of(w));
    if (w->source->next) {
        w->pace.n = 0; /* nothing is to be learned from when it is asked */
        w->pace.poll_ns = ASK_NS;
        atomic_store_explicit(&w->poll_ns, w->source->period_ns, memory_order_relaxed);
    }
    take_one(w, true);
    rc = pthread_create(&w->thread, NULL, work, w);
    if (rc) return ipw_fail_errno(err, rc, "starting the sampler thread of %s", w->source->name);
    w->started = true;
    snprintf(name, sizeof name, "ipw-%.10s", w->source->name);
    pthread_setname_np(w->thread, name);
    if (pthread_getcpuclockid(w->thread, &w->clock)) w->clock = -1;
    return 0;
}

static bool is_cpu_counter(const struct ipw_channel *c)
{
    return c->kind == IPW_CHANNEL_COUNTER && !c->remote && c->period_ns > 0 &&
           c->period_ns <= FAST_NS &&
           (c->domain == IPW_DOMAIN_CPU || c->domain == IPW_DOMAIN_DRAM ||
            c->scope == IPW_SCOPE_PLATFORM);
}

static void worker_set(struct worker *w, struct ipw_sampler *s, struct ipw_source *source)
{
    w->sampler = s;
    w->source = source;
    w->stride = source->n_channels + 2;
    w->ring = ipw_malloc(RING_ROWS * w->stride * sizeof *w->ring);
    w->row = ipw_calloc(w->stride, sizeof *w->row);
    if (source->lost) w->lost = ipw_calloc(source->n_channels + 1, sizeof *w->lost);
    for (size_t i = 0; i < source->n_channels; i++)
        w->marked |= !source->next && is_cpu_counter(&source->channels[i]);
    w->deadline_ns = INT64_MIN;
    worker_init(w);
}

int ipw_sampler_start(struct ipw_sampler **out, const struct ipw_source_set *set,
                      const struct ipw_sampler_options *options, struct ipw_err *err)
{
    struct ipw_sampler *s;
    sigset_t all, old;
    size_t first = 0;
    int rc = 0;

    *out = NULL;
    if (options->interval_ns <= 0)
        return ipw_fail(err, IPW_EINVAL, "sampling interval must be above 0");
    s = ipw_calloc(1, sizeof *s);
    s->n = set->n;
    s->o = *options;
    s->workers = ipw_calloc(s->n, sizeof *s->workers);
    for (size_t i = 0; i < s->n; i++) {
        struct worker *w = &s->workers[i];
        worker_set(w, s, set->sources[i]);
        w->index = i;
        w->first_channel = first;
        first += w->source->n_channels;
    }
    /* The main thread handles signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    for (size_t i = 0; i < s->n && rc == 0; i++) rc = worker_start(&s->workers[i], err);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc < 0) {
        ipw_sampler_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

static void wake_worker(struct worker *w, bool stop)
{
    pthread_mutex_lock(&w->lock);
    if (stop) w->stopping = true;
    w->kicked = true;
    if (stop || kick_time(w) < w->deadline_ns) pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

void ipw_sampler_kick(struct ipw_sampler *s)
{
    for (size_t i = 0; i < s->n; i++) wake_worker(&s->workers[i], false);
}

void ipw_sampler_space(struct ipw_sampler *s, int64_t apart_ns)
{
    if (s) atomic_store_explicit(&s->apart_ns, apart_ns, memory_order_relaxed);
}

/* A reading on this thread is exact to its own duration (RAPL: some 10 us).  Waking the reader
 * thread costs about as much and comes later.  The two rows reserved for `stop` stay free: a full
 * ring waits for the drain, which the caller does anyway. */
void ipw_sampler_mark(struct ipw_sampler *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++) {
        struct worker *w = &s->workers[i];

        if (!w->marked || !w->started || now_of(w) < kick_time(w)) continue;
        if (pthread_mutex_trylock(&w->reading)) continue;
        if (has_room(w, IPW_SAMPLER_ROWS)) {
            take_reading(w);
            put_row(w);
        }
        pthread_mutex_unlock(&w->reading);
    }
}

static void check_gap(struct ipw_sampler *s, struct worker *w, int64_t t_ns, int64_t half_ns)
{
    int64_t from = w->drained_ns,
            most = 5 * atomic_load_explicit(&w->poll_ns, memory_order_relaxed);
    struct ipw_sampler_gap gap = {w->index, from, t_ns, false};

    w->drained_ns = t_ns;
    if (!s->o.gap || !from) return;
    if (t_ns - from <= (most > GAP_NS ? most : GAP_NS)) return;
    gap.slow_read = half_ns > (t_ns - from) / 4;
    s->o.gap(s->o.ud, &gap);
}

/* The drain may write to the rows between tail and head. */
static void check_losses(struct ipw_sampler *s, struct worker *w, int64_t t_ns, int64_t *values)
{
    for (size_t i = 0; w->lost && i < w->source->n_channels; i++) {
        bool lost = values[i] == LOST_VALUE;
        struct ipw_sampler_loss loss = {w->index, w->first_channel + i, t_ns, !lost};

        if (lost) values[i] = IPW_NO_VALUE;
        if (lost == w->lost[i]) continue;
        if (!lost && values[i] == IPW_NO_VALUE) continue; /* found again, but not read yet */
        w->lost[i] = lost;
        if (s->o.loss) s->o.loss(s->o.ud, &loss);
    }
}

void ipw_sampler_drain(struct ipw_sampler *s,
                       void (*row)(void *ud, const struct ipw_sampler_row *row), void *ud)
{
    for (size_t i = 0; i < s->n; i++) {
        struct worker *w = &s->workers[i];
        size_t tail = atomic_load_explicit(&w->tail, memory_order_relaxed);
        size_t head = atomic_load_explicit(&w->head, memory_order_acquire);

        if (tail == head) continue;
        for (; tail != head; tail++) {
            int64_t *at = w->ring + tail % RING_ROWS * w->stride;
            struct ipw_sampler_row r = {.source = w->index,
                                        .first_channel = w->first_channel,
                                        .n = w->source->n_channels,
                                        .t_ns = at[0],
                                        .half_ns = at[1],
                                        .values = at + 2};
            check_gap(s, w, r.t_ns, r.half_ns);
            check_losses(s, w, r.t_ns, at + 2);
            row(ud, &r);
        }
        atomic_store(&w->tail, tail);
        if (atomic_load(&w->waiting)) {
            pthread_mutex_lock(&w->lock);
            pthread_cond_signal(&w->wake);
            pthread_mutex_unlock(&w->lock);
        }
    }
}

void ipw_sampler_stop(struct ipw_sampler *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->workers[i].started) wake_worker(&s->workers[i], true);
    }
    for (size_t i = 0; i < s->n; i++) {
        if (!s->workers[i].started) continue;
        pthread_join(s->workers[i].thread, NULL);
        s->workers[i].started = false;
    }
}

int64_t ipw_sampler_cpu_ns(const struct ipw_sampler *s)
{
    int64_t sum = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct worker *w = &s->workers[i];
        int64_t done = atomic_load(&w->cpu_ns);
        struct timespec ts;

        if (done >= 0) {
            sum += done;
        } else if (w->started && clock_gettime(w->clock, &ts) == 0) {
            sum += (int64_t)ts.tv_sec * IPW_NS_PER_S + ts.tv_nsec;
        }
    }
    return sum;
}

void ipw_sampler_free(struct ipw_sampler *s)
{
    if (!s) return;
    ipw_sampler_stop(s);
    for (size_t i = 0; i < s->n; i++) {
        struct worker *w = &s->workers[i];
        pthread_mutex_destroy(&w->lock);
        pthread_mutex_destroy(&w->reading);
        pthread_cond_destroy(&w->wake);
        free(w->ring);
        free(w->row);
        free(w->lost);
    }
    free(s->workers);
    free(s);
}
