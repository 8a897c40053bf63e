/* Request bodies: sorted, complete, and what is not set is not sent. */
#include "llm_support.h"

#include <math.h>

#include "llm/chat_priv.h"
#include "unit/unit.h"

static const struct ipw_chat_text MESSAGES[] = {{"{\"content\":\"Hi\",\"role\":\"user\"}", 30},
                                                {"{\"role\":\"x\"}", 12}};

static struct ipw_chat_request plain(void)
{
    return (struct ipw_chat_request){.model = "m",
                                     .messages = MESSAGES,
                                     .n_messages = 1,
                                     .temperature = NAN,
                                     .top_p = NAN,
                                     .seed = INT64_MIN,
                                     .max_tokens = -1,
                                     .stream = true,
                                     .include_usage = true};
}

static void expect_body(const struct ipw_chat_request *request, const char *want)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    struct ipw_err err = {0};
    size_t at, n;

    if (ipw_chat_body(&out, request, &at, &n, &err)) fail_msg("%s", err.text);
    assert_string_equal(ipw_buf_str(&out), want);
    assert_true(ipw_json_valid(out.data, out.len));
    ipw_buf_release(&out);
}

#define MSG   "\"messages\":[{\"content\":\"Hi\",\"role\":\"user\"}]"
#define USAGE "\"stream_options\":{\"include_usage\":true}"

static void unset_fields_are_not_sent(void **state)
{
    struct ipw_chat_request r = plain();

    (void)state;
    expect_body(&r, "{" MSG ",\"model\":\"m\",\"stream\":true," USAGE "}");
    r.model = NULL;
    r.include_usage = false;
    r.n_messages = 0;
    expect_body(&r, "{\"messages\":[],\"stream\":true}");
}

static void all_fields_in_order(void **state)
{
    struct ipw_chat_request r = plain();

    (void)state;
    r.n_messages = 2;
    r.tools = "[{\"type\":\"function\"}]";
    r.tool_choice = "\"auto\"";
    r.response_format = "{\"type\":\"json_object\"}";
    r.stop = "[\"a\"]";
    r.temperature = 0.1;
    r.top_p = 1;
    r.seed = -7;
    r.max_tokens = 0;
    expect_body(&r, "{\"max_tokens\":0,\"messages\":[{\"content\":\"Hi\",\"role\":\"user\"},"
                    "{\"role\":\"x\"}],\"model\":\"m\","
                    "\"response_format\":{\"type\":\"json_object\"},\"seed\":-7,\"stop\":[\"a\"],"
                    "\"stream\":true," USAGE ",\"temperature\":0.1,\"tool_choice\":\"auto\","
                    "\"tools\":[{\"type\":\"function\"}],\"top_p\":1.0}");
    r = plain();
    r.max_tokens = 5;
    r.use_max_completion_tokens = true;
    expect_body(&r,
                "{\"max_completion_tokens\":5," MSG ",\"model\":\"m\",\"stream\":true," USAGE "}");
}

/* The script's and the user's own fields win over ours, as everywhere. */
static void a_forced_length(void **state)
{
    struct ipw_chat_request r = plain();

    (void)state;
    r.include_usage = false;
    r.force_tokens = 32;
    r.max_tokens = 5;
    expect_body(&r, "{\"ignore_eos\":true,\"max_tokens\":32," MSG
                    ",\"min_tokens\":32,\"model\":\"m\",\"stream\":true}");
    r.extra = "{\"min_tokens\":1}";
    r.over = "{\"ignore_eos\":false}";
    expect_body(&r, "{\"ignore_eos\":false,\"max_tokens\":32," MSG
                    ",\"min_tokens\":1,\"model\":\"m\",\"stream\":true}");
}

static void stream_options_only_with_stream(void **state)
{
    struct ipw_chat_request r = plain();

    (void)state;
    r.stream = false;
    expect_body(&r, "{" MSG ",\"model\":\"m\",\"stream\":false}");
    r.stream = true;
    r.extra = "{\"stream\":false}";
    expect_body(&r, "{" MSG ",\"model\":\"m\",\"stream\":false}");
}

static void extra_members_win_and_are_sorted_in(void **state)
{
    struct ipw_chat_request r = plain();

    (void)state;
    r.temperature = 1;
    r.extra = "{\"zz\":1,\"temperature\":0.5,\"a b\\\"\":[1.50,null],\"model\":\"other\","
              "\"chat_template_kwargs\":{\"b\":1,\"a\":2},\"zz\":2}";
    expect_body(&r, "{\"a b\\\"\":[1.50,null],\"chat_template_kwargs\":{\"a\":2,\"b\":1}," MSG
                    ",\"model\":\"other\",\"stream\":true," USAGE ",\"temperature\":0.5,\"zz\":2}");
}

static void bad_extra_is_refused(void **state)
{
    struct ipw_chat_request r = plain();
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    struct ipw_err err = {0};
    size_t at, n;

    (void)state;
    r.extra = "[1]";
    assert_int_equal(ipw_chat_body(&out, &r, &at, &n, &err), IPW_EINVAL);
    assert_string_equal(err.text, "extra request fields: expected a JSON object");
    r.extra = "{\"a\":";
    assert_int_equal(ipw_chat_body(&out, &r, &at, &n, &err), IPW_EPARSE);
    assert_memory_equal(err.text, "extra request fields: ", 22);
    assert_int_equal(out.len, 0);
    ipw_buf_release(&out);
}

static void a_body_has_a_ceiling(void **state)
{
    struct ipw_chat_request r = plain();
    struct ipw_buf out = IPW_BUF(40);
    struct ipw_err err = {0};
    size_t at, n;

    (void)state;
    assert_int_equal(ipw_chat_body(&out, &r, &at, &n, &err), IPW_ELIMIT);
    assert_string_equal(err.text, "the request is larger than 40 bytes");
    ipw_buf_release(&out);
}

static void the_usage_option_can_be_cut_out(void **state)
{
    struct ipw_chat_request r = plain();
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    size_t at, n;

    (void)state;
    r.temperature = 0;
    assert_int_equal(ipw_chat_body(&out, &r, &at, &n, NULL), 0);
    assert_int_equal(n, strlen("," USAGE));
    assert_memory_equal(out.data + at, "," USAGE, n);
    ipw_buf_clear(&out);
    r.include_usage = false;
    assert_int_equal(ipw_chat_body(&out, &r, &at, &n, NULL), 0);
    assert_int_equal(n, 0);
    ipw_buf_release(&out);
}

UNIT(chat_body)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unset_fields_are_not_sent),
        cmocka_unit_test(all_fields_in_order),
        cmocka_unit_test(a_forced_length),
        cmocka_unit_test(stream_options_only_with_stream),
        cmocka_unit_test(extra_members_win_and_are_sorted_in),
        cmocka_unit_test(bad_extra_is_refused),
        cmocka_unit_test(a_body_has_a_ceiling),
        cmocka_unit_test(the_usage_option_can_be_cut_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
