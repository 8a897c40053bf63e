/* ledger/phase.h: the phases that queries are in over time, and the power that each phase draws.
 *
 * Pure.  A line holds, for every instant, how many queries are in each phase.  A fit learns the
 * power of a device from measured steps of its counter.  Its terms are a base, an amount while any
 * model call is in progress, and an amount for each query in each phase.  No term is negative or
 * above the device's highest power (a small least squares within bounds).  Without the bounds a
 * phase that fills a thousandth of each step would be fitted with tens of kilowatts.  The ledger
 * uses both to split a measured step that crosses a change of phase (docs/method.md, "Splitting a
 * step").  A split never changes the measured energy. */
#ifndef IPW_LEDGER_PHASE_H
#define IPW_LEDGER_PHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ipw_phase {
    IPW_PHASE_AGENT,   /* neither model nor tool: the agent's own time, or idle */
    IPW_PHASE_PREFILL, /* request sent to first token */
    IPW_PHASE_DECODE,  /* first to last token */
    IPW_PHASE_LM,      /* a call whose first token was not seen (not streamed) */
    IPW_PHASE_TOOL,
    IPW_PHASE_WAIT, /* between a failed attempt and the next */
    IPW_PHASE_COUNT,
};
/* Is the model at work for a query in this phase? */
bool ipw_phase_is_lm(enum ipw_phase phase);

/* From t_ns to the next point, count[p] queries are in phase p. */
struct ipw_phase_point {
    int64_t t_ns;
    int32_t count[IPW_PHASE_COUNT];
};

struct ipw_phase_line {
    struct ipw_phase_point *points; /* in order */
    size_t n, cap;
};

void ipw_phase_line_release(struct ipw_phase_line *line);
/* Adds one query (change 1; -1 removes it) in `phase` from t0 to t1 (INT64_MAX: open end). */
void ipw_phase_line_add(struct ipw_phase_line *line, enum ipw_phase phase, int64_t t0_ns,
                        int64_t t1_ns, int change);
/* Index of the last point at or before t; SIZE_MAX if there is none. */
size_t ipw_phase_line_find(const struct ipw_phase_line *line, int64_t t_ns);
/* Drops data that only matters before t. */
void ipw_phase_line_trim(struct ipw_phase_line *line, int64_t before_ns);

#define IPW_PHASE_TERMS (IPW_PHASE_COUNT + 2) /* base, any model call, each phase */

struct ipw_phase_fit {
    double a[IPW_PHASE_TERMS][IPW_PHASE_TERMS], b[IPW_PHASE_TERMS]; /* normal equations */
    double w[IPW_PHASE_TERMS];                                      /* the watts found */
    int64_t upto_ns;                                                /* end of the newest step */
    size_t at;     /* hint: the point of the line at the newest step */
    double most_w; /* the device's highest power; 0: unknown */
    int64_t steps; /* number of steps learned from */
};

/* Adds a step of a counter: `uj` between two instants.  Steps come in order of time. */
void ipw_phase_fit_add(struct ipw_phase_fit *fit, const struct ipw_phase_line *line, int64_t t0_ns,
                       int64_t t1_ns, int64_t uj);
/* Solves for the watts.  A step of two minutes ago weighs about a third of a new one. */
void ipw_phase_fit_solve(struct ipw_phase_fit *fit);
/* The device's power by this fit, at most `most_w`; `point` may be NULL (no query in any phase). */
double ipw_phase_fit_w(const struct ipw_phase_fit *fit, const struct ipw_phase_point *point);
/* Has the fit learned from at least as many steps as it has terms? */
bool ipw_phase_fit_knows(const struct ipw_phase_fit *fit);
/* The power that one query in this phase adds, of those in flight by `count`: the power of its
 * phase and, in a model call, its part of what any call draws. */
double ipw_phase_fit_part_w(const struct ipw_phase_fit *fit, enum ipw_phase phase,
                            const int32_t count[IPW_PHASE_COUNT]);
/* Power of the device with no query in any phase. */
double ipw_phase_fit_base_w(const struct ipw_phase_fit *fit);

#endif
