/* base/stats.h: statistics of one metric.
 *
 * The deviation is that of a sample (n - 1), and 0 for a single value, as upstream has it.
 *
 * Repeats of one task are alike, so N observations of G tasks say less than N tasks.  The standard
 * error of their mean is cluster-robust (Liang and Zeger 1986; Cameron and Miller 2015, section VI;
 * for evaluations of models: Miller 2024, arXiv:2411.00640, section 2.2):
 *
 *     SE^2 = G / (G - 1) * sum over tasks c of (S_c - n_c * m)^2 / N^2
 *
 * S_c and n_c are the sum and the number of the task's observations, m is the mean of all.  With
 * one observation per task it is the plain s^2 / N.
 *
 * A proportion p has Wilson's score interval (Wilson 1927), which stays within [0, 1]:
 *
 *     (p + z^2 / 2n +- z * sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n),   z = 1.96
 *
 * With repeats, n is the effective number of observations (Korn and Graubard 1998): p (1 - p) / V,
 * at most N, times (t of N - 1 / t of G - 1)^2.  V is SE^2 above without G / (G - 1); the last
 * factor is there because V is only estimated from G tasks.  If all observations are equal, there
 * is no V, and n = G.  With one observation per task n = N. */
#ifndef IPW_BASE_STATS_H
#define IPW_BASE_STATS_H

#include "base/columns.h"

struct ipw_stats_result { /* all NAN when n is 0 */
    size_t n;
    double mean, median, min, max, std;
    double p90, p95, p99; /* ipw_stats_quantile() */
};

/* Of n values, none of them NAN, which it sorts. */
struct ipw_stats_result ipw_stats_describe(double *values, size_t n);
int ipw_stats_by_value(const void *a, const void *b); /* compares doubles, for qsort */

/* The value below which a share p (0 to 1) of n > 0 sorted values is: linear between two values,
 * the first being at 0 and the last at 1 (type 7 of Hyndman and Fan 1996). */
double ipw_stats_quantile(const double *sorted, size_t n, double p);

/* The 97.5 % quantile of Student's t. */
double ipw_stats_t975(size_t degrees);

struct ipw_stats_cluster { /* the observations of one task */
    double sum, n;
};
struct ipw_stats_clustered {
    double mean, se;    /* NAN: no observation; se: fewer than two clusters */
    double effective_n; /* of a proportion; NAN: unknown */
};
/* The clusters are rows of two columns: sum, n. */
struct ipw_stats_cluster ipw_stats_cluster(const struct ipw_columns *clusters, size_t i);
struct ipw_stats_clustered ipw_stats_clustered(const struct ipw_columns *clusters);
/* Wilson's 95 % interval of a proportion of n observations, n > 0. */
void ipw_stats_wilson(double *lo, double *hi, double share, double n);

#endif
