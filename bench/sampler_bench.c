/* sampler_bench: what reading the sensors costs.
 *
 *   sampler_bench [SECONDS]      (default 3 for each rate)
 *
 * Over a powercap tree of 8 zones in a temporary folder (plain files: a real zone adds its register
 * read): CPU of the sampler's thread and lateness of readings against the schedule at 1, 10 and 100
 * ms, beside that of a thread which does nothing but clock_nanosleep() at the same time; the CPU is
 * also given for the cheapest tenth of stretches of 50 ms, which is about what a machine without
 * other load would show; what a reading of all zones costs by itself, without waking up for it (the
 * cheapest of batches); what readings take on disk when the counters move as they do under load
 * (made up: registers of 61 uJ that move every millisecond or so, power that wobbles and jumps);
 * the cost of a mark that only looks at the clock and of one that reads all zones; and eight hours
 * at 20 Hz on a clock that jumps, in how much memory, with how much lost. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "energy/sampler.h"
#include "energy/sources/rapl.h"
#include "trace/power.h"

enum { ZONES = 8, MARKS = 20000 };

static char root[] = "/tmp/ipw-sampler-bench-XXXXXX";

static void put(const char *dir, const char *file, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, file);
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) {
        perror(path);
        exit(1);
    }
}

static void make_tree(void)
{
    static const char *const parts[] = {"core", "uncore", "dram"};

    if (!mkdtemp(root)) exit(1);
    for (int z = 0; z < ZONES; z++) {
        char dir[160], name[32];

        if (z % 4 == 0) {
            snprintf(dir, sizeof dir, "%s/intel-rapl:%d", root, z / 4);
            snprintf(name, sizeof name, "package-%d\n", z / 4);
        } else {
            snprintf(dir, sizeof dir, "%s/intel-rapl:%d:%d", root, z / 4, z % 4 - 1);
            snprintf(name, sizeof name, "%s\n", parts[z % 4 - 1]);
        }
        mkdir(dir, 0700);
        put(dir, "name", name);
        put(dir, "max_energy_range_uj", "262143328850\n");
        put(dir, "energy_uj", "123456789012\n");
    }
}

struct seen {
    struct ipw_buf text;
    int64_t rows, interval_ns, last_ns, first_ns;
    int64_t *late;
    size_t n_late, cap_late;
};

static void see(void *ud, const struct ipw_sampler_row *row)
{
    struct seen *s = ud;
    int64_t start = row->t_ns - row->half_ns;

    ipw_power_row_write(&s->text, row);
    ipw_buf_clear(&s->text);
    if (!s->rows++) s->first_ns = start;
    if (s->n_late < s->cap_late) s->late[s->n_late++] = (start - s->first_ns) % s->interval_ns;
    s->last_ns = row->t_ns;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* What this machine and kernel give anybody. */
struct bare {
    pthread_t thread;
    int64_t start_ns, interval_ns;
    int64_t *late;
    size_t n, cap;
    int64_t cpu_ns;
    atomic_bool stop;
};

static void *bare_loop(void *ud)
{
    struct bare *b = ud;

    prctl(PR_SET_TIMERSLACK, 1); /* as the sampler asks for it */
    while (!atomic_load(&b->stop) && b->n < b->cap) {
        /* half an interval beside the sampler's deadlines */
        int64_t due = b->start_ns + b->interval_ns / 2 + (int64_t)b->n * b->interval_ns;
        struct timespec ts = {(time_t)(due / IPW_NS_PER_S), (long)(due % IPW_NS_PER_S)};

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
        b->late[b->n++] = ipw_now_ns() - due;
    }
    b->cpu_ns = ipw_cpu_thread_ns();
    return NULL;
}

static void print_late(const char *who, int64_t *late, size_t n)
{
    qsort(late, n, sizeof *late, compare);
    printf("  %s late p50 %4.0f p95 %5.0f p99 %5.0f us", who, (double)late[n / 2] / 1e3,
           (double)late[n * 95 / 100] / 1e3, (double)late[n * 99 / 100] / 1e3);
}

static int compare_costs(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* CPU per row of each stretch between two drains; for the cheapest tenth. */
struct stretches {
    double *cost_ns;
    size_t n, cap;
    int64_t cpu_ns, rows;
};

static void end_stretch(struct stretches *t, int64_t cpu_ns, int64_t rows)
{
    if (t->rows && rows > t->rows && t->n < t->cap)
        t->cost_ns[t->n++] = (double)(cpu_ns - t->cpu_ns) / (double)(rows - t->rows);
    t->cpu_ns = cpu_ns;
    t->rows = rows;
}

static double cheapest_ns(struct stretches *t)
{
    if (!t->n) return 0;
    qsort(t->cost_ns, t->n, sizeof *t->cost_ns, compare_costs);
    return t->cost_ns[t->n / 10];
}

static void rate(const struct ipw_source_set *set, int64_t interval_ns, double seconds)
{
    struct seen seen = {.text = IPW_BUF(IPW_MIB), .interval_ns = interval_ns, .cap_late = 1000000};
    struct bare bare = {.interval_ns = interval_ns, .cap = seen.cap_late};
    struct stretches stretches = {.cap = 100000};
    int64_t stretch_ns = interval_ns > 10 * IPW_NS_PER_MS ? 1000000000 : 50000000, drained, start,
            took;
    struct ipw_sampler *s;
    struct ipw_err err;
    double cpu;

    seen.late = calloc(seen.cap_late, sizeof *seen.late);
    bare.late = calloc(bare.cap, sizeof *bare.late);
    stretches.cost_ns = calloc(stretches.cap, sizeof *stretches.cost_ns);
    if (!seen.late || !bare.late || !stretches.cost_ns ||
        ipw_sampler_start(&s, set, &(struct ipw_sampler_options){.interval_ns = interval_ns}, &err))
        exit(1);
    start = bare.start_ns = drained = ipw_now_ns();
    if (pthread_create(&bare.thread, NULL, bare_loop, &bare)) exit(1);
    while (ipw_now_ns() - start < (int64_t)(seconds * 1e9)) {
        struct timespec nap = {0, 50000000};
        nanosleep(&nap, NULL);
        ipw_sampler_drain(s, see, &seen);
        if (ipw_now_ns() - drained < stretch_ns) continue;
        drained = ipw_now_ns();
        end_stretch(&stretches, ipw_sampler_cpu_ns(s), seen.rows);
    }
    ipw_sampler_stop(s);
    took = ipw_now_ns() - start;
    ipw_sampler_drain(s, see, &seen);
    cpu = (double)ipw_sampler_cpu_ns(s) / (double)took * 100;
    atomic_store(&bare.stop, true);
    pthread_join(bare.thread, NULL);
    printf("%4lld ms: %6.2f %% of a core (cheapest tenth %.2f)  %6lld rows",
           (long long)(interval_ns / IPW_NS_PER_MS), cpu,
           cheapest_ns(&stretches) / (double)interval_ns * 100, (long long)seen.rows);
    print_late("", seen.late, seen.n_late);
    printf("  | bare %6.2f %%", (double)bare.cpu_ns / (double)took * 100);
    print_late("", bare.late, bare.n);
    putchar('\n');
    ipw_sampler_free(s);
    ipw_buf_release(&seen.text);
    free(seen.late);
    free(bare.late);
    free(stretches.cost_ns);
}

static void reading(const struct ipw_source_set *set)
{
    enum { BATCHES = 200, READS = 100 };
    struct ipw_source *source = set->sources[0];
    int64_t values[ZONES], least = INT64_MAX;

    for (int b = 0; b < BATCHES; b++) {
        int64_t t = ipw_cpu_thread_ns();

        for (int i = 0; i < READS; i++) source->read(source, values);
        t = ipw_cpu_thread_ns() - t;
        if (t < least) least = t;
    }
    printf("reading %d zones, nothing else: %.2f us\n", ZONES, (double)least / READS / 1e3);
}

/* ---- bytes on disk ---- */

struct load {
    double energy_uj[ZONES], wobble[ZONES], level;
    int64_t moved_ns, next_ns;
};

static void load_until(struct load *l, int64_t t_ns)
{
    static const double watts[ZONES] = {120, 85, 3, 18, 140, 100, 0, 22};

    for (; l->next_ns <= t_ns; l->moved_ns = l->next_ns, l->next_ns += 936000 + rand() % 80000) {
        if (rand() % 1000 == 0) l->level = 0.3 + rand() % 12 / 10.0;
        for (int z = 0; z < ZONES; z++) {
            l->wobble[z] += (rand() % 2001 - 1000) / 30000.0 - (l->wobble[z] - 1) / 50;
            l->energy_uj[z] +=
                watts[z] * l->level * l->wobble[z] * (double)(l->next_ns - l->moved_ns) / 1e3;
        }
    }
}

static void bytes(int64_t interval_ns)
{
    enum { ROWS = 20000 };
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);
    struct load l = {.level = 1, .next_ns = 976000};
    int64_t values[ZONES];

    for (int z = 0; z < ZONES; z++) l.wobble[z] = 1;
    srand(1);
    for (int i = 0; i < ROWS; i++) {
        struct ipw_sampler_row row = {.n = ZONES, .values = values};

        row.t_ns = i * interval_ns + rand() % 150 * 1000;
        load_until(&l, row.t_ns);
        for (int z = 0; z < ZONES; z++)
            values[z] = (int64_t)(l.energy_uj[z] / 61.035) * 61035 / 1000 % 262143328850;
        ipw_power_row_write(&text, &row);
    }
    printf("%4lld ms: %.2f bytes a channel and sample on disk (moving counters)\n",
           (long long)(interval_ns / IPW_NS_PER_MS), (double)text.len / ROWS / ZONES);
    ipw_buf_release(&text);
}

static void marks(const struct ipw_source_set *set)
{
    struct seen seen = {.text = IPW_BUF(IPW_MIB), .interval_ns = 1};
    struct ipw_source *source = set->sources[0];
    int64_t period = source->period_ns, t;
    struct ipw_sampler *s;
    struct ipw_err err;

    if (ipw_sampler_start(&s, set,
                          &(struct ipw_sampler_options){.interval_ns = 3600 * IPW_NS_PER_S}, &err))
        exit(1);
    source->period_ns = 3600 * IPW_NS_PER_S; /* it cannot have moved: a look at the clock */
    t = ipw_now_ns();
    for (int i = 0; i < MARKS; i++) ipw_sampler_mark(s);
    printf("mark, clock only: %.3f us\n", (double)(ipw_now_ns() - t) / MARKS / 1e3);
    source->period_ns = 1;
    t = 0;
    for (int i = 0; i < MARKS; i++) {
        int64_t before = ipw_now_ns();
        ipw_sampler_mark(s);
        t += ipw_now_ns() - before;
        if (i % 1000 == 0) ipw_sampler_drain(s, see, &seen);
    }
    printf("mark, reading %d zones: %.2f us\n", ZONES, (double)t / MARKS / 1e3);
    source->period_ns = period;
    ipw_sampler_free(s);
    ipw_buf_release(&seen.text);
}

/* ---- eight hours ---- */

static atomic_llong jumping_t;

static int64_t jump_now(void *clock)
{
    (void)clock;
    return atomic_fetch_add(&jumping_t, 1);
}

static void jump_sleep(void *clock, int64_t t_ns)
{
    (void)clock;
    if (t_ns > atomic_load(&jumping_t)) atomic_store(&jumping_t, t_ns);
}

static long rss_kib(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void eight_hours(const struct ipw_source_set *set)
{
    struct seen seen = {.text = IPW_BUF(IPW_MIB), .interval_ns = 50 * IPW_NS_PER_MS};
    struct ipw_sampler_options o = {
        .interval_ns = 50 * IPW_NS_PER_MS, .now = jump_now, .sleep_until = jump_sleep};
    const int64_t want = 8 * 3600 * 20;
    long before = rss_kib();
    struct ipw_sampler *s;
    struct ipw_err err;
    int64_t t = ipw_now_ns();

    atomic_store(&jumping_t, IPW_NS_PER_S);
    if (ipw_sampler_start(&s, set, &o, &err)) exit(1);
    while (seen.rows < want) ipw_sampler_drain(s, see, &seen);
    ipw_sampler_stop(s);
    ipw_sampler_drain(s, see, &seen);
    printf("eight hours at 20 Hz: %lld rows of %lld, %.1f h of clock, memory +%ld KiB, "
           "in %.2f s\n",
           (long long)seen.rows, (long long)want, (double)(seen.last_ns - seen.first_ns) / 3600e9,
           rss_kib() - before, (double)(ipw_now_ns() - t) / 1e9);
    ipw_sampler_free(s);
    ipw_buf_release(&seen.text);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 3;
    struct ipw_source *source;
    struct ipw_source_set set = {.n = 1};
    struct ipw_err err = {0};
    char command[64];

    make_tree();
    if (ipw_rapl_open(&source, &(struct ipw_source_place){.powercap = root}, "rapl", &err)) {
        fprintf(stderr, "sampler_bench: %s\n", err.text);
        return 1;
    }
    set.sources[0] = source;
    rate(&set, IPW_NS_PER_MS, seconds);
    rate(&set, 10 * IPW_NS_PER_MS, seconds);
    rate(&set, 100 * IPW_NS_PER_MS, seconds);
    reading(&set);
    bytes(IPW_NS_PER_MS);
    bytes(10 * IPW_NS_PER_MS);
    bytes(100 * IPW_NS_PER_MS);
    marks(&set);
    eight_hours(&set);
    source->close(source);
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command) ? 1 : 0;
}
