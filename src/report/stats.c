#include "report/stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void ipw_stats_add(struct ipw_stats *s, double value)
{
    if (isnan(value)) return;
    IPW_GROW(s->values, s->cap, s->n + 1);
    s->values[s->n++] = value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

struct ipw_stats_result ipw_stats_result(struct ipw_stats *s)
{
    struct ipw_stats_result r = {s->n, NAN, NAN, NAN, NAN, NAN};
    double sum = 0, squares = 0;

    if (!s->n) return r;
    qsort(s->values, s->n, sizeof *s->values, by_value);
    for (size_t i = 0; i < s->n; i++) sum += s->values[i];
    r.mean = sum / (double)s->n;
    r.min = s->values[0];
    r.max = s->values[s->n - 1];
    r.median =
        s->n % 2 ? s->values[s->n / 2] : s->values[s->n / 2 - 1] / 2 + s->values[s->n / 2] / 2;
    for (size_t i = 0; i < s->n; i++) { /* second pass: no cancellation */
        squares += (s->values[i] - r.mean) * (s->values[i] - r.mean);
    }
    r.std = s->n > 1 ? sqrt(squares / (double)(s->n - 1)) : 0;
    return r;
}

void ipw_stats_clear(struct ipw_stats *s) { s->n = 0; }

void ipw_stats_release(struct ipw_stats *s)
{
    free(s->values);
    *s = (struct ipw_stats){0};
}
