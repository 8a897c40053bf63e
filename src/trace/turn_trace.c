/* A query's trace: creating, querying and releasing it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/turn.h"

const char *const ipw_span_kind_words[IPW_SPAN_KINDS + 1] = {
    [IPW_SPAN_LM] = "lm",       [IPW_SPAN_PREFILL] = "prefill", [IPW_SPAN_DECODE] = "decode",
    [IPW_SPAN_TOOL] = "tool",   [IPW_SPAN_EVENT] = "event",     [IPW_SPAN_HTTP] = "http",
    [IPW_SPAN_AGENT] = "agent",
};

struct ipw_figure *ipw_turn_figures(void)
{
    return ipw_calloc(IPW_DOMAIN_COUNT, sizeof(struct ipw_figure));
}

void ipw_turn_span_figures(struct ipw_turn *turn)
{
    if (!turn->n_spans) return;
    turn->span_energy = ipw_calloc(turn->n_spans * IPW_DOMAIN_COUNT, sizeof(struct ipw_figure));
    for (size_t k = 0; k < turn->n_spans; k++)
        turn->spans[k].energy = turn->span_energy + k * IPW_DOMAIN_COUNT;
}

static void release_spans(struct ipw_turn *turn)
{
    free(turn->spans);
    free(turn->span_energy);
    free(turn->energy);
}

const char *const ipw_part_kind_words[IPW_PART_KINDS + 1] = {
    [IPW_PART_PREFILL] = "prefill", [IPW_PART_DECODE] = "decode", [IPW_PART_LM] = "lm",
    [IPW_PART_TOOL] = "tool",       [IPW_PART_WAIT] = "wait",     [IPW_PART_AGENT] = "agent",
};

void ipw_query_parts_release(struct ipw_query_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) free(parts[i].name);
}

void ipw_query_trace_release(struct ipw_query_trace *trace)
{
    release_spans(&trace->before);
    for (size_t i = 0; i < trace->n_turns; i++) {
        release_spans(&trace->turns[i]);
        free(trace->turns[i].devices);
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) free(trace->sources[d]);
    for (size_t i = 0; i < trace->n_metrics; i++) {
        free(trace->metrics[i].name);
        free(trace->metrics[i].unit);
    }
    for (size_t i = 0; i < trace->n_devices; i++) free(trace->devices[i].name);
    free(trace->devices);
    free(trace->device_energy);
    free(trace->device_before);
    free(trace->device_account);
    free(trace->metrics);
    ipw_query_parts_release(trace->parts, trace->n_parts);
    free(trace->parts);
    free(trace->turns);
    ipw_texts_release(&trace->texts);
    *trace = (struct ipw_query_trace){0};
}

bool ipw_outcome_is_stop(const char *outcome)
{
    static const char *const stops[] = {"interrupted", "server_lost", "unfinished", NULL};
    const char *const *stop = stops;

    if (!outcome) return false;
    while (*stop && strcmp(*stop, outcome)) stop++;
    return *stop || strncmp(outcome, "run_", 4) == 0;
}

unsigned ipw_turn_lm_domains(const struct ipw_query_trace *trace)
{
    if (trace->lm_remote) return trace->lm_domains;
    return (1u << IPW_DOMAIN_COUNT) - 1;
}

double ipw_query_trace_cost(const struct ipw_query_trace *trace)
{
    double sum = NAN;

    for (size_t i = 0; i < trace->n_turns; i++) {
        double usd = trace->turns[i].cost_usd;

        if (isnan(usd) && !trace->turns[i].error) return NAN;
        if (!isnan(usd)) sum = isnan(sum) ? usd : sum + usd;
    }
    return sum;
}

static bool round_figures(struct ipw_figure *figures, size_t n)
{
    bool changed = false;

    for (size_t i = 0; figures && i < n; i++) changed |= ipw_figure_round(&figures[i]);
    return changed;
}

static bool round_watts(double *w, double (*rounded)(double w))
{
    double was = *w;

    *w = rounded(was);
    return *w != was && !isnan(was);
}

static bool round_turn(struct ipw_turn *turn, size_t n_devices)
{
    bool changed =
        round_figures(turn->energy, IPW_DOMAIN_COUNT) | round_figures(turn->devices, n_devices);

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        changed |= round_watts(&turn->power_mean_w[d], ipw_figure_mean_w) |
                   round_watts(&turn->power_peak_w[d], ipw_figure_peak_w);
    for (size_t k = 0; k < turn->n_spans; k++)
        changed |= round_figures(turn->spans[k].energy, IPW_DOMAIN_COUNT);
    return changed;
}

bool ipw_query_trace_round(struct ipw_query_trace *trace)
{
    bool changed = round_figures(trace->energy, IPW_DOMAIN_COUNT) |
                   round_figures(trace->energy_before, IPW_DOMAIN_COUNT) |
                   round_figures(trace->device_energy, trace->n_devices) |
                   round_figures(trace->device_before, trace->n_devices) |
                   round_turn(&trace->before, 0);

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_power_stats *p = &trace->power[d];

        changed |= round_watts(&trace->power_mean_w[d], ipw_figure_mean_w) |
                   round_watts(&p->avg_w, ipw_figure_mean_w) |
                   round_watts(&p->median_w, ipw_figure_least_w) |
                   round_watts(&p->min_w, ipw_figure_least_w) |
                   round_watts(&p->max_w, ipw_figure_peak_w);
    }
    for (size_t i = 0; i < trace->n_turns; i++)
        changed |= round_turn(&trace->turns[i], trace->n_devices);
    return changed;
}
