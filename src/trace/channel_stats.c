#include "trace/channel_stats.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#define MIB 1048576.0
#define GIB 1073741824.0

static const enum ipw_domain sorted[IPW_DOMAIN_COUNT] = {IPW_DOMAIN_CPU, IPW_DOMAIN_DRAM,
                                                         IPW_DOMAIN_GPU, IPW_DOMAIN_MACHINE};

struct ipw_metric_stats ipw_query_metric(const struct ipw_query_trace *q, const char *suffix,
                                         bool sum)
{
    struct ipw_metric_stats s = {0, 0, 0, 0};
    int n = 0;

    for (size_t i = 0; i < q->n_metrics; i++) {
        const struct ipw_metric *m = &q->metrics[i];

        if (!ipw_ends_with(m->name, suffix)) continue;
        s.avg += m->avg;
        s.median += m->median;
        s.max = sum ? s.max + m->max : n ? fmax(s.max, m->max) : m->max;
        s.min = sum ? s.min + m->min : n ? fmin(s.min, m->min) : m->min;
        n++;
    }
    if (!n) return (struct ipw_metric_stats){NAN, NAN, NAN, NAN};
    if (!sum) {
        s.avg /= n;
        s.median /= n;
    }
    return s;
}

double ipw_query_mbu(const struct ipw_query_trace *q, double *max_pct)
{
    struct ipw_metric_stats s = ipw_query_metric(q, "/mem_util", false);

    if (max_pct) *max_pct = s.max;
    return s.avg;
}

/* ---- writing: what is not known is null, a group of which nothing is known as a whole ---- */

static void put_stats(struct ipw_jw *w, const char *key, struct ipw_metric_stats s, double unit)
{
    ipw_jw_key(w, key);
    if (isnan(s.avg)) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_knum(w, "avg", s.avg / unit);
    ipw_jw_knum(w, "max", s.max / unit);
    ipw_jw_knum(w, "median", s.median / unit);
    ipw_jw_knum(w, "min", s.min / unit);
    ipw_jw_obj_end(w);
}

void ipw_stats_put_utilization(struct ipw_jw *w, const struct ipw_query_trace *q)
{
    double busy = ipw_query_metric(q, "/util", false).avg, mbu = ipw_query_mbu(q, NULL);
    double used = ipw_query_metric(q, "/mem_used", true).avg;
    double total = ipw_query_metric(q, "/mem_total", true).avg;

    ipw_jw_key(w, "hardware_utilization");
    if (isnan(busy) && isnan(mbu) && isnan(used) && isnan(total)) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    /* How busy a device is says nothing of the operations that it did: no mfu without counting. */
    ipw_jw_key(w, "derived");
    ipw_jw_obj(w);
    ipw_jw_knull(w, "arithmetic_intensity");
    ipw_jw_knum(w, "mbu", mbu / 100);
    ipw_jw_knull(w, "mfu");
    ipw_jw_obj_end(w);
    ipw_jw_key(w, "gpu");
    ipw_jw_obj(w);
    ipw_jw_knum(w, "compute_utilization_pct", busy);
    ipw_jw_knum(w, "memory_bandwidth_utilization_pct", mbu);
    ipw_jw_knum(w, "memory_total_gb", total / GIB);
    ipw_jw_knum(w, "memory_used_gb", used / GIB);
    ipw_jw_knull(w, "tensor_core_utilization_pct"); /* no sensor of ours tells */
    ipw_jw_obj_end(w);
    ipw_jw_obj_end(w);
}

void ipw_stats_put_memory(struct ipw_jw *w, const struct ipw_query_trace *q)
{
    struct ipw_metric_stats gpu = ipw_query_metric(q, "/mem_used", true);

    ipw_jw_key(w, "memory_metrics");
    if (isnan(gpu.avg)) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_knull(w, "cpu_mb"); /* no sensor of ours tells */
    put_stats(w, "gpu_mb", gpu, MIB);
    ipw_jw_obj_end(w);
}

void ipw_stats_put_power(struct ipw_jw *w, const struct ipw_query_trace *q)
{
    bool any = false;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) any |= !isnan(q->power[d].avg_w);
    ipw_jw_key(w, "power_metrics");
    if (!any) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        const struct ipw_power_stats *p = &q->power[sorted[i]];
        struct ipw_metric_stats s = {p->avg_w, p->max_w, p->median_w, p->min_w};

        ipw_jw_key(w, ipw_domain_name(sorted[i]));
        if (isnan(p->avg_w)) {
            ipw_jw_null(w);
            continue;
        }
        ipw_jw_obj(w);
        put_stats(w, "per_query_watts", s, 1);
        put_stats(w, "total_watts", s, 1); /* the same twice, as upstream has it */
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

void ipw_stats_put_temperature(struct ipw_jw *w, const struct ipw_query_trace *q)
{
    put_stats(w, "temperature_metrics", ipw_query_metric(q, "/temp", false), 1);
}

/* ---- reading ---- */

void ipw_stats_read_power(struct ipw_query_trace *q, const struct ipw_json *line)
{
    const struct ipw_json *power = ipw_json_get(line, "power_metrics");

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_json *of = ipw_json_get(power, ipw_domain_name((enum ipw_domain)d));
        const struct ipw_json *s = ipw_json_get(of, "per_query_watts");

        q->power[d] = (struct ipw_power_stats){.avg_w = ipw_json_get_num(s, "avg"),
                                               .median_w = ipw_json_get_num(s, "median"),
                                               .min_w = ipw_json_get_num(s, "min"),
                                               .max_w = ipw_json_get_num(s, "max")};
    }
}
