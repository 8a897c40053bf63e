/* tests/sim/sim.h: a device whose truth is known in closed form, and sensors that show it badly.
 *
 * A curve is power over time: pieces with a target each, reached at once or exponentially (time
 * constant tau: ramps and post-load tails).  Its energy between any two instants is exact.  A
 * sensor publishes every so often (with jitter), late, in whole units, wraps, fails, glitches; a
 * gauge shows the mean power over its window.  Deterministic: a seed means the same everywhere. */
#ifndef IPW_TESTS_SIM_H
#define IPW_TESTS_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"

struct sim_piece {
    double t, target_w, tau, from_w, from_j; /* seconds; the last two follow from those before */
};

struct sim_curve {
    struct sim_piece *pieces;
    size_t n, cap;
};

void sim_curve_add(struct sim_curve *c, double t, double target_w, double tau); /* t increases */
void sim_curve_release(struct sim_curve *c);
double sim_curve_w(const struct sim_curve *c, double t);
double sim_curve_j(const struct sim_curve *c, double t); /* since the first piece */

struct sim_sensor {
    struct ipw_channel channel;
    const struct sim_curve *curve;
    double publish_s;       /* 0: whenever it is read */
    double phase_s, jitter; /* each publication is up to jitter / 2 periods off, either side */
    double lag_s;           /* what is published held so long ago */
    double window_s;        /* gauge: its mean; 0: instant */
    double gain;            /* 0: 1 */
    int64_t quantum;        /* microjoules or milliwatts */
    int64_t offset_uj;      /* what the counter showed at the start */
    uint32_t fail_per_1000, glitch_per_1000; /* of reads */
    double stall_every_s, stall_s;           /* from each k * every on it shows one value so long */
    double duty_s; /* counter: fed by the mean power of so long before each publication */
    double dead_s; /* not 0: from here on it shows one value for good */
    uint64_t seed;
    uint64_t dice; /* moves with each read; the seed stays: publications follow from it */
    double duty_from, duty_j; /* of duty_s: counted so far */
};

int64_t sim_sensor_read(struct sim_sensor *s, double t);
double sim_sensor_published(const struct sim_sensor *s, double t); /* the last publication by t */

/* An agent's run: queries one after the other or side by side, each of turns of prefill, decode and
 * tool on one device, whose power is base plus what each phase adds. */
struct sim_turn {
    double t0, first_token, lm_end, t1;
};

struct sim_script {
    double lm_s, prefill_part, tool_s;                  /* means; lengths differ by up to a fifth */
    double base_w, prefill_w, decode_w, tool_w, spread; /* totals with one query; log-normal */
    double tau;
    /* Within a phase, all 0 for none: power rises by this share of it from the phase's start to its
     * end (contexts grow), wobbles by so much (a normal deviate every 5 to 25 ms), and one piece in
     * eight is a burst of so much more. */
    double ramp, noise, burst;
    size_t turns;
    double start_s;
    uint64_t seed;
};

/* Fills turns[] and adds to the curve; answers the end.  The curve starts two seconds before and
 * goes on for two seconds after. */
double sim_run(const struct sim_script *script, struct sim_turn *turns, struct sim_curve *curve);

/* Feeds a ledger of `n` sensors from t0 to t1: reads every `every` seconds (with up to `slop` of it
 * late), and the phases of one query's turns in order of time.  Answers the query. */
int64_t sim_feed(struct ipw_ledger *l, struct sim_sensor *sensors, size_t n, double t0, double t1,
                 double every, double slop, const struct sim_turn *turns, size_t n_turns,
                 bool phases);

/* The next read of a sensor after one at t. */
typedef double (*sim_next_read)(void *ud, double t, const int64_t *values);
/* sim_feed() with reads at instants that `next` names, from t0 to t1. */
struct sim_reads {
    sim_next_read next;
    void *ud;
    double hole_every_s, hole_s; /* none in the first hole_s of each hole_every_s; 0: no holes */
    bool marks;                  /* one more within 0.2 ms after each change of phase */
    size_t n;                    /* how many there were */
};
int64_t sim_feed_by(struct ipw_ledger *l, struct sim_sensor *sensors, size_t n, double t0,
                    double t1, struct sim_reads *reads, const struct sim_turn *turns,
                    size_t n_turns);

double sim_uniform(uint64_t *seed, double lo, double hi);
double sim_normal(uint64_t *seed);
int64_t sim_ns(double seconds);

#endif
