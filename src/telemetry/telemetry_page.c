/* The sensors' page of Prometheus metrics. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "telemetry/metrics_text.h"
#include "telemetry/telemetry.h"

static void begin(struct ipw_buf *out, const char *metric, const struct ipw_live *l)
{
    ipw_metrics_begin(out, metric);
    ipw_metrics_label(out, "channel", l->channel.name);
    ipw_metrics_label(out, "device", l->channel.device);
    ipw_metrics_label(out, "domain", ipw_domain_name(l->channel.domain));
    ipw_metrics_label(out, "scope", ipw_scope_name(l->channel.scope));
    ipw_metrics_label(out, "source", l->source);
}

/* A gauge that represents its device also has its integral, so that readers of this page can use
 * either. */
static bool has_joules(const struct ipw_live *l)
{
    return l->seen && (l->channel.kind == IPW_CHANNEL_COUNTER ||
                       (l->channel.kind == IPW_CHANNEL_GAUGE && l->channel.in_sum));
}

/* Metrics that are not energy: a family for each unit that occurs. */
static void metrics_by_unit(struct ipw_buf *out, const struct ipw_telemetry *t)
{
    static const struct {
        const char *unit, *name, *help;
        double scale; /* of the thousandths of a channel's value */
    } families[] = {
        {"pct", "ipw_utilization_ratio", "How busy a device or its memory is, 0 to 1.", 1e-5},
        {"bytes", "ipw_memory_bytes", "Memory of a device, used and there.", 1e-3},
        {"celsius", "ipw_temperature_celsius", "Temperature of a device.", 1e-3},
    };

    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        bool any = false;

        for (size_t i = 0; i < t->n; i++) {
            const struct ipw_live *l = &t->live[i];

            if (l->channel.kind != IPW_CHANNEL_METRIC || !l->seen) continue;
            if (strcmp(l->channel.unit, families[k].unit)) continue;
            if (!any) ipw_metrics_family(out, families[k].name, "gauge", families[k].help);
            any = true;
            begin(out, families[k].name, l);
            ipw_metrics_end(out, (double)l->value * families[k].scale);
        }
    }
}

static void sensors(struct ipw_buf *out, const struct ipw_telemetry *t)
{
    ipw_metrics_family(out, "ipw_sensor_info", "gauge", "One for each channel that is read.");
    for (size_t i = 0; i < t->n; i++) {
        const struct ipw_live *l = &t->live[i];

        begin(out, "ipw_sensor_info", l);
        ipw_metrics_label(out, "believed",
                          ipw_trust_verdict(t->trust, i).believed ? "true" : "false");
        ipw_metrics_label(out, "in_sum", l->channel.in_sum ? "true" : "false");
        ipw_metrics_label(out, "method", l->channel.method);
        ipw_metrics_label(out, "unit", l->channel.unit);
        ipw_metrics_end(out, 1);
    }
}

void ipw_telemetry_metrics(struct ipw_buf *out, const struct ipw_telemetry *t)
{
    int64_t now_ns = ipw_now_ns();

    ipw_metrics_family(out, "ipw_energy_joules_total", "counter",
                       "Energy as the device counts it, or its power integrated since the start.");
    for (size_t i = 0; i < t->n; i++) {
        if (!has_joules(&t->live[i])) continue;
        begin(out, "ipw_energy_joules_total", &t->live[i]);
        ipw_metrics_end_joules(out, t->live[i].uj);
    }
    ipw_metrics_family(out, "ipw_power_watts", "gauge", "Power over the last second.");
    for (size_t i = 0; i < t->n; i++) {
        double watts = ipw_live_watts(&t->live[i], now_ns);

        if (isnan(watts)) continue; /* an unknown value is absent, never 0 */
        begin(out, "ipw_power_watts", &t->live[i]);
        ipw_metrics_end(out, watts);
    }
    metrics_by_unit(out, t);
    sensors(out, t);
}
