/* How far the ledger is from the truth, over simulated sensors whose truth is exact (tests/sim):
 * errors of LM spans in percent, bias, how often the truth lies outside [lo, hi], and how often
 * more than two standard uncertainties away.
 *
 *   energy_truth [SEEDS [PARTS]]     4 seeds a row and all parts unless told
 *
 * PARTS, a letter each: b a counter that behaves, by four lengths of LM span; a adverse sensors;
 * g gauges; c queries side by side; s a query's share against its Shapley value. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/truth.h"

static const double lengths[] = {0.2, 0.5, 1, 5}, two_lengths[] = {0.5, 2},
                    long_ones[] = {0.5, 2, 5};
static struct truth_tally t;

static void print(const char *name, double length)
{
    printf("  %-34s %4.1f  %6.2f %6.2f  %+6.2f  %6zu/%-6zu %6.2f %%  %6.2f %%  %5zu  %6.1f\n", name,
           length, truth_at(&t, 0.5), truth_at(&t, 0.95), truth_bias(&t), t.outside, t.figures,
           t.figures ? 100.0 * (double)t.outside / (double)t.figures : 0,
           t.figures ? 100.0 * (double)t.far / (double)t.figures : 0, t.unknown,
           (double)t.reads / t.seconds);
}

static void head(const char *title)
{
    printf("\n%s\n  %-34s %4s  %6s %6s  %6s  %13s %8s  %8s  %5s  %6s\n", title, "", "LM s",
           "median", "p95", "bias", "outside/all", "", "over 2 u", "null", "reads/s");
}

static void rows_of(const char *title, const struct truth_row *row, const double *lm_s, size_t n,
                    uint64_t seeds)
{
    head(title);
    for (; row->name; row++) {
        for (size_t i = 0; i < n; i++) {
            truth_run(&t, row, lm_s[i], seeds);
            print(row->name, lm_s[i]);
        }
    }
}

static void crowded(uint64_t seeds)
{
    head("Queries side by side, equal slices as truth: errors of LM spans, %");
    for (size_t lanes = 4; lanes <= 32; lanes *= 8) {
        for (size_t i = 0; i < 4; i++) {
            char name[40];

            snprintf(name, sizeof name, "NVML, %zu in flight", lanes);
            truth_crowded(&t, lanes, lengths[i], seeds);
            print(name, lengths[i]);
        }
    }
}

static void shares(void)
{
    static const char *const laws[] = {"smooth", "hard", "square"};
    static const size_t lanes[] = {2, 4, 8, 32};

    printf("\nA query's figure against its Shapley value, %%: mean and largest of all queries\n"
           "  %-34s %2s   %11s   %11s\n",
           "", "n", "equal", "phase");
    for (int law = 0; law < 3; law++) {
        for (int mix = 0; mix < TRUTH_MIXES; mix++) {
            for (size_t i = 0; i < 4; i++) {
                struct truth_share equal = truth_shares((enum truth_mix)mix, (enum crowd_law)law,
                                                        lanes[i], IPW_SHARE_EQUAL);
                struct truth_share phase = truth_shares((enum truth_mix)mix, (enum crowd_law)law,
                                                        lanes[i], IPW_SHARE_PHASE);

                printf("  %-9s %-24s %2zu   %5.1f %5.1f   %5.1f %5.1f\n", laws[law],
                       truth_mix_name((enum truth_mix)mix), lanes[i], equal.mean, equal.most,
                       phase.mean, phase.most);
            }
        }
    }
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 4;
    const char *parts = argc > 2 ? argv[2] : "bagcs";

    if (strchr(parts, 'b'))
        rows_of("A counter that behaves: errors of LM spans, %", truth_behaved(), lengths, 4,
                seeds);
    if (strchr(parts, 'a')) rows_of("Adverse counters", truth_adverse(), two_lengths, 2, seeds);
    if (strchr(parts, 'g')) rows_of("Gauges", truth_gauges(), long_ones, 3, seeds);
    if (strchr(parts, 'c')) crowded(seeds);
    if (strchr(parts, 's')) shares();
    return 0;
}
