#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report/follow.h"
#include "unit/unit.h"

#define AT(event, span, rest)                                                                      \
    "{\"event\":\"" event "\",\"query\":0,\"span\":" span ",\"t_ns\":2000000000" rest "}"
#define START    "{\"event\":\"run_start\",\"query\":-1,\"span\":0,\"t_ns\":1000000000}"
#define QUESTION AT("query_start", "0", ",\"id\":\"q0000\",\"data\":{\"prompt\":\"How many?\"}")

/* What the lines show; `want` are parts of it in their order, ended by NULL. */
static void check(const char *id, unsigned width, const char *const *lines, const char *const *want)
{
    struct ipw_timeline_options o = {.width = width};
    struct ipw_follow *f = ipw_follow_new(id, &o);
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    const char *at;

    for (; *lines; lines++) ipw_follow_line(f, &out, *lines, strlen(*lines));
    for (at = ipw_buf_str(&out); *want; want++) {
        const char *found = strstr(at, *want);

        if (!found) fail_msg("no \"%s\" in \"%s\"", *want, at);
        at = found + strlen(*want);
    }
    ipw_follow_free(f);
    ipw_buf_release(&out);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_query(void **state)
{
    (void)state;
    check(NULL, 100,
          LINES(START, QUESTION, AT("lm_inference_start", "1", ",\"attempt\":1"),
                AT("lm_inference_end", "1",
                   ",\"attempt\":1,\"outcome\":\"timeout\",\"error\":\"no "
                   "answer\",\"will_retry\":true"),
                AT("lm_inference_start", "2", ",\"attempt\":2"),
                AT("lm_inference_end", "2",
                   ",\"attempt\":2,\"outcome\":\"ok\",\"input_tokens\":1204,\"output_tokens\":57,"
                   "\"finish_reason\":\"stop\",\"data\":{\"reasoning\":\"Think\\n\\t "
                   "first.\",\"text\":\"So it is.\"}"),
                AT("tool_call_start", "3",
                   ",\"name\":\"calculator\",\"data\":{\"arguments\":{\"expression\":\"1+1\"}}"),
                AT("tool_call_end", "3",
                   ",\"name\":\"calculator\",\"ok\":true,\"outcome\":\"ok\",\"data\":{\"content\":"
                   "\"2\"}"),
                AT("span_start", "4", ",\"kind\":\"http\",\"name\":\"GET x\""),
                AT("span_end", "4",
                   ",\"kind\":\"http\",\"name\":\"GET "
                   "x\",\"ok\":false,\"outcome\":\"refused\",\"error\":\"nobody there\""),
                AT("query_end", "0",
                   ",\"id\":\"q0000\",\"outcome\":\"answered\",\"data\":{\"answer\":\"2\","
                   "\"resolved\":true}")),
          LINES("1.00s", "q0000", "question", "How many?", "turn 1", "attempt 1: timeout",
                "! no answer", "turn 1", "1,204 in, 57 out, stop", "~ Think first.", "\" So it is.",
                "tool", "calculator: ok", "> {\"expression\":\"1+1\"}", "< 2", "http",
                "GET x: refused", "! nobody there", "end", "answered, correct: 2"));
}

static void test_ends(void **state)
{
    (void)state;
    check(NULL, 100,
          LINES(QUESTION,
                AT("query_end", "0", ",\"outcome\":\"answered\",\"data\":{\"resolved\":false}")),
          LINES("answered, wrong\n"));
    check(NULL, 100,
          LINES(QUESTION, AT("query_end", "0", ",\"outcome\":\"error\",\"error\":\"boom\"")),
          LINES("error: boom\n"));
}

/* A record may begin in the middle, and may lack or repeat what a line belongs to: the rest is
 * shown. */
static void test_parts_missing(void **state)
{
    (void)state;
    check(NULL, 100,
          LINES("no JSON", "[]", "{\"event\":\"unheard of\",\"query\":0,\"t_ns\":1}",
                AT("lm_inference_end", "1",
                   ",\"attempt\":1,\"outcome\":\"ok\",\"input_tokens\":1,\"output_tokens\":1"),
                AT("tool_call_end", "2", ",\"name\":\"t\""), AT("query_end", "0", "")),
          LINES("?", "turn 0", "1 in, 1 out\n", "tool", "t: ?", "end", "?"));
    check(NULL, 10, LINES(AT("query_start", "0", ""), AT("query_start", "0", "")),
          LINES("question", "\n"));
}

/* Number 0 stands for the query: an event that claims it was a crash. */
static void test_span_of_nothing(void **state)
{
    static const char *const starts[] = {"lm_inference_start", "tool_call_start", "span_start"};
    static const char *const ends[] = {"lm_inference_end", "tool_call_end", "span_end"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char start[200], end[200];

        snprintf(start, sizeof start,
                 "{\"event\":\"%s\",\"query\":0,\"t_ns\":2,\"attempt\":1,\"name\":\"n\"}",
                 starts[i]);
        snprintf(end, sizeof end,
                 "{\"event\":\"%s\",\"query\":0,\"t_ns\":2,\"attempt\":1,\"name\":\"n\","
                 "\"outcome\":\"ok\"}",
                 ends[i]);
        check(NULL, 100, LINES(QUESTION, start, end, QUESTION, AT("query_end", "0", "")),
              LINES("q0000", "question", "q0000", "q0000", "q0000", "end"));
    }
}

static void test_ids(void **state)
{
    static const char long_id[] =
        AT("query_start", "0", ",\"id\":\"a54dca18-2530-4b1d\",\"data\":{\"prompt\":\"P\"}");

    (void)state;
    check(NULL, 100, LINES(long_id),
          LINES("a54dc\xE2\x80\xA6"
                "4b1d",
                "P"));
    check(NULL, 100,
          LINES(AT("query_start", "0", ",\"id\":\"\xC3\xA9t\xC3\xA9 2026, a long one\"")),
          LINES("\xC3\xA9t\xC3\xA9 2026"));
    /* by the beginning of the id, by the number, by the number with its letter */
    static const char *const meant[] = {"a54", "0", "q0", "q0000"};
    for (size_t i = 0; i < 4; i++)
        check(meant[i], 100, LINES(long_id, AT("query_end", "0", "")), LINES("P", "end"));
    static const char *const others[] = {"b", "1", "q1", "q0001", "0x", "q", "00000000000", ""};
    for (size_t i = 0; i < 8; i++) {
        struct ipw_timeline_options o = {.width = 100};
        struct ipw_follow *f = ipw_follow_new(others[i], &o);
        struct ipw_buf out = IPW_BUF(IPW_MIB);

        ipw_follow_line(f, &out, long_id, sizeof long_id - 1);
        if (out.len) fail_msg("'%s' is not meant, but: %s", others[i], ipw_buf_str(&out));
        ipw_follow_free(f);
        ipw_buf_release(&out);
    }
}

static void test_over(void **state)
{
    static const char end[] = "{\"event\":\"run_end\",\"query\":-1,\"span\":0,\"t_ns\":3000000000}";
    struct ipw_timeline_options o = {.width = 80};
    struct ipw_follow *f = ipw_follow_new(NULL, &o);
    struct ipw_buf out = IPW_BUF(IPW_MIB);

    (void)state;
    assert_false(ipw_follow_line(f, &out, START, strlen(START)));
    assert_true(ipw_follow_line(f, &out, end, sizeof end - 1));
    assert_int_equal(out.len, 0);
    ipw_follow_line(f, &out, QUESTION, strlen(QUESTION)); /* what is still open is given back */
    ipw_follow_free(f);
    ipw_follow_free(NULL);
    ipw_buf_release(&out);
}

UNIT(follow)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query),         cmocka_unit_test(test_ends),
        cmocka_unit_test(test_parts_missing), cmocka_unit_test(test_span_of_nothing),
        cmocka_unit_test(test_ids),           cmocka_unit_test(test_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
