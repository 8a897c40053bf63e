/* The statistics of upstream's records, each by its name. */
#include "trace/channel_stats.h"

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

#define GIB 1073741824.0

static void build(struct ipw_query_trace *q)
{
    struct ipw_event events[] = {QS(0), QE(1, "answered")};
    struct ipw_turn_builder *b = ipw_turn_builder_new();

    for (size_t i = 0; i < 2; i++) ipw_turn_builder_add(b, &events[i]);
    ipw_turn_builder_finish(b, q);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        q->energy[d] = q->energy_before[d] = (struct ipw_figure){.reason = "no_sensor"};
}

static void add(struct ipw_query_trace *q, const char *name, const char *unit, double avg,
                double median, double min, double max)
{
    IPW_GROW(q->metrics, q->cap_metrics, q->n_metrics + 1);
    q->metrics[q->n_metrics++] =
        (struct ipw_metric){ipw_strdup(name), ipw_strdup(unit), avg, median, min, max, 9};
}

static struct ipw_json *line_of(const struct ipw_query_trace *q, struct ipw_buf *line)
{
    struct ipw_query_details r = {.is_resolved = -1, .cost_usd = NAN, .lua_cpu_ns = -1};
    struct ipw_json *doc = NULL;
    struct ipw_err err = {0};

    ipw_buf_clear(line);
    ipw_schema_write_query(line, q, &r, NULL);
    assert_int_equal(ipw_json_parse(&doc, line->data, line->len, NULL, &err), 0);
    if (ipw_spec_check(doc, ipw_spec_trace, &err) < 0) fail_msg("%s", err.text);
    return doc;
}

/* At a path of keys, "a.b.c"; NAN: absent, and only there. */
static double at(const struct ipw_json *doc, const char *path)
{
    char copy[128], *rest = copy, *key;

    snprintf(copy, sizeof copy, "%s", path);
    while ((key = strtok_r(rest, ".", &rest))) {
        doc = ipw_json_get(doc, key);
    }
    if (ipw_json_kind(doc) == IPW_JSON_NULL) fail_msg("%s is null", path);
    return ipw_json_num(doc, NAN);
}

static void expect_statistic(const struct ipw_json *doc, const char *path, double avg, double max,
                             double median, double min)
{
    static const char *const keys[] = {"avg", "max", "median", "min"};
    const double want[] = {avg, max, median, min};

    for (size_t i = 0; i < 4; i++) {
        char full[128];

        snprintf(full, sizeof full, "%s.%s", path, keys[i]);
        if (fabs(at(doc, full) - want[i]) > 1e-12) fail_msg("%s: %g", full, at(doc, full));
    }
}

static void every_statistic_has_upstreams_name(void **state)
{
    struct ipw_query_trace q, again;
    struct ipw_query_loaded loaded;
    struct ipw_buf line = IPW_BUF(IPW_MIB), copy = IPW_BUF(IPW_MIB);
    struct ipw_json *doc;

    (void)state;
    build(&q);
    add(&q, "gpu0/mem_total", "bytes", 80 * GIB, 80 * GIB, 80 * GIB, 80 * GIB);
    add(&q, "gpu0/mem_used", "bytes", 20 * GIB, 21 * GIB, 10 * GIB, 30 * GIB);
    add(&q, "gpu0/mem_util", "pct", 60, 55, 50, 70);
    add(&q, "gpu0/temp", "celsius", 60, 61, 55, 70);
    add(&q, "gpu0/util", "pct", 90, 95, 0, 100);
    add(&q, "gpu1/mem_total", "bytes", 80 * GIB, 80 * GIB, 80 * GIB, 80 * GIB);
    add(&q, "gpu1/mem_used", "bytes", 4 * GIB, 5 * GIB, 2 * GIB, 6 * GIB);
    add(&q, "gpu1/mem_util", "pct", 20, 25, 0, 40);
    add(&q, "gpu1/temp", "celsius", 40, 41, 35, 45);
    add(&q, "gpu1/util", "pct", 10, 5, 0, 30);
    q.power[IPW_DOMAIN_GPU] =
        (struct ipw_power_stats){.avg_w = 300, .median_w = 310, .min_w = 75, .max_w = 420};
    q.power_mean_w[IPW_DOMAIN_GPU] = 300;
    q.power[IPW_DOMAIN_CPU] =
        (struct ipw_power_stats){.avg_w = 80, .median_w = 79, .min_w = 60, .max_w = 95.5};
    q.power_mean_w[IPW_DOMAIN_CPU] = 80;
    doc = line_of(&q, &line);
    expect_statistic(doc, "power_metrics.gpu.per_query_watts", 300, 420, 310, 75);
    expect_statistic(doc, "power_metrics.gpu.total_watts", 300, 420, 310, 75);
    expect_statistic(doc, "power_metrics.cpu.per_query_watts", 80, 95.5, 79, 60);
    expect_statistic(doc, "power_metrics.cpu.total_watts", 80, 95.5, 79, 60);
    assert_true(isnan(at(doc, "power_metrics.machine")));
    expect_statistic(doc, "temperature_metrics", 50, 70, 51, 35);
    expect_statistic(doc, "memory_metrics.gpu_mb", 24 * 1024, 36 * 1024, 26 * 1024, 12 * 1024);
    assert_true(at(doc, "hardware_utilization.gpu.compute_utilization_pct") == 50);
    assert_true(at(doc, "hardware_utilization.gpu.memory_bandwidth_utilization_pct") == 40);
    assert_true(at(doc, "hardware_utilization.gpu.memory_used_gb") == 24);
    assert_true(at(doc, "hardware_utilization.gpu.memory_total_gb") == 160);
    assert_true(isnan(at(doc, "hardware_utilization.gpu.tensor_core_utilization_pct")));
    assert_true(at(doc, "hardware_utilization.derived.mbu") == 0.4);
    assert_true(isnan(at(doc, "hardware_utilization.derived.mfu")));
    assert_true(isnan(at(doc, "hardware_utilization.derived.arithmetic_intensity")));
    assert_true(at(doc, "query_mbu_avg_pct") == 40 && at(doc, "query_mbu_max_pct") == 70);
    assert_true(at(doc, "query_gpu_power_avg_watts") == 300);
    /* Read and written again: the same bytes. */
    assert_int_equal(ipw_schema_read_query(&loaded, line.data, line.len, NULL), 0);
    assert_true(loaded.trace.power[IPW_DOMAIN_GPU].median_w == 310);
    again = loaded.trace;
    ipw_schema_write_query(&copy, &again, &loaded.details, NULL);
    assert_int_equal(copy.len, line.len);
    assert_memory_equal(copy.data, line.data, line.len);
    ipw_query_loaded_release(&loaded);
    ipw_json_free(doc);
    ipw_buf_release(&line);
    ipw_buf_release(&copy);
    ipw_query_trace_release(&q);
}

static void without_readings_each_group_is_absent(void **state)
{
    struct ipw_query_trace q;
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    struct ipw_json *doc;

    (void)state;
    build(&q);
    doc = line_of(&q, &line);
    assert_true(isnan(at(doc, "power_metrics")) && isnan(at(doc, "temperature_metrics")));
    assert_true(isnan(at(doc, "memory_metrics")) && isnan(at(doc, "hardware_utilization")));
    ipw_json_free(doc);
    /* Zero is a value: an idle device is at 0 %. */
    add(&q, "gpu0/mem_util", "pct", 0, 0, 0, 0);
    doc = line_of(&q, &line);
    assert_true(at(doc, "hardware_utilization.gpu.memory_bandwidth_utilization_pct") == 0);
    assert_true(isnan(at(doc, "hardware_utilization.gpu.compute_utilization_pct")));
    assert_true(at(doc, "hardware_utilization.derived.mbu") == 0);
    ipw_json_free(doc);
    ipw_buf_release(&line);
    ipw_query_trace_release(&q);
}

UNIT(channel_stats)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_statistic_has_upstreams_name),
        cmocka_unit_test(without_readings_each_group_is_absent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
