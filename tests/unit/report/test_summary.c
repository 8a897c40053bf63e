/* What is kept of a run's queries for summary.json. */
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "report/summary.h"
#include "unit/unit.h"

static const struct ipw_query_details plain = {.is_resolved = -1, .cost_usd = NAN};

static double value(const struct ipw_summary *s, const char *column, size_t row)
{
    size_t k = 0;

    while (strcmp(ipw_summary_query_columns[k], column) != 0) k++;
    return ipw_columns_at(&s->queries, k, row);
}

static const struct ipw_summary_group *find(const struct ipw_summary *s, enum ipw_summary_kind kind,
                                            const char *of, const char *name)
{
    for (size_t i = 0; i < s->n_groups; i++) {
        const struct ipw_summary_group *g = s->groups[i];

        if (g->kind == kind && !strcmp(g->of, of) && !strcmp(g->name, name)) return g;
    }
    fail_msg("%d %s %s is missing", (int)kind, of, name);
    return NULL;
}

static void a_query_is_a_row(void **state)
{
    struct ipw_query_trace q = {.id = "q",
                                .completed = true,
                                .outcome = "answered",
                                .end_ns = 2 * IPW_NS_PER_S,
                                .input_tokens = 7,
                                .output_tokens = -1,
                                .n_tool_calls = 3};
    struct ipw_query_details r = {.is_resolved = 1, .cost_usd = 0.5, .epoch = 2, .n_malformed = 4};
    struct ipw_summary s;

    (void)state;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) q.power_mean_w[d] = NAN;
    q.energy[IPW_DOMAIN_CPU] =
        (struct ipw_figure){.known = true, .j = 5, .lo_j = 4, .hi_j = 6, .u_j = 0.2};
    q.energy[IPW_DOMAIN_DRAM] = (struct ipw_figure){.estimated = true, .estimate_j = 3};
    ipw_summary_init(&s);
    ipw_summary_add(&s, &q, &r);
    assert_true(value(&s, "completed", 0) == 1 && value(&s, "stopped", 0) == 0);
    assert_true(value(&s, "wall_s", 0) == 2 && value(&s, "cost_usd", 0) == 0.5);
    assert_true(value(&s, "epoch", 0) == 2 && value(&s, "malformed", 0) == 4);
    assert_true(value(&s, "input_tokens", 0) == 7 && isnan(value(&s, "output_tokens", 0)));
    assert_true(value(&s, "tools", 0) == 3 && value(&s, "resolved", 0) == 1);
    assert_true(value(&s, "cpu_j", 0) == 5 && value(&s, "cpu_lo_j", 0) == 4);
    assert_true(value(&s, "cpu_hi_j", 0) == 6 && value(&s, "cpu_u_j", 0) == 0.2);
    assert_true(isnan(value(&s, "cpu_estimate_j", 0)) && value(&s, "dram_estimate_j", 0) == 3);
    assert_true(isnan(value(&s, "dram_j", 0)) && isnan(value(&s, "gpu_lo_j", 0)));
    assert_true(isnan(value(&s, "judge_verdict", 0)) && isnan(value(&s, "gpu_w", 0)));
    assert_int_equal(s.n_groups, 0);
    ipw_summary_release(&s);
}

static void verdicts_have_numbers(void **state)
{
    static const struct {
        const char *verdict, *reason;
        double number; /* NAN: no judge */
    } cases[] = {{NULL, NULL, NAN},      {NULL, "refused", 0},       {"correct", NULL, 1},
                 {"incorrect", NULL, 2}, {"not_attempted", NULL, 3}, {"perhaps", NULL, 4}};
    struct ipw_query_trace q = {.id = "q", .completed = true};
    struct ipw_summary s;

    (void)state;
    ipw_summary_init(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_judgement judge = IPW_JUDGEMENT_NONE;
        struct ipw_query_details r = plain;
        double number;

        judge.verdict = cases[i].verdict;
        judge.reason = cases[i].reason;
        judge.model = "m";
        r.judge = &judge;
        ipw_summary_add(&s, &q, &r);
        number = value(&s, "judge_verdict", i);
        assert_true(isnan(cases[i].number) ? isnan(number) : number == cases[i].number);
    }
    assert_int_equal(find(&s, IPW_SUMMARY_JUDGE, "", "m")->calls, 5);
    ipw_summary_release(&s);
}

/* ---- sums by name ---- */

/* A call of one second with 2 J of the GPU. */
static struct ipw_span call(const char *name, const char *outcome)
{
    struct ipw_span span = {.kind = IPW_SPAN_TOOL,
                            .name = name,
                            .outcome = outcome,
                            .end_ns = IPW_NS_PER_S,
                            .argument_bytes = 10,
                            .result_bytes = 5,
                            .child_cpu_s = NAN,
                            .energy = ipw_turn_figures()};

    span.energy[IPW_DOMAIN_GPU].known = true;
    span.energy[IPW_DOMAIN_GPU].j = 2;
    return span;
}

static void add_spans(struct ipw_summary *s, struct ipw_span *spans, size_t n)
{
    struct ipw_turn turn = {.spans = spans, .n_spans = n, .energy = ipw_turn_figures()};

    ipw_summary_add(
        s, &(struct ipw_query_trace){.id = "q", .completed = true, .turns = &turn, .n_turns = 1},
        &plain);
    for (size_t k = 0; k < n; k++) free(spans[k].energy);
    free(turn.energy);
}

static void tools_by_name(void **state)
{
    struct ipw_span spans[] = {call("python", "ok"), call("fs", "refused"),
                               call("python", "timeout"), call("model", "ok")};
    const struct ipw_summary_group *python;
    struct ipw_summary s;

    (void)state;
    spans[0].child_provenance = "rusage";
    spans[0].child_cpu_s = 0.5;
    spans[0].child_peak_bytes = 100;
    spans[2].child_provenance = "rusage";
    spans[2].child_cpu_s = 0.25;
    spans[2].child_peak_bytes = 70;
    spans[2].cut_bytes = 9;
    spans[3].kind = IPW_SPAN_LM; /* no tool */
    ipw_summary_init(&s);
    add_spans(&s, spans, 4);
    python = find(&s, IPW_SUMMARY_TOOL, "", "python");
    assert_int_equal(python->calls, 2);
    assert_int_equal(python->queries, 1);
    assert_true(python->seconds == 2 && python->j[IPW_DOMAIN_GPU] == 4);
    assert_true(isnan(python->j[IPW_DOMAIN_CPU]));
    assert_true(python->argument_bytes == 20 && python->cut_bytes == 9);
    assert_true(python->child_calls == 2 && python->child_cpu_s == 0.75);
    assert_true(python->child_peak_bytes == 100);
    assert_int_equal(find(&s, IPW_SUMMARY_TOOL_OUTCOME, "python", "timeout")->calls, 1);
    assert_int_equal(find(&s, IPW_SUMMARY_TOOL_OUTCOME, "fs", "refused")->calls, 1);
    assert_true(find(&s, IPW_SUMMARY_TOOL, "", "fs")->child_calls == 0);
    assert_int_equal(s.n_groups, 5);
    ipw_summary_release(&s);
}

static void unknown_stays_unknown(void **state)
{
    struct ipw_span spans[] = {call("a", "ok"), call("a", "ok"), call("a", "cancelled")};
    const struct ipw_summary_group *a;
    struct ipw_summary s;

    (void)state;
    spans[1].argument_bytes = 0; /* nobody told it */
    spans[1].energy[IPW_DOMAIN_GPU].known = false;
    spans[2].child_provenance = "unknown";
    ipw_summary_init(&s);
    add_spans(&s, spans, 3);
    a = find(&s, IPW_SUMMARY_TOOL, "", "a");
    assert_true(isnan(a->argument_bytes) && isnan(a->cut_bytes) && a->result_bytes == 15);
    assert_true(isnan(a->j[IPW_DOMAIN_GPU]));
    assert_true(a->child_calls == 1 && isnan(a->child_cpu_s));
    ipw_summary_release(&s);
}

/* A model is counted once for a query, and by turns; parts by kind, those of tools by name. */
static void models_and_parts(void **state)
{
    struct ipw_turn turns[] = {{.model = "small"},
                               {.model = "big"},
                               {.model = "small"},
                               {.model = "big", .error = "refused"},
                               {0}};
    struct ipw_query_part parts[] = {
        {.kind = IPW_PART_DECODE, .calls = 2, .seconds = 0.5},
        {.kind = IPW_PART_TOOL, .name = (char *)"fs", .calls = 1, .seconds = 1}};
    struct ipw_query_trace q = {
        .id = "q", .outcome = "error", .turns = turns, .n_turns = 5, .parts = parts, .n_parts = 2};
    struct ipw_summary s;

    (void)state;
    parts[0].j[IPW_DOMAIN_GPU] = 3;
    parts[0].waste_j[IPW_DOMAIN_GPU] = 1;
    for (int i = 0; i < 5; i++) turns[i].energy = ipw_turn_figures();
    ipw_summary_init(&s);
    for (int i = 0; i < 2; i++) ipw_summary_add(&s, &q, &plain);
    assert_string_equal(s.unanswered_id, "q");
    assert_string_equal(s.unanswered_outcome, "error");
    assert_null(s.unanswered_error);
    assert_int_equal(find(&s, IPW_SUMMARY_MODEL, "", "small")->queries, 2);
    assert_int_equal(find(&s, IPW_SUMMARY_MODEL, "", "small")->calls, 4);
    assert_int_equal(find(&s, IPW_SUMMARY_MODEL, "", "big")->calls, 2);
    assert_true(find(&s, IPW_SUMMARY_PART, "decode", "")->j[IPW_DOMAIN_GPU] == 6);
    assert_true(find(&s, IPW_SUMMARY_PART, "decode", "")->waste_j[IPW_DOMAIN_GPU] == 2);
    assert_int_equal(find(&s, IPW_SUMMARY_PART, "tool", "fs")->queries, 2);
    assert_int_equal(find(&s, IPW_SUMMARY_FAILED, "", "error")->calls, 2);
    assert_int_equal(s.calls.n, 10);
    for (int i = 0; i < 5; i++) free(turns[i].energy);
    ipw_summary_release(&s);
}

/* Seconds for `n` queries of which each has one of so many reasons to fail. */
static double seconds_with(size_t reasons, size_t n)
{
    struct timespec t0, t1;
    struct ipw_summary s;
    char outcome[40];
    struct ipw_query_trace q = {.id = "q", .outcome = outcome};

    ipw_summary_init(&s);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    for (size_t i = 0; i < n; i++) {
        snprintf(outcome, sizeof outcome, "reason %zu", i * 7919 % reasons);
        ipw_summary_add(&s, &q, &plain);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    assert_int_equal(s.n_groups, reasons);
    ipw_summary_release(&s);
    return (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9;
}

static void ten_thousand_reasons_cost_as_a_thousand(void **state)
{
    double few = seconds_with(1000, 100000), many = seconds_with(10000, 100000);

    (void)state;
    if (many > 3 * few + 0.2) fail_msg("%g s with 1,000 reasons, %g s with 10,000", few, many);
}

/* ---- memory ---- */

/* A query takes at most 300 bytes, with every figure of three domains and a call of the model. */
static void a_query_takes_little_memory(void **state)
{
    enum { N = 50000, SOME = 10000 };
    struct ipw_summary s;
    size_t some = 0, all;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < N; i++) {
        struct mallinfo2 now = mallinfo2();
        char id[40];
        double x = 0.1 * (i % 701);
        struct ipw_turn turn = {.model = "m",
                                .energy = ipw_turn_figures(),
                                .ttft_s = NAN,
                                .times = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, x, NAN, NAN}};
        struct ipw_query_trace q = {.id = id,
                                    .completed = true,
                                    .turns = &turn,
                                    .n_turns = 1,
                                    .end_ns = i,
                                    .input_tokens = i % 99,
                                    .output_tokens = i % 77};
        struct ipw_query_details r = {.is_resolved = i % 2, .cost_usd = NAN};

        if (i == SOME) some = now.uordblks + now.hblkhd;
        snprintf(id, sizeof id, "%08d-2530-4b1d-ad13-2cded6237b2e", i);
        for (int d = 0; d < IPW_DOMAIN_MACHINE; d++)
            q.energy[d] = (struct ipw_figure){
                .known = true, .j = x, .lo_j = x / 2, .hi_j = x + 1, .u_j = x / 3};
        ipw_summary_add(&s, &q, &r);
        free(turn.energy);
    }
    all = mallinfo2().uordblks + mallinfo2().hblkhd;
    /* Arrays grow by half, so that up to a third of one is not written yet. */
    if (all > some + (N - SOME) * 300 * 3 / 2)
        fail_msg("%zu bytes a query", (all - some) / (N - SOME));
    ipw_summary_release(&s);
}

/* Tasks are told apart by the whole id, however long, and a long one is no shorter one's. */
static void tells_long_ids_apart(void **state)
{
    static const size_t lengths[] = {62, 63, 64, 65, 20000, 20001};
    enum { N = sizeof lengths / sizeof *lengths };
    const char *ids[2 * N], *at;
    struct ipw_summary s;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < 2 * N; i++) { /* each twice */
        char id[20002];

        memset(id, 'a', lengths[i % N]);
        id[lengths[i % N]] = '\0';
        ipw_summary_add(&s, &(struct ipw_query_trace){.id = id, .completed = true}, &plain);
    }
    at = s.ids;
    for (int i = 0; i < 2 * N; i++) {
        ids[i] = at;
        assert_true(strlen(at) < 64);
        at += strlen(at) + 1;
        for (int k = 0; k < i; k++) assert_int_equal(!strcmp(ids[k], ids[i]), k + N == i);
    }
    assert_ptr_equal(at, s.ids + s.id_bytes);
    ipw_summary_release(&s);
}

/* The facts are JSON; what is unknown is null, and numbers keep all their digits. */
static void facts_are_json(void **state)
{
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_query_trace q = {.id = "q", .outcome = "no \"good\""};
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    const struct ipw_json *group;
    struct ipw_summary s;
    struct ipw_json *doc;

    (void)state;
    q.account[IPW_DOMAIN_GPU].waste_j = 0.1 + 0.2;
    ipw_summary_init(&s);
    ipw_summary_add(&s, &q, &plain);
    run.config = "{\"a\":1}";
    run.have_balance = true;
    ipw_summary_facts(&text, &s, &run);
    assert_false(text.failed);
    assert_int_equal(ipw_json_parse(&doc, text.data, text.len, NULL, NULL), 0);
    group = ipw_json_at(ipw_json_get(doc, "groups"), 0);
    assert_string_equal(ipw_json_get_str(group, "name"), "no \"good\"");
    assert_string_equal(ipw_json_get_str(group, "kind"), "failed");
    assert_string_equal(ipw_json_get_str(doc, "config"), run.config);
    assert_int_equal(ipw_json_kind(ipw_json_get(doc, "wall_s")), IPW_JSON_NULL);
    assert_true(
        ipw_json_num(ipw_json_get(ipw_json_get(ipw_json_get(doc, "accounts"), "gpu"), "waste_j"),
                     0) == 0.1 + 0.2);
    assert_int_equal(ipw_json_count(ipw_json_get(doc, "balance")), IPW_DOMAIN_COUNT);
    ipw_json_free(doc);
    ipw_buf_release(&text);
    ipw_summary_release(&s);
}

/* ---- the file ---- */

static const struct ipw_json *at(const struct ipw_json *doc, const char *const *path)
{
    for (; *path; path++) {
        doc = ipw_json_get(doc, *path);
        if (!doc) fail_msg("%s is missing", *path);
    }
    return doc;
}
#define AT(...) at(doc, (const char *const[]){__VA_ARGS__, NULL})

/* 75 W before and 90 W after: net is withheld and gross given; within 2 W or a tenth net stands,
 * below zero too. */
static void case_38_baselines_that_drift_withhold_net(void **state)
{
    static const struct {
        double before_w, after_w;
        const char *withheld;
    } cases[] = {{75, 90, "drift"},       {75, 82.5, NULL}, {75, 82.6, "drift"},
                 {75, 67.4, "drift"},     {10, 12, NULL},   {10, 7.9, "drift"},
                 {75, NAN, "no_baseline"}};
    struct ipw_query_trace q = {.id = "q", .completed = true, .outcome = "answered"};

    (void)state;
    q.energy[IPW_DOMAIN_GPU] = (struct ipw_figure){.known = true, .j = 100};
    q.account[IPW_DOMAIN_GPU].marginal_j = -50;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
        struct ipw_buf text = IPW_BUF(IPW_MIB);
        double net_j = cases[i].withheld ? -1 : -50;
        const char *withheld = cases[i].withheld;
        struct ipw_summary s;
        struct ipw_json *doc;
        struct ipw_err err;

        run.baseline_s = 30;
        run.baseline[IPW_DOMAIN_GPU] =
            (struct ipw_baseline_watts){cases[i].before_w, cases[i].after_w};
        ipw_summary_init(&s);
        ipw_summary_add(&s, &q, &plain);
        if (ipw_summary_write(&text, &s, &run, &err)) fail_msg("%s", err.text);
        if (ipw_json_parse(&doc, text.data, text.len, NULL, &err) < 0) fail_msg("%s", err.text);
        assert_true(ipw_json_num(AT("totals", "gpu_energy_joules"), 0) == 100);
        assert_true(ipw_json_num(AT("accounts", "gpu", "attributed_j"), 0) == 100);
        assert_true(ipw_json_num(AT("accounts", "gpu", "marginal_j"), -1) == net_j);
        assert_true(ipw_json_num(AT("baseline", "domains", "gpu", "net_j"), -1) == net_j);
        assert_string_equal(ipw_json_str(AT("baseline", "domains", "gpu", "net_withheld"), "none"),
                            withheld ? withheld : "none");
        ipw_json_free(doc);
        ipw_buf_release(&text);
        ipw_summary_release(&s);
    }
}

/* Rows are read in the order of their tasks, and of their time: repeats are one cluster, and the
 * shortest and the longest are cut. */
static void rows_are_read_sorted(void **state)
{
    static const char *const ids[] = {"b", "a", "c", "a", "b", "c", "d", "d"};
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_summary s;
    struct ipw_json *doc;
    struct ipw_err err;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < 8; i++) {
        struct ipw_query_trace q = {
            .id = ids[i], .completed = true, .end_ns = (i * 3 % 8 + 1) * IPW_NS_PER_S};
        struct ipw_query_details r = {.is_resolved = i % 2, .cost_usd = NAN, .epoch = i / 4};

        ipw_summary_add(&s, &q, &r);
    }
    if (ipw_summary_write(&text, &s, &run, &err)) fail_msg("%s", err.text);
    assert_int_equal(ipw_json_parse(&doc, text.data, text.len, NULL, NULL), 0);
    assert_int_equal(ipw_json_int(AT("repeats", "tasks"), 0), 4);
    assert_int_equal(ipw_json_int(AT("repeats", "epochs"), 0), 2);
    assert_int_equal(ipw_json_int(AT("repeats", "metrics", "wall_clock_s", "n"), 0), 4);
    assert_true(ipw_json_num(AT("repeats", "metrics", "accuracy", "mean"), 0) == 0.5);
    assert_true(ipw_json_num(AT("repeats", "metrics", "accuracy", "max"), 0) == 1); /* of "a" */
    assert_int_equal(ipw_json_count(AT("repeats", "pass_at")), 2);
    assert_true(ipw_json_num(AT("normalized_statistics", "wall_clock_s", "min"), 0) == 2);
    assert_true(ipw_json_num(AT("normalized_statistics", "wall_clock_s", "max"), 0) == 7);
    ipw_json_free(doc);
    ipw_buf_release(&text);
    ipw_summary_release(&s);
}

UNIT(summary)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_is_a_row),
        cmocka_unit_test(verdicts_have_numbers),
        cmocka_unit_test(tools_by_name),
        cmocka_unit_test(unknown_stays_unknown),
        cmocka_unit_test(models_and_parts),
        cmocka_unit_test(ten_thousand_reasons_cost_as_a_thousand),
        cmocka_unit_test(a_query_takes_little_memory),
        cmocka_unit_test(tells_long_ids_apart),
        cmocka_unit_test(facts_are_json),
        cmocka_unit_test(case_38_baselines_that_drift_withhold_net),
        cmocka_unit_test(rows_are_read_sorted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
