#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "trace/schema.h"
#include "trace/spec.h"
#include "unit/trace/script.h"
#include "unit/unit.h"

static const struct ipw_anchor anchor = {.mono_ns = 0, .wall_ns = INT64_C(1795228267123000000)};

static const char *const turn_keys[] = {
    "cached_tokens",      "cost_usd",
    "cpu_energy_joules",  "cpu_power_avg_watts",
    "dram_energy_joules", "error",
    "gpu_energy_joules",  "gpu_power_avg_watts",
    "has_parallel_tools", "input_tokens",
    "output_tokens",      "peak_watts",
    "reasoning_tokens",   "shared_device_warning",
    "tool_latencies_s",   "tool_result_tokens",
    "tools_called",       "turn_index",
    "wall_clock_s",
};
static const char *const query_keys[] = {
    "accuracy_metadata",
    "accuracy_score",
    "completed",
    "energy_per_output_token_joules",
    "is_resolved",
    "judge_cpu_energy_joules",
    "judge_cpu_power_avg_watts",
    "judge_gpu_energy_joules",
    "judge_gpu_power_avg_watts",
    "judge_wall_clock_s",
    "lm_energy_measurable",
    "n_retries",
    "num_turns",
    "query_cpu_energy_joules",
    "query_cpu_power_avg_watts",
    "query_gpu_energy_joules",
    "query_gpu_power_avg_watts",
    "query_id",
    "query_mbu_avg_pct",
    "query_mbu_max_pct",
    "query_text",
    "response_text",
    "score_metadata",
    "shared_device_warning",
    "throughput_tokens_per_sec",
    "timed_out",
    "tool_call_count",
    "total_cost_usd",
    "total_input_tokens",
    "total_output_tokens",
    "total_task_cpu_energy_joules",
    "total_task_gpu_energy_joules",
    "total_tokens",
    "total_tool_calls",
    "total_wall_clock_s",
    "turns",
    "unscorable_reason",
    "workload_type",
};

static void fill_energy(struct ipw_query_trace *q)
{
    double sum = 0;

    for (size_t i = 0; i < q->n_turns; i++) {
        struct ipw_turn *turn = &q->turns[i];

        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            turn->energy[d] = (struct ipw_figure){.reason = "no_sensor"};
            for (size_t k = 0; k < turn->n_spans; k++) {
                turn->spans[k].energy[d] = (struct ipw_figure){.reason = "no_sensor"};
            }
        }
        turn->energy[IPW_DOMAIN_GPU] =
            (struct ipw_figure){true, 12.5 + (double)i, IPW_PROV_MEASURED, 1, 3, NULL};
        turn->energy[IPW_DOMAIN_CPU] =
            (struct ipw_figure){true, 1.1, IPW_PROV_DISTRIBUTED, 0.5, 0, NULL};
        turn->power_mean_w[IPW_DOMAIN_GPU] = 200;
        turn->power_peak_w[IPW_DOMAIN_GPU] = 310.5;
        sum += turn->energy[IPW_DOMAIN_GPU].j;
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        q->energy[d] = q->energy_before[d] = (struct ipw_figure){.reason = "permission"};
    }
    q->energy_before[IPW_DOMAIN_GPU] = (struct ipw_figure){true, 0, IPW_PROV_MEASURED, 1, 0, NULL};
    q->energy[IPW_DOMAIN_GPU] = (struct ipw_figure){true, sum, IPW_PROV_MEASURED, 1, 9, NULL};
    q->power_mean_w[IPW_DOMAIN_GPU] = 205;
}

static struct ipw_figure *two_figures(double j)
{
    struct ipw_figure *two = calloc(2, sizeof *two);

    two[0] = (struct ipw_figure){.known = true, .j = j, .provenance = IPW_PROV_MEASURED};
    two[1] = (struct ipw_figure){.reason = "lost"};
    return two;
}

static void add_devices(struct ipw_query_trace *q)
{
    q->devices = calloc(2, sizeof *q->devices);
    q->n_devices = 2;
    for (int i = 0; i < 2; i++) {
        q->devices[i].name = strdup(i ? "gpu1" : "gpu0");
        q->devices[i].domain = IPW_DOMAIN_GPU;
    }
    q->device_energy = two_figures(17);
    q->device_before = two_figures(0.5);
    q->device_account = calloc(2, sizeof *q->device_account);
    q->device_account[0] = (struct ipw_query_account){16, -3, 1.5, 2.5};
    q->device_account[1] = (struct ipw_query_account){NAN, NAN, NAN, NAN};
    for (size_t i = 0; i < q->n_turns; i++) {
        q->turns[i].devices = two_figures(1 + (double)i);
    }
}

static void add_parts(struct ipw_query_trace *q)
{
    q->parts = ipw_calloc(2, sizeof *q->parts);
    q->n_parts = 2;
    q->parts[0] = (struct ipw_query_part){.kind = IPW_PART_DECODE, .calls = 2, .seconds = 1.25};
    q->parts[1] = (struct ipw_query_part){
        .kind = IPW_PART_TOOL, .name = ipw_strdup("a"), .calls = 3, .seconds = 0.5};
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        q->parts[0].j[d] = 1 + d;
        q->parts[0].waste_j[d] = 0.5 * d;
        q->parts[1].j[d] = d == IPW_DOMAIN_GPU ? 7 : NAN;
        q->parts[1].waste_j[d] = d == IPW_DOMAIN_GPU ? 0 : NAN;
    }
}

static void sample_trace(struct ipw_query_trace *q)
{
    struct ipw_event events[] = {
        QS(10),
        LS(10.25, 1, 1),
        LE(11, 1, 50, 20),
        TS(11, 2, "b"),
        TS(11.5, 3, "a"),
        TE(12, 2, "b"),
        TE(12.125, 3, "a"),
        TS(13, 4, "a"),
        TE(13.0000001, 4, "a"),
        LS(14, 5, 1),
        LE(15, 5, 30, 10),
        QE(15.5, "answered"),
    };

    events[0].query = 4;
    events[2].lm.times.first_token_ns = S(10.5);
    events[2].lm.times.last_token_ns = S(10.9);
    build_trace(q, events, sizeof events / sizeof *events);
    fill_energy(q);
    add_devices(q);
    add_parts(q);
    q->turns[1].energy[IPW_DOMAIN_DRAM] = (struct ipw_figure){.reason = "lost",
                                                              .coverage = 0.5,
                                                              .lo_j = 2,
                                                              .hi_j = 40,
                                                              .estimated = true,
                                                              .estimate_j = 4.25,
                                                              .estimate_by = "last_power"};
}

static struct ipw_query_details sample_details(void)
{
    return (struct ipw_query_details){
        .query_text = "What?\n\"Quoted\" \xE2\x9C\x93",
        .response_text = "FINAL ANSWER: 42",
        .answer = "42",
        .answer_source = "marker",
        .is_resolved = 1,
        .score_metadata = "{\"how\":\"exact\"}",
        .metadata = "{\"level\":\"2\",\"n\":[1,2]}",
        .model = "m",
        .cost_usd = NAN,
        .n_malformed = 1,
        .lua_peak_bytes = 20480,
        .lua_cpu_ns = 1234567,
        .epoch = 2,
    };
}

static void assert_sorted(const struct ipw_json *node)
{
    const char *last = NULL;

    for (const struct ipw_json *m = ipw_json_first(node); m; m = ipw_json_next(m)) {
        if (ipw_json_kind(node) == IPW_JSON_OBJ) {
            if (last) assert_true(strcmp(last, ipw_json_key(m)) < 0);
            last = ipw_json_key(m);
        }
        assert_sorted(m);
    }
}

static const struct ipw_spec *row_of(const struct ipw_spec *table, const char *key)
{
    while (table->key && strcmp(table->key, key) != 0) table++;
    if (!table->key) fail_msg("%s is in no table", key);
    return table;
}

/* A key that a row names is there, unless its value is unknown. */
static void assert_has(const struct ipw_json *object, const struct ipw_spec *table, const char *key)
{
    if (!ipw_json_get(object, key) && !(row_of(table, key)->kind & IPW_SPEC_OPTIONAL))
        fail_msg("%s is missing", key);
}

static void a_line_has_upstreams_keys(void **state)
{
    struct ipw_query_trace q;
    struct ipw_query_details r = sample_details();
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    struct ipw_json *doc;
    const struct ipw_json *turn, *latencies;

    (void)state;
    sample_trace(&q);
    ipw_schema_write_query(&line, &q, &r, &anchor);
    assert_false(line.failed);
    assert_null(strchr(line.data, '\n'));
    assert_int_equal(ipw_json_parse(&doc, line.data, line.len, NULL, NULL), 0);
    assert_sorted(doc);
    for (size_t i = 0; i < sizeof query_keys / sizeof *query_keys; i++) {
        assert_has(doc, ipw_spec_trace, query_keys[i]);
    }
    turn = ipw_json_first(ipw_json_get(doc, "turns"));
    for (size_t i = 0; i < sizeof turn_keys / sizeof *turn_keys; i++) {
        assert_has(turn, row_of(ipw_spec_trace, "turns")->of, turn_keys[i]);
    }
    assert_string_equal(ipw_json_str(ipw_json_get(doc, "started_at"), ""),
                        "2026-11-21T02:31:17.123Z");
    assert_int_equal(ipw_json_int(ipw_json_get(doc, "total_tokens"), -1), 110);
    assert_true(ipw_json_num(ipw_json_get(doc, "query_gpu_energy_joules"), -1) == 26);
    assert_true(ipw_json_num(ipw_json_get(doc, "energy_per_output_token_joules"), -1) == 26.0 / 30);
    assert_true(ipw_json_num(ipw_json_get(doc, "throughput_tokens_per_sec"), -1) == 30 / 5.5);
    assert_null(ipw_json_get(doc, "query_cpu_energy_joules"));
    assert_null(ipw_json_get(doc, "total_cost_usd"));
    assert_true(ipw_json_num(ipw_json_get(doc, "accuracy_score"), -1) == 1);
    assert_true(ipw_json_bool(ipw_json_get(turn, "has_parallel_tools"), false));
    assert_true(ipw_json_bool(ipw_json_get(turn, "shared_device_warning"), false));
    assert_false(ipw_json_bool(ipw_json_get(doc, "shared_device_warning"), true));
    assert_true(ipw_json_num(ipw_json_get(turn, "peak_watts"), 0) == 310.5);
    latencies = ipw_json_get(turn, "tool_latencies_s");
    assert_int_equal(ipw_json_count(latencies), 3);
    assert_true(ipw_json_num(ipw_json_get(latencies, "a"), 0) == 0.625);
    assert_true(ipw_json_num(ipw_json_get(latencies, "a#2"), 0) == 1e-7);
    assert_true(ipw_json_num(ipw_json_get(latencies, "b"), 0) == 1);
    assert_int_equal(ipw_json_count(ipw_json_get(turn, "tools_called")), 3);
    assert_string_equal(ipw_json_str(ipw_json_at(ipw_json_get(turn, "tools_called"), 0), ""), "b");
    ipw_json_free(doc);
    ipw_buf_release(&line);
    ipw_query_trace_release(&q);
}

/* Thousands of calls in one turn: a search for every free number would take minutes.  A tool that
 * is called what a number would give keeps its name when it came first. */
static void repeated_names_are_numbered_in_order(void **state)
{
    enum { CALLS = 20000 };
    struct ipw_event *events = calloc(2 * CALLS + 4, sizeof *events);
    struct ipw_query_trace q;
    struct ipw_query_details r = sample_details();
    struct ipw_buf line = IPW_BUF(64 * IPW_MIB);
    struct ipw_json *doc;
    const struct ipw_json *latencies;
    char last[32];
    size_t n = 0;

    (void)state;
    events[n++] = (struct ipw_event)QS(1);
    events[n++] = (struct ipw_event)LS(1, 1, 1);
    events[n++] = (struct ipw_event)LE(2, 1, 5, 5);
    for (int i = 0; i < CALLS; i++) {
        const char *name = i == 0 ? "a#3" : i == CALLS - 1 ? "a#2" : "a";

        events[n++] = (struct ipw_event)TS(3 + i * 0.001, 2 + i, name);
        events[n++] = (struct ipw_event)TE(3.0005 + i * 0.001, 2 + i, name);
    }
    events[n++] = (struct ipw_event)QE(1000, "answered");
    build_trace(&q, events, n);
    fill_energy(&q);
    ipw_schema_write_query(&line, &q, &r, &anchor);
    assert_false(line.failed);
    assert_int_equal(ipw_json_parse(&doc, line.data, line.len, NULL, NULL), 0);
    latencies = ipw_json_get(ipw_json_first(ipw_json_get(doc, "turns")), "tool_latencies_s");
    assert_int_equal(ipw_json_count(latencies), CALLS);
    snprintf(last, sizeof last, "a#%d", CALLS - 1); /* CALLS - 2 of them, past a#3 */
    assert_non_null(ipw_json_get(latencies, "a"));
    assert_non_null(ipw_json_get(latencies, last));
    assert_non_null(ipw_json_get(latencies, "a#2#2"));
    ipw_json_free(doc);
    ipw_buf_release(&line);
    ipw_query_trace_release(&q);
    free(events);
}

static void write_then_read_is_identity(void **state)
{
    struct ipw_query_trace q;
    struct ipw_query_details r = sample_details();
    struct ipw_buf line = IPW_BUF(IPW_MIB), again = IPW_BUF(IPW_MIB);
    struct ipw_query_loaded l;
    struct ipw_err err = {0};

    (void)state;
    sample_trace(&q);
    ipw_schema_write_query(&line, &q, &r, &anchor);
    assert_int_equal(ipw_schema_read_query(&l, line.data, line.len, &err), 0);
    assert_int_equal(l.version, IPW_SCHEMA_VERSION);
    assert_int_equal(l.trace.n_turns, 2);
    assert_int_equal(l.trace.index, 4);
    assert_true(l.trace.start_ns == q.start_ns && l.trace.end_ns == q.end_ns);
    for (size_t i = 0; i < 2; i++) {
        assert_true(l.trace.turns[i].start_ns == q.turns[i].start_ns);
        assert_int_equal(l.trace.turns[i].n_spans, q.turns[i].n_spans);
        for (size_t k = 0; k < q.turns[i].n_spans; k++) {
            assert_true(l.trace.turns[i].spans[k].end_ns == q.turns[i].spans[k].end_ns);
        }
    }
    assert_string_equal(l.trace.energy[IPW_DOMAIN_CPU].reason, "permission");
    assert_int_equal(l.trace.energy[IPW_DOMAIN_GPU].provenance, IPW_PROV_MEASURED);
    assert_int_equal(l.trace.energy[IPW_DOMAIN_GPU].samples, 9);
    assert_int_equal(l.trace.n_devices, 2);
    assert_true(l.trace.device_energy[0].j == 17 && l.trace.turns[1].devices[0].j == 2);
    assert_true(l.trace.device_account[0].marginal_j == -3 &&
                l.trace.device_account[0].waste_j == 1.5);
    assert_true(isnan(l.trace.device_account[1].waste_j));
    assert_string_equal(l.trace.turns[0].devices[1].reason, "lost");
    assert_true(l.trace.turns[1].energy[IPW_DOMAIN_DRAM].estimated);
    assert_true(l.trace.turns[1].energy[IPW_DOMAIN_DRAM].estimate_j == 4.25);
    assert_int_equal(l.trace.n_parts, 2);
    assert_int_equal(l.trace.parts[0].kind, IPW_PART_DECODE);
    assert_string_equal(l.trace.parts[1].name, "a");
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        assert_true(l.trace.parts[0].j[d] == 1 + d && l.trace.parts[0].waste_j[d] == 0.5 * d);
        assert_true(d == IPW_DOMAIN_GPU ? l.trace.parts[1].j[d] == 7
                                        : isnan(l.trace.parts[1].j[d]));
    }
    assert_string_equal(l.details.query_text, r.query_text);
    assert_string_equal(l.details.metadata, r.metadata);
    assert_int_equal(l.details.is_resolved, 1);
    ipw_schema_write_query(&again, &l.trace, &l.details, &anchor);
    assert_string_equal(again.data, line.data);
    ipw_query_loaded_release(&l);
    ipw_query_trace_release(&q);
    ipw_buf_release(&line);
    ipw_buf_release(&again);
}

static void what_is_unknown_is_absent_not_zero(void **state)
{
    struct ipw_event events[] = {QS(1), LS(2, 1, 1), LX(3, 1, 1, IPW_LM_REFUSED, false),
                                 QF(4, "timeout", "4 s passed")};
    struct ipw_query_details r = {.cost_usd = NAN,
                                  .is_resolved = -1,
                                  .lua_peak_bytes = -1,
                                  .lua_cpu_ns = -1,
                                  .unscorable_reason = "timeout"};
    static const char *const unknown[] = {
        "total_input_tokens",
        "total_output_tokens",
        "total_tokens",
        "total_cost_usd",
        "query_gpu_energy_joules",
        "throughput_tokens_per_sec",
        "is_resolved",
        "accuracy_score",
        "lua_cpu_s",
        "lua_peak_bytes",
        "started_at",
        "answer",
        "judge_wall_clock_s",
    };
    struct ipw_query_trace q;
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    struct ipw_query_loaded back;
    struct ipw_json *doc;

    (void)state;
    build_trace(&q, events, 4);
    ipw_schema_write_query(&line, &q, &r, NULL);
    assert_int_equal(ipw_schema_read_query(&back, line.data, line.len, NULL), 0);
    assert_int_equal(back.trace.turns[0].input_tokens, -1);
    assert_int_equal(back.trace.turns[0].output_tokens, -1);
    assert_int_equal(back.trace.input_tokens, -1);
    assert_int_equal(back.trace.output_tokens, -1);
    ipw_query_loaded_release(&back);
    assert_int_equal(ipw_json_parse(&doc, line.data, line.len, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        if (ipw_json_get(doc, unknown[i])) fail_msg("%s should be absent", unknown[i]);
    }
    assert_true(ipw_json_bool(ipw_json_get(doc, "timed_out"), false));
    assert_false(ipw_json_bool(ipw_json_get(doc, "lm_energy_measurable"), true));
    assert_string_equal(ipw_json_str(ipw_json_get(doc, "error"), ""), "4 s passed");
    assert_string_equal(ipw_json_str(ipw_json_get(doc, "workload_type"), ""), "agentic");
    ipw_json_free(doc);
    ipw_buf_clear(&line);
    r.metadata = "{\"workload_type\": \"rag\"}";
    ipw_schema_write_query(&line, &q, &r, NULL);
    assert_int_equal(ipw_json_parse(&doc, line.data, line.len, NULL, NULL), 0);
    assert_string_equal(ipw_json_str(ipw_json_get(doc, "workload_type"), ""), "rag");
    ipw_json_free(doc);
    ipw_buf_release(&line);
    ipw_query_trace_release(&q);
}

static void upstreams_own_lines_load(void **state)
{
    static const char seed[] =
        "{\"query_id\": \"q0003\", \"workload_type\": \"agentic\", \"query_text\": \"t\", "
        "\"response_text\": \"r\", \"turns\": [{\"turn_index\": 0, \"input_tokens\": 100, "
        "\"output_tokens\": 50, \"tool_result_tokens\": 0, \"tools_called\": [\"think\", \"bash\", "
        "\"think\"], \"tool_latencies_s\": {\"think\": 0.5, \"bash\": 1.25}, \"wall_clock_s\": "
        "2.0, "
        "\"error\": null, \"gpu_energy_joules\": 10.5, \"cpu_energy_joules\": null, "
        "\"gpu_power_avg_watts\": 210.0, \"cpu_power_avg_watts\": null, \"cost_usd\": null}, "
        "{\"turn_index\": 1, \"input_tokens\": 80, \"output_tokens\": 30, \"wall_clock_s\": 1.5, "
        "\"gpu_energy_joules\": 2.5}], \"total_wall_clock_s\": 3.6, \"completed\": true}";
    static const char newest[] =
        "{\"query_id\": \"q0001\", \"workload_type\": \"agentic\", \"turns\": [{\"turn_index\": 0, "
        "\"input_tokens\": null, \"output_tokens\": 5, \"tools_called\": [\"a\", \"a\"], "
        "\"tool_latencies_s\": {\"a\": 1.0, \"a#2\": 2.0}, \"peak_watts\": 300.0, "
        "\"cached_tokens\": 7}], \"query_gpu_energy_joules\": 33.0, "
        "\"query_gpu_power_avg_watts\": 110.0, \"timed_out\": true, \"completed\": false, "
        "\"is_resolved\": false, \"unscorable_reason\": \"timeout\", "
        "\"score_metadata\": {\"k\": 1}, \"total_cost_usd\": 0.005, \"total_wall_clock_s\": 0.3}";
    struct ipw_query_loaded l;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_schema_read_query(&l, seed, sizeof seed - 1, &err), 0);
    assert_int_equal(l.version, 0);
    assert_int_equal(l.trace.index, 3);
    assert_int_equal(l.trace.input_tokens, 180);
    assert_int_equal(l.trace.output_tokens, 80);
    assert_int_equal(l.trace.n_tool_calls, 3);
    assert_true(l.trace.energy[IPW_DOMAIN_GPU].known && l.trace.energy[IPW_DOMAIN_GPU].j == 13);
    assert_int_equal(l.trace.energy[IPW_DOMAIN_GPU].provenance, IPW_PROV_ESTIMATED);
    assert_false(l.trace.energy[IPW_DOMAIN_CPU].known);
    assert_true(l.trace.turns[1].start_ns == l.trace.turns[0].end_ns);
    assert_true(l.trace.turns[0].spans[1].end_ns - l.trace.turns[0].spans[1].start_ns == S(1.25));
    assert_true(isnan(l.details.cost_usd));
    assert_int_equal(l.details.is_resolved, -1);
    assert_string_equal(l.trace.outcome, "answered");
    ipw_query_loaded_release(&l);

    assert_int_equal(ipw_schema_read_query(&l, newest, sizeof newest - 1, &err), 0);
    assert_int_equal(l.trace.input_tokens, -1);
    assert_int_equal(l.trace.turns[0].cached_tokens, 7);
    assert_true(l.trace.energy[IPW_DOMAIN_GPU].j == 33);
    assert_true(l.trace.turns[0].spans[1].end_ns == S(2));
    assert_true(l.details.cost_usd == 0.005);
    assert_int_equal(l.details.is_resolved, 0);
    assert_string_equal(l.trace.outcome, "timeout");
    assert_string_equal(l.details.score_metadata, "{\"k\":1}");
    ipw_query_loaded_release(&l);
}

static void a_wrong_line_names_the_field(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"[1]", "must be a JSON object"},
        {"{\"turns\":[]}", "query_id"},
        {"{\"query_id\":7}", "query_id"},
        {"{\"query_id\":\"q\",\"turns\":[{\"turn_index\":0},{\"wall_clock_s\":1}]}",
         "turns[1].turn_index"},
        {"{\"query_id\":\"q\",\"schema_version\":2,\"start_ns\":1,\"turns\":[]}", "end_ns"},
        {"{\"end_ns\":2,\"query_id\":\"q\",\"schema_version\":2,\"start_ns\":1}", "turns"},
        {"{\"end_ns\":2,\"query_id\":\"q\",\"schema_version\":2,\"start_ns\":1,\"turns\":[{"
         "\"end_s\":1,\"spans\":[{\"kind\":\"nap\"}],\"start_s\":0,\"turn_index\":0}]}",
         "turns[0].spans[0].kind"},
        {"{\"query_id\":\"q\",\"schema_version\":1}", "schema_version: 1; this program reads 2"},
        {"{\"query_id\":\"q\",\"schema_version\":99}", "schema_version: 99; this program reads 2"},
        {"{\"query_id\":\"q\"", "byte"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_query_loaded l;
        struct ipw_err err = {0};

        assert_true(ipw_schema_read_query(&l, cases[i].line, strlen(cases[i].line), &err) < 0);
        if (!strstr(err.text, cases[i].message)) fail_msg("case %zu: %s", i, err.text);
        assert_null(l.doc);
    }
}

/* Instants and durations that only damage can have written: no sum of them overflows. */
static void far_instants_are_cut(void **state)
{
    static const char note[] =
        "{\"event\":\"note\",\"name\":\"n\",\"query\":0,\"span\":1,\"t_ns\":-9223372036854775808}";
    struct ipw_turn_builder *turns = ipw_turn_builder_new();
    struct ipw_json *doc;
    struct ipw_event e;
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    struct ipw_query_loaded l;
    struct ipw_err err = {0};

    (void)state;
    ipw_buf_adds(&line, "{\"query_id\":\"q0\",\"workload_type\":\"agentic\",\"turns\":[");
    for (int i = 0; i < 20; i++)
        ipw_buf_addf(&line, "%s{\"turn_index\":%d,\"wall_clock_s\":1e300}", i ? "," : "", i);
    ipw_buf_adds(&line, "],\"total_wall_clock_s\":1e300}");
    assert_int_equal(ipw_schema_read_query(&l, line.data, line.len, &err), 0);
    assert_int_equal(l.trace.n_turns, 20);
    for (size_t i = 0; i < l.trace.n_turns; i++)
        assert_true(l.trace.turns[i].end_ns >= l.trace.turns[i].start_ns &&
                    l.trace.turns[i].end_ns <= INT64_MAX / 3);
    assert_true(l.trace.end_ns - l.trace.start_ns == INT64_C(9000000) * 1000000000); /* 104 days */
    ipw_query_loaded_release(&l);
    ipw_buf_release(&line);
    assert_int_equal(ipw_json_parse(&doc, note, strlen(note), NULL, NULL), 0);
    assert_int_equal(ipw_event_read(&e, doc, &err), 0);
    ipw_turn_builder_add(turns, &e);
    e.t_ns = INT64_MAX;
    ipw_turn_builder_add(turns, &e);
    ipw_turn_builder_finish(turns, &l.trace);
    assert_true(l.trace.start_ns == -(INT64_MAX / 3) && l.trace.end_ns == INT64_MAX / 3);
    ipw_query_trace_release(&l.trace);
    ipw_json_free(doc);
}

/* The judge's values are read back as written, and are no part of the query but of the task. */
static void test_judge(void **state)
{
    struct ipw_judgement judge = {.verdict = "not_attempted",
                                  .text = "C",
                                  .model = "j",
                                  .asked = 2,
                                  .input_tokens = 30,
                                  .output_tokens = 0,
                                  .cost_usd = 0.5,
                                  .wall_s = 1.5,
                                  .gpu_j = 7,
                                  .cpu_j = NAN,
                                  .gpu_w = NAN,
                                  .cpu_w = NAN};
    struct ipw_query_details r = {.query_text = "?", .is_resolved = 0, .judge = &judge};
    struct ipw_query_trace q = {.id = (char *)"a", .outcome = (char *)"answered"};
    struct ipw_buf line = IPW_BUF(IPW_MIB), again = IPW_BUF(IPW_MIB);
    struct ipw_query_loaded loaded;
    struct ipw_json *doc;
    struct ipw_err err;

    (void)state;
    q.energy[IPW_DOMAIN_GPU] = (struct ipw_figure){.known = true, .j = 5, .provenance = 1};
    ipw_schema_write_query(&line, &q, &r, NULL);
    assert_int_equal(ipw_json_parse(&doc, ipw_buf_str(&line), line.len, NULL, &err), 0);
    assert_true(ipw_json_get_num(doc, "total_task_gpu_energy_joules") == 12);
    assert_true(ipw_json_get_num(doc, "query_gpu_energy_joules") == 5);
    assert_true(isnan(ipw_json_get_num(doc, "total_task_cpu_energy_joules")));
    assert_null(ipw_json_get(doc, "judge_reason"));
    assert_int_equal(ipw_spec_check(doc, ipw_spec_trace, &err), 0);
    ipw_json_free(doc);
    assert_int_equal(ipw_schema_read_query(&loaded, ipw_buf_str(&line), line.len, &err), 0);
    assert_string_equal(loaded.details.judge->verdict, "not_attempted");
    assert_int_equal(loaded.details.judge->asked, 2);
    assert_int_equal(loaded.details.judge->output_tokens, 0);
    ipw_schema_write_query(&again, &loaded.trace, &loaded.details, NULL);
    assert_string_equal(ipw_buf_str(&again), ipw_buf_str(&line));
    ipw_query_loaded_release(&loaded);
    ipw_buf_release(&line);
    ipw_buf_release(&again);
}

UNIT(schema)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),
        cmocka_unit_test(far_instants_are_cut),
        cmocka_unit_test(a_line_has_upstreams_keys),
        cmocka_unit_test(repeated_names_are_numbered_in_order),
        cmocka_unit_test(write_then_read_is_identity),
        cmocka_unit_test(what_is_unknown_is_absent_not_zero),
        cmocka_unit_test(upstreams_own_lines_load),
        cmocka_unit_test(a_wrong_line_names_the_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
