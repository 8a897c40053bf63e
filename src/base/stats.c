#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

int ipw_stats_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The index of the value below the quantile, and how far it is towards the next one. */
static size_t place_of(double *part, size_t n, double p)
{
    double at = p * (double)(n - 1);
    size_t i = (size_t)at;

    *part = i + 1 < n ? at - (double)i : 0;
    return i + 1 < n ? i : n - 1;
}

double ipw_stats_quantile(const double *sorted, size_t n, double p)
{
    double part;
    size_t i = place_of(&part, n, p);

    return part > 0 ? sorted[i] + part * (sorted[i + 1] - sorted[i]) : sorted[i];
}

struct ipw_stats_result ipw_stats_describe(double *x, size_t n)
{
    struct ipw_stats_result r = {n, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    double sum = 0, squares = 0;

    if (!n) return r;
    qsort(x, n, sizeof *x, ipw_stats_by_value);
    for (size_t i = 0; i < n; i++) sum += x[i];
    r.mean = sum / (double)n;
    r.min = x[0];
    r.max = x[n - 1];
    r.median = n % 2 ? x[n / 2] : x[n / 2 - 1] / 2 + x[n / 2] / 2;
    r.p90 = ipw_stats_quantile(x, n, 0.90);
    r.p95 = ipw_stats_quantile(x, n, 0.95);
    r.p99 = ipw_stats_quantile(x, n, 0.99);
    for (size_t i = 0; i < n; i++) { /* second pass, against cancellation */
        double off = x[i] - r.mean;

        squares += off * off;
    }
    r.std = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    return r;
}

/* ---- intervals ---- */

static const double z_975 = 1.959963984540054;

/* A table for 1 to 18 degrees of freedom.  Beyond, the series in 1 / degrees (Cornish and Fisher),
 * which is exact to 1e-4 there. */
double ipw_stats_t975(size_t degrees)
{
    static const double table[] = {12.7062047, 4.3026527, 3.1824463, 2.7764451, 2.5705818,
                                   2.4469119,  2.3646243, 2.3060041, 2.2621572, 2.2281389,
                                   2.2009852,  2.1788128, 2.1603687, 2.1447867, 2.1314495,
                                   2.1199053,  2.1098156, 2.1009220};
    double z = z_975, n = (double)degrees;

    if (!degrees) return NAN;
    if (degrees <= sizeof table / sizeof *table) return table[degrees - 1];
    return z + (pow(z, 3) + z) / (4 * n) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * n * n) +
           (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * pow(z, 3) - 15 * z) / (384 * n * n * n);
}

static double effective(double p, double variance, double n, size_t clusters)
{
    double adjust;

    if (n == (double)clusters) return n;
    if (p <= 0 || p >= 1) return (double)clusters;
    if (clusters < 2) return NAN;
    adjust = ipw_stats_t975((size_t)n - 1) / ipw_stats_t975(clusters - 1);
    return fmin(n, p * (1 - p) / variance) * adjust * adjust;
}

struct ipw_stats_cluster ipw_stats_cluster(const struct ipw_columns *clusters, size_t i)
{
    return (struct ipw_stats_cluster){ipw_columns_at(clusters, 0, i),
                                      ipw_columns_at(clusters, 1, i)};
}

struct ipw_stats_clustered ipw_stats_clustered(const struct ipw_columns *clusters)
{
    size_t n = clusters->n;
    struct ipw_stats_clustered out = {NAN, NAN, NAN};
    double sum = 0, count = 0, squares = 0, g = (double)n;

    for (size_t i = 0; i < n; i++) {
        struct ipw_stats_cluster c = ipw_stats_cluster(clusters, i);

        sum += c.sum;
        count += c.n;
    }
    if (!(count > 0)) return out;
    out.mean = sum / count;
    for (size_t i = 0; i < n; i++) {
        struct ipw_stats_cluster c = ipw_stats_cluster(clusters, i);
        double off = c.sum - c.n * out.mean;

        squares += off * off;
    }
    if (n > 1) out.se = sqrt(g / (g - 1) * squares) / count;
    out.effective_n = effective(out.mean, squares / (count * count), count, n);
    return out;
}

void ipw_stats_wilson(double *lo, double *hi, double share, double n)
{
    double zz = z_975 * z_975, middle = share + zz / (2 * n);
    double half = z_975 * sqrt(share * (1 - share) / n + zz / (4 * n * n)), below = 1 + zz / n;

    *lo = share <= 0 ? 0 : fmax(0, (middle - half) / below);
    *hi = share >= 1 ? 1 : fmin(1, (middle + half) / below);
}
