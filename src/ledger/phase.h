/* ledger/phase.h: what queries were doing when, and what each kind of doing draws.
 *
 * Pure.  A line holds, for every instant, how many queries are in each phase.  A fit learns from
 * measured steps of a counter what a device draws: base, plus something while any model call is in
 * progress, plus something for each query in each phase, none of it negative or more than the device
 * can draw (a small least squares within bounds).  Without the bounds a phase that is a thousandth of
 * each step would be fitted with tens of kilowatts.  The ledger uses both to split a measured step
 * that crosses a change of phase (docs/method.md, "Splitting a step"); it never changes the
 * measured energy. */
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
/* One query more (change 1; -1 takes it back) is in `phase` from t0 to t1 (INT64_MAX: for good). */
void ipw_phase_line_add(struct ipw_phase_line *line, enum ipw_phase phase, int64_t t0_ns,
                        int64_t t1_ns, int change);
/* Index of the last point at or before t; SIZE_MAX when there is none. */
size_t ipw_phase_line_find(const struct ipw_phase_line *line, int64_t t_ns);
/* The most queries whose model calls were in progress at one time within [t0, t1). */
int32_t ipw_phase_line_most_lm(const struct ipw_phase_line *line, int64_t t0_ns, int64_t t1_ns);
/* Drops what only matters before t. */
void ipw_phase_line_trim(struct ipw_phase_line *line, int64_t before_ns);

#define IPW_PHASE_TERMS (IPW_PHASE_COUNT + 2) /* base, any model call, each phase */

struct ipw_phase_fit {
    double a[IPW_PHASE_TERMS][IPW_PHASE_TERMS], b[IPW_PHASE_TERMS]; /* normal equations */
    double w[IPW_PHASE_TERMS];                                      /* the watts found */
    int64_t upto_ns;                                                /* end of the newest step */
    size_t at;     /* the point of the line at the newest step, as a hint */
    double most_w; /* all that the device can draw; 0: not told */
    int64_t steps; /* learned from so many */
    double yy;     /* the squares of the watts, weighted as `b` */
};

/* A step of a counter: `uj` between two instants.  Steps come in order of time. */
void ipw_phase_fit_add(struct ipw_phase_fit *fit, const struct ipw_phase_line *line, int64_t t0_ns,
                       int64_t t1_ns, int64_t uj);
/* Finds the watts.  What was learned two minutes ago weighs a third of what is new. */
void ipw_phase_fit_solve(struct ipw_phase_fit *fit);
/* What the watts found leave of `yy`: the squares of what they do not explain. */
double ipw_phase_fit_rest(const struct ipw_phase_fit *fit);
/* What the device draws by this fit, `most_w` at most; `point` may be NULL (no query in any phase). */
double ipw_phase_fit_w(const struct ipw_phase_fit *fit, const struct ipw_phase_point *point);
/* Has it learned from as many steps as there are terms to find? */
bool ipw_phase_fit_knows(const struct ipw_phase_fit *fit);
/* For how long it has seen no model call at all, weighted. */
double ipw_phase_fit_free_s(const struct ipw_phase_fit *fit);
/* What one query in this phase draws above `base`; NAN when that phase was never seen. */
double ipw_phase_fit_single_w(const struct ipw_phase_fit *fit, enum ipw_phase phase);
/* What it draws with no query in any phase. */
double ipw_phase_fit_base_w(const struct ipw_phase_fit *fit);

#endif
