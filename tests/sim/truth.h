/* tests/sim/truth.h: how far the ledger is from the truth, over simulated sensors.
 *
 * A row is a sensor and a way of reading it.  truth_run() feeds agents' runs of known energy
 * through it into a ledger and tallies the errors of the LM spans, and of all spans how many lie
 * outside their bounds.  bench/energy_truth.c prints the rows; tests/unit/ledger/test_truth.c holds
 * them against the goals, over fewer seeds. */
#ifndef IPW_TESTS_SIM_TRUTH_H
#define IPW_TESTS_SIM_TRUTH_H

#include "sim/crowd.h"

enum { TRUTH_TURNS = 240, TRUTH_MOST = 16 * 1024 };

struct truth_tally {
    double e[TRUTH_MOST], sum; /* of LM spans, in percent */
    size_t n, figures, outside, unknown, reads;
    size_t far; /* figures with the truth more than two standard uncertainties away */
    double seconds;
};
/* Of the LM spans' errors; NAN: there is none. */
double truth_at(struct truth_tally *t, double part); /* 0.5: the median */
double truth_bias(const struct truth_tally *t);

struct truth_row {
    const char *name;
    struct sim_sensor sensor;
    double every, slop; /* read so often; 0: by the pace that the program keeps */
    double hole_every_s, hole_s;
    double tau;          /* the device settles with this time constant */
    double late_s;       /* the client sees each event up to so much after the power's edge */
    bool marks;          /* read within 0.2 ms after each change of phase, too */
    bool is_calibration; /* wrong by what no bound can know: the device counts wrong */
};
/* NAME NULL at the end of each. */
const struct truth_row *truth_behaved(void);
const struct truth_row *truth_adverse(void);
const struct truth_row *truth_gauges(void);

void truth_run(struct truth_tally *t, const struct truth_row *row, double lm_s, uint64_t seeds);
/* Queries side by side against exact equal slices, read by the program's pace. */
void truth_crowded(struct truth_tally *t, size_t lanes, double lm_s, uint64_t seeds);

/* A query's figure against its Shapley value, in percent: the mean and the largest of all lanes. */
struct truth_share {
    double mean, most;
};
enum truth_mix { TRUTH_ALIKE, TRUTH_LENGTHS, TRUTH_TOOLS, TRUTH_PROMPTS, TRUTH_MIXES };
const char *truth_mix_name(enum truth_mix mix);
struct truth_share truth_shares(enum truth_mix mix, enum crowd_law law, size_t lanes,
                                enum ipw_share rule);

#endif
