/* What a client asks for, by path and body; what goes on; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "proxy/call.h"
#include "unit/unit.h"

static void a_path_names_the_call(void **state)
{
    static const struct {
        const char *method, *path, *name;
        bool turn;
    } rows[] = {
        {"POST", "/v1/chat/completions", "chat", true},
        {"POST", "/chat/completions?api-version=1", "chat", true},
        {"POST", "/v1/responses", "responses", true},
        {"POST", "/v1/messages?beta=true", "messages", true},
        {"POST", "/v1/messages/count_tokens", "count_tokens", false},
        {"POST", "/v1/completions", "completions", true},
        {"POST", "/v1/embeddings", "embeddings", false},
        {"POST", "/v1/rerank", "rerank", false},
        {"GET", "/v1/models?limit=1000", "models", false},
        {"GET", "/v1/responses", "other", false},
        {"HEAD", "/api/hello", "other", false},
        {"POST", "/v1/chat/completions/x", "other", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_proxy_call call;

        ipw_proxy_call_of_path(&call, rows[i].method, rows[i].path);
        assert_string_equal(call.name, rows[i].name);
        assert_int_equal(call.turn, rows[i].turn);
    }
}

static void bodies_tell_model_usage_and_results(void **state)
{
    static const struct {
        const char *path, *body, *model, *results; /* "id id!": ! failed */
        bool wants_usage;
    } rows[] = {
        {"/v1/chat/completions",
         "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"tool\",\"tool_call_id\":\"a\","
         "\"content\":\"x\"},{\"role\":\"user\",\"content\":\"y\"}]}",
         "m", "a ", true},
        {"/v1/chat/completions", "{\"model\":\"m\",\"stream\":true,\"stream_options\":{}}", "m", "",
         true},
        {"/v1/chat/completions",
         "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true}}", "m", "",
         false},
        {"/v1/completions", "{\"model\":\"m\",\"stream\":true,\"prompt\":[\"a\",[1,2]]}", "m", "",
         true},
        {"/v1/chat/completions", "{\"model\":\"m\"}", "m", "", false},
        {"/v1/responses",
         "{\"model\":\"r\",\"stream\":true,\"input\":[{\"type\":\"function_call_output\","
         "\"call_id\":\"c\",\"output\":\"x\"},{\"type\":\"local_shell_call_output\",\"call_id\":"
         "\"d\",\"output\":\"y\"}]}",
         "r", "c d ", false},
        {"/v1/responses", "{\"input\":\"hello\"}", "", "", false},
        {"/v1/messages",
         "{\"model\":\"c\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
         "\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"x\",\"is_error\":true},{\"type\":"
         "\"text\",\"text\":\"y\"}]},{\"role\":\"user\",\"content\":\"plain\"}]}",
         "c", "t! ", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_buf results = IPW_BUF(1000);
        struct ipw_proxy_call call;

        ipw_proxy_call_of_path(&call, "POST", rows[i].path);
        assert_int_equal(ipw_proxy_call_read(&call, rows[i].body, strlen(rows[i].body), NULL), 0);
        assert_string_equal(call.model, rows[i].model);
        for (size_t k = 0; k < call.n_results; k++)
            ipw_buf_addf(&results, "%s%s ", call.results[k].id, call.results[k].failed ? "!" : "");
        assert_string_equal(ipw_buf_str(&results), rows[i].results);
        assert_int_equal(ipw_proxy_call_wants_usage(&call), rows[i].wants_usage);
        ipw_buf_release(&results);
        ipw_proxy_call_release(&call);
    }
}

static void what_is_no_object_is_not_read(void **state)
{
    static const char *const bodies[] = {"", "[]", "\"x\"", "{\"model\":"};

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct ipw_proxy_call call;

        ipw_proxy_call_of_path(&call, "POST", "/v1/responses");
        assert_int_not_equal(ipw_proxy_call_read(&call, bodies[i], strlen(bodies[i]), NULL), 0);
        ipw_proxy_call_release(&call);
    }
}

static void usage_is_asked_for_once(void **state)
{
#define BAD                                                                                        \
    "\xff\xfe\xc3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" \
    "\xff"
#define ASKED "\"stream_options\":{\"include_usage\":true}"
    static const struct {
        const char *body, *want;
    } rows[] = {
        {" {\"model\":\"m\"}", " {" ASKED ",\"model\":\"m\"}"},
        {"{\"stream_options\" : null ,\"model\":\"m\"}",
         "{\"stream_options\" : {\"include_usage\":true},\"model\":\"m\"}"},
        {"{\"model\":\"m\",\"stream_options\":{}}", "{\"model\":\"m\"," ASKED "}"},
        {"{\"stream_options\":{\"include_usage\":false,\"a\":[1,{}]},\"model\":\"m\"}",
         "{\"stream_options\":{\"include_usage\":true,\"a\":[1,{}]},\"model\":\"m\"}"},
        /* names inside of other values are none of the request's */
        {"{\"a\":{\"stream_options\":1},\"b\":\"stream_options\",\"c\":\"\\\"stream_options\\\":"
         "\"}",
         "{" ASKED ",\"a\":{\"stream_options\":1},\"b\":\"stream_options\",\"c\":"
         "\"\\\"stream_options\\\":\"}"},
        {"{\"stream_options\":1,\"stream_options\":null}", "{\"stream_options\":1," ASKED "}"},
    };
#undef ASKED
#undef BAD

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_buf out = IPW_BUF(strlen(rows[i].body) + IPW_ASK_USAGE_BYTES);
        struct ipw_proxy_call call;

        ipw_proxy_call_of_path(&call, "POST", "/v1/chat/completions");
        assert_int_equal(ipw_proxy_call_read(&call, rows[i].body, strlen(rows[i].body), NULL), 0);
        ipw_proxy_call_ask_usage(&out, rows[i].body, strlen(rows[i].body));
        assert_string_equal(ipw_buf_str(&out), rows[i].want);
        ipw_buf_release(&out);
        ipw_proxy_call_release(&call);
    }
}

static void refusals_have_the_shape_of_their_api(void **state)
{
    static const struct {
        const char *path, *want;
    } rows[] = {
        {"/v1/chat/completions",
         "{\"error\":{\"code\":\"ipw_limit\",\"message\":\"no\",\"param\":null,\"type\":"
         "\"invalid_request_error\"}}"},
        {"/v1/messages", "{\"error\":{\"code\":\"ipw_limit\",\"message\":\"no\",\"type\":"
                         "\"invalid_request_error\"},\"type\":\"error\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_buf out = IPW_BUF(1000);
        struct ipw_proxy_call call;

        ipw_proxy_call_of_path(&call, "POST", rows[i].path);
        ipw_proxy_call_refusal(&out, &call, "ipw_limit", "no");
        assert_string_equal(ipw_buf_str(&out), rows[i].want);
        ipw_buf_release(&out);
    }
}

UNIT(call)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_names_the_call),
        cmocka_unit_test(bodies_tell_model_usage_and_results),
        cmocka_unit_test(what_is_no_object_is_not_read),
        cmocka_unit_test(usage_is_asked_for_once),
        cmocka_unit_test(refusals_have_the_shape_of_their_api),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
