#include "telemetry/metrics_text.h"

#include <inttypes.h>

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
