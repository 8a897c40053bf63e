/* energy/meter_align.h: how far the clock of a power meter's log is ahead of a run's clock.
 *
 * Pure.  The watts of a log rise and fall with the activity of the run; the offset is where the two
 * fit best.  A meter's row may be the power at the instant of its stamp, or the mean over the time
 * since the row before; both are tried.  The fit is the correlation of the rows around the run with
 * the run's activity (0 or 1, averaged like the rows).  The search fails, with a reason, in three
 * cases: the two do not correlate; the log does not cover the run; or offsets more than 0.2 s apart
 * fit equally well within the noise (three standard deviations).  The last happens if the run has
 * no clear edges or repeats itself exactly. */
#ifndef IPW_ENERGY_METER_ALIGN_H
#define IPW_ENERGY_METER_ALIGN_H

#include "energy/meter.h"

struct ipw_meter_busy { /* an interval in which the run was active, in seconds since 1970 */
    double t0_s, t1_s;
};

struct ipw_meter_fit {
    double offset_s;     /* the log's clock minus the run's */
    double plus_minus_s; /* offsets within this distance fit as well */
    double correlation;
    double row_s;   /* usual distance of rows */
    double other_s; /* the offset for rows of the other kind, if that fits as well; else NAN */
    bool averages;  /* rows are means over the time since the row before */
};

/* `busy` may overlap and need not be sorted (it is sorted and merged in place).  The offset is
 * searched within [min_s, max_s]. */
int ipw_meter_align(struct ipw_meter_fit *fit, const struct ipw_meter_points *watts,
                    struct ipw_meter_busy *busy, size_t n_busy, double min_s, double max_s,
                    struct ipw_err *err);

#endif
