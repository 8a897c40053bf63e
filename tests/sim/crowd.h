/* tests/sim/crowd.h: queries side by side on one device, and who caused what.
 *
 * Each lane is one query of many turns.  What the calls in flight draw together follows a law:
 * their demands (watts above idle, each call's own) add up, and the device saturates.  The fair
 * share of a query is its Shapley value: the mean over all orders of what it adds to those before
 * it, the idle part in equal parts.  Exact for the smooth law, by seeded orders for the hard
 * one. */
#ifndef IPW_TESTS_SIM_CROWD_H
#define IPW_TESTS_SIM_CROWD_H

#include "sim/sim.h"

enum { CROWD_LANES = 64 };

enum crowd_law {
    CROWD_SMOOTH, /* idle + cap * (1 - exp(-demand / cap)) */
    CROWD_HARD,   /* idle + min(demand, cap) */
    CROWD_SQUARE, /* idle + demand * cap / (demand + cap) */
};

struct crowd_kind {
    double lm_s, prefill_part, tool_s;  /* means: LM lengths vary by a fifth, tools by a half */
    double prefill_w, decode_w, tool_w; /* demand above idle */
};

struct crowd {
    size_t lanes, turns;        /* of each lane */
    struct crowd_kind kinds[2]; /* lanes take them in turn */
    size_t n_kinds;
    enum crowd_law law;
    double idle_w, cap_w, spread, tau, start_s;
    uint64_t seed;

    /* Made by crowd_make(). */
    struct sim_curve curve;
    struct sim_turn *turn; /* lanes * turns of them, a lane's together */
    double *factor;        /* of each turn: its demand is so many times its kind's */
    double end_s;          /* all lanes work until here: later turns are cut off */
    size_t *n_turns;       /* of each lane, that ended by end_s */
};

void crowd_make(struct crowd *c);
void crowd_release(struct crowd *c);
/* Every lane's fair share, in joules, from start_s to end_s. */
void crowd_shapley(const struct crowd *c, double *joules);
/* Feeds a ledger whose device this is; queries[lane] gets the ordinals. */
void crowd_feed(const struct crowd *c, struct ipw_ledger *l, struct sim_sensor *sensor,
                sim_next_read next, void *ud, int64_t *queries, size_t *reads);

#endif
