#include "ledger/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/upto.h"

struct reading {
    int64_t t_ns, value;
};

struct line { /* the readings of one channel */
    char *name, *unit;
    size_t channel;
    struct reading *all;
    size_t n, cap;
};

struct ipw_metrics {
    struct line *lines; /* by name */
    size_t n;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->name, ((const struct line *)b)->name);
}

struct ipw_metrics *ipw_metrics_new(const struct ipw_channel *channels, size_t n_channels)
{
    struct ipw_metrics *m = ipw_calloc(1, sizeof *m);

    m->lines = ipw_calloc(n_channels + 1, sizeof *m->lines);
    for (size_t i = 0; i < n_channels; i++) {
        if (channels[i].kind != IPW_CHANNEL_METRIC) continue;
        if (!strcmp(channels[i].unit, IPW_UNIT_CLOCK)) continue; /* of the readings themselves */
        m->lines[m->n++] = (struct line){.name = ipw_strdup(channels[i].name),
                                         .unit = ipw_strdup(channels[i].unit),
                                         .channel = i};
    }
    if (m->n) qsort(m->lines, m->n, sizeof *m->lines, by_name);
    return m;
}

void ipw_metrics_free(struct ipw_metrics *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) {
        free(m->lines[i].name);
        free(m->lines[i].unit);
        free(m->lines[i].all);
    }
    free(m->lines);
    free(m);
}

void ipw_metrics_row(struct ipw_metrics *m, size_t first, size_t n, int64_t t_ns,
                     const int64_t *values)
{
    for (size_t i = 0; i < m->n; i++) {
        struct line *l = &m->lines[i];

        if (l->channel < first || l->channel >= first + n) continue;
        if (values[l->channel - first] < 0) continue; /* also IPW_NO_VALUE */
        IPW_GROW(l->all, l->cap, l->n + 1);
        l->all[l->n++] = (struct reading){t_ns, values[l->channel - first]};
    }
}

static size_t first_at(const struct line *l, int64_t t_ns)
{
    return l->n ? ipw_upto(&l->all->t_ns, l->n, sizeof *l->all, t_ns - 1) : 0;
}

void ipw_metrics_trim(struct ipw_metrics *m, int64_t before_ns)
{
    for (size_t i = 0; i < m->n; i++) {
        struct line *l = &m->lines[i];
        size_t drop = first_at(l, before_ns);

        if (!drop || (drop < 64 && drop < l->n)) continue; /* too few to move the rest */
        l->n -= drop;
        memmove(l->all, l->all + drop, l->n * sizeof *l->all);
    }
}

void ipw_metrics_fill(const struct ipw_metrics *m, struct ipw_query_trace *trace)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct line *l = &m->lines[i];
        size_t from = first_at(l, trace->start_ns), n = 0;
        int64_t *values;
        double sum = 0;

        while (from + n < l->n && l->all[from + n].t_ns <= trace->end_ns) n++;
        if (!n) continue;
        values = ipw_calloc(n, sizeof *values);
        for (size_t k = 0; k < n; k++) {
            values[k] = l->all[from + k].value;
            sum += (double)values[k];
        }
        qsort(values, n, sizeof *values, ipw_by_int64);
        IPW_GROW(trace->metrics, trace->cap_metrics, trace->n_metrics + 1);
        trace->metrics[trace->n_metrics++] = (struct ipw_metric){
            .name = ipw_strdup(l->name),
            .unit = ipw_strdup(l->unit),
            .avg = sum / (double)n / 1e3,
            .median = ((double)values[(n - 1) / 2] + (double)values[n / 2]) / 2e3,
            .min = (double)values[0] / 1e3,
            .max = (double)values[n - 1] / 1e3,
            .n = (int64_t)n,
        };
        free(values);
    }
}
