#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json/json.h"
#include "report/summary.h"
#include "report/write_summary.h"
#include "unit/report/fixture.h"
#include "unit/unit.h"

static struct ipw_json *written(const struct ipw_summary *s, const struct ipw_summary_run *run)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_json *doc;
    struct ipw_err err;

    assert_int_equal(ipw_summary_write(&text, s, run, NULL), 0);
    assert_false(text.failed);
    if (ipw_json_parse(&doc, text.data, text.len, NULL, &err) < 0) fail_msg("%s", err.text);
    ipw_buf_release(&text);
    return doc;
}

static const struct ipw_json *at(const struct ipw_json *doc, const char *path)
{
    char key[64];

    while (*path) {
        size_t n = strcspn(path, "/");

        snprintf(key, sizeof key, "%.*s", (int)n, path);
        doc = ipw_json_get(doc, key);
        if (!doc) fail_msg("%s is missing", key);
        path += n + (path[n] == '/');
    }
    return doc;
}

static void number(const struct ipw_json *doc, const char *path, double want)
{
    double x = ipw_json_num(at(doc, path), NAN);

    if (isnan(want)) {
        if (ipw_json_kind(at(doc, path)) != IPW_JSON_NULL) fail_msg("%s should be null", path);
        return;
    }
    if (!(fabs(x - want) <= 1e-12 * fabs(want))) fail_msg("%s is %.17g, not %.17g", path, x, want);
}

static void assert_sorted(const struct ipw_json *node)
{
    const char *last = NULL;

    for (const struct ipw_json *m = ipw_json_first(node); m; m = ipw_json_next(m)) {
        if (ipw_json_kind(node) == IPW_JSON_OBJ) {
            if (last && strcmp(last, ipw_json_key(m)) >= 0) fail_msg("%s", ipw_json_key(m));
            last = ipw_json_key(m);
        }
        assert_sorted(m);
    }
}

/* Upstream's case 28: two queries, three turns. */
static void two_queries(void **state)
{
    const struct made made[] = {
        {"q0000", "a", "answered", NULL, NULL, -1, 2, 2, 150, 60, 2.5, NAN, NAN, IPW_PROV_NONE},
        {"q0001", "b", "answered", NULL, NULL, -1, 1, 0, 50, 25, 1.0, NAN, NAN, IPW_PROV_NONE},
    };
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_summary s;
    struct ipw_json *doc;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < 2; i++) add_made(&s, &made[i], i);
    doc = written(&s, &run);
    assert_sorted(doc);
    number(doc, "totals/queries", 2);
    number(doc, "totals/turns", 3);
    number(doc, "totals/tool_calls", 2);
    number(doc, "totals/input_tokens", 200);
    number(doc, "totals/output_tokens", 85);
    number(doc, "totals/total_tokens", 285);
    number(doc, "totals/wall_clock_s", 3.5);
    number(doc, "averages/turns_per_query", 1.5);
    number(doc, "averages/wall_clock_per_query_s", 1.75);
    number(doc, "averages/gpu_energy_per_query_joules", NAN);
    number(doc, "statistics/total_tokens/median", 142.5);
    number(doc, "statistics/turns/std", 0.70710678118654757);
    number(doc, "statistics/gpu_energy_joules/avg", NAN);
    number(doc, "statistics/gpu_energy_joules/n", 0);
    /* nothing was measured: no zero anywhere */
    number(doc, "totals/gpu_energy_joules", NAN);
    number(doc, "totals/known/gpu_energy_joules", NAN);
    number(doc, "totals/unknown/gpu_energy_joules", 2);
    number(doc, "totals/accuracy", NAN);
    number(doc, "efficiency/intelligence_per_joule", NAN);
    number(doc, "efficiency/ipj", NAN);
    number(doc, "own_overhead/share", NAN);
    number(doc, "generated_at", NAN);
    assert_int_equal(ipw_json_kind(at(doc, "efficiency/basis")), IPW_JSON_NULL);
    assert_int_equal(ipw_json_kind(at(doc, "efficiency/by_domain/gpu")), IPW_JSON_NULL);
    assert_int_equal(ipw_json_kind(at(doc, "normalized_statistics")), IPW_JSON_NULL);
    assert_int_equal(ipw_json_kind(at(doc, "ledger")), IPW_JSON_NULL);
    ipw_json_free(doc);
    ipw_summary_release(&s);
}

/* Upstream's case 29. */
static void no_queries(void **state)
{
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_summary s;
    struct ipw_json *doc;

    (void)state;
    ipw_summary_init(&s);
    run.status = "interrupted";
    run.planned = 16;
    doc = written(&s, &run);
    number(doc, "totals/queries", 0);
    number(doc, "totals/total_tokens", 0);
    number(doc, "totals/wall_clock_s", 0);
    number(doc, "averages/turns_per_query", 0);
    number(doc, "totals/gpu_energy_joules", NAN);
    number(doc, "totals/cost_usd", NAN);
    number(doc, "run/planned", 16);
    assert_string_equal(ipw_json_str(at(doc, "status"), ""), "interrupted");
    ipw_json_free(doc);
    ipw_summary_release(&s);
}

/* Stopped with the run is neither done nor failed; models are counted where there are several. */
static void interrupted_and_models(void **state)
{
    static const struct made made[] = {
        {"q0", "a", "answered", NULL, NULL, 1, 2, 0, 10, 5, 1, NAN, NAN, IPW_PROV_NONE},
        {"q1", NULL, "error", "no", NULL, -1, 1, 0, 10, 5, 1, NAN, NAN, IPW_PROV_NONE},
        {"q2", NULL, "server_lost", NULL, NULL, -1, 1, 0, -1, -1, 1, NAN, NAN, IPW_PROV_NONE},
        {"q3", NULL, "run_timeout", NULL, NULL, -1, 0, 0, -1, -1, 1, NAN, NAN, IPW_PROV_NONE}};
    static const char *const models[] = {"small", "big", "big", NULL};
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_summary s;
    struct ipw_json *doc;
    size_t next = 0;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < 4; i++) {
        struct ipw_query_details r = make_details(&made[i]);
        struct ipw_query_trace q;

        make_trace(&q, &made[i], i);
        for (size_t k = 0; k < q.n_turns; k++) q.turns[k].model = models[next++];
        ipw_summary_add(&s, &q, &r);
        ipw_query_trace_release(&q);
    }
    doc = written(&s, &run);
    number(doc, "totals/queries", 4);
    number(doc, "totals/completed", 1);
    number(doc, "totals/failed", 1);
    number(doc, "totals/interrupted", 2);
    number(doc, "failed/error", 1);
    assert_int_equal(ipw_json_count(at(doc, "failed")), 1);
    number(doc, "interrupted/run_timeout", 1);
    number(doc, "interrupted/server_lost", 1);
    number(doc, "models/small/turns", 1);
    number(doc, "models/big/queries", 2);
    number(doc, "models/big/turns", 2);
    assert_sorted(doc);
    ipw_json_free(doc);
    ipw_summary_release(&s);
}

/* Upstream's case 30, with ours beside it: accuracy .5, 25 J, 225 W. */
static void efficiency(void **state)
{
    const struct made made[] = {
        {"q0000", "a", "answered", NULL, NULL, 1, 1, 0, 10, 5, 0.0625, 12.5, NAN,
         IPW_PROV_MEASURED},
        {"q0001", "b", "answered", NULL, NULL, 0, 1, 0, 10, 5, 0.0625, 12.5, NAN,
         IPW_PROV_MEASURED},
    };
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_summary s;
    struct ipw_json *doc;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < 2; i++) {
        add_made(&s, &made[i], i);
        row_of(&s, (size_t)i)->gpu_w = i ? 250 : 200; /* the sensor's own means */
    }
    doc = written(&s, &run);
    number(doc, "efficiency/accuracy", 0.5);
    number(doc, "efficiency/total_gpu_energy_joules", 25);
    number(doc, "efficiency/avg_gpu_power_watts", 225);
    number(doc, "efficiency/ipj", 0.5 / 25);
    number(doc, "efficiency/ipw", 0.5 / 225);
    number(doc, "efficiency/mean_joules_per_query", 12.5);
    number(doc, "efficiency/intelligence_per_joule", 0.5 / 12.5);
    number(doc, "efficiency/mean_watts_per_query", 200);
    number(doc, "efficiency/intelligence_per_watt", 0.5 / 200);
    number(doc, "efficiency/joules_per_correct_answer", 25);
    number(doc, "efficiency/by_domain/gpu/intelligence_per_joule", 0.5 / 12.5);
    assert_string_equal(ipw_json_str(at(doc, "efficiency/basis"), ""), "gpu");
    number(doc, "provenance/gpu/measured", 1);
    assert_int_equal(ipw_json_kind(at(doc, "provenance/cpu")), IPW_JSON_NULL);
    assert_non_null(strstr(ipw_json_str(at(doc, "definitions/ipj"), ""), "mean joules per query"));
    assert_non_null(strstr(ipw_json_str(at(doc, "definitions/ipw"), ""), "mean watts per query"));
    ipw_json_free(doc);
    ipw_summary_release(&s);
}

/* Upstream's case 31: forty traces, two cut at each end. */
static void trimming(void **state)
{
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_summary s;
    struct ipw_json *doc;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < 40; i++) {
        struct made m = {"q", "a", "answered", NULL, NULL, 1,   1,
                         0,   1,   1,          0,    10,   NAN, IPW_PROV_MEASURED};

        m.wall_s = 1 + 0.1 * ((i * 7) % 40);
        add_made(&s, &m, i);
    }
    doc = written(&s, &run);
    assert_sorted(doc);
    number(doc, "normalized_statistics/_outliers_removed/queries_before", 40);
    number(doc, "normalized_statistics/_outliers_removed/queries_after", 36);
    number(doc, "normalized_statistics/_outliers_removed/removed", 4);
    number(doc, "normalized_statistics/wall_clock_s/min", 1.2);
    number(doc, "normalized_statistics/wall_clock_s/max", 4.7);
    number(doc, "normalized_efficiency/total_gpu_energy_joules", 360);
    number(doc, "efficiency/total_gpu_energy_joules", 400);
    ipw_json_free(doc);
    s.n = 4; /* from four queries up: one at each end */
    doc = written(&s, &run);
    number(doc, "normalized_statistics/_outliers_removed/queries_after", 2);
    ipw_json_free(doc);
    s.n = 40;
    ipw_summary_release(&s);
}

static void failures_and_the_unknown(void **state)
{
    const struct made made[] = {
        {"q0000", "a", "answered", NULL, NULL, 1, 1, 1, 10, 5, 2, 100, 10, IPW_PROV_MEASURED},
        {"q0001", NULL, "timeout", "120 s", NULL, -1, 3, 4, -1, 5, 8, 400, 40,
         IPW_PROV_DISTRIBUTED},
        {"q0002", NULL, "error", "boom", NULL, 0, 1, 0, 10, 5, 1, NAN, 5, IPW_PROV_MEASURED},
        {"q0003", NULL, "timeout", NULL, NULL, -1, 0, 0, 0, 0, 1, 50, 5, IPW_PROV_MEASURED},
    };
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_summary s;
    struct ipw_json *doc;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < 4; i++) add_made(&s, &made[i], i);
    run.config = "{\"a\":1}";
    run.runner_cpu_s = 0.5;
    run.sampler_cpu_s = 0.1;
    run.wall_s = 12;
    run.have_balance = true;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        run.balance[d] = (struct ipw_balance){.total = figure(NAN, IPW_PROV_NONE),
                                              .idle = figure(NAN, IPW_PROV_NONE)};
    }
    run.balance[IPW_DOMAIN_CPU].total = figure(75, IPW_PROV_MEASURED);
    run.balance[IPW_DOMAIN_CPU].idle = figure(12, IPW_PROV_MEASURED);
    run.balance[IPW_DOMAIN_CPU].wasted_j = 3;
    run.balance[IPW_DOMAIN_GPU].total = figure(600, IPW_PROV_MEASURED);
    run.balance[IPW_DOMAIN_GPU].idle = figure(10, IPW_PROV_MEASURED);
    doc = written(&s, &run);
    number(doc, "totals/completed", 1);
    number(doc, "totals/failed", 3);
    number(doc, "failed/timeout", 2);
    number(doc, "failed/error", 1);
    number(doc, "totals/resolved", 1);
    number(doc, "totals/unresolved", 1);
    number(doc, "totals/unscorable", 2);
    number(doc, "totals/input_tokens", NAN);
    number(doc, "totals/known/input_tokens", 20);
    number(doc, "totals/unknown/input_tokens", 1);
    number(doc, "totals/gpu_energy_joules", NAN);
    number(doc, "totals/known/gpu_energy_joules", 550);
    number(doc, "totals/cpu_energy_joules", 60);
    /* the GPU has one figure less than the CPU: it stays out of the headline basis */
    assert_string_equal(ipw_json_str(at(doc, "efficiency/basis"), ""), "cpu");
    number(doc, "efficiency/mean_joules_per_query", 15);
    number(doc, "efficiency/joules_per_correct_answer", 60); /* failures' joules are in it */
    number(doc, "efficiency/by_domain/gpu/queries_with_energy", 3);
    number(doc, "efficiency/by_domain/gpu/joules_per_correct_answer", NAN);
    number(doc, "efficiency/ipj", NAN);                     /* no total, so no ratio to it */
    number(doc, "provenance/gpu/distributed", 400.0 / 500); /* q0003 has no turns to weigh */
    number(doc, "ledger/cpu/total_j", 75);
    number(doc, "ledger/cpu/queries_j", 60);
    number(doc, "ledger/cpu/difference_j", 0);
    assert_true(ipw_json_bool(at(doc, "ledger/cpu/balanced"), false));
    number(doc, "ledger/cpu/warmup_j", 0);
    number(doc, "ledger/machine/warmup_j", NAN); /* never read, so not known to be nothing */
    number(doc, "ledger/machine/wasted_j", NAN);
    number(doc, "ledger/gpu/queries_j", NAN);
    number(doc, "ledger/gpu/difference_j", NAN);
    assert_int_equal(ipw_json_kind(at(doc, "ledger/gpu/balanced")), IPW_JSON_NULL);
    assert_string_equal(ipw_json_str(at(doc, "ledger/dram/reason"), ""), "no_sensor");
    number(doc, "own_overhead/share", 0.6 / 12);
    number(doc, "config/a", 1);
    ipw_json_free(doc);
    run.balance[IPW_DOMAIN_CPU].total.j = 75.001;
    doc = written(&s, &run);
    assert_false(ipw_json_bool(at(doc, "ledger/cpu/balanced"), true));
    ipw_json_free(doc);
    ipw_summary_release(&s);
}

static void the_machine_is_the_basis_when_it_is_metered(void **state)
{
    const struct made m = {"q", "a", "answered", NULL, NULL, 1,  1,
                           1,   10,  5,          2,    100,  10, IPW_PROV_MEASURED};
    struct ipw_buf text = IPW_BUF(64);
    struct ipw_efficiency e;
    struct ipw_summary s;

    (void)state;
    ipw_summary_init(&s);
    add_made(&s, &m, 0);
    ipw_summary_basis_text(&text, ipw_summary_basis(&s));
    assert_string_equal(ipw_buf_str(&text), "gpu+cpu");
    ipw_summary_efficiency(&e, &s, ipw_summary_basis(&s));
    assert_true(e.mean_j == 110 && e.mean_w == 55);
    row_of(&s, 0)->energy[IPW_DOMAIN_MACHINE] =
        (struct ipw_summary_figure){.known = true, .j = 180, .provenance = IPW_PROV_ESTIMATED};
    assert_int_equal(ipw_summary_basis(&s), 1u << IPW_DOMAIN_MACHINE);
    ipw_buf_release(&text);
    ipw_summary_release(&s);
}

static void set_energy(struct ipw_summary *s, const double *joules)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        row_of(s, 0)->energy[d] = (struct ipw_summary_figure){
            .known = !isnan(joules[d]), .j = joules[d], .provenance = IPW_PROV_MEASURED};
    }
}

/* Memory alone is no machine, 0 J is nothing to divide by, and of a model on another machine only
 * that machine's domains count. */
static void what_the_headline_may_stand_on(void **state)
{
    enum { G = 1 << IPW_DOMAIN_GPU, C = 1 << IPW_DOMAIN_CPU, D = 1 << IPW_DOMAIN_DRAM };
    enum { M = 1 << IPW_DOMAIN_MACHINE, ALL = G | C | D | M };
    static const struct {
        double joules[IPW_DOMAIN_COUNT]; /* gpu, cpu, dram, machine */
        unsigned lm_domains, basis;
    } rows[] = {
        {{NAN, NAN, 5, NAN}, ALL, 0}, {{NAN, NAN, 5, 0}, ALL, 0}, {{NAN, 7, 5, NAN}, ALL, C | D},
        {{0, 0, 0, 0}, ALL, 0},       {{9, 0, NAN, 0}, ALL, G},   {{9, 7, 5, 0}, ALL, G | C | D},
        {{9, 7, 5, 30}, ALL, M},      {{NAN, 7, NAN, 30}, M, M},  {{NAN, 7, 5, NAN}, C, C},
        {{NAN, 7, 5, NAN}, D, 0},     {{NAN, 7, NAN, 30}, 0, 0},  {{9, 7, NAN, 30}, G, G},
    };
    const struct made m = {"q", "a", "answered", NULL, NULL, 1,  1,
                           1,   10,  5,          2,    100,  10, IPW_PROV_MEASURED};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_efficiency e;
        struct ipw_summary s;

        ipw_summary_init(&s);
        add_made(&s, &m, 0);
        set_energy(&s, rows[i].joules);
        row_of(&s, 0)->not_lm = (uint8_t)~rows[i].lm_domains;
        assert_int_equal(ipw_summary_basis(&s), rows[i].basis);
        ipw_summary_efficiency(&e, &s, ipw_summary_basis(&s));
        assert_int_equal(!isnan(e.j_per_correct), rows[i].basis != 0);
        ipw_summary_efficiency(&e, &s, ALL & ~M); /* whatever it is asked for */
        assert_true(isnan(e.j_per_correct) || e.j_per_correct > 0);
        ipw_summary_release(&s);
    }
}

/* Queries that nobody scored are told from those that could not be, and retries are attempts beyond
 * the first of each turn. */
static void unscored_and_retries(void **state)
{
    static const struct {
        int resolved;
        const char *why;
    } rows[] = {{-1, NULL}, {-1, "no_ground_truth"}, {-1, NULL}, {0, NULL}, {1, "not looked at"}};
    const struct made m = {"q", "a", "answered", NULL, NULL, 1,  3,
                           1,   10,  5,          2,    100,  10, IPW_PROV_MEASURED};
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_summary s;
    struct ipw_json *doc;

    (void)state;
    ipw_summary_init(&s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_query_details details = make_details(&m);
        struct ipw_query_trace trace;

        details.is_resolved = rows[i].resolved;
        details.unscorable_reason = rows[i].why;
        make_trace(&trace, &m, (int)i);
        trace.turns[0].attempts = 4;
        trace.turns[1].attempts = 0; /* a turn that asked no model */
        ipw_summary_add(&s, &trace, &details);
        ipw_query_trace_release(&trace);
    }
    doc = written(&s, &run);
    number(doc, "totals/unscored", 2);
    number(doc, "totals/unscorable", 1);
    number(doc, "totals/unresolved", 1);
    number(doc, "totals/resolved", 1);
    number(doc, "totals/retries", 5 * 3);
    ipw_json_free(doc);
    ipw_summary_release(&s);
}

/* 75 W before and 90 W after: net is withheld and gross given; within 2 W or a tenth net stands,
 * below zero too. */
static void case_38_baselines_that_drift_withhold_net(void **state)
{
    static const struct {
        double before_w, after_w;
        const char *withheld;
    } rows[] = {{75, 90, "drift"}, {75, 82.5, NULL},   {75, 82.6, "drift"},     {75, 67.4, "drift"},
                {10, 12, NULL},    {10, 7.9, "drift"}, {75, NAN, "no_baseline"}};
    const struct made m = {"q", "a", "answered", NULL, NULL, 1,  1,
                           1,   10,  5,          2,    100,  10, IPW_PROV_MEASURED};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
        struct ipw_query_details details = make_details(&m);
        struct ipw_query_trace trace;
        struct ipw_summary s;
        struct ipw_json *doc;

        run.baseline_s = 30;
        run.baseline[IPW_DOMAIN_GPU] =
            (struct ipw_baseline_watts){rows[i].before_w, rows[i].after_w};
        make_trace(&trace, &m, 0);
        trace.account[IPW_DOMAIN_GPU].marginal_j = -50;
        ipw_summary_init(&s);
        ipw_summary_add(&s, &trace, &details);
        doc = written(&s, &run);
        number(doc, "totals/gpu_energy_joules", 100);
        number(doc, "accounts/gpu/attributed_j", 100);
        number(doc, "accounts/gpu/marginal_j", rows[i].withheld ? NAN : -50);
        number(doc, "baseline/domains/gpu/net_j", rows[i].withheld ? NAN : -50);
        assert_string_equal(ipw_json_str(at(doc, "baseline/domains/gpu/net_withheld"), "none"),
                            rows[i].withheld ? rows[i].withheld : "none");
        ipw_json_free(doc);
        ipw_query_trace_release(&trace);
        ipw_summary_release(&s);
    }
}

UNIT(summary)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_queries),
        cmocka_unit_test(interrupted_and_models),
        cmocka_unit_test(no_queries),
        cmocka_unit_test(efficiency),
        cmocka_unit_test(trimming),
        cmocka_unit_test(failures_and_the_unknown),
        cmocka_unit_test(the_machine_is_the_basis_when_it_is_metered),
        cmocka_unit_test(what_the_headline_may_stand_on),
        cmocka_unit_test(unscored_and_retries),
        cmocka_unit_test(case_38_baselines_that_drift_withhold_net),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
