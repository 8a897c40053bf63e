/* The order of events: spans that overlap, end in another order, or never end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/validate_events.h"
#include "trace/event.h"
#include "unit/unit.h"

static struct ipw_event_check check;
static struct ipw_err why;
static int64_t now_ns;

static int take(struct ipw_event event)
{
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    struct ipw_json *doc;
    int rc;

    event.t_ns = ++now_ns;
    ipw_event_write(&line, &event);
    assert_int_equal(ipw_json_parse(&doc, line.data, line.len, NULL, &why), 0);
    rc = ipw_event_check_line(&check, doc, &why);
    ipw_json_free(doc);
    ipw_buf_release(&line);
    return rc;
}

static void begin(int session)
{
    take((struct ipw_event){.kind = IPW_EV_RUN_START, .query = -1, .segment = session});
    assert_int_equal(check.segment, session);
}

static int query(enum ipw_event_kind kind, int32_t query)
{
    return take((struct ipw_event){.kind = kind, .query = query, .q.id = "q", .q.outcome = "ok"});
}

static int span(enum ipw_event_kind kind, int32_t query, int32_t span)
{
    return take((struct ipw_event){
        .kind = kind, .query = query, .span = span, .tool = {.kind = "event", .name = "x"}});
}

static int setup(void **state)
{
    (void)state;
    check = IPW_EVENT_CHECK;
    now_ns = 0;
    begin(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ipw_event_check_release(&check);
    return 0;
}

static void spans_end_in_any_order(void **state)
{
    enum { QUERIES = 60, SPANS = 50 };

    (void)state;
    for (int32_t q = 0; q < QUERIES; q++) assert_int_equal(query(IPW_EV_QUERY_START, q), 0);
    for (int32_t s = 1; s <= SPANS; s++)
        for (int32_t q = 0; q < QUERIES; q++) assert_int_equal(span(IPW_EV_SPAN_START, q, s), 0);
    assert_int_equal(check.n_open, QUERIES * SPANS);
    for (int32_t i = 0; i < QUERIES * SPANS; i++) {
        int32_t at = (int32_t)((int64_t)i * 1237 % (QUERIES * SPANS)); /* each of them once */

        assert_int_equal(span(IPW_EV_SPAN_END, at % QUERIES, 1 + at / QUERIES), 0);
    }
    assert_int_equal(check.n_open, 0);
    assert_int_equal(span(IPW_EV_SPAN_END, 7, 8), IPW_EPARSE);
    assert_string_equal(why.text, "span: 8 of query 7 ends without a start");
}

static void a_number_is_used_once_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(query(IPW_EV_QUERY_START, 0), 0);
    assert_int_equal(query(IPW_EV_QUERY_START, 1), 0);
    assert_int_equal(span(IPW_EV_SPAN_START, 0, 1), 0);
    assert_int_equal(span(IPW_EV_SPAN_START, 1, 1), 0);
    assert_int_equal(span(IPW_EV_SPAN_START, 0, 1), IPW_EPARSE);
    assert_string_equal(why.text, "span: 1 of query 0 has started already");
    assert_int_equal(span(IPW_EV_SPAN_END, 0, 1), 0);
    assert_int_equal(span(IPW_EV_SPAN_START, 0, 1), 0); /* after its end it may be used again */
    assert_int_equal(span(IPW_EV_SPAN_END, 1, 1), 0);
    assert_int_equal(span(IPW_EV_SPAN_END, 0, 1), 0);
    assert_int_equal(span(IPW_EV_SPAN_END, 0, 1), IPW_EPARSE);
}

static void an_end_comes_after_its_start(void **state)
{
    (void)state;
    query(IPW_EV_QUERY_START, 0);
    now_ns = 100;
    assert_int_equal(span(IPW_EV_SPAN_START, 0, 1), 0);
    now_ns = 50;
    assert_int_equal(span(IPW_EV_SPAN_END, 0, 1), IPW_EPARSE);
    assert_string_equal(why.text, "t_ns: goes back by 50 ns");
}

static void nothing_follows_in_a_query_that_has_ended(void **state)
{
    (void)state;
    query(IPW_EV_QUERY_START, 0);
    assert_int_equal(span(IPW_EV_SPAN_START, 0, 1), 0);
    assert_int_equal(query(IPW_EV_QUERY_END, 0), 0);
    assert_int_equal(span(IPW_EV_SPAN_END, 0, 1), IPW_EPARSE);
    assert_string_equal(why.text, "query: 0 has ended");
}

static void a_session_begins_without_open_spans(void **state)
{
    (void)state;
    query(IPW_EV_QUERY_START, 0);
    span(IPW_EV_SPAN_START, 0, 1);
    begin(1);
    query(IPW_EV_QUERY_START, 0);
    assert_int_equal(span(IPW_EV_SPAN_END, 0, 1), IPW_EPARSE);
    assert_int_equal(span(IPW_EV_SPAN_START, 0, 1), 0);
    assert_int_equal(span(IPW_EV_SPAN_END, 0, 1), 0);
}

/* A number of 2^32 + 1 is not 1. */
static void a_wild_number_is_no_span(void **state)
{
    struct ipw_event event = {
        .kind = IPW_EV_SPAN_END, .t_ns = 9, .span = 1, .tool = {.kind = "event", .name = "x"}};
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    struct ipw_json *doc;
    char text[1024], *at;

    (void)state;
    query(IPW_EV_QUERY_START, 0);
    span(IPW_EV_SPAN_START, 0, 1);
    ipw_event_write(&line, &event);
    at = strstr(ipw_buf_str(&line), "\"span\":1,");
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s\"span\":4294967297,%s", (int)(at - line.data), line.data,
             at + strlen("\"span\":1,"));
    assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, &why), 0);
    assert_int_equal(ipw_event_check_line(&check, doc, &why), IPW_EPARSE);
    assert_string_equal(why.text, "span: 4294967297 is not the number of a span");
    ipw_json_free(doc);
    ipw_buf_release(&line);
}

/* What repair takes out must not let pass, or hold up, what comes behind it. */
static void a_line_that_fails_leaves_no_trace(void **state)
{
    (void)state;
    now_ns = 10;
    assert_int_equal(query(IPW_EV_QUERY_START, 0), 0);
    now_ns = -10; /* time goes back */
    assert_int_equal(span(IPW_EV_SPAN_START, 0, 1), IPW_EPARSE);
    assert_int_equal(query(IPW_EV_QUERY_START, 1), IPW_EPARSE);
    assert_int_equal(query(IPW_EV_QUERY_END, 0), IPW_EPARSE);
    assert_int_equal(take((struct ipw_event){.kind = IPW_EV_RUN_END, .query = -1}), IPW_EPARSE);
    now_ns = 20;
    assert_int_equal(span(IPW_EV_SPAN_END, 0, 1), IPW_EPARSE);
    assert_int_equal(query(IPW_EV_QUERY_START, 1), 0);
    assert_int_equal(query(IPW_EV_QUERY_END, 0), 0);
    assert_int_equal(take((struct ipw_event){.kind = IPW_EV_RUN_END, .query = -1}), 0);
}

UNIT(validate_events)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spans_end_in_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_number_is_used_once_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end_comes_after_its_start, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_follows_in_a_query_that_has_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_begins_without_open_spans, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wild_number_is_no_span, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_that_fails_leaves_no_trace, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
