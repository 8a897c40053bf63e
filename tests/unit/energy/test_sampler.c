#include "energy/sampler.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define EVERY(ns) (&(struct ipw_sampler_options){.interval_ns = (ns)})

/* A source whose counter is the number of its reads, and which can be held inside a read. */
struct fake {
    struct ipw_source source;
    struct ipw_channel channels[2];
    atomic_llong reads;
    pthread_mutex_t gate;
    atomic_bool blocked_all; /* the thread that read had all signals blocked */
};

static void fake_read(struct ipw_source *self, int64_t *values)
{
    struct fake *f = (struct fake *)self;
    sigset_t set;

    pthread_mutex_lock(&f->gate);
    pthread_mutex_unlock(&f->gate);
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    atomic_store(&f->blocked_all, sigismember(&set, SIGINT) && sigismember(&set, SIGTERM) &&
                                      sigismember(&set, SIGCHLD));
    values[0] = atomic_fetch_add(&f->reads, 1);
    values[1] = -values[0];
}

static void fake_init(struct fake *f, const char *name, int64_t period_ns)
{
    *f = (struct fake){
        .source = {.name = name, .read = fake_read, .n_channels = 2, .period_ns = period_ns}};
    f->source.channels = f->channels;
    pthread_mutex_init(&f->gate, NULL);
}

/* What a drain saw, checked as it comes: times increase, no reading is missing. */
struct seen {
    int64_t rows[2], last_t[2];
    size_t first[2];
};

static void see(void *ud, const struct ipw_sampler_row *row)
{
    struct seen *seen = ud;

    assert_true(row->source < 2);
    assert_int_equal(row->n, 2);
    assert_int_equal(row->values[0], seen->rows[row->source]);
    assert_int_equal(row->values[1], -seen->rows[row->source]);
    assert_true(row->t_ns > seen->last_t[row->source]);
    assert_true(row->half_ns >= 0);
    seen->last_t[row->source] = row->t_ns;
    seen->first[row->source] = row->first_channel;
    seen->rows[row->source]++;
}

static atomic_int notified;

static void notify(void *ud)
{
    assert_ptr_equal(ud, &notified);
    atomic_fetch_add(&notified, 1);
}

/* Rows come until `enough` of a source were seen, or a minute has passed. */
static void drain_until(struct ipw_sampler *s, struct seen *seen, size_t source, int64_t enough)
{
    int64_t give_up = ipw_now_ns() + S(60);

    while (seen->rows[source] < enough && ipw_now_ns() < give_up) {
        struct timespec nap = {0, 200000};
        ipw_sampler_drain(s, see, seen);
        nanosleep(&nap, NULL);
    }
    assert_true(seen->rows[source] >= enough);
}

static void test_two_sources(void **state)
{
    struct fake a, b;
    struct ipw_source_set set = {.n = 2};
    struct ipw_sampler *s;
    struct seen seen = {0};
    int64_t t0 = ipw_now_ns(), t1, cpu;

    (void)state;
    fake_init(&a, "rapl", 1);
    fake_init(&b, "a name that is too long for a thread", S(0.003));
    set.sources[0] = &a.source;
    set.sources[1] = &b.source;
    atomic_store(&notified, 0);
    assert_int_equal(ipw_sampler_start(&s, &set,
                                       &(struct ipw_sampler_options){.interval_ns = S(0.001),
                                                                     .notify = notify,
                                                                     .ud = &notified},
                                       NULL),
                     0);
    t1 = ipw_now_ns();
    ipw_sampler_drain(s, see, &seen); /* the first reading is there before anything else */
    assert_true(seen.rows[0] >= 1 && seen.rows[1] >= 1);
    assert_true(seen.last_t[0] > t0 && (seen.rows[0] > 1 || seen.last_t[0] < t1));
    drain_until(s, &seen, 0, 50);
    drain_until(s, &seen, 1, 20);
    assert_int_equal(seen.first[0], 0);
    assert_int_equal(seen.first[1], 2);
    assert_true(atomic_load(&a.blocked_all) && atomic_load(&b.blocked_all));
    assert_true(ipw_sampler_cpu_ns(s) > 0);
    t1 = ipw_now_ns();
    ipw_sampler_stop(s);
    cpu = ipw_sampler_cpu_ns(s);
    assert_true(cpu > 0);
    ipw_sampler_drain(s, see, &seen);
    assert_true(seen.last_t[0] >= t1 && seen.last_t[1] >= t1);
    assert_int_equal(seen.rows[0], atomic_load(&a.reads));
    assert_int_equal(seen.rows[1], atomic_load(&b.reads));
    assert_true(atomic_load(&notified) > 0);
    assert_int_equal(ipw_sampler_cpu_ns(s), cpu);
    /* The slower source was not read more often than it can usefully be. */
    assert_true(seen.rows[1] <= (seen.last_t[1] - t0) / S(0.003) + 3);
    ipw_sampler_kick(s); /* nobody there any more: nothing happens */
    ipw_sampler_free(s);
    ipw_sampler_free(NULL);
}

/* A kick brings a reading long before the schedule would. */
static void test_kick(void **state)
{
    struct fake a;
    struct ipw_source_set set = {.n = 1};
    struct ipw_sampler *s;
    struct seen seen = {0};
    int64_t t;

    (void)state;
    fake_init(&a, "rapl", 1000);
    set.sources[0] = &a.source;
    assert_int_equal(ipw_sampler_start(&s, &set, EVERY(S(3600)), NULL), 0);
    for (int i = 1; i <= 20; i++) {
        t = ipw_now_ns();
        ipw_sampler_kick(s);
        drain_until(s, &seen, 0, i + 1);
        assert_true(seen.last_t[0] > t);
    }
    ipw_sampler_free(s); /* stops by itself */
    assert_int_equal(atomic_load(&a.reads), 22);
}

/* A thousand kicks at once are not a thousand readings: a value that cannot have moved is not
 * read again. */
static void test_kicks_are_merged(void **state)
{
    struct fake a;
    struct ipw_source_set set = {.n = 1};
    struct ipw_sampler *s;
    int64_t t = ipw_now_ns(), took;

    (void)state;
    fake_init(&a, "nvml", S(0.02));
    set.sources[0] = &a.source;
    assert_int_equal(ipw_sampler_start(&s, &set, EVERY(S(3600)), NULL), 0);
    for (int i = 0; i < 1000; i++) ipw_sampler_kick(s);
    ipw_sampler_stop(s);
    took = ipw_now_ns() - t;
    assert_true(atomic_load(&a.reads) <= took / S(0.02) + 2);
    ipw_sampler_free(s);
}

/* Spaced, kicks and marks bring no reading before their distance is over; spaced no more, they
 * do. */
static void test_spaced(void **state)
{
    struct fake a;
    struct ipw_source_set set = {.n = 1};
    struct ipw_sampler *s;
    struct seen seen = {0};

    (void)state;
    fake_init(&a, "rapl", 1000);
    a.channels[0] = (struct ipw_channel){
        .kind = IPW_CHANNEL_COUNTER, .domain = IPW_DOMAIN_CPU, .period_ns = 1000};
    set.sources[0] = &a.source;
    assert_int_equal(ipw_sampler_start(&s, &set, EVERY(S(3600)), NULL), 0);
    ipw_sampler_space(NULL, 0);
    ipw_sampler_space(s, S(1800));
    for (int i = 0; i < 10; i++) {
        ipw_sampler_kick(s);
        ipw_sampler_mark(s);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_int_equal(atomic_load(&a.reads), 1);
    ipw_sampler_space(s, 0);
    ipw_sampler_kick(s);
    drain_until(s, &seen, 0, 2);
    ipw_sampler_free(s);
    assert_int_equal(atomic_load(&a.reads), 3);
}

static void publishing_read(struct ipw_source *self, int64_t *values)
{
    struct fake *f = (struct fake *)self;

    atomic_fetch_add(&f->reads, 1);
    values[0] = ipw_now_ns() / S(0.1);
    values[1] = 0;
}

/* Readings at events are paid for like all others: fifty a second, whatever is asked for. */
static void test_kicks_within_the_allowance(void **state)
{
    struct ipw_sampler_options o = {.interval_ns = S(0.05), .adapt = true};
    struct fake a;
    struct ipw_source_set set = {.n = 1};
    struct ipw_sampler *s;
    long long before = 0;
    int64_t t = ipw_now_ns(), from = 0;

    (void)state;
    fake_init(&a, "nvml", S(0.004));
    a.source.read = publishing_read;
    a.channels[0] = (struct ipw_channel){.kind = IPW_CHANNEL_COUNTER, .period_ns = S(0.1)};
    set.sources[0] = &a.source;
    assert_int_equal(ipw_sampler_start(&s, &set, &o, NULL), 0);
    while (ipw_now_ns() < t + S(3.3)) {
        ipw_sampler_kick(s);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (from || ipw_now_ns() < t + S(1.5)) continue;
        from = ipw_now_ns();
        before = atomic_load(&a.reads);
    }
    assert_true((double)(atomic_load(&a.reads) - before) <=
                50 * (double)(ipw_now_ns() - from) / 1e9 + 10);
    ipw_sampler_free(s);
}

/* Case 45: stopped long before the next tick, each source is read once more after the end, so that
 * the last event is enclosed by readings. */
static void test_45_one_more_reading_after_the_end(void **state)
{
    struct fake a, b;
    struct ipw_source_set set = {.n = 2};
    struct ipw_sampler *s;
    struct seen seen = {0};
    int64_t last_event;

    (void)state;
    fake_init(&a, "rapl", 1);
    fake_init(&b, "nvml", S(3600));
    set.sources[0] = &a.source;
    set.sources[1] = &b.source;
    assert_int_equal(ipw_sampler_start(&s, &set, EVERY(S(3600)), NULL), 0);
    last_event = ipw_now_ns();
    ipw_sampler_stop(s);
    ipw_sampler_drain(s, see, &seen);
    assert_int_equal(seen.rows[0], 2); /* the first of all, and the one after the end */
    assert_int_equal(seen.rows[1], 2);
    assert_true(seen.last_t[0] >= last_event && seen.last_t[1] >= last_event);
    ipw_sampler_drain(s, see, &seen);
    assert_int_equal(seen.rows[0] + seen.rows[1], 4);
    ipw_sampler_free(s);
}

/* Case 44: a thread that was held up for many ticks does not catch up in a burst. */
static void test_44_missed_ticks_are_skipped(void **state)
{
    struct fake a;
    struct ipw_source_set set = {.n = 1};
    struct ipw_sampler *s;
    struct seen seen = {0};
    struct timespec second = {0, 300000000};
    int64_t started, reads, took;

    (void)state;
    fake_init(&a, "rapl", 1);
    set.sources[0] = &a.source;
    started = ipw_now_ns();
    assert_int_equal(ipw_sampler_start(&s, &set, EVERY(S(0.01)), NULL), 0);
    drain_until(s, &seen, 0, 3);
    pthread_mutex_lock(&a.gate); /* the next read takes 30 ticks */
    nanosleep(&second, NULL);
    pthread_mutex_unlock(&a.gate);
    drain_until(s, &seen, 0, seen.rows[0] + 5);
    ipw_sampler_stop(s);
    took = ipw_now_ns() - started;
    reads = atomic_load(&a.reads);
    /* At most a reading a tick, less those of the hole; the first and the last are extra. */
    assert_true(reads <= (took - S(0.28)) / S(0.01) + 3);
    ipw_sampler_drain(s, see, &seen);
    assert_int_equal(seen.rows[0], reads);
    ipw_sampler_free(s);
}

/* Reads until the ring is full and one row waits in the thread's hand. */
static struct ipw_sampler *fill(struct fake *a, struct ipw_source_set *set)
{
    struct timespec nap = {0, 1000000};
    int64_t give_up = ipw_now_ns() + S(60);
    struct ipw_sampler *s;

    fake_init(a, "rapl", 1);
    *set = (struct ipw_source_set){.n = 1, .sources = {&a->source}};
    assert_int_equal(ipw_sampler_start(&s, set, EVERY(1000), NULL), 0);
    while (atomic_load(&a->reads) < (int64_t)IPW_SAMPLER_ROWS + 1 && ipw_now_ns() < give_up) {
        nanosleep(&nap, NULL);
    }
    nap.tv_nsec = 20000000;
    nanosleep(&nap, NULL); /* time for one too many, if there could be one */
    assert_int_equal(atomic_load(&a->reads), IPW_SAMPLER_ROWS + 1);
    return s;
}

/* Case 47: nobody drains: the ring does not grow, and no reading is dropped. */
static void test_47_full_ring_waits(void **state)
{
    struct fake a;
    struct ipw_source_set set;
    struct ipw_sampler *s = fill(&a, &set);
    struct seen seen = {0};

    (void)state;
    ipw_sampler_drain(s, see, &seen);
    drain_until(s, &seen, 0, 3 * (int64_t)IPW_SAMPLER_ROWS); /* goes on, through the ring's end */
    ipw_sampler_stop(s);
    ipw_sampler_drain(s, see, &seen);
    assert_int_equal(seen.rows[0], atomic_load(&a.reads));
    ipw_sampler_free(s);
}

/* Stopped while it waits for room: the row in hand and the last one are both there. */
static void test_stop_with_a_full_ring(void **state)
{
    struct fake a;
    struct ipw_source_set set;
    struct ipw_sampler *s = fill(&a, &set);
    struct seen seen = {0};

    (void)state;
    ipw_sampler_stop(s);
    ipw_sampler_drain(s, see, &seen);
    assert_int_equal(seen.rows[0], IPW_SAMPLER_ROWS + 2);
    assert_int_equal(atomic_load(&a.reads), IPW_SAMPLER_ROWS + 2);
    ipw_sampler_free(s);
}

/* A mark reads CPU counters at once, on this thread; a GPU's are left alone, and so is what was
 * just read. */
static void test_mark(void **state)
{
    struct fake cpu, gpu;
    struct ipw_source_set set = {.n = 2};
    struct ipw_sampler *s;
    struct seen seen = {0};
    struct timespec nap = {0, 2000000};
    int64_t t;

    (void)state;
    fake_init(&cpu, "rapl", 1);
    fake_init(&gpu, "nvml", 1);
    cpu.channels[1].kind = gpu.channels[0].kind = IPW_CHANNEL_COUNTER;
    cpu.channels[1].domain = IPW_DOMAIN_CPU;
    cpu.channels[1].period_ns = S(0.001);
    gpu.channels[0].period_ns = S(0.1);
    set.sources[0] = &cpu.source;
    set.sources[1] = &gpu.source;
    assert_int_equal(ipw_sampler_start(&s, &set, EVERY(S(3600)), NULL), 0);
    for (int i = 1; i <= 10; i++) {
        t = ipw_now_ns();
        ipw_sampler_mark(s);
        assert_int_equal(atomic_load(&cpu.reads), i + 1);
        ipw_sampler_drain(s, see, &seen);
        assert_int_equal(seen.rows[0], i + 1);
        /* Stamps are rounded up to whole microseconds. */
        assert_true(seen.last_t[0] >= t && seen.last_t[0] < ipw_now_ns() + 1000);
        nanosleep(&nap, NULL);
    }
    assert_int_equal(atomic_load(&gpu.reads), 1);
    cpu.source.period_ns = S(3600); /* cannot have moved since */
    ipw_sampler_mark(s);
    assert_int_equal(atomic_load(&cpu.reads), 11);
    ipw_sampler_stop(s);
    ipw_sampler_mark(s); /* over: nothing */
    ipw_sampler_mark(NULL);
    assert_int_equal(atomic_load(&cpu.reads), 12);
    ipw_sampler_free(s);
}

/* Marks and the thread's own readings at once: in order, none lost (for the thread sanitizer). */
static void test_marks_beside_readings(void **state)
{
    struct fake a;
    struct ipw_source_set set = {.n = 1};
    struct ipw_sampler *s;
    struct seen seen = {0};
    int64_t give_up = ipw_now_ns() + S(60);

    (void)state;
    fake_init(&a, "rapl", 1);
    a.channels[0].kind = IPW_CHANNEL_COUNTER;
    a.channels[0].domain = IPW_DOMAIN_CPU;
    a.channels[0].period_ns = 1;
    set.sources[0] = &a.source;
    assert_int_equal(ipw_sampler_start(&s, &set, EVERY(20000), NULL), 0);
    while (seen.rows[0] < 20000 && ipw_now_ns() < give_up) {
        for (int i = 0; i < 50; i++) ipw_sampler_mark(s);
        ipw_sampler_drain(s, see, &seen);
    }
    assert_true(seen.rows[0] >= 20000);
    ipw_sampler_stop(s);
    ipw_sampler_drain(s, see, &seen);
    assert_int_equal(seen.rows[0], atomic_load(&a.reads));
    ipw_sampler_free(s);
}

/* A clock that jumps to where somebody waits for: eight hours pass in a second. */
struct jump {
    atomic_llong t;
    long long stall_at, stall; /* once: the machine does not run us for so long */
};

static int64_t jump_now(void *clock) { return atomic_fetch_add(&((struct jump *)clock)->t, 1); }

static void jump_sleep(void *clock, int64_t t_ns)
{
    struct jump *j = clock;

    if (t_ns < atomic_load(&j->t)) return;
    if (j->stall && t_ns >= j->stall_at) {
        t_ns += j->stall;
        j->stall = 0;
    }
    atomic_store(&j->t, t_ns);
}

struct gaps {
    struct seen seen;
    int n;
    struct ipw_sampler_gap last;
};

static void on_gap(void *ud, const struct ipw_sampler_gap *gap)
{
    struct gaps *g = ud;

    g->n++;
    g->last = *gap;
}

static void see_gaps(void *ud, const struct ipw_sampler_row *row)
{
    see(&((struct gaps *)ud)->seen, row);
}

/* Cases 47 and 48: eight hours at 20 Hz, drained by somebody slow: each reading arrives, and the
 * memory is that of the ring. */
static void test_48_eight_hours_nothing_dropped(void **state)
{
    struct fake a;
    struct jump jump = {.t = S(100)};
    struct ipw_source_set set = {.n = 1};
    struct ipw_sampler *s;
    struct gaps gaps = {0};
    struct ipw_sampler_options o = {.interval_ns = S(0.05),
                                    .gap = on_gap,
                                    .ud = &gaps,
                                    .now = jump_now,
                                    .sleep_until = jump_sleep,
                                    .clock = &jump};
    const int64_t rows = 8 * 3600 * 20;
    int64_t give_up = ipw_now_ns() + S(100);

    (void)state;
    fake_init(&a, "rapl", 1);
    set.sources[0] = &a.source;
    assert_int_equal(ipw_sampler_start(&s, &set, &o, NULL), 0);
    while (gaps.seen.rows[0] < rows && ipw_now_ns() < give_up)
        ipw_sampler_drain(s, see_gaps, &gaps);
    assert_true(gaps.seen.rows[0] >= rows);
    ipw_sampler_stop(s);
    ipw_sampler_drain(s, see_gaps, &gaps);
    assert_int_equal(gaps.seen.rows[0], atomic_load(&a.reads));
    assert_true(gaps.seen.last_t[0] >= S(100) + 8 * S(3600));
    assert_int_equal(gaps.n, 0);
    ipw_sampler_free(s);
}

/* Case 47: eight zones at 1 kHz for a minute (of the clock that jumps): every reading arrives, and
 * nothing is allocated on the way. */
struct zones {
    struct ipw_source source;
    struct ipw_channel channels[8];
    int64_t reads;
};

static void zones_read(struct ipw_source *self, int64_t *values)
{
    struct zones *z = (struct zones *)self;

    for (int i = 0; i < 8; i++) values[i] = z->reads * (i + 1);
    z->reads++;
}

static void see_zones(void *ud, const struct ipw_sampler_row *row)
{
    int64_t *rows = ud;

    assert_int_equal(row->n, 8);
    for (int i = 0; i < 8; i++) assert_int_equal(row->values[i], *rows * (i + 1));
    ++*rows;
}

static void test_47_eight_zones_at_1_khz(void **state)
{
    struct zones z = {
        .source = {.name = "rapl", .read = zones_read, .n_channels = 8, .period_ns = 1}};
    struct jump jump = {.t = S(100)};
    struct ipw_source_set set = {.n = 1, .sources = {&z.source}};
    struct ipw_sampler *s;
    struct ipw_sampler_options o = {
        .interval_ns = S(0.001), .now = jump_now, .sleep_until = jump_sleep, .clock = &jump};
    int64_t rows = 0, give_up = ipw_now_ns() + S(60);
    size_t before;

    (void)state;
    z.source.channels = z.channels;
    assert_int_equal(ipw_sampler_start(&s, &set, &o, NULL), 0);
    while (rows < 1000 && ipw_now_ns() < give_up) ipw_sampler_drain(s, see_zones, &rows);
    before = mallinfo2().uordblks; /* with a sanitizer's allocator: 0, and 0 below */
    while (rows < 60000 && ipw_now_ns() < give_up) ipw_sampler_drain(s, see_zones, &rows);
    assert_true(rows >= 60000);
    assert_int_equal(mallinfo2().uordblks, before);
    ipw_sampler_stop(s);
    ipw_sampler_drain(s, see_zones, &rows);
    assert_int_equal(rows, z.reads);
    assert_true(atomic_load(&jump.t) >= S(160));
    ipw_sampler_free(s);
}

/* Case 44: a second without us is noted with its ends, and once. */
static void test_44_starvation_is_noted(void **state)
{
    struct fake a;
    struct jump jump = {.t = S(100), .stall_at = S(110), .stall = S(1)};
    struct ipw_source_set set = {.n = 1};
    struct ipw_sampler *s;
    struct gaps gaps = {0};
    struct ipw_sampler_options o = {.interval_ns = S(0.05),
                                    .gap = on_gap,
                                    .ud = &gaps,
                                    .now = jump_now,
                                    .sleep_until = jump_sleep,
                                    .clock = &jump};
    int64_t give_up = ipw_now_ns() + S(60);

    (void)state;
    fake_init(&a, "rapl", 1);
    set.sources[0] = &a.source;
    assert_int_equal(ipw_sampler_start(&s, &set, &o, NULL), 0);
    while (gaps.seen.rows[0] < 1000 && ipw_now_ns() < give_up)
        ipw_sampler_drain(s, see_gaps, &gaps);
    ipw_sampler_stop(s);
    assert_int_equal(gaps.n, 1);
    assert_int_equal(gaps.last.source, 0);
    assert_true(gaps.last.to_ns - gaps.last.from_ns >= S(1));
    assert_true(gaps.last.to_ns - gaps.last.from_ns < S(1.1));
    assert_true(gaps.last.from_ns < S(110) && gaps.last.to_ns > S(110));
    assert_false(gaps.last.slow_read);
    ipw_sampler_free(s);
}

static void test_no_sources_and_bad_interval(void **state)
{
    struct ipw_source_set set = {0};
    struct ipw_sampler *s;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_sampler_start(&s, &set, EVERY(S(0.1)), &err), 0);
    ipw_sampler_kick(s);
    ipw_sampler_drain(s, see, NULL);
    assert_int_equal(ipw_sampler_cpu_ns(s), 0);
    ipw_sampler_stop(s);
    ipw_sampler_free(s);
    assert_int_equal(ipw_sampler_start(&s, &set, EVERY(0), &err), IPW_EINVAL);
    assert_null(s);
}

UNIT(sampler)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sources),
        cmocka_unit_test(test_kick),
        cmocka_unit_test(test_kicks_are_merged),
        cmocka_unit_test(test_kicks_within_the_allowance),
        cmocka_unit_test(test_spaced),
        cmocka_unit_test(test_45_one_more_reading_after_the_end),
        cmocka_unit_test(test_44_missed_ticks_are_skipped),
        cmocka_unit_test(test_47_full_ring_waits),
        cmocka_unit_test(test_stop_with_a_full_ring),
        cmocka_unit_test(test_mark),
        cmocka_unit_test(test_marks_beside_readings),
        cmocka_unit_test(test_47_eight_zones_at_1_khz),
        cmocka_unit_test(test_48_eight_hours_nothing_dropped),
        cmocka_unit_test(test_44_starvation_is_noted),
        cmocka_unit_test(test_no_sources_and_bad_interval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
