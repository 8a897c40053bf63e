/* Replies as JSON: clean for the history (sections 1.9, 2, 5 and 14), whole for the record. */
#include "llm_support.h"

#include "json/json.h"

static char *message_of(const char *body)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
    struct ipw_chat_reply reply;
    struct ipw_buf out = IPW_BUF(IPW_MIB);

    assert_true(ipw_chat_fold_whole(fold, body, strlen(body), NULL) >= 0);
    ipw_chat_fold_end(fold, &reply, NULL);
    ipw_chat_reply_message(&out, &reply);
    assert_true(ipw_json_valid(out.data, out.len));
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
    return ipw_buf_take(&out, NULL);
}

#define M(message) "{\"choices\":[{\"message\":" message ",\"finish_reason\":\"stop\"}]}"
#define CALL(arguments)                                                                            \
    M("{\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":\"f\","                               \
      "\"arguments\":" arguments "}}]}")
#define SENT(arguments)                                                                            \
    "{\"content\":null,\"role\":\"assistant\",\"tool_calls\":[{\"function\":"                      \
    "{\"arguments\":" arguments ",\"name\":\"f\"},\"id\":\"i\",\"type\":\"function\"}]}"

static const struct {
    const char *what, *body, *want;
} ROWS[] = {
    {"2 text", M("{\"content\":\"a\"}"), "{\"content\":\"a\",\"role\":\"assistant\"}"},
    {"2 content is null only beside calls", M("{\"content\":null}"),
     "{\"content\":\"\",\"role\":\"assistant\"}"},
    {"7 reasoning is not sent back", M("{\"content\":\"a\",\"reasoning\":\"r\"}"),
     "{\"content\":\"a\",\"role\":\"assistant\"}"},
    {"5 text and calls are both kept",
     M("{\"content\":\"a\",\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":\"f\","
       "\"arguments\":\"{}\"}}]}"),
     "{\"content\":\"a\",\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"arguments\":"
     "\"{}\",\"name\":\"f\"},\"id\":\"i\",\"type\":\"function\"}]}"},
    {"5 arguments as the model wrote them", CALL("\"{\\\"city\\\" :\\\"Oslo\\\"}\""),
     SENT("\"{\\\"city\\\" :\\\"Oslo\\\"}\"")},
    {"5 arguments that do not parse", CALL("\"{\\\"city\\\" :\\\"Oslo\\\",\\\"days\""),
     SENT("\"{}\"")},
    {"5 two glued objects", CALL("\"{}{}\""), SENT("\"{}\"")},
    {"5 empty arguments", CALL("\"\""), SENT("\"{}\"")},
    {"5 arguments that are no object", CALL("\"[1]\""), SENT("\"{}\"")},
    {"1.9 lone surrogates inside arguments are mended", CALL("\"{\\\"a\\\":\\\"\\\\ud800\\\"}\""),
     SENT("\"{\\\"a\\\":\\\"\xef\xbf\xbd\\\"}\"")},
    {"14 an id is made up for null (aichat#1296)",
     M("{\"tool_calls\":[{\"id\":null,\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"),
     "{\"content\":null,\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"arguments\":"
     "\"{}\",\"name\":\"f\"},\"id\":\"call_1\",\"type\":\"function\"}]}"},
    {"5 a call without a name gets one to be answered under",
     M("{\"tool_calls\":[{\"id\":\"i\",\"function\":{\"arguments\":\"{}\"}}]}"),
     "{\"content\":null,\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"arguments\":"
     "\"{}\",\"name\":\"unknown\"},\"id\":\"i\",\"type\":\"function\"}]}"},
    {"1.9 invalid UTF-8 was repaired", M("{\"content\":\"a\xff\"}"),
     "{\"content\":\"a\xef\xbf\xbd\",\"role\":\"assistant\"}"},
};

static void history_is_clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++)
        expect_text(ROWS[i].what, message_of(ROWS[i].body), ROWS[i].want);
}

/* A token cut inside a character cannot come through JSON; still, nothing invalid is ever sent. */
static void history_is_utf8_whatever_the_buffers_hold(void **state)
{
    struct ipw_chat_reply reply = {.text = IPW_BUF(100)};
    struct ipw_buf out = IPW_BUF(IPW_MIB);

    (void)state;
    ipw_buf_adds(&reply.text, "a\xe2");
    ipw_chat_reply_message(&out, &reply);
    assert_string_equal(out.data, "{\"content\":\"a\xef\xbf\xbd\",\"role\":\"assistant\"}");
    ipw_buf_release(&out);
    ipw_chat_reply_release(&reply);
}

static void the_record_holds_everything(void **state)
{
    const char *events[] = {
        "{\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"a\",\"reasoning\":"
        "\"r\","
        "\"tool_calls\":[{\"index\":3,\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}",
        "{\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":1}"
        ","
        "\"timings\":{\"b\":1,\"a\":2.50}}",
        "[DONE]"};
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
    struct ipw_chat_reply reply;
    struct ipw_buf out = IPW_BUF(IPW_MIB);

    (void)state;
    for (size_t i = 0; i < COUNT(events); i++)
        assert_true(ipw_chat_fold_event(fold, "", events[i], strlen(events[i]), NULL) > 0);
    assert_int_equal(ipw_chat_fold_end(fold, &reply, NULL), 0);
    ipw_chat_reply_json(&out, &reply);
    assert_string_equal(
        out.data,
        "{\"calls\":[{\"arguments\":\"{\",\"id\":\"call_1\",\"name\":\"f\"}],\"chunks\":1,"
        "\"done_marker\":true,\"error\":null,\"error_type\":null,\"finish\":\"length\",\"id\":"
        "\"c\","
        "\"ignored_choices\":0,\"model\":\"m\",\"reasoning\":\"r\",\"repairs\":0,\"text\":\"a\","
        "\"timings\":{\"a\":2.50,\"b\":1},\"usage\":{\"cached\":null,\"completion\":null,"
        "\"prompt\":1,\"reasoning\":null,\"total\":null}}");
    ipw_buf_release(&out);
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
}

/* n and log probabilities: not for agents, but in the record; with and without the fast path. */
static void choices_and_logprobs_are_recorded(void **state)
{
    static const char *const events[] = {
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"logprobs\":{\"content\":[{"
        "\"logprob\":-0.5,\"token\":\"a\"}]}}]}",
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"},\"logprobs\":{\"content\":[{"
        "\"logprob\":-0.5,\"token\":\"a\"}]}}]}",
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"y\"},\"finish_reason\":\"length\"}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}",
    };

    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
        struct ipw_chat_reply reply;
        struct ipw_buf out = IPW_BUF(IPW_MIB);

        ipw_chat_fold_set_exact(fold, exact);
        for (size_t i = 0; i < COUNT(events); i++)
            assert_true(ipw_chat_fold_event(fold, "", events[i], strlen(events[i]), NULL) >= 0);
        assert_int_equal(ipw_chat_fold_end(fold, &reply, NULL), 0);
        assert_string_equal(ipw_buf_str(&reply.text), "ab");
        ipw_chat_reply_json(&out, &reply);
        assert_non_null(strstr(out.data, "\"logprobs\":[{\"logprob\":-0.5,\"token\":\"a\"},{"
                                         "\"logprob\":-0.5,\"token\":\"a\"}],\"model\""));
        assert_non_null(strstr(out.data, "\"others\":[{\"finish\":\"length\",\"index\":1,"
                                         "\"text\":\"xy\"}],\"reasoning\""));
        ipw_buf_release(&out);
        ipw_chat_reply_release(&reply);
        ipw_chat_fold_free(fold);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_is_clean),
        cmocka_unit_test(history_is_utf8_whatever_the_buffers_hold),
        cmocka_unit_test(the_record_holds_everything),
        cmocka_unit_test(choices_and_logprobs_are_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
