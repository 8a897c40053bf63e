/* What the energy floor costs: 100,000 samples and 10,000 windows through the ledger (target: 50 ms
 * of processor time), plain and with a phase for each window, by each sharing rule; and the
 * sampler's own processor time over a tree of eight zones at 10 and 100 ms (targets: 0.8 and 0.1 %
 * of one core).  Prints one line each. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sampler.h"
#include "energy/sources/rapl.h"
#include "ledger/ledger.h"

#define SAMPLES 100000
#define WINDOWS 10000
#define ZONES   8
#define SECONDS 5

static void bench_ledger(int crowd)
{
    struct ipw_channel c = {.name = "package-0",
                            .domain = IPW_DOMAIN_CPU,
                            .kind = IPW_CHANNEL_COUNTER,
                            .modulus_uj = 65532611002,
                            .max_w = 400,
                            .in_sum = true};
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    const int64_t step = 10 * IPW_NS_PER_MS, span = step * SAMPLES / WINDOWS;
    int64_t begin = ipw_cpu_self_ns(), pushed, end, v = 0;
    double sum = 0;

    for (int64_t i = 0; i < SAMPLES; i++) {
        ipw_ledger_row(l, 0, 1, 1 + i * step, &v);
        v = (v + 1000000 + i % 7) % c.modulus_uj;
        if (i % 10 == 5 && i / 10 < WINDOWS - crowd) {
            if (i / 10 >= crowd) ipw_ledger_query_end(l, i / 10 - crowd, 1 + i * step);
            ipw_ledger_query_begin(l, 1 + i * step);
        }
    }
    pushed = ipw_cpu_self_ns();
    for (int64_t i = 0; i < WINDOWS; i++) {
        int64_t t = 1 + i * span, to = t + crowd * span;
        if (to > 1 + (SAMPLES - 1) * step) to = 1 + (SAMPLES - 1) * step;
        struct ipw_ledger_question ask = {IPW_LEDGER_ANY,  IPW_DOMAIN_CPU, IPW_LEDGER_ALL, t, to,
                                          IPW_LEDGER_TOTAL};
        sum += ipw_ledger_figure(l, ask).j;
    }
    end = ipw_cpu_self_ns();
    printf("ledger, %d at a time: %d samples %.1f ms, %d windows %.1f ms, together %.1f ms "
           "(%.0f J)\n",
           crowd, SAMPLES, (double)(pushed - begin) / 1e6, WINDOWS, (double)(end - pushed) / 1e6,
           (double)(end - begin) / 1e6, sum);
    ipw_ledger_free(l);
}

/* Queries of ten spans (prefill, decode, tool, ...), `crowd` at a time, each booked when
 * covered. */
static void bench_phases(enum ipw_share share, int crowd)
{
    struct ipw_channel c = {.name = "gpu0",
                            .domain = IPW_DOMAIN_GPU,
                            .kind = IPW_CHANNEL_COUNTER,
                            .max_w = 900,
                            .period_ns = IPW_NS_PER_MS,
                            .in_sum = true};
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    const int64_t step = 10 * IPW_NS_PER_MS;
    int64_t ordinal[64], since[64], left[64], was[64] = {0}, v = 0, begin = ipw_cpu_self_ns(),
                                              windows = 0;
    double sum = 0;

    ipw_ledger_set_share(l, share);
    ipw_ledger_set_baseline(l, c.domain, 50);
    for (int q = 0; q < crowd; q++) ordinal[q] = left[q] = -1;
    for (int64_t i = 0; i < SAMPLES; i++) {
        int64_t t = 1 + i * step;

        if (i % 10 == 0) { /* a span begins every 100 ms, in one lane after the other */
            int64_t n = i / 10, q = n % crowd, k = n / crowd % 10;

            if (k == 0 && ordinal[q] >= 0) {
                ipw_ledger_query_end(l, ordinal[q], t);
                left[q] = ordinal[q];
                was[q] = since[q];
            }
            if (k == 0) {
                ordinal[q] = ipw_ledger_query_begin(l, t);
                since[q] = t;
            }
            if (ordinal[q] >= 0) {
                ipw_ledger_phase(l, ordinal[q],
                                 k % 3 == 0   ? IPW_PHASE_PREFILL
                                 : k % 3 == 1 ? IPW_PHASE_DECODE
                                              : IPW_PHASE_TOOL,
                                 t - 3000000 > since[q] ? t - 3000000 : t);
            }
        }
        ipw_ledger_row(l, 0, 1, t, &v);
        v += 1000000 + i % 7;
        for (int q = 0; q < crowd && i % 10 == 5; q++) {
            int64_t span = crowd * 10 * step;

            if (left[q] < 0 || was[q] + 10 * span > ipw_ledger_covered_ns(l)) continue;
            for (int64_t k = 0; k < 10; k++, windows++) {
                struct ipw_ledger_question ask = {left[q],
                                                  c.domain,
                                                  IPW_LEDGER_ALL,
                                                  was[q] + k * span,
                                                  was[q] + (k + 1) * span,
                                                  IPW_LEDGER_QUERY};

                sum += ipw_ledger_figure(l, ask).j;
            }
            ipw_ledger_forget(l, left[q]);
            left[q] = -1;
        }
    }
    printf("ledger by %s, %d at a time, phases: %d samples, %lld windows, together %.1f ms (%.0f "
           "J)\n",
           ipw_share_name(share), crowd, SAMPLES, (long long)windows,
           (double)(ipw_cpu_self_ns() - begin) / 1e6, sum);
    ipw_ledger_free(l);
}

static void put(const char *root, int zone, const char *file, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/intel-rapl:%x/%s", root, zone, file);
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) {
        perror(path);
        exit(1);
    }
}

static void ignore(void *ud, const struct ipw_sampler_row *row)
{
    (void)row;
    ++*(int64_t *)ud;
}

static void bench_sampler(const char *root, int64_t interval_ns)
{
    struct ipw_source_set set = {0};
    struct ipw_sampler *s;
    struct ipw_err err = {0};
    struct timespec nap = {0, 100000000};
    int64_t rows = 0, begin;

    if (ipw_rapl_open(&set.sources[0], &(struct ipw_source_place){.powercap = root}, "rapl",
                      &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    set.n = 1;
    begin = ipw_now_ns();
    if (ipw_sampler_start(&s, &set, &(struct ipw_sampler_options){.interval_ns = interval_ns},
                          &err))
        exit(1);
    while (ipw_now_ns() - begin < SECONDS * IPW_NS_PER_S) {
        nanosleep(&nap, NULL);
        ipw_sampler_drain(s, ignore, &rows);
    }
    ipw_sampler_stop(s);
    ipw_sampler_drain(s, ignore, &rows);
    printf("sampler, %d zones at %lld ms: %lld rows, %.3f %% of a core\n", ZONES,
           (long long)(interval_ns / IPW_NS_PER_MS), (long long)rows,
           100.0 * (double)ipw_sampler_cpu_ns(s) / (double)(ipw_now_ns() - begin));
    ipw_sampler_free(s);
    ipw_source_set_close(&set);
}

int main(void)
{
    static const char *const files[] = {"name", "energy_uj", "max_energy_range_uj"};
    char root[] = "/tmp/ipw-bench-XXXXXX", path[256], name[32];

    bench_ledger(1);
    bench_ledger(8);
    for (int share = IPW_SHARE_EQUAL; share <= IPW_SHARE_PHASE; share++) {
        bench_phases((enum ipw_share)share, 1);
        bench_phases((enum ipw_share)share, 8);
    }
    if (!mkdtemp(root)) return 1;
    for (int z = 0; z < ZONES; z++) {
        snprintf(path, sizeof path, "%s/intel-rapl:%x", root, z);
        if (mkdir(path, 0755)) return 1;
        snprintf(name, sizeof name, "package-%d\n", z);
        put(root, z, "name", name);
        put(root, z, "energy_uj", "123456789012\n");
        put(root, z, "max_energy_range_uj", "262143328850\n");
    }
    bench_sampler(root, 1 * IPW_NS_PER_MS);
    bench_sampler(root, 10 * IPW_NS_PER_MS);
    bench_sampler(root, 100 * IPW_NS_PER_MS);
    for (int z = 0; z < ZONES; z++) {
        for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
            snprintf(path, sizeof path, "%s/intel-rapl:%x/%s", root, z, files[f]);
            remove(path);
        }
        snprintf(path, sizeof path, "%s/intel-rapl:%x", root, z);
        remove(path);
    }
    return remove(root) != 0;
}
