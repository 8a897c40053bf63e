#include "telemetry/metrics_text.h"

#include <inttypes.h>
#include <stdio.h>

/* From a tool that adds two numbers to a reply of half an hour. */
const double ipw_metrics_bounds_s[IPW_METRICS_BUCKETS] = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600,
};

void ipw_metrics_family(struct ipw_buf *out, const char *name, const char *type, const char *help)
{
    ipw_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void ipw_metrics_begin(struct ipw_buf *out, const char *name) { ipw_buf_adds(out, name); }

/* Labels end with a quote, names do not. */
static bool has_labels(const struct ipw_buf *out)
{
    return out->len && out->data[out->len - 1] == '"';
}

void ipw_metrics_label(struct ipw_buf *out, const char *name, const char *value)
{
    ipw_buf_addf(out, "%c%s=\"", has_labels(out) ? ',' : '{', name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"') ipw_buf_addc(out, '\\');
        if (*value == '\n')
            ipw_buf_adds(out, "\\n");
        else
            ipw_buf_addc(out, *value);
    }
    ipw_buf_addc(out, '"');
}

void ipw_metrics_end(struct ipw_buf *out, double value)
{
    ipw_buf_addf(out, "%s %.15g\n", has_labels(out) ? "}" : "", value);
}

void ipw_metrics_end_joules(struct ipw_buf *out, int64_t uj)
{
    ipw_buf_addf(out, "%s %" PRId64 ".%06" PRId64 "\n", has_labels(out) ? "}" : "", uj / 1000000,
                 uj % 1000000);
}

void ipw_metrics_histogram_add(struct ipw_metrics_histogram *h, double seconds)
{
    size_t i = 0;

    while (i < IPW_METRICS_BUCKETS && seconds > ipw_metrics_bounds_s[i]) i++;
    h->in_bucket[i]++;
    h->sum_s += seconds;
}

void ipw_metrics_histogram_write(struct ipw_buf *out, const struct ipw_metrics_histogram *h,
                                 const char *name, const char *help)
{
    uint64_t n = 0;

    ipw_metrics_family(out, name, "histogram", help);
    for (size_t i = 0; i <= IPW_METRICS_BUCKETS; i++) {
        char bound[32] = "+Inf";

        n += h->in_bucket[i];
        if (i < IPW_METRICS_BUCKETS) snprintf(bound, sizeof bound, "%g", ipw_metrics_bounds_s[i]);
        ipw_buf_addf(out, "%s_bucket", name);
        ipw_metrics_label(out, "le", bound);
        ipw_metrics_end(out, (double)n);
    }
    ipw_buf_addf(out, "%s_sum %.15g\n%s_count %" PRIu64 "\n", name, h->sum_s, name, n);
}
