/* The server's side of the protocol, checked by reading what it writes with the client's side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "llm/chat.h"
#include "serve/completion.h"
#include "unit/unit.h"

static int read_ask(struct ipw_serve_ask *ask, struct ipw_json **root, const char *text,
                    struct ipw_err *err)
{
    int rc = ipw_json_parse(root, text, strlen(text), NULL, err);

    assert_int_equal(rc, 0);
    return ipw_serve_ask_read(ask, *root, text, strlen(text), err);
}

#define M "\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]"

static void bad_requests(void **state)
{
    static const struct {
        const char *body, *words;
    } cases[] = {
        {"[]", "JSON object"},
        {"{}", "model: expected"},
        {"{\"model\":7,\"messages\":[]}", "model: expected"},
        {"{\"model\":\"m\"}", "messages: expected"},
        {"{\"model\":\"m\",\"messages\":{}}", "messages: expected"},
        {"{\"model\":\"m\",\"messages\":[]}", "messages: expected"},
        {"{\"model\":\"m\",\"messages\":[{\"role\":\"user\"},3]}",
         "messages[1]: expected an object"},
        {"{\"model\":\"m\",\"messages\":[{\"content\":\"x\"}]}", "messages[0].role"},
        {"{" M ",\"tools\":{}}", "tools: expected a list"},
        {"{" M ",\"n\":2}", "one choice"},
        {"{" M ",\"stream\":\"yes\"}", "stream: expected"},
        {"{" M ",\"stream\":true,\"stream_options\":[]}", "stream_options: expected"},
        {"{" M ",\"stream_options\":{}}", "together with stream"},
        {"{" M ",\"max_tokens\":0}", "max_tokens"},
        {"{" M ",\"max_tokens\":\"many\"}", "max_tokens"},
        {"{" M ",\"stop\":5}", "stop: expected"},
        {"{" M ",\"response_format\":\"json\"}", "response_format: expected"},
        {"{" M ",\"response_format\":{}}", "response_format: expected"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_serve_ask ask;
        struct ipw_json *root;
        struct ipw_err err = {0};

        assert_int_equal(read_ask(&ask, &root, cases[i].body, &err), IPW_EINVAL);
        if (!strstr(err.text, cases[i].words)) fail_msg("%s: %s", cases[i].body, err.text);
        ipw_json_free(root);
    }
}

static void good_requests(void **state)
{
    struct ipw_serve_ask ask, again;
    struct ipw_json *root, *root2;
    const char *text = "{" M ",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                       "\"max_tokens\":7,\"tools\":null,\"stop\":null,\"other\":1}";

    (void)state;
    assert_int_equal(read_ask(&ask, &root, text, NULL), 0);
    assert_string_equal(ask.model, "m");
    assert_true(ask.stream);
    assert_true(ask.include_usage);
    assert_int_equal(ask.max_tokens, 7);
    /* [{"content":"x","role":"user"}]: 31 bytes, eight tokens */
    assert_int_equal(ask.prompt_tokens, 8);
    assert_int_equal(read_ask(&again, &root2, text, NULL), 0);
    assert_true(ask.hash == again.hash);
    ipw_json_free(root);
    ipw_json_free(root2);
    assert_int_equal(
        read_ask(&ask, &root, "{" M ",\"max_tokens\":9,\"max_completion_tokens\":3}", NULL), 0);
    assert_int_equal(ask.max_tokens, 3);
    assert_false(ask.stream);
    ipw_json_free(root);
}

/* What a model says, what the request limits, and what must come out at the client. */
static const struct {
    const char *reply, *extra, *text, *name, *arguments, *finish;
    int64_t tokens;
} rows[] = {
    {"{\"text\":\"Hello, world\"}", "", "Hello, world", NULL, NULL, "stop", 3},
    {"{\"text\":\"\"}", "", "", NULL, NULL, "stop", 0},
    {"{}", "", "", NULL, NULL, "stop", 0},
    {"{\"text\":\"abcdefghi\"}", ",\"max_tokens\":2", "abcdefgh", NULL, NULL, "length", 2},
    {"{\"text\":\"abcdefgh\"}", ",\"max_tokens\":2", "abcdefgh", NULL, NULL, "stop", 2},
    {"{\"text\":\"one\\nObservation: two\"}", ",\"stop\":[\"zzz\",\"\\nObservation:\"]", "one",
     NULL, NULL, "stop", 1},
    {"{\"text\":\"one two\"}", ",\"stop\":\" t\"", "one", NULL, NULL, "stop", 1},
    {"{\"text\":\"one\"}", ",\"stop\":\"\"", "one", NULL, NULL, "stop", 1},
    /* four bytes, never inside a character: "a" + U+20AC, then U+1F600, then "zz" */
    {"{\"text\":\"a\\u20ac\\ud83d\\ude00zz\"}", "", "a\xe2\x82\xac\xf0\x9f\x98\x80zz", NULL, NULL,
     "stop", 3},
    {"{\"text\":\"abc\\u20ac\"}", "", "abc\xe2\x82\xac", NULL, NULL, "stop", 2},
    {"{\"text\":\"x\",\"finish\":\"length\"}", "", "x", NULL, NULL, "length", 1},
    {"{\"text\":\"x\",\"finish\":\"odd\"}", "", "x", NULL, NULL, "stop", 1},
    {"{\"calls\":[{\"name\":\"calc\",\"arguments\":{\"b\":2,\"a\":\"\\n\"}}]}", "", "", "calc",
     "{\"a\":\"\\n\",\"b\":2}", "tool_calls", 1 + 4},
    {"{\"text\":\"So.\",\"calls\":[{\"name\":\"f\"}]}", "", "So.", "f", "{}", "tool_calls", 3},
    {"{\"calls\":[{\"name\":\"f\",\"arguments\":\"{broken\"}]}", "", "", "f", "{broken",
     "tool_calls", 1 + 2},
    {"{\"text\":\"abcdefgh\",\"calls\":[{\"name\":\"f\"}]}", ",\"max_tokens\":3", "abcdefgh", NULL,
     NULL, "length", 2},
};

static void build(struct ipw_serve_answer *answer, size_t row, bool stream)
{
    struct ipw_serve_ask ask;
    struct ipw_chat_reply reply;
    struct ipw_json *root;
    char body[512];

    snprintf(body, sizeof body, "{" M "%s%s}", rows[row].extra,
             stream ? ",\"stream\":true,\"stream_options\":{\"include_usage\":true}" : "");
    assert_int_equal(read_ask(&ask, &root, body, NULL), 0);
    assert_int_equal(
        ipw_serve_reply_read(&reply, rows[row].reply, strlen(rows[row].reply), &ask, NULL), 0);
    assert_int_equal(reply.usage.completion, rows[row].tokens);
    if (stream)
        ipw_serve_answer_stream(answer, &ask, &reply, 1700000000);
    else
        ipw_serve_answer_whole(answer, &ask, &reply, 1700000000);
    ipw_chat_reply_release(&reply);
    ipw_json_free(root);
}

static void check(size_t row, const struct ipw_chat_reply *got)
{
    static const char *const words[] = {"", "stop", "length", "tool_calls"};

    assert_string_equal(ipw_buf_str(&got->text), rows[row].text);
    assert_string_equal(words[got->finish], rows[row].finish);
    assert_int_equal(got->usage.completion, rows[row].tokens);
    assert_true(got->usage.prompt > 0);
    assert_int_equal(got->usage.total, got->usage.prompt + got->usage.completion);
    assert_int_equal(got->n_calls, rows[row].name ? 1 : 0);
    if (!rows[row].name) return;
    assert_string_equal(got->calls[0].name, rows[row].name);
    assert_string_equal(ipw_buf_str(&got->calls[0].arguments), rows[row].arguments);
    assert_memory_equal(got->calls[0].id, "call_", 5);
}

static void whole_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_serve_answer answer;
        struct ipw_chat_reply got;
        struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);

        build(&answer, i, false);
        assert_int_equal(answer.n_parts, 1);
        assert_int_equal(answer.parts[0].end, answer.bytes.len);
        assert_int_equal(answer.parts[0].token, rows[i].tokens ? rows[i].tokens - 1 : 0);
        assert_true(ipw_chat_fold_whole(fold, ipw_buf_str(&answer.bytes), answer.bytes.len, NULL) >=
                    0);
        assert_int_equal(ipw_chat_fold_end(fold, &got, NULL), 0);
        check(i, &got);
        ipw_chat_reply_release(&got);
        ipw_chat_fold_free(fold);
        ipw_serve_answer_release(&answer);
    }
}

static void streamed_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_serve_answer answer;
        struct ipw_chat_reply got;
        struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
        size_t from = 0;
        int64_t token = -1;

        build(&answer, i, true);
        for (size_t p = 0; p < answer.n_parts; p++) {
            const char *part = answer.bytes.data + from;
            size_t n = answer.parts[p].end - from;

            /* Each part is one event, none is due before the one before it, and none skips. */
            assert_memory_equal(part, "data: ", 6);
            assert_memory_equal(part + n - 2, "\n\n", 2);
            assert_true(answer.parts[p].token >= token);
            token = answer.parts[p].token;
            assert_true(ipw_chat_fold_event(fold, "", part + 6, n - 8, NULL) >= 0);
            from = answer.parts[p].end;
        }
        assert_int_equal(from, answer.bytes.len);
        assert_int_equal(token, rows[i].tokens ? rows[i].tokens - 1 : 0);
        assert_int_equal(ipw_chat_fold_end(fold, &got, NULL), 0);
        assert_true(got.done_marker);
        check(i, &got);
        ipw_chat_reply_release(&got);
        ipw_chat_fold_free(fold);
        ipw_serve_answer_release(&answer);
    }
}

static void replies_that_are_wrong(void **state)
{
    struct ipw_serve_ask ask = {.max_tokens = -1};
    struct ipw_chat_reply reply;
    struct ipw_err err = {0};
    const char *text = "{\"calls\":[{\"name\":\"a\"},{\"name\":3}]}";

    (void)state;
    assert_int_equal(ipw_serve_reply_read(&reply, text, strlen(text), &ask, &err), IPW_ELUA);
    assert_non_null(strstr(err.text, "calls[2].name"));
    assert_int_equal(ipw_serve_reply_read(&reply, "x", 1, &ask, &err), IPW_EPARSE);
}

static void errors(void **state)
{
    struct ipw_serve_answer answer;
    struct ipw_json *root;
    const struct ipw_json *error;

    (void)state;
    ipw_serve_answer_error(&answer, 404, "no \"such\" model");
    assert_int_equal(
        ipw_json_parse(&root, ipw_buf_str(&answer.bytes), answer.bytes.len, NULL, NULL), 0);
    error = ipw_json_get(root, "error");
    assert_string_equal(ipw_json_str(ipw_json_get(error, "message"), ""), "no \"such\" model");
    assert_string_equal(ipw_json_str(ipw_json_get(error, "type"), ""), "invalid_request_error");
    ipw_json_free(root);
    ipw_serve_answer_release(&answer);
    ipw_serve_answer_error(&answer, 500, "");
    assert_non_null(strstr(ipw_buf_str(&answer.bytes), "server_error"));
    ipw_serve_answer_release(&answer);
}

UNIT(completion)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_requests),           cmocka_unit_test(good_requests),
        cmocka_unit_test(whole_answers),          cmocka_unit_test(streamed_answers),
        cmocka_unit_test(replies_that_are_wrong), cmocka_unit_test(errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
