/* J-8: what docs/trace-format.md says of every object, as the tables of trace/spec.h hold it: each
 * breach is named by the path of its field. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "trace/schema.h"
#include "trace/spec_rows.h"
#include "unit/trace/script.h"
#include "unit/unit.h"

static const char *const words[] = {"red", "blue", NULL};
static const struct ipw_spec inner[] = {KEY("n", C), END};
static const struct ipw_spec table[] = {
    KEY("any", IPW_SPEC_ANY | OPT),
    WORD("colour", TZ, words),
    OF("list", A | OPT, inner),
    OF("map", O | EACH | OPT, inner),
    KEY("num", NZ),
    OF("one", O | OPT, inner),
    END,
};

static int check(const char *text, const struct ipw_spec *spec, struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int rc;

    assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, err), 0);
    rc = ipw_spec_check(doc, spec, err);
    ipw_json_free(doc);
    return rc;
}

static void what_the_table_allows(void **state)
{
    static const char *const good[] = {
        "{\"colour\":\"red\",\"num\":1}",
        "{\"colour\":null,\"num\":null}",
        "{\"colour\":\"blue\",\"num\":1.5}",
        "{\"any\":[{}],\"colour\":\"red\",\"list\":[],\"num\":-1,\"unknown\":{\"b\":1}}",
        "{\"colour\":\"red\",\"list\":[{\"n\":0},{\"n\":7}],\"map\":{\"a\":null,\"b\":{\"n\":1}},"
        "\"num\":0,\"one\":{\"n\":3}}",
    };
    struct ipw_err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (check(good[i], table, &err)) fail_msg("%s: %s", good[i], err.text);
}

static void each_breach_has_its_path(void **state)
{
    static const struct {
        const char *text, *want;
    } bad[] = {
        {"[]", "expected an object, found a list"},
        {"{\"colour\":\"red\"}", "num: missing"},
        {"{\"colour\":1,\"num\":1}", "colour: expected text or null, found an integer"},
        {"{\"colour\":\"green\",\"num\":1}", "colour: 'green' is not an allowed value"},
        {"{\"colour\":\"red\",\"num\":true}",
         "num: expected a number or null, found true or false"},
        {"{\"num\":1,\"colour\":\"red\"}", "colour: keys are not in order"},
        {"{\"colour\":\"red\",\"num\":1,\"num\":2}", "num: occurs twice"},
        {"{\"colour\":\"red\",\"list\":{},\"num\":1}", "list: expected a list, found an object"},
        {"{\"colour\":\"red\",\"list\":[{\"n\":0},{}],\"num\":1}", "list[1].n: missing"},
        {"{\"colour\":\"red\",\"list\":[7],\"num\":1}", "list[0]: expected an object"},
        {"{\"colour\":\"red\",\"map\":{\"a\":{\"n\":-1}},\"num\":1}", "map.a.n: is negative"},
        {"{\"colour\":\"red\",\"num\":1,\"one\":{\"n\":0.5}}", "one.n: expected an integer"},
        {"{\"colour\":\"red\",\"num\":1,\"one\":null}", "one: expected an object, found null"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ipw_err err = {0};

        assert_int_equal(check(bad[i].text, table, &err), IPW_EPARSE);
        if (!strstr(err.text, bad[i].want)) fail_msg("%s: %s", bad[i].text, err.text);
    }
}

static void every_event_has_a_table(void **state)
{
    struct ipw_event events[] = {QS(1),
                                 LS(2, 1, 1),
                                 LE(3, 1, 10, 5),
                                 TS(4, 2, "t"),
                                 TE(5, 2, "t"),
                                 ES(5, 3, "e", "event"),
                                 EE(6, 3, "e", "event"),
                                 QE(7, "answered")};

    (void)state;
    for (int k = 0; k < IPW_EV_KINDS; k++)
        assert_non_null(ipw_spec_event(ipw_event_name((enum ipw_event_kind)k)));
    assert_null(ipw_spec_event("unknown"));
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        struct ipw_buf line = IPW_BUF(IPW_MIB);
        struct ipw_err err = {0};

        events[i].q.id = "q0000";
        ipw_event_write(&line, &events[i]);
        if (check(ipw_buf_str(&line), ipw_spec_event(ipw_event_name(events[i].kind)), &err))
            fail_msg("%s: %s", ipw_buf_str(&line), err.text);
        ipw_buf_release(&line);
    }
}

/* A query as the program writes it; `energy` in microjoules of its two turns. */
static char *written(void)
{
    struct ipw_event events[] = {QS(1),         LS(1.5, 1, 1), LE(2, 1, 10, 5), TS(2.5, 2, "t"),
                                 TE(3, 2, "t"), LS(3.5, 3, 1), LE(4, 3, 20, 6), QE(5, "answered")};
    struct ipw_query_details details = {.workload_type = "agentic",
                                        .query_text = "Q",
                                        .response_text = "A",
                                        .is_resolved = 1,
                                        .cost_usd = NAN,
                                        .lua_peak_bytes = -1,
                                        .lua_cpu_ns = -1};
    struct ipw_query_trace trace;
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    double joules[] = {2.5, 4.25};

    build_trace(&trace, events, sizeof events / sizeof *events);
    assert_int_equal(trace.n_turns, 2);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        trace.energy[d] = trace.energy_before[d] = (struct ipw_figure){.reason = "no_sensor"};
        trace.power_mean_w[d] = NAN;
        trace.account[d] = (struct ipw_query_account){0, NAN, 0, NAN};
    }
    for (size_t i = 0; i < 2; i++) {
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            trace.turns[i].energy[d] = (struct ipw_figure){.reason = "no_sensor"};
            trace.turns[i].power_mean_w[d] = trace.turns[i].power_peak_w[d] = NAN;
        }
        trace.turns[i].energy[IPW_DOMAIN_CPU] = (struct ipw_figure){
            .known = true, .j = joules[i], .provenance = IPW_PROV_MEASURED, .coverage = 1};
    }
    trace.energy_before[IPW_DOMAIN_CPU] =
        (struct ipw_figure){.known = true, .provenance = IPW_PROV_MEASURED, .coverage = 1};
    trace.energy[IPW_DOMAIN_CPU] = (struct ipw_figure){
        .known = true, .j = 6.75, .provenance = IPW_PROV_MEASURED, .coverage = 1};
    ipw_schema_write_query(&line, &trace, &details, NULL);
    ipw_query_trace_release(&trace);
    return ipw_buf_take(&line, NULL);
}

static int check_query(const char *text, struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int rc = ipw_json_parse(&doc, text, strlen(text), NULL, err);

    if (!rc) rc = ipw_spec_check(doc, ipw_spec_trace, err);
    if (!rc) rc = ipw_spec_check_query(doc, err);
    ipw_json_free(doc);
    return rc;
}

static void what_is_written_follows_the_tables(void **state)
{
    char *line = written();
    struct ipw_err err = {0};

    (void)state;
    if (check_query(line, &err)) fail_msg("%s\n%s", err.text, line);
    free(line);
}

/* The first `was` behind `after` becomes `now`. */
static char *changed(const char *line, const char *after, const char *was, const char *now)
{
    const char *from = strstr(line, after), *at = from ? strstr(from, was) : NULL;

    if (!at) fail_msg("no %s behind %s in %s", was, after, line);
    return ipw_asprintf("%.*s%s%s", (int)(at - line), line, now, at + strlen(was));
}

static void what_does_not_hold_together_is_named(void **state)
{
    static const struct {
        const char *after, *was, *now, *want;
    } cases[] = {
        {"\"schema_version\"", "2", "3", "schema_version: 3; this program knows 2"},
        {"\"schema_version\"", "2", "1", "schema_version: 1; this program knows 2"},
        {"\"num_turns\"", "2", "3", "num_turns: the turns sum to 2"},
        {"\"total_input_tokens\"", "30", "31", "total_input_tokens: the turns sum to 30"},
        {"\"total_tool_calls\"", "1", "2", "total_tool_calls: the turns sum to 1"},
        {"\"total_wall_clock_s\"", "4", "5", "total_wall_clock_s: is not end_ns - start_ns"},
        {"\"energy\"", "6.75", "6.5", "energy.cpu.joules: 6.5; energy_before and the turns sum to"},
        {"\"energy\"", "\"provenance\":\"measured\"", "\"provenance\":\"guessed\"",
         "energy.cpu.provenance: 'guessed' is not an allowed value"},
        {"\"energy\"", ",\"provenance\":\"measured\"", "",
         "energy.cpu: has joules but no provenance"},
        {"\"energy\"", "\"joules\":6.75", "\"coverage\":1.5,\"joules\":6.75",
         "has a share of more than 1"},
        {"\"timed_out\"", "false", "true", "timed_out: does not agree with outcome"},
        {"\"accuracy_score\"", "1", "0", "accuracy_score: does not agree with is_resolved"},
        {"\"turns\"", "\"turn_index\":1", "\"turn_index\":2", "turns[1].turn_index: is not 1"},
        {"\"turns\"", "\"cpu_energy_joules\":2.5", "\"cpu_energy_joules\":2",
         "turns[0].cpu_energy_joules: is not the joules of energy.cpu"},
        {"\"turns\"", "\"has_parallel", "\"gpu_energy_joules\":1.0,\"has_parallel",
         "turns[0].gpu_energy_joules: is not the joules of energy.gpu"},
        {"\"turns\"", "\"end_s\":2.5", "\"dram_energy_joules\":1.0,\"end_s\":2.5",
         "turns[0].dram_energy_joules: is not the joules of energy.dram"},
        {"\"query_cpu_energy_joules\"", "6.75", "7.0",
         "query_cpu_energy_joules: is not the joules of energy.cpu"},
        {"\"query_cpu_energy_joules\"", "\"query_id", "\"query_gpu_energy_joules\":7.0,\"query_id",
         "query_gpu_energy_joules: is not the joules of energy.gpu"},
        {"\"energy\"", "{\"reason\":\"no_sensor\"}", "{\"provenance\":\"measured\"}",
         "energy.dram: has a provenance but no joules"},
        {"\"energy\"", "\"joules\":6.75", "\"hi\":6.5,\"joules\":6.75,\"lo\":6.0",
         "energy.cpu.joules: 6.75 is outside its bounds [6, 6.5]"},
        {"\"energy\"", "\"joules\":6.75", "\"hi\":8.0,\"joules\":6.75,\"lo\":7.0",
         "energy.cpu.joules: 6.75 is outside its bounds [7, 8]"},
        {"\"energy\"", "\"measured\"", "\"measured\",\"split_fraction\":1.5",
         "energy.cpu: has a share of more than 1"},
        {"\"energy_before\"", "{\"joules\":0.0}", "{\"joules\":0.0},\"dram\":{\"joules\":1.0}",
         "energy_before.dram: has joules but no provenance"},
        {"\"turns\"", "{\"joules\":2.5}", "{\"joules\":2.5},\"dram\":{\"joules\":1.0}",
         "turns[0].energy.dram: has joules but no provenance"},
        {"\"spans\"", "\"dram\":{}", "\"dram\":{\"joules\":1.0}",
         "turns[0].spans[0].energy.dram: has joules but no provenance"},
        {"\"spans\"", "\"end_s\":2.0", "\"end_s\":1.0", "turns[0].spans[1]: ends before it starts"},
        {"\"turns\"", "\"start_s\":0.5,\"tokens", "\"start_s\":0.75,\"tokens",
         "turns[0].start_s: 0.75, but the time before it ends at 0.5"},
        {"\"turns\"", "\"end_s\":2.5", "\"end_s\":0.25",
         "turns[0].wall_clock_s: is not end_s - start_s"},
        {"\"turns\"", "\"wall_clock_s\":2.0", "\"wall_clock_s\":2.5",
         "turns[0].wall_clock_s: is not end_s - start_s"},
        {"\"end_ns\"", "5000000000", "500000000", "total_wall_clock_s: is not end_ns - start_ns"},
        {"\"end_ns\":5000000000", "\"total_wall_clock_s\":4.0", "\"total_wall_clock_s\":4.5",
         "total_wall_clock_s: is not end_ns - start_ns"},
        {"\"turns\"", "\"end_s\":4.0", "\"end_s\":3.5",
         "turns[1].wall_clock_s: is not end_s - start_s"},
        {"\"n_retries\"", "0", "1", "n_retries: the turns sum to 0"},
        {"\"turns\"", "\"attempts\":1", "\"attempts\":3", "n_retries: the turns sum to 2"},
        {"\"tool_call_count\"", "1", "2", "tool_call_count: the turns sum to 1"},
        {"\"total_output_tokens\"", "11", "12", "total_output_tokens: the turns sum to 11"},
        {"\"total_tokens\"", "41", "42", "total_tokens: the turns sum to 41"},
        {"\"turns\"", "\"input_tokens\":10", "\"input_tokens\":null",
         "total_input_tokens: a turn's is not known"},
        {"\"accounts\"", "\"exclusive_j\"",
         "\"devices\":{\"a\":{\"attributed_j\":6.0,\"exclusive_j\":0.0,\"idle_tax_j\":null,"
         "\"marginal_j\":null,\"waste_j\":0.0}},\"exclusive_j\"",
         "accounts.cpu.attributed_j: 6.75; its devices sum to 6"},
        {"\"accounts\"", "\"exclusive_j\"",
         "\"devices\":{\"a\":{\"attributed_j\":6.75,\"exclusive_j\":0.0,\"idle_tax_j\":2.0,"
         "\"marginal_j\":null,\"waste_j\":0.0}},\"exclusive_j\"",
         "accounts.cpu.idle_tax_j: nan; its devices sum to 2"},
    };
    char *line = written();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = changed(line, cases[i].after, cases[i].was, cases[i].now);
        struct ipw_err err = {0};

        assert_int_equal(check_query(text, &err), IPW_EPARSE);
        if (!strstr(err.text, cases[i].want)) fail_msg("case %zu: %s", i, err.text);
        free(text);
    }
    free(line);
}

/* What stands in the line as well, and is no breach. */
static void what_may_differ(void **state)
{
    static const struct {
        const char *after, *was, *now;
    } cases[] = {
        {"\"energy\"", "\"joules\":6.75", "\"hi\":6.75,\"joules\":6.75,\"lo\":6.75"},
        {"\"energy\"", "\"measured\"", "\"measured\",\"split_fraction\":1.0"},
        /* as the whole says, or by itself */
        {"\"energy_before\"", "{\"joules\":0.0}", "{\"joules\":0.0,\"provenance\":\"measured\"}"},
        {"\"spans\"", "\"cpu\":{}", "\"cpu\":{\"joules\":1.0}"},
        /* a part that is not known leaves the sum to itself */
        {"\"energy_before\"", "{\"joules\":0.0}", "{\"joules\":null,\"reason\":\"no_sensor\"}"},
        {"\"accounts\"", "\"exclusive_j\"",
         "\"devices\":{\"a\":{\"attributed_j\":6.0,\"exclusive_j\":0.0,\"idle_tax_j\":null,"
         "\"marginal_j\":null,\"waste_j\":0.0},\"b\":{\"attributed_j\":0.75,\"exclusive_j\":0.0,"
         "\"idle_tax_j\":null,\"marginal_j\":null,\"waste_j\":0.0}},\"exclusive_j\""},
    };
    char *line = written();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = changed(line, cases[i].after, cases[i].was, cases[i].now);
        struct ipw_err err = {0};

        if (check_query(text, &err)) fail_msg("case %zu: %s", i, err.text);
        free(text);
    }
    free(line);
}

/* A line that others wrote has what it has: in any order, with nulls.  What is there is checked. */
static void foreign_lines(void **state)
{
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"{\"turns\":[{\"wall_clock_s\":1,\"turn_index\":0,\"spans\":null}],\"query_id\":null}",
         NULL},
        {"{\"turns\":[{\"spans\":[7]}]}",
         "turns[0].spans[0]: expected an object, found an integer"},
        {"{\"energy\":{\"gpu\":{\"joules\":\"7\"}}}", "energy.gpu.joules: expected a number"},
        {"[]", "expected an object, found a list"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_json *doc;
        struct ipw_err err = {0};

        assert_int_equal(ipw_json_parse(&doc, cases[i].text, strlen(cases[i].text), NULL, NULL), 0);
        ipw_spec_check_foreign(doc, ipw_spec_trace, &err);
        if (!cases[i].fault != !err.code || (err.code && !strstr(err.text, cases[i].fault)))
            fail_msg("%zu: %s", i, err.text);
        ipw_json_free(doc);
    }
}

UNIT(spec)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_lines),
        cmocka_unit_test(what_the_table_allows),
        cmocka_unit_test(each_breach_has_its_path),
        cmocka_unit_test(every_event_has_a_table),
        cmocka_unit_test(what_is_written_follows_the_tables),
        cmocka_unit_test(what_does_not_hold_together_is_named),
        cmocka_unit_test(what_may_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
