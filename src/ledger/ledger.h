/* ledger/ledger.h: the ledger (docs/method.md has its formulas).
 *
 * Pure.  The caller passes the sensors' readings, the start and end of each query, and the phases
 * of each query.  The ledger answers how much energy a query used in a window.  Every joule is
 * counted once: at each instant the energy of a domain is shared among the queries in flight,
 * equally unless ipw_ledger_set_share() chose another rule.  While no query is in flight it is idle
 * energy.  Time is cut into cells at every event.  A cell's whole microjoules are handed out by
 * largest remainder, so the parts of a query sum exactly to the query, and queries and idle sum
 * exactly to the total.
 *
 * Between two samples of a counter the energy is a straight line until phases are told
 * (ipw_ledger_phase()).  A step that crosses a change of phase is then split by the power of the
 * phases (ledger/phase.h; docs/method.md, "Splitting a step").  The step's energy stays as
 * measured.
 *
 * A query is closed once samples have passed its end.  Until then the steps since the last close
 * are straight lines.  At the close they are split for good, by the fit of that instant.  So tell a
 * phase before the end of its query.  All figures depend on samples and events alone: the same
 * samples and events in the same order give the same figures to the bit.
 *
 * Owns its series.  Samples and query edges may arrive in any interleaving.  A window can be asked
 * for once samples have passed its end (ipw_ledger_covered_ns()). */
#ifndef IPW_LEDGER_LEDGER_H
#define IPW_LEDGER_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/phase.h"
#include "ledger/series.h"
#include "ledger/share.h"

struct ipw_ledger;

struct ipw_ledger *ipw_ledger_new(const struct ipw_channel *channels, size_t n_channels);
void ipw_ledger_free(struct ipw_ledger *l);

/* Why a domain has no channel in its sum: "no_sensor" by default. */
void ipw_ledger_set_reason(struct ipw_ledger *l, enum ipw_domain domain, const char *reason);

/* One row of readings of channels [first, first + n). */
void ipw_ledger_row(struct ipw_ledger *l, size_t first, size_t n, int64_t t_ns,
                    const int64_t *values);
/* For queries that used only some of the devices (shards of one machine, merged).  A scope is what
 * the queries of one shard could see: channels, and the time in which they were read.  Each device
 * is booked once over the scopes that have it: its energy is shared among their queries in flight
 * alone, and is idle while none is.  Times in which no scope has a device are not in its totals. */
struct ipw_ledger_scope {
    bool *channels; /* for each channel: is it in the scope? */
    int64_t start_ns, end_ns;
    const char *clock; /* what its stamps were taken by (a boot id) */
    /* How far its stamps may be off on the clock of the ledger.  It widens the bounds of devices
     * that scopes of several clocks have. */
    int64_t clock_error_ns;
};
/* Call it after the rules are set and before the first row; nothing is borrowed. */
void ipw_ledger_set_scopes(struct ipw_ledger *l, const struct ipw_ledger_scope *scopes, size_t n);
/* ipw_ledger_query_begin() for a query of a scope; without scopes it is the same. */
int64_t ipw_ledger_query_begin_in(struct ipw_ledger *l, size_t scope, int64_t t_ns);
/* Is the device one of those that the query could use? */
bool ipw_ledger_query_sees(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                           size_t device);
/* ipw_ledger_covered_ns() for one query and its devices: at or past its end once its figures are
 * final. */
int64_t ipw_ledger_query_covered_ns(const struct ipw_ledger *l, int64_t query);

/* A query started or ended.  Starts come in order of time.  An end can be told late, as of an
 * instant that is past: it counts from the newest instant on that was shared.  The begin returns
 * the query's ordinal (0, 1, ...), which names it in later calls. */
int64_t ipw_ledger_query_begin(struct ipw_ledger *l, int64_t t_ns);
void ipw_ledger_query_end(struct ipw_ledger *l, int64_t query, int64_t t_ns);
/* The query is in `phase` from t on, until its next phase or its end.  Told again for the same
 * instant (or an earlier one) it replaces the phase that was told before. */
void ipw_ledger_phase(struct ipw_ledger *l, int64_t query, enum ipw_phase phase, int64_t t_ns);
/* A window of the query may begin or end there. */
void ipw_ledger_instant(struct ipw_ledger *l, int64_t query, int64_t t_ns);
/* The query has ended, and its figures were taken: they are not asked for again.  Drops what no
 * other query needs; the run's totals stay known. */
void ipw_ledger_forget(struct ipw_ledger *l, int64_t query);
/* An event across which no energy is known; `reason` is static text ("suspended"). */
void ipw_ledger_break(struct ipw_ledger *l, const char *reason);
/* The device of a channel is lost; `reason` is static text ("gpu_lost").  From the newest reading
 * on, the device and its domain have no figure, and no query waits for them.  A later reading
 * begins a new chain.  Call it before the row that shows the loss. */
void ipw_ledger_lose(struct ipw_ledger *l, size_t channel, const char *reason);

/* The channel is not believed (energy/trust.h): it has no figure from now on, also of earlier
 * times, and neither has its domain.  `reason` is static text ("contradicted"). */
void ipw_ledger_doubt(struct ipw_ledger *l, size_t channel, const char *reason);

/* How long the channel's counter has stood still, if longer than its period allows; else 0.  Only
 * channels in a sum are watched. */
int64_t ipw_ledger_silence_ns(const struct ipw_ledger *l, size_t channel);
/* Since when the device's gauge replaces this channel's dead counter, in a new chain; INT64_MIN: it
 * does not. */
int64_t ipw_ledger_handed_over_ns(const struct ipw_ledger *l, size_t channel);

/* How the energy of concurrent queries is shared (ledger/share.h).  Call it before the first
 * query. */
void ipw_ledger_set_share(struct ipw_ledger *l, enum ipw_share share);
/* Idle power of the domain; call it before the first query.  Without it net (marginal) energy is
 * unknown. */
void ipw_ledger_set_baseline(struct ipw_ledger *l, enum ipw_domain domain, double watts);
/* Idle power of one device.  Without it the device gets an equal part of the domain's. */
void ipw_ledger_set_device_baseline(struct ipw_ledger *l, enum ipw_domain domain, size_t device,
                                    double watts);

/* Up to this instant every figure is final: a window that ends at or before it keeps its figure
 * until the end of the run.  A slow counter (series.h) gets there with its next step, about 100 ms
 * later.  A channel whose reads have been failing for 3 s is not waited for.  INT64_MAX if no
 * channel is in a sum, INT64_MIN before the first readings.  A sensor without new rows holds it
 * back, so limit the time you wait. */
int64_t ipw_ledger_covered_ns(const struct ipw_ledger *l);
/* The newest instant up to which every summed channel has been read; INT64_MAX and INT64_MIN as
 * above.  Channels that are not waited for do not count. */
int64_t ipw_ledger_read_ns(const struct ipw_ledger *l);
/* Promises that no later row or event concerns the time before t.  A cell ends at t, and everything
 * up to t is settled.  For the end of a run, also of a killed one. */
void ipw_ledger_close(struct ipw_ledger *l, int64_t t_ns);

/* A domain's devices: the channels in its sum.  Each has its own account by the same rules.  The
 * domain's figures are the sums of its devices', to the microjoule, and null if one of them is
 * null. */
size_t ipw_ledger_devices(const struct ipw_ledger *l, enum ipw_domain domain);
const char *ipw_ledger_device_name(const struct ipw_ledger *l, enum ipw_domain domain, size_t i);

/* Which energy of a window the caller asks for. */
enum ipw_ledger_what {
    /* The query's energy by the chosen sharing rule; the query is in flight throughout the window.
     * The figures of all queries and of idle sum to the total, to the microjoule. */
    IPW_LEDGER_QUERY,
    /* The energy of a part of a query.  Unknown ("below_resolution") if the window is shorter than
     * a gauge can resolve (ipw_series_resolution_ns()); the gauge's readings there become the
     * estimate. */
    IPW_LEDGER_SPAN,
    IPW_LEDGER_TOTAL, /* the devices' whole energy, regardless of queries */
    IPW_LEDGER_IDLE,  /* the part of the total while no query was in flight */
    /* The energy of all queries together, from the first start to the last end, which must lie in
     * the window.  Its bounds are those of the sum: an error at an edge moves energy from one query
     * to the next, and only that at the ends and in the gaps between queries is an error of the
     * sum.  Unknown while a query is in flight. */
    IPW_LEDGER_QUERIES,
};
#define IPW_LEDGER_ANY INT64_C(-1) /* names no query: the equal slice of any query in flight */
#define IPW_LEDGER_ALL SIZE_MAX    /* every device of the domain */

struct ipw_ledger_question {
    int64_t query; /* ordinal (see ipw_ledger_query_begin()), or IPW_LEDGER_ANY */
    enum ipw_domain domain;
    size_t device; /* below ipw_ledger_devices(), or IPW_LEDGER_ALL */
    int64_t t0_ns, t1_ns;
    enum ipw_ledger_what what;
};
struct ipw_figure ipw_ledger_figure(const struct ipw_ledger *l, struct ipw_ledger_question q);
/* The query's energy in consecutive windows [t[i], t[i+1]], i < n, instead of the question's own
 * window. Known windows sum exactly (as doubles of whole microjoules) to the figure of [t[0],
 * t[n]].  If the whole is known, windows that cannot be resolved share the rest by wall clock and
 * are marked distributed (docs/method.md, "Fallbacks").  So do windows shorter than the period of a
 * counter that is read no more often than it publishes.  Among several windows, a window that a
 * gauge cannot resolve is unknown, as with IPW_LEDGER_SPAN. */
void ipw_ledger_figures(const struct ipw_ledger *l, struct ipw_ledger_question q, const int64_t *t,
                        size_t n, struct ipw_figure *out);
/* Three values of one window: the energy charged to it; the part of that while the query was alone;
 * and the charge minus its share of the idle baseline.  The last is net energy: it is negative if
 * the device drew less than the baseline, and NAN without a baseline.  Whole microjoules; a
 * domain's values are the sums of its devices'. */
struct ipw_account {
    struct ipw_figure attributed;
    double exclusive_j, marginal_j;
};
struct ipw_account ipw_ledger_account(const struct ipw_ledger *l, struct ipw_ledger_question q);

/* Power over a window, not shared, of those devices of a domain that the question's query could
 * use; false, with all values NAN, if nothing is known. */
bool ipw_ledger_power(const struct ipw_ledger *l, struct ipw_ledger_question q,
                      struct ipw_power_stats *out);
/* Only the mean and the peak: they cost less than a median. */
bool ipw_ledger_mean_power(const struct ipw_ledger *l, struct ipw_ledger_question q, double *mean_w,
                           double *peak_w);

#endif
