/* A reply of a record as a server's answer: whole and in pieces, with what the record lacks left
 * out, and each piece due when it came, or as evenly as an older record allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "llm/arrivals.h"
#include "llm/chat.h"
#include "serve/saved_answer_write.h"
#include "unit/unit.h"

#define MS IPW_NS_PER_MS

/* A reply that was asked for at 1 s and told its tokens from 1.1 s to 1.5 s. */
static struct ipw_saved_reply reply;
static struct ipw_serve_ask ask;
static struct ipw_serve_timed_reply timed;

static void save(const char *data)
{
    ipw_json_free(reply.doc);
    reply = (struct ipw_saved_reply){.query = 3, .turn = 2, .attempt = 1};
    reply.event.t_ns = 1600 * MS;
    reply.event.lm = (struct ipw_lm_facts){.times.sent_ns = 1000 * MS,
                                           .times.first_event_ns = 1050 * MS,
                                           .times.first_token_ns = 1100 * MS,
                                           .times.last_token_ns = 1500 * MS,
                                           .chunks = 3};
    assert_int_equal(ipw_json_parse(&reply.doc, data, strlen(data), NULL, NULL), 0);
    reply.data = reply.doc;
    ask = (struct ipw_serve_ask){.model = "asked", .max_tokens = -1};
    timed = (struct ipw_serve_timed_reply){.reply = &reply, .ask = &ask, .created = 7, .speed = 1};
}

static int tear_down(void **state)
{
    (void)state;
    ipw_json_free(reply.doc);
    reply.doc = NULL;
    return 0;
}

static void assert_in(const struct ipw_serve_answer *a, const char *what)
{
    if (!memmem(a->bytes.data, a->bytes.len, what, strlen(what)))
        fail_msg("%s is not in %.*s", what, (int)a->bytes.len, a->bytes.data);
}

static void assert_not_in(const struct ipw_serve_answer *a, const char *what)
{
    if (memmem(a->bytes.data, a->bytes.len, what, strlen(what)))
        fail_msg("%s is in %.*s", what, (int)a->bytes.len, a->bytes.data);
}

/* Milliseconds after the request at which the i-th part is due; -1: there are not as many. */
static int64_t due_ms(const struct ipw_serve_answer *a, size_t i)
{
    return i < a->n_parts ? a->parts[i].after_ns / MS : -1;
}

#define DUE(a, ...)                                                                                \
    assert_due(a, (const int64_t[]){__VA_ARGS__},                                                  \
               sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void assert_due(const struct ipw_serve_answer *a, const int64_t *want_ms, size_t n)
{
    for (size_t i = 0; i < n; i++) assert_int_equal(due_ms(a, i), want_ms[i]);
    assert_int_equal(a->n_parts, n);
}

static void what_is_not_known_is_left_out(void **state)
{
    static const struct {
        const char *data, *in, *not_in;
    } cases[] = {
        {"{\"text\":\"x\"}", "\"id\":\"chatcmpl-recorded-3-2\"", "usage"},
        {"{\"text\":\"x\"}", "\"model\":\"asked\"", "logprobs"},
        {"{\"id\":\"own\",\"model\":\"timed\",\"text\":\"x\"}",
         "\"id\":\"own\",\"model\":\"timed\"", "timings"},
        {"{\"text\":\"x\",\"timings\":{\"a\":1}}", "\"timings\":{\"a\":1}", "usage"},
        {"{\"text\":\"\"}", "\"content\":\"\"", "tool_calls"},
        {"{\"calls\":[{\"arguments\":\"{}\",\"id\":\"c\",\"name\":\"f\"}],\"text\":\"\"}",
         "\"content\":null", "index\":1"},
        {"{\"calls\":[{\"arguments\":\"{}\",\"name\":\"f\"}],\"text\":\"y\"}", "\"content\":\"y\"",
         "\"content\":null"},
        {"{\"reasoning\":\"why\",\"text\":\"x\"}", "\"reasoning_content\":\"why\"", "usage"},
        {"{\"logprobs\":[{\"token\":\"x\"},{\"token\":\"y\"}],\"text\":\"xy\"}",
         "\"logprobs\":{\"content\":[{\"token\":\"x\"},{\"token\":\"y\"}]}", "usage"},
        {"{\"text\":\"x\",\"usage\":{\"completion\":5,\"prompt\":3}}",
         "\"usage\":{\"completion_tokens\":5,\"prompt_tokens\":3,\"total_tokens\":8}", "details"},
        {"{\"text\":\"x\",\"usage\":{\"completion\":5}}",
         "\"usage\":{\"completion_tokens\":5,\"prompt_tokens\":null,\"total_tokens\":null}",
         "cost"},
        {"{\"text\":\"x\",\"usage\":{\"prompt\":3}}",
         "\"completion_tokens\":null,\"prompt_tokens\":3", "cost"},
        {"{\"text\":\"x\",\"usage\":{\"total\":9}}", "\"total_tokens\":9", "cost"},
        {"{\"text\":\"x\",\"usage\":{\"cached\":2,\"completion\":5,\"cost\":0.25,\"prompt\":3,"
         "\"reasoning\":4,\"total\":8}}",
         "\"completion_tokens_details\":{\"reasoning_tokens\":4},\"cost\":0.25,\"prompt_tokens\":3,"
         "\"prompt_tokens_details\":{\"cached_tokens\":2}",
         "null,\"prompt"},
        {"{\"text\":\"x\",\"usage\":{\"cached\":2}}", "\"content\":\"x\"", "usage"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_serve_answer a;
        struct ipw_json *doc = NULL;

        save(cases[i].data);
        ipw_serve_timed_whole(&a, &timed);
        assert_in(&a, cases[i].in);
        assert_not_in(&a, cases[i].not_in);
        assert_int_equal(ipw_json_parse(&doc, a.bytes.data, a.bytes.len, NULL, NULL), 0);
        ipw_json_free(doc);
        DUE(&a, 600);
        ipw_serve_answer_release(&a);
        /* the same members in pieces */
        ask.stream = ask.include_usage = true;
        ipw_serve_timed_stream(&a, &timed);
        if (strstr(cases[i].in, "usage") || strstr(cases[i].in, "timings") ||
            strstr(cases[i].in, "logprobs"))
            assert_in(&a, cases[i].in);
        assert_in(&a, "data: [DONE]\n\n");
        ipw_serve_answer_release(&a);
    }
}

/* Older records count events and know the first and the last. */
static void an_older_run_is_told_evenly(void **state)
{
    struct ipw_serve_answer a;

    (void)state;
    save("{\"finish\":\"stop\",\"text\":\"abcdef\"}");
    ipw_serve_timed_stream(&a, &timed);
    assert_in(&a, "\"content\":\"ab\"");
    assert_in(&a, "\"content\":\"ef\"");
    assert_not_in(&a, "usage");
    DUE(&a, 100, 300, 500, 600, 600);
    ipw_serve_answer_release(&a);
    timed.speed = 2;
    ipw_serve_timed_stream(&a, &timed);
    DUE(&a, 50, 150, 250, 300, 300);
    ipw_serve_answer_release(&a);
    timed.speed = 0; /* no waiting */
    ipw_serve_timed_stream(&a, &timed);
    DUE(&a, 0, 0, 0, 0, 0);
    ipw_serve_answer_release(&a);
    /* one event; more events than bytes; none of its times */
    timed.speed = 1;
    reply.event.lm.chunks = 0;
    ipw_serve_timed_stream(&a, &timed);
    DUE(&a, 500, 600, 600);
    ipw_serve_answer_release(&a);
    reply.event.lm.chunks = 100;
    ipw_serve_timed_stream(&a, &timed);
    assert_int_equal(a.n_parts, 6 + 2);
    ipw_serve_answer_release(&a);
    reply.event.lm = (struct ipw_lm_facts){.chunks = 2};
    ipw_serve_timed_stream(&a, &timed);
    DUE(&a, 0, 0, 0, 0);
    ipw_serve_answer_release(&a);
    reply.event.lm = (struct ipw_lm_facts){.chunks = 2, .times.sent_ns = 1700 * MS};
    ipw_serve_timed_stream(&a, &timed); /* it ended before it was sent: a changed record */
    DUE(&a, 0, 0, 0, 0);
    ipw_serve_answer_release(&a);
    /* nothing in it at all */
    save("{\"finish\":\"stop\",\"text\":\"\"}");
    ipw_serve_timed_stream(&a, &timed);
    DUE(&a, 600, 600);
    assert_in(&a, "\"finish_reason\":\"stop\"");
    ipw_serve_answer_release(&a);
}

static void pieces_go_through_reasoning_text_and_calls(void **state)
{
    struct ipw_serve_answer a;

    (void)state;
    save("{\"calls\":[{\"arguments\":\"{\\\"a\\\":1}\",\"id\":\"c1\",\"name\":\"f\"},"
         "{\"arguments\":\"\",\"id\":\"c2\",\"name\":\"g\"},{\"arguments\":\"{}\",\"id\":\"c3\","
         "\"name\":\"h\"}],\"reasoning\":\"rr\",\"text\":\"t\xc3\xa9t\"}");
    reply.event.lm.chunks = 4;
    ipw_serve_timed_stream(&a, &timed);
    assert_in(&a, "\"reasoning_content\":\"rr\",\"role\":\"assistant\"");
    assert_in(&a, "\"name\":\"f\"");
    assert_in(&a, "\"name\":\"g\"");
    assert_in(&a, "\"name\":\"h\"},\"id\":\"c3\",\"index\":2");
    assert_not_in(&a, "\xc3\""); /* characters stay whole */
    ipw_serve_answer_release(&a);
    /* a reply that was cut has no end */
    reply.event.lm.outcome = IPW_LM_CUT;
    ipw_serve_timed_stream(&a, &timed);
    assert_not_in(&a, "[DONE]");
    assert_not_in(&a, "\"finish_reason\":\"");
    ipw_serve_answer_release(&a);
}

/* Times of every event, as they were gathered from a stream. */
static void each_event_comes_when_it_came(void **state)
{
    struct ipw_chat_reply so_far = {0};
    struct ipw_arrivals arrivals = {0};
    struct ipw_serve_answer a;
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    char *data;

    (void)state;
    so_far.text = IPW_BUF(100);
    so_far.reasoning = IPW_BUF(100);
    ipw_arrivals_add(&arrivals, 1050 * MS, &so_far); /* the role */
    ipw_buf_adds(&so_far.reasoning, "hm");
    ipw_arrivals_add(&arrivals, 1100 * MS, &so_far);
    ipw_buf_adds(&so_far.text, "abc");
    ipw_arrivals_add(&arrivals, 1200 * MS, &so_far);
    ipw_arrivals_add(&arrivals, 1250 * MS, &so_far); /* nothing: a comment, no end */
    ipw_buf_adds(&so_far.text, "def");
    ipw_arrivals_add(&arrivals, 1300 * MS, &so_far);
    for (int i = 0; i < 4; i++) ipw_arrivals_add(&arrivals, (1400 + 50 * i) * MS, &so_far);
    ipw_arrivals_take(&text, &arrivals);
    data = ipw_asprintf(
        "{\"arrivals\":\"%s\",\"finish\":\"stop\",\"reasoning\":\"hm\",\"text\":\"abcdef\","
        "\"usage\":{\"completion\":2,\"prompt\":3}}",
        ipw_buf_str(&text));
    save(data);
    ipw_serve_timed_stream(&a, &timed);
    DUE(&a, 50, 100, 200, 300, 400, 550); /* the role, three pieces, the finish, [DONE] */
    ipw_serve_answer_release(&a);
    ask.include_usage = true;
    ipw_serve_timed_stream(&a, &timed);
    DUE(&a, 50, 100, 200, 300, 400, 450, 550);
    ipw_serve_answer_release(&a);
    free(data);
    /* times for more than there is, and for less: nothing is lost or made up */
    data = ipw_asprintf("{\"arrivals\":\"%s\",\"text\":\"ab\"}", ipw_buf_str(&text));
    save(data);
    ipw_serve_timed_stream(&a, &timed);
    assert_in(&a, "\"content\":\"ab\"");
    assert_not_in(&a, "reasoning");
    ipw_serve_answer_release(&a);
    free(data);
    data = ipw_asprintf("{\"arrivals\":\"%s\",\"text\":\"abcdefghi\"}", ipw_buf_str(&text));
    save(data);
    ipw_serve_timed_stream(&a, &timed);
    assert_in(&a, "\"content\":\"ghi\"");
    ipw_serve_answer_release(&a);
    free(data);
    ipw_buf_release(&text);
    ipw_buf_release(&so_far.text);
    ipw_buf_release(&so_far.reasoning);
}

static void an_error_inside_a_reply(void **state)
{
    struct ipw_serve_answer a;

    (void)state;
    save("{}");
    ipw_serve_timed_error(&a, &timed, "broke");
    assert_in(&a, "\"message\":\"broke\"");
    assert_not_in(&a, "data: ");
    DUE(&a, 600);
    ipw_serve_answer_release(&a);
    ask.stream = true;
    ipw_serve_timed_error(&a, &timed, "broke");
    assert_int_equal(strncmp(a.bytes.data, "data: {", 7), 0);
    assert_string_equal(ipw_buf_str(&a.bytes) + a.bytes.len - 2, "\n\n");
    ipw_serve_answer_release(&a);
}

UNIT(saved_answer_write)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_not_known_is_left_out, tear_down),
        cmocka_unit_test_teardown(an_older_run_is_told_evenly, tear_down),
        cmocka_unit_test_teardown(pieces_go_through_reasoning_text_and_calls, tear_down),
        cmocka_unit_test_teardown(each_event_comes_when_it_came, tear_down),
        cmocka_unit_test_teardown(an_error_inside_a_reply, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
