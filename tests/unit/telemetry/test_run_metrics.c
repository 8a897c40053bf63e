/* The metrics of a run: what events and energy make of the page; two threads at once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "telemetry/run_metrics.h"
#include "unit/unit.h"

static void has(struct ipw_run_metrics *m, const char *line, bool there)
{
    struct ipw_buf page = IPW_BUF(IPW_MIB);

    ipw_run_metrics_write(&page, m);
    if ((strstr(ipw_buf_str(&page), line) != NULL) != there)
        fail_msg("%s '%s' in:\n%s", there ? "no" : "there is", line, ipw_buf_str(&page));
    ipw_buf_release(&page);
}

static void send(struct ipw_run_metrics *m, enum ipw_event_kind kind, int32_t query, double s,
                 struct ipw_event e)
{
    e.kind = kind;
    e.query = query;
    e.t_ns = (int64_t)(s * 1e9);
    ipw_run_metrics_event(m, &e);
}

static void ends(struct ipw_run_metrics *m, int32_t query, const char *outcome, bool completed)
{
    struct ipw_event e = {.q = {.outcome = outcome, .completed = completed}};

    send(m, IPW_EV_QUERY_START, query, 1, (struct ipw_event){0});
    send(m, IPW_EV_QUERY_END, query, 1.5, e);
}

static void endings(void **state)
{
    struct ipw_run_metrics *m = ipw_run_metrics_new();

    (void)state;
    has(m, "ipw_run_info", false);
    ends(m, 1, "anything, and it was an answer", true);
    ends(m, 2, "max_turns", false);
    ends(m, 3, "token_limit", false);
    ends(m, 4, "timeout", false);
    ends(m, 5, "interrupted", false);
    ends(m, 6, "my own reason", false);
    ends(m, 7, NULL, false);
    send(m, IPW_EV_QUERY_START, 8, 1, (struct ipw_event){0});
    has(m, "ended_total{outcome=\"answered\"} 1\n", true);
    has(m, "ended_total{outcome=\"max_turns\"} 1\n", true);
    has(m, "ended_total{outcome=\"limit\"} 2\n", true);
    has(m, "ended_total{outcome=\"interrupted\"} 1\n", true);
    has(m, "ended_total{outcome=\"other\"} 2\n", true);
    has(m, "my own reason", false);
    has(m, "ipw_run_queries_in_flight 1\n", true);
    has(m, "ipw_run_query_duration_seconds_sum 3.5\n", true);
    ipw_run_metrics_free(m);
}

static void calls(void **state)
{
    struct ipw_run_metrics *m = ipw_run_metrics_new();
    struct ipw_event ok = {.lm = {.input_tokens = 100, .output_tokens = 7}};
    struct ipw_event failed = {.lm = {.outcome = IPW_LM_RESET}};
    struct ipw_event unknown = {.lm = {.input_tokens = -1, .output_tokens = -1}};

    (void)state;
    ok.lm.times.sent_ns = 1000000000;
    ok.lm.times.first_token_ns = 1250000000;
    send(m, IPW_EV_QUERY_START, 1, 0, (struct ipw_event){0});
    send(m, IPW_EV_LM_END, 1, 3, ok);
    send(m, IPW_EV_LM_END, 1, 3, failed);
    send(m, IPW_EV_LM_END, 1, 3, unknown);
    send(m, IPW_EV_TOOL_START, 1, 4, (struct ipw_event){.span = 3});
    send(m, IPW_EV_TOOL_START, 1, 4, (struct ipw_event){.span = 4});
    send(m, IPW_EV_TOOL_END, 1, 4.5, (struct ipw_event){.span = 3, .tool = {.ok = true}});
    has(m, "ipw_run_input_tokens_total 100\n", true);
    has(m, "ipw_run_output_tokens_total 7\n", true);
    has(m, "ipw_run_calls_unknown_tokens_total 1\n", true);
    has(m, "ipw_run_failed_attempts_total 1\n", true);
    has(m, "ipw_run_call_duration_seconds_sum 2\n", true);
    has(m, "ipw_run_first_token_seconds_sum 0.25\n", true);
    has(m, "ipw_run_tool_call_duration_seconds_sum 0.5\n", true);
    /* A tool that never ended goes with its query: its number may come again. */
    send(m, IPW_EV_QUERY_END, 1, 5, (struct ipw_event){0});
    send(m, IPW_EV_TOOL_END, 1, 9, (struct ipw_event){.span = 4});
    has(m, "ipw_run_tool_call_duration_seconds_sum 0.5\n", true);
    has(m, "ipw_run_failed_tool_calls_total 1\n", true);
    ipw_run_metrics_free(m);
}

static void energy(void **state)
{
    struct ipw_run_metrics *m = ipw_run_metrics_new();
    struct ipw_observed_energy e;

    (void)state;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) e.joules[d] = NAN;
    for (int i = 0; i <= 20; i++) {
        e.until_ns = i * IPW_NS_PER_S / 5;
        e.joules[IPW_DOMAIN_GPU] = i < 10 ? i * 20 : 200 + (i - 10) * 40; /* 100 W, then 200 W */
        ipw_run_metrics_energy(m, &e);
        if (i == 0) has(m, "ipw_run_power_watts{", false);
        if (i == 9) has(m, "ipw_run_power_watts{domain=\"gpu\"} 100\n", true);
    }
    has(m, "ipw_run_power_watts{domain=\"gpu\"} 200\n", true);
    has(m, "ipw_run_energy_joules_total{domain=\"gpu\"} 600\n", true);
    has(m, "domain=\"cpu\"", false);
    e.until_ns += IPW_NS_PER_S;
    e.joules[IPW_DOMAIN_GPU] = 599; /* a counter does not fall */
    ipw_run_metrics_energy(m, &e);
    has(m, "ipw_run_energy_joules_total{domain=\"gpu\"} 600\n", true);
    e.until_ns += IPW_NS_PER_S;
    e.joules[IPW_DOMAIN_GPU] = NAN; /* the device was lost */
    ipw_run_metrics_energy(m, &e);
    has(m, "domain=\"gpu\"", false);
    ipw_run_metrics_free(m);
}

static void names(void **state)
{
    struct ipw_run_metrics *m = ipw_run_metrics_new();
    struct ipw_observed_run run = {.agent = "a\"b", .model = NULL, .wall_ns = 1500000000};
    char *wide = test_malloc(1001);

    (void)state;
    for (int i = 0; i < 1000; i++) wide[i] = i % 2 ? '\xbc' : '\xc3';
    wide[1000] = '\0';
    run.dataset = wide;
    ipw_run_metrics_begun(m, &run);
    wide[198] = '\0'; /* cut between two letters */
    has(m, "ipw_run_info{agent=\"a\\\"b\",dataset=\"", true);
    has(m, wide, true);
    wide[198] = '\xc3';
    wide[200] = '\0';
    has(m, wide, false);
    has(m, "ipw_run_start_time_seconds 1.5\n", true);
    test_free(wide);
    ipw_run_metrics_free(m);
}

UNIT(run_metrics)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endings),
        cmocka_unit_test(calls),
        cmocka_unit_test(energy),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
