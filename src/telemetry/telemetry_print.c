#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "energy/hardware.h"
#include "json/write.h"
#include "report/format.h"
#include "telemetry/telemetry.h"

enum { MAX_BYTES = 16 * 1024 * 1024 };

static const enum ipw_domain shown[IPW_DOMAIN_COUNT] = {IPW_DOMAIN_GPU, IPW_DOMAIN_CPU,
                                                        IPW_DOMAIN_DRAM, IPW_DOMAIN_MACHINE};

static void cell(struct ipw_buf *out, const char *text, size_t columns, bool right)
{
    ipw_format_cell(out, text, columns, right ? IPW_ALIGN_RIGHT : IPW_ALIGN_LEFT);
    ipw_buf_addc(out, ' ');
}

/* Three digits, without an exponent: "0.52 W", "71.3 W", "5208 W". */
static const char *watt_words(double watts, char *out, size_t size)
{
    snprintf(out, size, "%.*f W", fabs(watts) < 9.995 ? 2 : fabs(watts) < 99.95 ? 1 : 0, watts);
    return out;
}

static void metric_words(const struct ipw_live *l, char *out, size_t size)
{
    double x = (double)l->value / 1e3;

    if (!strcmp(l->channel.unit, "bytes"))
        snprintf(out, size, "%.2f GiB", x / (1024.0 * 1024.0 * 1024.0));
    else
        snprintf(out, size, "%.4g %s", x,
                 !strcmp(l->channel.unit, "pct")            ? "%"
                 : !strcmp(l->channel.unit, "celsius")      ? "°C"
                 : !strcmp(l->channel.unit, IPW_UNIT_CLOCK) ? "µs"
                                                            : l->channel.unit);
}

/* As long as the longest channel's name, if the other columns leave so much room.  One of them is
 * the longest verdict of a self-test. */
static size_t name_columns(const struct ipw_telemetry *t, const struct ipw_telemetry_style *style)
{
    enum { OTHERS = 64, LEAST = 16 };
    size_t most = style->width > OTHERS + LEAST ? style->width - OTHERS : LEAST, longest = LEAST;

    for (size_t i = 0; i < t->n; i++) {
        size_t n = ipw_format_width(t->live[i].channel.name, strlen(t->live[i].channel.name));

        if (n > longest) longest = n;
    }
    return longest < most ? longest : most;
}

/* Names with a common beginning (a host's) differ at their end. */
static void name_cell(struct ipw_buf *out, const char *name, size_t columns)
{
    struct ipw_buf text = IPW_BUF(IPW_KIB);

    if (ipw_format_width(name, strlen(name)) > columns) {
        ipw_buf_adds(&text, "\xE2\x80\xA6"); /* an ellipsis */
        while (*name && ipw_format_width(name, strlen(name)) + 1 > columns) do
                name++;
            while (((unsigned char)*name & 0xC0) == 0x80);
    }
    ipw_buf_adds(&text, name);
    cell(out, ipw_buf_str(&text), columns, false);
    ipw_buf_release(&text);
}

static void head_line(struct ipw_buf *out, const struct ipw_telemetry_style *style, size_t names)
{
    ipw_buf_addf(out, "%s ", ipw_style(IPW_DIM, style->colour));
    cell(out, "source", 11, false);
    cell(out, "channel", names, false);
    cell(out, "scope", 8, false);
    cell(out, "now", 10, true);
    cell(out, "period", 7, true);
    cell(out, "counts", 7, false);
    ipw_buf_addf(out, "self-test%s\n", ipw_style(IPW_PLAIN, style->colour));
}

static void channel_line(struct ipw_buf *out, const struct ipw_telemetry *t, size_t i,
                         int64_t now_ns, const struct ipw_telemetry_style *style, size_t names)
{
    const struct ipw_live *l = &t->live[i];
    struct ipw_trust_verdict v = ipw_trust_verdict(t->trust, i);
    char text[64], *words = v.words;
    double watts = ipw_live_watts(l, now_ns);

    ipw_buf_addc(out, ' ');
    cell(out, l->source, 11, false);
    name_cell(out, l->channel.name, names);
    cell(out, l->channel.kind == IPW_CHANNEL_METRIC ? "metric" : ipw_scope_name(l->channel.scope),
         8, false);
    if (l->channel.kind == IPW_CHANNEL_METRIC && l->seen)
        metric_words(l, text, sizeof text);
    else if (isnan(watts))
        snprintf(text, sizeof text, IPW_UNKNOWN_TEXT);
    else
        watt_words(watts, text, sizeof text);
    cell(out, text, 10, true);
    if (v.period_ns)
        ipw_format_seconds(text, ipw_ns_to_s(v.period_ns));
    else
        snprintf(text, sizeof text, IPW_UNKNOWN_TEXT);
    cell(out, text, 7, true);
    cell(out, l->channel.in_sum ? ipw_domain_name(l->channel.domain) : "", 7, false);
    ipw_buf_addf(out, "%s%s%s\n",
                 ipw_style(strcmp(words, "ok") == 0 ? IPW_GREEN : IPW_YELLOW, style->colour), words,
                 ipw_style(IPW_PLAIN, style->colour));
}

static void sums(struct ipw_buf *out, const struct ipw_telemetry *t, int64_t now_ns, bool colour)
{
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        double watts = ipw_telemetry_domain_watts(t, shown[i], now_ns);
        const char *basis = t->set.basis[shown[i]];
        char text[32];

        if (!basis[0]) continue;
        ipw_buf_addf(out, " %s%-8s", ipw_style(IPW_BOLD, colour), ipw_domain_name(shown[i]));
        if (isnan(watts))
            ipw_buf_addf(out, "%12s", "unknown");
        else
            ipw_buf_addf(out, "%12s", watt_words(watts, text, sizeof text));
        ipw_buf_addf(out, "%s  %s\n", ipw_style(IPW_PLAIN, colour), basis);
    }
}

static void missing(struct ipw_buf *out, const struct ipw_telemetry *t,
                    const struct ipw_telemetry_style *style)
{
    static const enum ipw_code order[] = {IPW_EPERM, IPW_OK};

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < t->set.n_verdicts; i++) {
            const struct ipw_source_verdict *v = &t->set.verdicts[i];
            bool denied = v->code == IPW_EPERM;
            char words[IPW_VERDICT_BYTES];

            if (v->code == IPW_OK || denied != (order[pass] == IPW_EPERM)) continue;
            ipw_buf_addf(out, " %s%-11s%s ", denied ? ipw_style(IPW_RED, style->colour) : "",
                         v->name, denied ? ipw_style(IPW_PLAIN, style->colour) : "");
            ipw_format_wrapped(out, ipw_source_verdict_words(v, words), 13, 13, style->width);
        }
    }
}

/* The channels of a run, a recording and a page are fixed at the start. */
static void when(struct ipw_buf *out, const struct ipw_telemetry *t, size_t width)
{
    if (!t->set.n_verdicts) return;
    ipw_buf_addc(out, '\n');
    ipw_format_wrapped(
        out,
        "Sensors are detected at the start. To use a sensor that appeared later (a driver "
        "that was loaded, a GPU that woke up), start the command again.",
        0, 0, width);
}

static void nothing(struct ipw_buf *out, const struct ipw_telemetry *t, size_t width)
{
    bool denied = false;

    for (size_t i = 0; i < t->set.n_verdicts; i++) denied |= t->set.verdicts[i].code == IPW_EPERM;
    ipw_buf_adds(out, t->set.n_verdicts ? "No energy sensor can be read on this machine.\n\n"
                                        : "No sensor is selected.\n");
    if (!t->set.n_verdicts) return;
    if (denied)
        ipw_buf_adds(out, "There is one, and it may not be read: see below for the remedy.\n\n");
    ipw_buf_adds(out, "What would help:\n");
    ipw_format_wrapped(out, "- on bare metal: read access to /sys/class/powercap (RAPL), see below",
                       0, 2, width);
    ipw_format_wrapped(out,
                       "- with an NVIDIA GPU: its driver, and libnvidia-ml.so.1 inside the "
                       "container",
                       0, 2, width);
    ipw_format_wrapped(out,
                       "- in a virtual machine, or when the model runs elsewhere: ipw-agent "
                       "telemetry --listen on that machine, --telemetry stream=http://HOST:9440 "
                       "here; or its exporter (DCGM, Scaphandre, Kepler), "
                       "--telemetry prometheus=http://HOST:9400/metrics",
                       0, 2, width);
    ipw_format_wrapped(out,
                       "- a power meter: --telemetry log=FILE.csv, or exec=COMMAND that prints "
                       "watts",
                       0, 2, width);
    ipw_buf_adds(out, "\nWhat was looked for:\n");
}

static void notes(struct ipw_buf *out, const struct ipw_telemetry *t, size_t width)
{
    for (size_t i = 0; i < t->set.n; i++) {
        char note[IPW_NOTE_BYTES];

        if (!ipw_source_note(t->set.sources[i], note)[0]) continue;
        ipw_buf_addf(out, " %-11s ", t->set.sources[i]->name);
        ipw_format_wrapped(out, note, 13, 13, width);
    }
}

void ipw_telemetry_table(struct ipw_buf *out, struct ipw_telemetry *t,
                         const struct ipw_telemetry_style *style)
{
    struct ipw_hardware facts;
    char label[128], upstream[64];
    int64_t now_ns = ipw_now_ns();
    size_t names = name_columns(t, style);

    ipw_hardware_gather(&facts, NULL, NULL, &t->set);
    ipw_hardware_label(label, sizeof label, &facts);
    ipw_hardware_label_upstream(upstream, sizeof upstream, facts.gpu.model, facts.cpu);
    ipw_buf_addf(out, "%s%s%s  (%s; label %s)\n\n", ipw_style(IPW_BOLD, style->colour), label,
                 ipw_style(IPW_PLAIN, style->colour),
                 facts.cpu[0] ? facts.cpu : "unknown processor", upstream);
    if (t->set.n == 0) {
        nothing(out, t, style->width);
        missing(out, t, style);
        when(out, t, style->width);
        return;
    }
    head_line(out, style, names);
    for (size_t i = 0; i < t->n; i++) channel_line(out, t, i, now_ns, style, names);
    ipw_buf_addc(out, '\n');
    sums(out, t, now_ns, style->colour);
    ipw_buf_addc(out, '\n');
    notes(out, t, style->width);
    if (style->brief) return;
    missing(out, t, style);
    when(out, t, style->width);
}

static double rounded(double x) { return isnan(x) ? x : round(x * 1e4) / 1e4; }

void ipw_telemetry_json(struct ipw_buf *out, struct ipw_telemetry *t)
{
    struct ipw_buf hardware = IPW_BUF(MAX_BYTES);
    int64_t now_ns = ipw_now_ns();
    struct ipw_jw w;

    ipw_hardware_json(&hardware, &t->set, t->trust);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "channels");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < t->n; i++) {
        const struct ipw_live *l = &t->live[i];
        struct ipw_trust_verdict v = ipw_trust_verdict(t->trust, i);
        bool metric = l->channel.kind == IPW_CHANNEL_METRIC;
        bool counts =
            l->seen && !metric &&
            !ipw_trust_is_broken(t->trust, i) && /* a counter that never moved has no value */
            (l->channel.kind != IPW_CHANNEL_COUNTER || l->n_edges > 1 || v.moved);

        ipw_jw_obj(&w);
        ipw_jw_kbool(&w, "believed", v.believed);
        ipw_jw_kstr(&w, "device", l->channel.device);
        ipw_jw_kstr(&w, "domain", ipw_domain_name(l->channel.domain));
        ipw_jw_kbool(&w, "in_sum", l->channel.in_sum);
        ipw_jw_knum(&w, "joules", counts ? (double)l->uj / 1e6 : NAN);
        ipw_jw_kstr(&w, "name", l->channel.name);
        if (v.period_ns)
            ipw_jw_knum(&w, "period_s", ipw_ns_to_s(v.period_ns));
        else
            ipw_jw_knull(&w, "period_s");
        ipw_jw_knum(&w, "ratio", rounded(v.ratio));
        ipw_jw_kstr(&w, "scope", ipw_scope_name(l->channel.scope));
        ipw_jw_kstr(&w, "source", l->source);
        ipw_jw_kstr(&w, "state", ipw_trust_state_name(v.state));
        ipw_jw_kstr(&w, "unit", l->channel.unit[0] ? l->channel.unit : NULL);
        ipw_jw_knum(&w, "value", metric && l->seen ? (double)l->value / 1e3 : NAN);
        ipw_jw_knum(&w, "watts", rounded(ipw_live_watts(l, now_ns)));
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_kraw(&w, "hardware", ipw_buf_str(&hardware), hardware.len);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
    ipw_buf_release(&hardware);
}
