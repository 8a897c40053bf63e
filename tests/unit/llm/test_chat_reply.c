/* Replies as JSON: clean for the history (sections 1.9, 2, 5 and 14), whole for the record. */
#include "llm_support.h"

#include "json/json.h"
#include "unit/unit.h"

#define CALL(members)                                                                              \
    "{\"choices\":[{\"message\":{\"tool_calls\":[{" members "}]},\"finish_reason\":\"stop\"}]}"
#define ARGUMENTS(text) CALL("\"id\":\"i\",\"function\":{\"name\":\"f\",\"arguments\":" text "}")

static const struct {
    const char *what, *body, *want; /* id, name, arguments */
} ROWS[] = {
    {"5 arguments as the model wrote them", ARGUMENTS("\"{\\\"city\\\" :\\\"Oslo\\\"}\""),
     "i f {\"city\" :\"Oslo\"}"},
    {"5 arguments that do not parse", ARGUMENTS("\"{\\\"city\\\" :\\\"Oslo\\\",\\\"days\""),
     "i f {}"},
    {"5 two glued objects", ARGUMENTS("\"{}{}\""), "i f {}"},
    {"5 empty arguments", ARGUMENTS("\"\""), "i f {}"},
    {"5 arguments that are no object", ARGUMENTS("\"[1]\""), "i f {}"},
    {"1.9 lone surrogates inside arguments are mended",
     ARGUMENTS("\"{\\\"a\\\":\\\"\\\\ud800\\\"}\""), "i f {\"a\":\"\xef\xbf\xbd\"}"},
    {"14 an id is made up for null (aichat#1296)",
     CALL("\"id\":null,\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}"), "call_1 f {}"},
    {"5 a call without a name gets one to be answered under",
     CALL("\"id\":\"i\",\"function\":{\"arguments\":\"{}\"}"), "i unknown {}"},
};

static void history_is_clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
        struct ipw_buf out = IPW_BUF(IPW_MIB);
        struct ipw_chat_reply reply;

        assert_true(ipw_chat_fold_whole(fold, ROWS[i].body, strlen(ROWS[i].body), NULL) >= 0);
        ipw_chat_fold_end(fold, &reply, NULL);
        assert_int_equal(reply.n_calls, 1);
        ipw_buf_addf(&out, "%s %s ", reply.calls[0].id, ipw_chat_history_name(&reply.calls[0]));
        ipw_chat_history_arguments(&out, &reply.calls[0]);
        expect_text(ROWS[i].what, ipw_buf_take(&out, NULL), ROWS[i].want);
        ipw_chat_reply_release(&reply);
        ipw_chat_fold_free(fold);
    }
}

/* A byte that is not valid cannot come through JSON; still, nothing invalid is ever sent. */
static void history_is_utf8_whatever_the_buffers_hold(void **state)
{
    static const char bad[] = "{\"a\":\"\xe2\xff\xff\"}";
    struct ipw_chat_call call = {.arguments = IPW_BUF(100)};
    struct ipw_buf out = IPW_BUF(3 * (sizeof bad - 1) + 2);

    (void)state;
    ipw_buf_adds(&call.arguments, bad);
    ipw_chat_history_arguments(&out, &call);
    assert_string_equal(ipw_buf_str(&out), "{\"a\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}");
    ipw_buf_release(&out);
    ipw_buf_release(&call.arguments);
}

static void the_saved_reply_holds_everything(void **state)
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

/* n and log probabilities: not for agents, but in the record; with and without the scanner. */
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

UNIT(chat_reply)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_is_clean),
        cmocka_unit_test(history_is_utf8_whatever_the_buffers_hold),
        cmocka_unit_test(the_saved_reply_holds_everything),
        cmocka_unit_test(choices_and_logprobs_are_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
