#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "report/format.h"
#include "report/repeats.h"
#include "report/table.h"
#include "report/words.h"
#include "unit/report/fixture.h"
#include "unit/unit.h"

static const struct made gaia[] = {
    {"q0000", "Paris", "answered", NULL, "{\"level\":\"1\"}", 1, 3, 2, 1204, 310, 4.21, 812.4,
     55.13, IPW_PROV_MEASURED},
    {"q0001", "17", "answered", NULL, "{\"level\":\"2\"}", 0, 7, 9, 22871, 1042, 31.9, 6421, 402.9,
     IPW_PROV_INTERPOLATED},
    {"q0002", "\xE6\x9D\xB1\xE4\xBA\xAC, \xE5\xA4\xA7\xE9\x98\xAA and one more city", "answered",
     NULL, "{\"level\":1}", 1, 2, 1, 890, 77, 1.337, 240.7, 16.02, IPW_PROV_MEASURED},
    {"q0003", NULL, "timeout", "the query's 120 s have passed", "{\"level\":3}", -1, 12, 30, -1, -1,
     120.01, 21400, 1502, IPW_PROV_DISTRIBUTED},
    {"q0004", "a \x1b[31mred\x1b[0m\nanswer", "answered", NULL, "{}", -1, 1, 0, 55, 3, 0.421, 61.2,
     4.4, IPW_PROV_MEASURED},
};
#define N_GAIA (sizeof gaia / sizeof *gaia)

static void fill(struct ipw_summary *s, bool energy, bool tokens)
{
    ipw_summary_init(s);
    for (size_t i = N_GAIA; i-- > 0;) { /* in no particular order: rows are sorted */
        struct made m = gaia[i];

        if (!energy) m.gpu_j = m.cpu_j = NAN;
        if (tokens && m.in < 0) m.in = m.out = 100;
        add_made(s, &m, (int)i);
    }
}

static struct ipw_summary_run sample_run(void)
{
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;

    run.agent = "react";
    run.model = "qwen3:8b";
    run.dataset = "gaia";
    run.status = "complete";
    run.path = "runs/react_qwen3_8b_gaia_20261121-023107";
    run.runner_cpu_s = 0.41;
    run.sampler_cpu_s = 0.12;
    run.wall_s = 158.2;
    run.planned = 5;
    run.have_balance = true;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        run.balance[d] = (struct ipw_balance){.total = figure(NAN, IPW_PROV_NONE),
                                              .idle = figure(NAN, IPW_PROV_NONE)};
    }
    run.balance[IPW_DOMAIN_GPU].total = figure(29424.3, IPW_PROV_MEASURED);
    run.balance[IPW_DOMAIN_GPU].idle = figure(489, IPW_PROV_MEASURED);
    run.balance[IPW_DOMAIN_CPU].total = figure(2100, IPW_PROV_MEASURED);
    run.balance[IPW_DOMAIN_CPU].idle = figure(119.55, IPW_PROV_MEASURED);
    return run;
}

static void no_line_is_wider(const struct ipw_buf *text, size_t width)
{
    for (const char *line = ipw_buf_str(text); *line;) {
        size_t n = strcspn(line, "\n");

        if (ipw_format_width(line, n) > width) fail_msg("too wide: %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void check(const char *name, const struct ipw_summary *s, const struct ipw_summary_run *run,
                  struct ipw_table_options options)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    ipw_table_write(&text, s, run, &options);
    assert_false(text.failed);
    no_line_is_wider(&text, options.width < 80 ? 80 : options.width);
    check_golden(name, &text);
    ipw_buf_release(&text);
}

static void narrow_wide_and_coloured(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = sample_run();

    (void)state;
    fill(&s, true, false);
    check("table-80.txt", &s, &run, (struct ipw_table_options){.width = 0});
    check("table-120.txt", &s, &run, (struct ipw_table_options){.width = 120});
    check("table-colour.txt", &s, &run, (struct ipw_table_options){.width = 80, .colour = true});
    check("table-2-rows.txt", &s, &run, (struct ipw_table_options){.width = 80, .max_rows = 2});
    ipw_summary_release(&s);
}

static void without_sensors(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = sample_run();

    (void)state;
    fill(&s, false, true);
    run.have_balance = false;
    run.energy_note = "rapl: permission denied (try: sudo chmod a+r "
                      "/sys/class/powercap/intel-rapl:0/energy_uj); nvml: libnvidia-ml.so.1 is not "
                      "installed";
    run.note = "demo model: the answers are scripted";
    check("table-no-sensors.txt", &s, &run, (struct ipw_table_options){.width = 80});
    run.energy_note = NULL;
    check("table-no-note.txt", &s, &run, (struct ipw_table_options){.width = 80});
    ipw_summary_release(&s);
}

/* The model runs elsewhere, so that there is no basis for efficiency; the CPU was measured all the
 * same. */
static void a_missing_sensor_is_not_all_of_them(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = sample_run();
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_table_options options = {.width = 100};

    (void)state;
    fill(&s, true, true);
    for (size_t i = 0; i < s.n; i++) row_of(&s, i)->not_lm = 0xff;
    assert_int_equal(ipw_summary_basis(&s), 0);
    run.energy_note = "nvml: libnvidia-ml.so.1 is not installed";
    ipw_table_write(&text, &s, &run, &options);
    assert_non_null(strstr(ipw_buf_str(&text), "nvml: libnvidia-ml.so.1 is not installed"));
    assert_null(strstr(ipw_buf_str(&text), "no energy sensor"));
    ipw_buf_release(&text);
    ipw_summary_release(&s);
}

static char *table_of(const struct ipw_summary *s, const struct ipw_summary_run *run,
                      unsigned width)
{
    struct ipw_table_options options = {.width = width};
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    char *copy;

    ipw_table_write(&text, s, run, &options);
    no_line_is_wider(&text, width);
    copy = ipw_strdup(ipw_buf_str(&text));
    ipw_buf_release(&text);
    return copy;
}

static void says(const char *table, const char *text)
{
    if (!strstr(table, text)) fail_msg("no '%s' in\n%s", text, table);
}

static void never_says(const char *table, const char *text)
{
    if (strstr(table, text)) fail_msg("'%s' in\n%s", text, table);
}

/* p50 and p95 of the calls whose latency is known, within 80 columns; without calls no line. */
static void latencies_of_the_calls(void **state)
{
    struct ipw_summary_run run = sample_run();
    struct ipw_summary s;
    char *table;

    (void)state;
    fill(&s, true, true);
    table = table_of(&s, &run, 80);
    never_says(table, "latency");
    free(table);
    for (int i = 0; i <= 20; i++) {
        struct ipw_summary_call call = {.ttft_s = i ? 0.010 * i : NAN,
                                        .latency_content_s = 1 + 0.1 * i};

        ipw_spill_add(&s.calls, &call);
    }
    table = table_of(&s, &run, 80);
    says(table, " latency     TTFT p50 105\xC2\xA0ms, p95 190\xC2\xA0ms \xC2\xB7 end to end p50 "
                "2.00\xC2\xA0s, p95 2.90\xC2\xA0s\n");
    free(table);
    ipw_summary_release(&s);
}

/* Each null domain has its own reason, in one line; what is measured needs none. */
static void each_missing_domain_has_its_reason(void **state)
{
    struct ipw_summary_run run = sample_run();
    struct ipw_summary s;
    char *table;

    (void)state;
    fill(&s, true, true);
    for (size_t i = 0; i < s.n; i++) row_of(&s, i)->energy[IPW_DOMAIN_CPU].known = false;
    strcpy(s.reason[IPW_DOMAIN_CPU], "permission");
    strcpy(s.reason[IPW_DOMAIN_DRAM], "permission");
    strcpy(s.reason[IPW_DOMAIN_MACHINE], "gpu_lost");
    table = table_of(&s, &run, 80);
    says(table, "time s  GPU J  answer");
    says(table, "not measured: CPU, DRAM (permission) \xC2\xB7 machine (gpu lost)\n");
    free(table);
    ipw_summary_release(&s);
}

/* Every query failed: 0 of 3 solved is no accuracy, and nothing follows from it. */
static void without_an_answer_there_is_no_accuracy(void **state)
{
    struct made failed = gaia[3];
    struct ipw_summary_run run = sample_run();
    struct ipw_repeats repeats;
    struct ipw_totals totals;
    struct ipw_summary s;
    char *table;

    (void)state;
    failed.resolved = 0;
    ipw_summary_init(&s);
    for (int i = 0; i < 3; i++) add_made(&s, &failed, i);
    ipw_summary_totals(&totals, &s);
    assert_true(isnan(totals.accuracy));
    ipw_repeats_of(&repeats, &s);
    assert_true(isnan(repeats.metrics[IPW_REPEAT_ACCURACY].mean));
    assert_true(isnan(repeats.metrics[IPW_REPEAT_IPJ].mean));
    assert_true(repeats.metrics[IPW_REPEAT_WALL_S].mean > 0);
    table = table_of(&s, &run, 80);
    says(table, "no query was answered, !\xC2\xA0\x33 failed");
    assert_string_equal(ipw_words_outcome("malformed"),
                        "the reply did not follow the agent's format");
    assert_string_equal(ipw_words_outcome("timeout"), "timeout");
    says(table, "efficiency  not known: no query was answered");
    never_says(table, "accuracy per joule");
    free(table);
    ipw_summary_release(&s);
}

/* A headline comes neither from 0 J, nor from memory alone, and each has its own words; "nothing
 * was scored" is said only where that is so. */
static void no_efficiency_says_why(void **state)
{
    static const struct {
        double joules[IPW_DOMAIN_COUNT];
        int8_t resolved;
        uint8_t not_lm;
        const char *why;
    } rows[] = {
        {{0, 0, NAN, NAN}, 1, 0, "efficiency  not known: 0 J were measured"},
        {{NAN, NAN, NAN, 0}, 1, 0, "efficiency  not known: 0 J were measured"},
        {{NAN, NAN, 9, NAN}, 1, 0, "efficiency  not known: only the memory was measured"},
        {{NAN, 0, 9, NAN}, 1, 0, "efficiency  not known: the devices measured 0 J"},
        {{NAN, 9, NAN, NAN}, 1, 0xff, "efficiency  not known: no sensor of the model's machine"},
        {{9, 9, NAN, NAN}, -1, 0, "efficiency  not known: nothing was scored"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_summary_run run = sample_run();
        struct ipw_summary s;
        char *table;

        fill(&s, true, true);
        for (size_t k = 0; k < s.n; k++) {
            for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
                row_of(&s, k)->energy[d].known = !isnan(rows[i].joules[d]);
                row_of(&s, k)->energy[d].j = rows[i].joules[d];
            }
            row_of(&s, k)->resolved = rows[i].resolved;
            row_of(&s, k)->not_lm = rows[i].not_lm;
        }
        table = table_of(&s, &run, 80);
        says(table, rows[i].why);
        never_says(table, "per correct answer");
        if (rows[i].resolved >= 0) never_says(table, "nothing was scored");
        free(table);
        ipw_summary_release(&s);
    }
}

/* An estimate stands in brackets where the dash would stand; one line says whose it is, and nothing
 * is computed from it. */
static void an_estimate_is_no_figure(void **state)
{
    struct ipw_summary_run run = sample_run();
    struct ipw_summary s;
    char *table;
    double n;

    (void)state;
    fill(&s, false, true);
    for (size_t i = 0; i < s.n; i++) {
        row_of(&s, i)->energy[IPW_DOMAIN_CPU] =
            (struct ipw_summary_figure){.estimated = true, .j = 4.21};
        s.shown[i].lo_j[IPW_DOMAIN_CPU] = 1.04;
        s.shown[i].hi_j[IPW_DOMAIN_CPU] = 9.4;
    }
    n = (double)s.n;
    s.sums[IPW_DOMAIN_CPU] =
        (struct ipw_summary_sums){.estimated = {.total = n * 4.21, .known = n * 4.21},
                                  .lo_j = n * 1.04,
                                  .hi_j = n * 9.4,
                                  .n_estimates = s.n,
                                  .n_bounded = s.n};
    strcpy(s.estimate_by[IPW_DOMAIN_CPU], "model");
    table = table_of(&s, &run, 80);
    says(table, "time s         CPU J  answer");
    says(table, "(~4.2, 1-9.4)  Paris");
    says(table, "energy      CPU (~21\xC2\xA0J,\xC2\xA0"
                "5.2-47)\n");
    says(table, "( ) estimated by model: in no total, in no efficiency");
    never_says(table, "per joule");
    never_says(table, "per query (");
    never_says(table, "provenance");
    free(table);
    ipw_summary_release(&s);
}

/* The mark in a row and the shares below count queries, both. */
static void the_marks_count_what_the_shares_count(void **state)
{
    struct ipw_summary_run run = sample_run();
    struct ipw_summary s;
    char *table;

    (void)state;
    fill(&s, true, true);
    for (size_t i = 0; i < s.n; i++) {
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
            row_of(&s, i)->energy[d].provenance = IPW_PROV_MEASURED;
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) /* turns shorter than the sensor resolves */
        s.kept.provenance_j[d][IPW_PROV_DISTRIBUTED] = 1000;
    table = table_of(&s, &run, 80);
    never_says(table, "~");
    never_says(table, "distributed");
    says(table, "GPU 100.0 % measured");
    free(table);
    ipw_summary_release(&s);
}

/* Watts of queries that ran together are shares of the device's power, and are called so. */
static void a_share_of_the_power_is_called_so(void **state)
{
    struct ipw_summary_run run = sample_run();
    struct ipw_summary s;
    char *table;

    (void)state;
    fill(&s, true, true);
    table = table_of(&s, &run, 120);
    never_says(table, "share");
    free(table);
    s.sums[IPW_DOMAIN_GPU].exclusive.known /= 2;
    table = table_of(&s, &run, 120);
    says(table, "accuracy per watt of a query's share\n");
    never_says(table, " W ");
    free(table);
    ipw_summary_release(&s);
}

/* A rule that had nothing to go by is not passed off as the one that was asked for. */
static void equal_slices_are_said(void **state)
{
    struct ipw_summary_run run = sample_run();
    struct ipw_summary s;
    char *table;

    (void)state;
    fill(&s, true, true);
    run.equal_part[IPW_DOMAIN_CPU] = 0.253;
    run.equal_part[IPW_DOMAIN_DRAM] = 1;
    table = table_of(&s, &run, 80);
    says(table, " shared      CPU 25.3 %: queries ran at the same time, and their joules were");
    free(table);
    run.equal_part[IPW_DOMAIN_CPU] = 0; /* of memory nothing was measured at all */
    table = table_of(&s, &run, 80);
    never_says(table, "split equally");
    free(table);
    ipw_summary_release(&s);
}

/* Units stand in the heading, chosen by the middle value; what is long makes room at the cost of
 * the answer, within the width. */
static void columns_have_one_unit(void **state)
{
    static const struct {
        double seconds, gpu_j;
        int64_t tokens;
        const char *heading, *cells;
    } rows[] = {
        {0.0713, 0.31, 55, "   in  out time ms GPU mJ", "   55   55    71.3    310"},
        {1.02, 289, 1095, "   in  out  time s  GPU J", " 1095 1095    1.02    289"},
        {86400, 2.4e7, 1234567, "  in k out k  time s GPU MJ", " 1235  1235   86400   24.0"},
        {3, 123456, 999999, "    in    out  time s GPU kJ", "999999 999999    3.00    123"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made m = gaia[0];
        struct ipw_summary_run run = sample_run();
        struct ipw_summary s;
        char *table;

        ipw_summary_init(&s);
        m.wall_s = rows[i].seconds;
        m.gpu_j = rows[i].gpu_j;
        m.cpu_j = NAN;
        m.in = m.out = rows[i].tokens;
        add_made(&s, &m, 0);
        table = table_of(&s, &run, 80);
        says(table, rows[i].heading);
        says(table, rows[i].cells);
        free(table);
        ipw_summary_release(&s);
    }
}

static void interrupted_and_empty(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;

    (void)state;
    ipw_summary_init(&s);
    run.agent = "react";
    run.status = "interrupted";
    run.planned = 16;
    check("table-empty.txt", &s, &run, (struct ipw_table_options){.width = 80});
    ipw_summary_release(&s);
}

static void a_ledger_that_is_off_says_so(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = sample_run();
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_table_options options = {.width = 100};

    (void)state;
    fill(&s, true, true);
    run.balance[IPW_DOMAIN_GPU].idle.j = 400;
    ipw_table_write(&text, &s, &run, &options);
    assert_non_null(strstr(ipw_buf_str(&text), "a bug, please report it"));
    ipw_buf_release(&text);
    ipw_summary_release(&s);
}

/* Two tools of one MCP server differ in their ends. */
static void long_tool_names_can_be_told_apart(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = sample_run();
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    const struct ipw_table_options options = {.width = 80};
    struct ipw_span spans[2] = {
        {.name = "mcp__secure-filesystem-server__list_directory"},
        {.name = "mcp__secure-filesystem-server__list_allowed_directories"},
    };
    struct ipw_turn turn = {.spans = spans, .n_spans = 2};

    (void)state;
    fill(&s, true, true);
    for (int i = 0; i < 2; i++) {
        spans[i].kind = IPW_SPAN_TOOL;
        spans[i].outcome = "ok";
        spans[i].end_ns = IPW_NS_PER_S;
        spans[i].child_cpu_s = NAN;
        spans[i].energy = ipw_turn_figures();
    }
    ipw_tool_sums_add(&s.tools, &(struct ipw_query_trace){.turns = &turn, .n_turns = 1});
    ipw_table_write(&text, &s, &run, &options);
    no_line_is_wider(&text, 80);
    assert_non_null(strstr(ipw_buf_str(&text), "__list_directory "));
    assert_non_null(strstr(ipw_buf_str(&text), "wed_directories "));
    for (int i = 0; i < 2; i++) free(spans[i].energy);
    ipw_buf_release(&text);
    ipw_summary_release(&s);
}

UNIT(table)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_wide_and_coloured),
        cmocka_unit_test(without_sensors),
        cmocka_unit_test(a_missing_sensor_is_not_all_of_them),
        cmocka_unit_test(latencies_of_the_calls),
        cmocka_unit_test(each_missing_domain_has_its_reason),
        cmocka_unit_test(no_efficiency_says_why),
        cmocka_unit_test(without_an_answer_there_is_no_accuracy),
        cmocka_unit_test(an_estimate_is_no_figure),
        cmocka_unit_test(the_marks_count_what_the_shares_count),
        cmocka_unit_test(a_share_of_the_power_is_called_so),
        cmocka_unit_test(equal_slices_are_said),
        cmocka_unit_test(columns_have_one_unit),
        cmocka_unit_test(interrupted_and_empty),
        cmocka_unit_test(a_ledger_that_is_off_says_so),
        cmocka_unit_test(long_tool_names_can_be_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
