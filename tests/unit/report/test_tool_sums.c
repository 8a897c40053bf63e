#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "report/tool_sums.h"
#include "trace/schema.h"
#include "unit/unit.h"

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

static void add(struct ipw_tool_sums *s, struct ipw_span *spans, size_t n)
{
    struct ipw_turn turn = {.spans = spans, .n_spans = n};

    ipw_tool_sums_add(s, &(struct ipw_query_trace){.turns = &turn, .n_turns = 1});
    for (size_t k = 0; k < n; k++) free(spans[k].energy);
}

static void by_name(void **state)
{
    struct ipw_tool_sums s = {0};
    struct ipw_span spans[] = {call("python", "ok"), call("fs", "refused"),
                               call("python", "timeout"), call("model", "ok")};

    (void)state;
    spans[0].child_provenance = (char *)"rusage";
    spans[0].child_cpu_s = 0.5;
    spans[0].child_peak_bytes = 100;
    spans[2].child_provenance = (char *)"rusage";
    spans[2].child_cpu_s = 0.25;
    spans[2].child_peak_bytes = 70;
    spans[2].cut_bytes = 9;
    spans[3].kind = IPW_SPAN_LM; /* no tool */
    add(&s, spans, 4);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.list[0].name, "python");
    assert_int_equal(s.list[0].calls, 2);
    assert_int_equal(s.list[0].failed, 1);
    assert_int_equal(s.list[0].n_outcomes, 2);
    assert_string_equal(s.list[0].outcomes[1].name, "timeout");
    assert_true(s.list[0].seconds == 2);
    assert_true(s.list[0].j[IPW_DOMAIN_GPU] == 4);
    assert_true(isnan(s.list[0].j[IPW_DOMAIN_CPU]));
    assert_int_equal(s.list[0].argument_bytes, 20);
    assert_int_equal(s.list[0].cut_bytes, 9);
    assert_int_equal(s.list[0].child_calls, 2);
    assert_true(s.list[0].child_cpu_s == 0.75);
    assert_int_equal(s.list[0].child_peak_bytes, 100);
    assert_int_equal(s.list[1].failed, 1);
    assert_int_equal(s.list[1].child_calls, 0);
    ipw_tool_sums_release(&s);
}

static void unknown_stays_unknown(void **state)
{
    struct ipw_tool_sums s = {0};
    struct ipw_span spans[] = {call("a", "ok"), call("a", "ok"), call("a", "cancelled")};

    (void)state;
    spans[1].argument_bytes = 0; /* of an older run */
    spans[1].energy[IPW_DOMAIN_GPU].known = false;
    spans[2].child_provenance = (char *)"unknown";
    add(&s, spans, 3);
    assert_int_equal(s.list[0].argument_bytes, -1);
    assert_int_equal(s.list[0].cut_bytes, -1);
    assert_int_equal(s.list[0].result_bytes, 15);
    assert_true(isnan(s.list[0].j[IPW_DOMAIN_GPU]));
    assert_int_equal(s.list[0].child_calls, 1);
    assert_true(isnan(s.list[0].child_cpu_s));
    ipw_tool_sums_release(&s);
}

UNIT(tool_sums)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_name),
        cmocka_unit_test(unknown_stays_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
