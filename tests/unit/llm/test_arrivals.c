/* When each event of a stream came and what it brought: gathered from a fold, read back entry by
 * entry, kept by the reply's JSON there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"
#include "llm/arrivals.h"
#include "unit/unit.h"

#define US INT64_C(1000)

static void feed(struct ipw_chat_fold *fold, struct ipw_arrivals *a, int64_t t_ns, const char *data)
{
    assert_true(ipw_chat_fold_event(fold, "", data, strlen(data), NULL) >= 0);
    ipw_arrivals_add(a, t_ns, ipw_chat_fold_so_far(fold));
}

#define DELTA(inner) "{\"choices\":[{\"index\":0,\"delta\":{" inner "}}]}"

static void gather(struct ipw_chat_reply *reply)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
    struct ipw_arrivals a = {0};

    feed(fold, &a, 5000 * US, DELTA("\"role\":\"assistant\""));
    feed(fold, &a, 5300 * US, DELTA("\"reasoning_content\":\"hm\""));
    feed(fold, &a, 5300 * US + 999, DELTA("\"content\":\"one \""));
    feed(fold, &a, 9000 * US, DELTA("\"content\":\"\xC3\xA4!\""));
    feed(fold, &a, 9000 * US,
         DELTA("\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
               "\"arguments\":\"{\"}},"
               "{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"\"}}]"));
    feed(fold, &a, 9001 * US,
         DELTA("\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"{}\"}}]"));
    feed(fold, &a, 9002 * US,
         DELTA("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]"));
    feed(fold, &a, 9500 * US,
         "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}");
    feed(fold, &a, 9400 * US, "[DONE]"); /* a clock does not go back; if one did, 0 */
    assert_int_equal(ipw_chat_fold_end(fold, reply, NULL), 0);
    ipw_arrivals_take(&reply->arrivals, &a);
    assert_int_equal(a.text.len, 0);
    ipw_chat_fold_free(fold);
}

static void check(const char *text)
{
    static const struct ipw_arrival want[] = {
        {0, IPW_ARRIVAL_OTHER, 0},        {300, IPW_ARRIVAL_REASONING, 2},
        {300, IPW_ARRIVAL_TEXT, 4},       {4000, IPW_ARRIVAL_TEXT, 3},
        {4000, IPW_ARRIVAL_CALL, 2},      {4000, IPW_ARRIVAL_ARGUMENTS, 1},
        {4001, IPW_ARRIVAL_ARGUMENTS, 2}, {4002, IPW_ARRIVAL_ARGUMENTS, 1},
        {4500, IPW_ARRIVAL_OTHER, 0},     {4500, IPW_ARRIVAL_OTHER, 0}};
    struct ipw_arrival got = {0};

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_true(ipw_arrivals_next(&text, &got));
        assert_int_equal(got.after_us, want[i].after_us);
        assert_int_equal(got.kind, want[i].kind);
        assert_int_equal(got.bytes, want[i].bytes);
    }
    assert_int_equal(*text, '\0');
    assert_false(ipw_arrivals_next(&text, &got));
}

static void of_a_stream(void **state)
{
    struct ipw_chat_reply reply;

    (void)state;
    gather(&reply);
    check(ipw_buf_str(&reply.arrivals));
    ipw_chat_reply_release(&reply);
}

static void kept_with_the_reply(void **state)
{
    struct ipw_buf first = IPW_BUF(IPW_MIB), second = IPW_BUF(IPW_MIB);
    struct ipw_chat_reply reply, back;
    struct ipw_json *doc;

    (void)state;
    gather(&reply);
    ipw_chat_reply_json(&first, &reply);
    assert_int_equal(ipw_json_parse(&doc, first.data, first.len, NULL, NULL), 0);
    ipw_chat_reply_read(&back, doc);
    check(ipw_buf_str(&back.arrivals));
    ipw_chat_reply_json(&second, &back);
    assert_string_equal(ipw_buf_str(&first), ipw_buf_str(&second));
    ipw_json_free(doc);
    ipw_chat_reply_release(&reply);
    ipw_chat_reply_release(&back);
    ipw_buf_release(&first);
    ipw_buf_release(&second);
}

/* A record is somebody's file: nothing of it is believed. */
static void not_entries(void **state)
{
    static const char *const texts[] = {"", "A", "A\"", "DA", "AD", "B", "AB", "AK", "AM", "AO"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ipw_arrival got = {0};
        const char *at = texts[i];
        assert_false(ipw_arrivals_next(&at, &got));
    }
}

UNIT(arrivals)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_stream),
        cmocka_unit_test(kept_with_the_reply),
        cmocka_unit_test(not_entries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
