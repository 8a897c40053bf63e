/* energy/meter_align.h: how far the clock of a power meter's log is ahead of a run's.
 *
 * Pure.  The watts of a log rise and fall with what the run does: the offset is where the two fit
 * best.  Two ways in which a meter may take its rows are tried: the power at the instant of the
 * stamp, or the mean over the time since the row before.  The fit is the correlation of the rows
 * around the run with the run's activity (0 or 1, averaged like the rows).  The answer is refused,
 * with the reason, when they do not correlate, when the log does not cover the run, or when offsets
 * more than 0.2 s apart fit equally well within the noise (three standard deviations): a run
 * without clear edges, or one that repeats itself exactly. */
#ifndef IPW_ENERGY_METER_ALIGN_H
#define IPW_ENERGY_METER_ALIGN_H

#include "energy/meter.h"

struct ipw_meter_busy { /* an interval in which the run did something, in seconds since 1970 */
    double t0_s, t1_s;
};

struct ipw_meter_fit {
    double offset_s;     /* the log's clock minus the run's */
    double plus_minus_s; /* offsets this far off fit as well */
    double correlation;
    double row_s;   /* usual distance of rows */
    double other_s; /* the offset if rows are of the other kind, when that fits as well; else NAN */
    bool averages;  /* rows are means over the time since the row before */
};

/* `busy` may overlap and need not be sorted (it is sorted and merged in place).  The offset is
 * looked for within [min_s, max_s]. */
int ipw_meter_align(struct ipw_meter_fit *fit, const struct ipw_meter_points *watts,
                    struct ipw_meter_busy *busy, size_t n_busy, double min_s, double max_s,
                    struct ipw_err *err);

#endif
