/* tests/unit/report/fixture.h: queries made by hand, and golden files. */
#ifndef IPW_TESTS_REPORT_FIXTURE_H
#define IPW_TESTS_REPORT_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "report/summary.h"

struct made {
    const char *id, *answer, *outcome, *error, *metadata;
    int resolved, turns, tools;
    int64_t in, out;
    double wall_s, gpu_j, cpu_j; /* NAN: not known */
    enum ipw_provenance provenance;
};

static inline struct ipw_figure figure(double j, enum ipw_provenance p)
{
    return isnan(j) ? (struct ipw_figure){.reason = "no_sensor"}
                    : (struct ipw_figure){
                          .known = true, .j = j, .provenance = p, .coverage = 1, .samples = 9};
}

/* A trace whose turns share its wall time and joules equally. */
static inline void make_trace(struct ipw_query_trace *q, const struct made *m, int index)
{
    *q = (struct ipw_query_trace){
        .id = m->id,
        .index = index,
        .end_ns = ipw_s_to_ns(m->wall_s),
        .outcome = m->outcome,
        .error = m->error,
        .completed = !strcmp(m->outcome, "answered"),
        .timed_out = !strcmp(m->outcome, "timeout"),
        .input_tokens = m->in,
        .output_tokens = m->out,
        .n_tool_calls = (size_t)m->tools,
    };
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        q->energy[d] = q->energy_before[d] = figure(NAN, IPW_PROV_NONE);
        q->power_mean_w[d] = NAN;
    }
    q->energy[IPW_DOMAIN_GPU] = figure(m->gpu_j, m->provenance);
    q->energy[IPW_DOMAIN_CPU] = figure(m->cpu_j, m->provenance);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) { /* it had the machine to itself */
        q->account[d].exclusive_j = q->energy[d].known ? q->energy[d].j : NAN;
    }
    q->power_mean_w[IPW_DOMAIN_GPU] = m->gpu_j / m->wall_s;
    q->power_mean_w[IPW_DOMAIN_CPU] = m->cpu_j / m->wall_s;
    for (int i = 0; i < m->turns; i++) {
        struct ipw_turn *turn;

        IPW_GROW(q->turns, q->cap_turns, q->n_turns + 1);
        turn = &q->turns[q->n_turns++];
        *turn = (struct ipw_turn){
            .index = i, .attempts = 1, .ttft_s = NAN, .energy = ipw_turn_figures()};
        turn->times.latency_content_s = NAN;
        turn->energy[IPW_DOMAIN_GPU] = figure(m->gpu_j / m->turns, m->provenance);
        turn->energy[IPW_DOMAIN_CPU] = figure(m->cpu_j / m->turns, m->provenance);
    }
}

static inline struct ipw_query_details make_details(const struct made *m)
{
    return (struct ipw_query_details){
        .answer = m->answer,
        .is_resolved = m->resolved,
        .unscorable_reason = !strcmp(m->outcome, "timeout") ? "timeout" : NULL,
        .metadata = m->metadata,
        .cost_usd = NAN,
        .lua_peak_bytes = -1,
        .lua_cpu_ns = -1,
    };
}

/* Compares with tests/data/report/NAME; IPW_GOLDEN=write in the environment writes it instead. */
static inline void check_golden(const char *name, const struct ipw_buf *text)
{
    char path[300];
    const char *mode = getenv("IPW_GOLDEN");
    struct ipw_buf want = IPW_BUF(IPW_MIB);
    char piece[4096];
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "%s/report/%s", IPW_TEST_DATA, name);
    if (mode && !strcmp(mode, "write")) {
        f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(ipw_buf_str(text), 1, text->len, f), text->len);
        fclose(f);
        return;
    }
    f = fopen(path, "r");
    if (!f) fail_msg("%s is missing", path);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) ipw_buf_add(&want, piece, n);
    fclose(f);
    assert_string_equal(ipw_buf_str(text), ipw_buf_str(&want));
    ipw_buf_release(&want);
}

#endif
