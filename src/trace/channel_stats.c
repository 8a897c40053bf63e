#include "trace/channel_stats.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "trace/spec_rows.h"

#define MIB 1048576.0
#define GIB 1073741824.0

struct ipw_metric_stats ipw_channel_stats_metric(const struct ipw_query_trace *q,
                                                 const char *suffix, bool sum)
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

double ipw_channel_stats_mbu(const struct ipw_query_trace *q, double *max_pct)
{
    struct ipw_metric_stats s = ipw_channel_stats_metric(q, "/mem_util", false);

    if (max_pct) *max_pct = s.max;
    return s.avg;
}

/* ---- writing: an unknown value is absent, and a group without any known value ---- */

#define STATISTIC(member, kinds) HELD(#member, kinds, 0, struct ipw_metric_stats, member)
#define STATISTICS(kinds)                                                                          \
    {                                                                                              \
        STATISTIC(avg, kinds), STATISTIC(max, kinds), STATISTIC(median, kinds),                    \
            STATISTIC(min, kinds), END                                                             \
    }
const struct ipw_spec ipw_spec_statistic[] = STATISTICS(N);
static const struct ipw_spec watts_statistic[] = STATISTICS(J);

static void put_stats(struct ipw_jw *w, const char *key, struct ipw_metric_stats s, double unit)
{
    const struct ipw_metric_stats in_unit = {s.avg / unit, s.max / unit, s.median / unit,
                                             s.min / unit};

    if (isnan(s.avg)) return;
    ipw_jw_key(w, key);
    ipw_spec_write(w, ipw_spec_statistic, (const void *const[]){&in_unit});
}

/* Averages over the query.  A device's utilisation does not tell how many operations it did, so
 * there is no mfu without counting them.  No sensor that we read covers the tensor cores. */
struct utilization {
    double busy, mbu, mbu_share, used_gb, total_gb;
};
#define OF_USE(key, member) HELD(key, NU, 0, struct utilization, member)

/* clang-format off */
static const struct ipw_spec derived[] = {
    KEY("arithmetic_intensity", NU),
    OF_USE("mbu", mbu_share),
    KEY("mfu", NU),
    END,
};
static const struct ipw_spec gpu_utilization[] = {
    OF_USE("compute_utilization_pct", busy),
    OF_USE("memory_bandwidth_utilization_pct", mbu),
    OF_USE("memory_total_gb", total_gb),
    OF_USE("memory_used_gb", used_gb),
    KEY("tensor_core_utilization_pct", NU),
    END,
};
/* clang-format on */

static void put_group(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    ipw_jw_key(w, s->key);
    ipw_spec_write(w, s->of, of);
}

/* clang-format off */
const struct ipw_spec ipw_spec_utilization[] = {
    PUT_OF("derived", O, put_group, derived),
    PUT_OF("gpu", O, put_group, gpu_utilization),
    END,
};
/* clang-format on */

void ipw_channel_stats_put_utilization(struct ipw_jw *w, const struct ipw_spec *s,
                                       const void *const *of)
{
    const struct ipw_query_trace *q = of[0];
    struct utilization u = {.busy = ipw_channel_stats_metric(q, "/util", false).avg,
                            .mbu = ipw_channel_stats_mbu(q, NULL),
                            .used_gb = ipw_channel_stats_metric(q, "/mem_used", true).avg / GIB,
                            .total_gb = ipw_channel_stats_metric(q, "/mem_total", true).avg / GIB};

    u.mbu_share = u.mbu / 100;
    if (isnan(u.busy) && isnan(u.mbu) && isnan(u.used_gb) && isnan(u.total_gb)) return;
    ipw_jw_key(w, s->key);
    ipw_spec_write(w, ipw_spec_utilization, (const void *const[]){&u});
}

/* clang-format off */
const struct ipw_spec ipw_spec_memory[] = {
    OF("gpu_mb", OU, ipw_spec_statistic),
    END,
};
/* clang-format on */

void ipw_channel_stats_put_memory(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    struct ipw_metric_stats gpu = ipw_channel_stats_metric(of[0], "/mem_used", true);

    if (isnan(gpu.avg)) return;
    ipw_jw_key(w, s->key);
    ipw_jw_obj(w);
    put_stats(w, "gpu_mb", gpu, MIB);
    ipw_jw_obj_end(w);
}

static void put_watts(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_power_stats *p = &((const struct ipw_query_trace *)of[0])->power[s->at];
    const struct ipw_metric_stats watts = {p->avg_w, p->max_w, p->median_w, p->min_w};

    if (isnan(p->avg_w)) return;
    ipw_jw_key(w, s->key);
    ipw_jw_obj(w);
    for (s = s->of; s->key; s++) { /* written twice, as upstream does */
        ipw_jw_key(w, s->key);
        ipw_spec_write(w, s->of, (const void *const[]){&watts});
    }
    ipw_jw_obj_end(w);
}

static const struct ipw_spec watts[] = {OF("per_query_watts", O, watts_statistic),
                                        OF("total_watts", O, watts_statistic), END};
const struct ipw_spec ipw_spec_power[] = {DOMAINS(OU, put_watts, watts), END};

void ipw_channel_stats_put_power(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[0];
    bool any = false;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) any |= !isnan(q->power[d].avg_w);
    if (!any) return;
    ipw_jw_key(w, s->key);
    ipw_spec_write(w, ipw_spec_power, of);
}

void ipw_channel_stats_put_temperature(struct ipw_jw *w, const struct ipw_spec *s,
                                       const void *const *of)
{
    put_stats(w, s->key, ipw_channel_stats_metric(of[0], "/temp", false), 1);
}

/* ---- reading ---- */

void ipw_channel_stats_read_power(struct ipw_query_trace *q, const struct ipw_json *line)
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
