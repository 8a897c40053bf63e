/* Turns of a record that is cut at its ends, or was changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/trace/script.h"
#include "unit/unit.h"

/* What a damaged or changed record may hold: an end without its start, a second end, and events of
 * a query that is over.  Its spans and times are those that were there before. */
static void what_comes_after_the_end_changes_nothing(void **state)
{
    struct ipw_event events[] = {QS(0),
                                 LS(1, 1, 1),
                                 LE(2, 1, 10, 5),
                                 EE(2.5, 9, "half", "http"),
                                 QE(3, "answered"),
                                 LS(4, 2, 1),
                                 LE(5, 2, 10, 5),
                                 TS(5, 3, "t"),
                                 TE(6, 3, "t"),
                                 ES(6, 4, "e", "event"),
                                 EE(7, 4, "e", "event"),
                                 {.kind = IPW_EV_NOTE, .t_ns = S(8), .tool.name = "malformed"},
                                 {.kind = IPW_EV_RUN_END, .t_ns = S(9)},
                                 QF(9, "error", "late")};
    struct ipw_query_trace q;

    (void)state;
    build_trace(&q, events, sizeof events / sizeof *events);
    assert_int_equal(q.n_turns, 1);
    assert_int_equal(q.n_tool_calls, 0);
    assert_true(q.end_ns == S(3));
    assert_string_equal(q.outcome, "answered");
    assert_null(q.error);
    assert_true(q.completed);
    assert_false(q.turns[0].malformed);
    assert_int_equal(q.turns[0].n_spans, 2);
    assert_int_equal(q.turns[0].spans[1].kind, IPW_SPAN_HTTP);
    assert_true(q.turns[0].spans[1].start_ns == S(2.5)); /* nobody knows more of it */
    ipw_query_trace_release(&q);
}

/* A record whose beginning is lost: the first event there is begins it, its end names it. */
static void a_query_without_its_start(void **state)
{
    struct ipw_event events[] = {LS(1, 1, 1), LE(2, 1, 10, 5), QE(3, NULL)};
    struct ipw_query_trace q;

    (void)state;
    for (size_t i = 0; i < 3; i++) events[i].query = 7;
    events[2].q.id = "named late";
    build_trace(&q, events, 3);
    assert_int_equal(q.index, 7);
    assert_true(q.start_ns == S(1));
    assert_string_equal(q.id, "named late");
    assert_string_equal(q.outcome, "unknown");
    ipw_query_trace_release(&q);
}

UNIT(turn_edges)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_after_the_end_changes_nothing),
        cmocka_unit_test(a_query_without_its_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
