#include "report/tool_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

static struct ipw_tool_sum *sum_of(struct ipw_tool_sums *s, const char *name)
{
    struct ipw_tool_sum *sum;

    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].name, name) == 0) return &s->list[i];
    IPW_GROW(s->list, s->cap, s->n + 1);
    sum = &s->list[s->n++];
    *sum = (struct ipw_tool_sum){.name = ipw_strdup(name)};
    return sum;
}

static void count_outcome(struct ipw_tool_sum *sum, const char *name)
{
    size_t i = 0;

    while (i < sum->n_outcomes && strcmp(sum->outcomes[i].name, name) != 0) i++;
    if (i == sum->n_outcomes) {
        IPW_GROW(sum->outcomes, sum->cap_outcomes, i + 1);
        sum->outcomes[sum->n_outcomes++] = (struct ipw_tool_outcome){.name = ipw_strdup(name)};
    }
    sum->outcomes[i].calls++;
    sum->failed += strcmp(name, "ok") != 0;
}

static void add_bytes(int64_t *to, int64_t bytes, bool known)
{
    *to = !known || *to < 0 || bytes > INT64_MAX - *to ? -1 : *to + bytes;
}

static void add_span(struct ipw_tool_sum *sum, const struct ipw_span *span)
{
    sum->calls++;
    count_outcome(sum, span->outcome ? span->outcome : "unknown");
    sum->seconds += ipw_ns_to_s(span->end_ns - span->start_ns);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_figure f = span->energy ? span->energy[d] : (struct ipw_figure){0};

        if (!f.known) f.j = NAN;
        ipw_bounds_add(&sum->bounds[d], sum->j[d], ipw_figure_bounds(&f), f.j);
        sum->j[d] += f.j;
    }
    /* A call always has arguments: without their size the run is older than all these members. */
    add_bytes(&sum->argument_bytes, span->argument_bytes, span->argument_bytes > 0);
    add_bytes(&sum->cut_bytes, span->cut_bytes, span->argument_bytes > 0);
    add_bytes(&sum->result_bytes, span->result_bytes, span->result_bytes >= 0);
    if (!span->child_provenance) return;
    sum->child_calls++;
    sum->child_cpu_s += span->child_cpu_s;
    if (span->child_peak_bytes > sum->child_peak_bytes)
        sum->child_peak_bytes = span->child_peak_bytes;
}

void ipw_tool_sums_add(struct ipw_tool_sums *s, const struct ipw_query_trace *q)
{
    for (size_t i = 0; i < q->n_turns; i++) {
        for (size_t k = 0; k < q->turns[i].n_spans; k++) {
            const struct ipw_span *span = &q->turns[i].spans[k];

            if (span->kind == IPW_SPAN_TOOL)
                add_span(sum_of(s, span->name ? span->name : ""), span);
        }
    }
}

void ipw_tool_sums_release(struct ipw_tool_sums *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < s->list[i].n_outcomes; k++) free(s->list[i].outcomes[k].name);
        free(s->list[i].outcomes);
        free(s->list[i].name);
    }
    free(s->list);
    *s = (struct ipw_tool_sums){0};
}
