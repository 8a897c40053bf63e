/* ledger/ledger.h: the ledger (docs/method.md has its formulas).
 *
 * Pure.  The caller tells it the sensors' readings, when queries were in flight, and in which phase
 * each was; it answers how much energy a window of a query used.  Every joule is counted once: at
 * each instant the energy of a domain is shared among the queries in flight (equally, unless
 * ipw_ledger_set_share() says otherwise), or is idle when there are none.  Time is cut into cells
 * at every event.  A cell's whole microjoules are handed out by largest remainder, so the parts of
 * a query sum to the query, and queries and idle to the total, exactly.
 *
 * Between two samples of a counter the energy is a straight line, until phases are told
 * (ipw_ledger_phase()): then a step that crosses a change of phase is split by what the phases
 * draw (ledger/phase.h), the steps themselves staying as measured (docs/method.md, "Splitting
 * a step").  Where a power gauge of the same device moves within a step, its readings are the shape
 * instead.
 * A query is closed once samples have passed its end.  Until then the steps since the last close
 * are straight lines; at that instant they are split for good, by the fit as it is then.  So tell a
 * phase before the end of its query.  Everything is a function of samples and events alone: fed again
 * in order of time they give the same figures to the bit.
 *
 * Owns its series.  Samples and query edges may arrive in any interleaving; a window can be asked
 * for once samples have passed its end (ipw_ledger_covered_ns()). */
#ifndef IPW_LEDGER_LEDGER_H
#define IPW_LEDGER_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/phase.h"
#include "ledger/series.h"

struct ipw_ledger;

struct ipw_ledger *ipw_ledger_new(const struct ipw_channel *channels, size_t n_channels);
void ipw_ledger_free(struct ipw_ledger *l);

/* Why a domain has no channel in its sum: "no_sensor" by default. */
void ipw_ledger_set_reason(struct ipw_ledger *l, enum ipw_domain domain, const char *reason);

/* One row of readings of channels [first, first + n). */
void ipw_ledger_row(struct ipw_ledger *l, size_t first, size_t n, int64_t t_ns,
                    const int64_t *values);
/* A query came into flight, or left it: times must not go back.  The begin returns its ordinal (0,
 * 1, ...), which names it from then on. */
int64_t ipw_ledger_query_begin(struct ipw_ledger *l, int64_t t_ns);
void ipw_ledger_query_end(struct ipw_ledger *l, int64_t query, int64_t t_ns);
/* The query is in `phase` from t0 to t1.  INT64_MAX for t1: until its next phase, or its end.  Spans
 * with both ends may overlap (concurrent tools). */
void ipw_ledger_phase(struct ipw_ledger *l, int64_t query, enum ipw_phase phase, int64_t t0_ns,
                      int64_t t1_ns);
/* Tokens of the query evenly over [t0, t1]: prefilled prompt tokens (without cached ones) and decoded
 * tokens.  Under IPW_SHARE_TOKENS tell them before their phase is closed: an open model phase holds
 * ipw_ledger_covered_ns() up.  The other rules use them only where phases cannot split an energy. */
void ipw_ledger_tokens(struct ipw_ledger *l, int64_t query, int64_t t0_ns, int64_t t1_ns,
                       double prefilled, double decoded);
/* Something happened across which no energy is known; `reason` is static ("suspended"). */
void ipw_ledger_break(struct ipw_ledger *l, const char *reason);
/* The device of a channel is lost; `reason` is static ("gpu_lost").  From the newest reading on the
 * device and its domain have no figure, and no query waits for it.  A later reading begins a chain
 * of its own.  Tell it before the row that shows it. */
void ipw_ledger_lose(struct ipw_ledger *l, size_t channel, const char *reason);

/* For how long the channel's counter has stood still, if longer than its period allows; else 0.  Only
 * channels in a sum are watched. */
int64_t ipw_ledger_silence_ns(const struct ipw_ledger *l, size_t channel);
/* Since when the device's gauge replaces this channel's dead counter, in a chain of its own;
 * INT64_MIN: it does not. */
int64_t ipw_ledger_handed_over_ns(const struct ipw_ledger *l, size_t channel);

/* How a cell's energy E is shared among the n queries in flight (docs/method.md, "Sharing between
 * queries").  I is its idle part, min(E, baseline times length): each query gets an n-th of it.
 * D = E - I.  Under IPW_SHARE_PHASE an unknown baseline is taken from the fit of phases. */
enum ipw_share {
    IPW_SHARE_EQUAL,  /* E / n each */
    IPW_SHARE_TOKENS, /* D by alpha * prefilled + decoded; equally when no query had tokens */
    /* D by the power that the query's phase causes (ledger/fair_share.h), as fitted; equally while the
     * fit does not know it yet: ipw_ledger_unfitted(). */
    IPW_SHARE_PHASE,
};
#define IPW_SHARE_ALPHA 0.02 /* energy of a prompt token over that of a decoded one */
const char *ipw_share_name(enum ipw_share share); /* "equal", "tokens", "phase" */
/* Before the first query.  alpha: 0 for the default. */
void ipw_ledger_set_share(struct ipw_ledger *l, enum ipw_share share, double alpha);
/* The part, from 0 to 1, of the energy shared so far that went by equal slices because the power of
 * the phases was not known yet. */
double ipw_ledger_unfitted(const struct ipw_ledger *l, enum ipw_domain domain);
/* Idle power of the domain; before the first query.  Without it marginal energy is not known. */
void ipw_ledger_set_baseline(struct ipw_ledger *l, enum ipw_domain domain, double watts);
/* Idle power of one device; without it, an equal part of the domain's. */
void ipw_ledger_set_device_baseline(struct ipw_ledger *l, enum ipw_domain domain, size_t device,
                                    double watts);

/* Up to here every figure is final: a window that ends at or before it has the figure that it will
 * have at the end of the run.  A slow counter (series.h) gets there with its next step, about 100 ms
 * later.  A channel whose reads have been failing for 3 s is not waited for.  INT64_MAX when no
 * channel is in a sum, INT64_MIN before the first readings.  A source without new rows holds it up,
 * so bound the wait. */
int64_t ipw_ledger_covered_ns(const struct ipw_ledger *l);
/* Up to here the devices' totals are final.  Under IPW_SHARE_TOKENS that is later than the above while
 * calls are in progress: their tokens are known at their end. */
int64_t ipw_ledger_measured_ns(const struct ipw_ledger *l);

/* The newest instant up to which every summed channel has been read; INT64_MAX and INT64_MIN as
 * above.  A channel that is not waited for does not count. */
int64_t ipw_ledger_read_ns(const struct ipw_ledger *l);
/* No later row or event will concern the time before t: a cell ends there, and everything up to there
 * is settled.  For the end of a run, also of a killed one. */
void ipw_ledger_close(struct ipw_ledger *l, int64_t t_ns);

/* A domain's devices: the channels in its sum.  Each has an account of its own, by the same rules;
 * the domain's figures are the sums of theirs, to the microjoule, and null when one of them is. */
size_t ipw_ledger_devices(const struct ipw_ledger *l, enum ipw_domain domain);
const char *ipw_ledger_device_name(const struct ipw_ledger *l, enum ipw_domain domain, size_t i);

/* Which energy of a window is asked for. */
enum ipw_ledger_what {
    /* The query's energy by the sharing rule that was set; the query is in flight throughout the
     * window.  The figures of all queries and idle sum to the total, to the microjoule. */
    IPW_LEDGER_QUERY,
    /* The same by simpler methods, for comparison: */
    IPW_LEDGER_LINEAR, /* straight lines between samples, equal slices */
    IPW_LEDGER_WINDOW, /* last minus first sample inside, the whole device: as other tools do it */
    /* The energy of a part of a query: unknown ("below_resolution") where the window is shorter than
     * a gauge can resolve (ipw_series_resolution_ns()); its readings there are the estimate. */
    IPW_LEDGER_SPAN,
    /* The energy so far of a query in flight, up to an instant at or before
     * ipw_ledger_measured_ns().  While tokens of the queries in flight are not told yet it is
     * "estimated": by equal slices from ipw_ledger_covered_ns() on, where the query may be due
     * anything from nothing to all (lo_j, hi_j). */
    IPW_LEDGER_SO_FAR,
    IPW_LEDGER_TOTAL, /* all that the devices drew, no query being looked at */
    IPW_LEDGER_IDLE,  /* the part of it when no query was in flight */
};
#define IPW_LEDGER_METHODS (IPW_LEDGER_WINDOW + 1)        /* the first are methods to be compared */
const char *ipw_method_name(enum ipw_ledger_what method); /* "phase", "linear", "window" */

#define IPW_LEDGER_ANY INT64_C(-1) /* no query is named: the equal slice of any in flight */
#define IPW_LEDGER_ALL SIZE_MAX    /* every device of the domain */

struct ipw_ledger_question {
    int64_t query; /* ordinal (see ipw_ledger_query_begin()), or IPW_LEDGER_ANY */
    enum ipw_domain domain;
    size_t device; /* below ipw_ledger_devices(), or IPW_LEDGER_ALL */
    int64_t t0_ns, t1_ns;
    enum ipw_ledger_what what;
};
struct ipw_figure ipw_ledger_figure(const struct ipw_ledger *l, struct ipw_ledger_question q);
/* The query's energy in consecutive windows [t[i], t[i+1]], i < n, in place of the question's own.
 * Known windows sum exactly (as doubles of whole microjoules) to the figure of [t[0], t[n]].  Windows
 * that cannot be resolved while the whole is known get the rest by wall clock, marked distributed
 * (docs/method.md, "Fallbacks"); so do windows shorter than the period of a counter that is read no
 * more often than it publishes.  Of several windows those that a gauge cannot resolve are unknown,
 * as with IPW_LEDGER_SPAN. */
void ipw_ledger_figures(const struct ipw_ledger *l, struct ipw_ledger_question q, const int64_t *t,
                        size_t n, struct ipw_figure *out);

/* Three readings of one window: the energy that it was charged, the energy while the query was alone
 * (part of the first), and the charge minus its part of the idle baseline: net, negative where less
 * was drawn (NAN: no baseline).  Whole microjoules; a domain's are the sums of its devices'. */
struct ipw_account {
    struct ipw_figure attributed;
    double exclusive_j, marginal_j;
};
struct ipw_account ipw_ledger_account(const struct ipw_ledger *l, struct ipw_ledger_question q);

/* Power of a domain over a window, unshared; false, and all NAN, when nothing is known. */
bool ipw_ledger_power(const struct ipw_ledger *l, enum ipw_domain domain, int64_t t0_ns,
                      int64_t t1_ns, struct ipw_power_stats *out);
/* Its mean and its peak alone: they cost less than a median. */
bool ipw_ledger_mean_power(const struct ipw_ledger *l, enum ipw_domain domain, int64_t t0_ns,
                           int64_t t1_ns, double *mean_w, double *peak_w);

/* Drops everything that only matters before `before_ns` (no query in flight started before it).  The
 * run's totals stay known. */
void ipw_ledger_trim(struct ipw_ledger *l, int64_t before_ns);

#endif
