/* report/stats.h: a handful of statistics over one metric.
 *
 * Values are gathered in an array (unknown ones, NAN, are passed over) and answered in one go.  The
 * deviation is that of a sample (n - 1), and 0 for a single value, as upstream has it.  Owns its
 * array. */
#ifndef IPW_REPORT_STATS_H
#define IPW_REPORT_STATS_H

#include <stddef.h>

struct ipw_stats {
    double *values;
    size_t n, cap;
};

struct ipw_stats_result { /* all NAN when n is 0 */
    size_t n;
    double mean, median, min, max, std;
};

void ipw_stats_add(struct ipw_stats *s, double value);
/* Sorts the values. */
struct ipw_stats_result ipw_stats_result(struct ipw_stats *s);
void ipw_stats_clear(struct ipw_stats *s); /* empties, keeps the memory */
void ipw_stats_release(struct ipw_stats *s);

#endif
