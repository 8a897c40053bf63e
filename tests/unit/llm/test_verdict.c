/* The verdict over an attempt: outcome, message, worth repeating; and how long to wait (N-5). */
#include "llm_support.h"

#include "base/clock.h"
#include "llm/client_priv.h"
#include "unit/unit.h"

#define URL "http://h/v1"

static const struct {
    const char *what;
    enum ipw_http_end end;
    int status;
    const char *body, *http_error;
    bool have_key, usage_asked;
    enum ipw_lm_outcome outcome;
    enum ipw_code code;
    bool retryable, without_usage;
    const char *text;
} ROWS[] = {
    {"refused", IPW_HTTP_REFUSED, 0, "",
     URL "/chat/completions: no connection (Connection refused)", false, true, IPW_LM_REFUSED,
     IPW_ENET, true, false, "connection refused: " URL ": is the server running?"},
    {"unreachable", IPW_HTTP_REFUSED, 0, "", "no route to host", false, true, IPW_LM_REFUSED,
     IPW_ENET, true, false, "no route to host: " URL ": is the server running?"},
    {"name", IPW_HTTP_DNS, 0, "", "x", false, true, IPW_LM_REFUSED, IPW_ENET, true, false,
     "the host name cannot be resolved: " URL ": is the address right?"},
    {"certificate", IPW_HTTP_TLS, 0, "", "expired", false, true, IPW_LM_REFUSED, IPW_ENET, false,
     false, "no secure connection: expired: " URL},
    {"reset", IPW_HTTP_RESET, 0, "", "x", false, true, IPW_LM_RESET, IPW_ENET, true, false,
     "the connection broke before the answer: " URL},
    {"8 401 without a key", IPW_HTTP_OK, 401, "{\"error\":\"Unauthorized\"}", "", false, true,
     IPW_LM_HTTP_ERROR, IPW_EHTTP, false, false,
     "the server wants an API key: --api-key-env NAME (HTTP 401: Unauthorized): " URL},
    {"8 401 with one", IPW_HTTP_OK, 401, "", "", true, true, IPW_LM_HTTP_ERROR, IPW_EHTTP, false,
     false, "the server does not accept the API key (HTTP 401): " URL},
    {"8 404 model", IPW_HTTP_OK, 404,
     "{\"error\":{\"message\":\"model 'x' not found, try pulling it first\"}}", "", false, true,
     IPW_LM_HTTP_ERROR, IPW_EHTTP, false, false,
     "HTTP 404: model 'x' not found, try pulling it first: " URL
     ": `ipw-agent list models` shows what it serves"},
    {"8 404 path", IPW_HTTP_OK, 404, "{\"detail\":\"Not Found\"}", "", false, true,
     IPW_LM_HTTP_ERROR, IPW_EHTTP, false, false,
     "HTTP 404: Not Found: no chat completions at this address: " URL},
    {"8 400", IPW_HTTP_OK, 400, "{\"error\":{\"message\":\"bad\"}}", "", false, true,
     IPW_LM_HTTP_ERROR, IPW_EHTTP, false, false, "HTTP 400: bad: " URL},
    {"8 400 whose body broke off", IPW_HTTP_CUT, 400, "{\"err", "", false, true, IPW_LM_HTTP_ERROR,
     IPW_EHTTP, false, false, "HTTP 400: {\"err: " URL},
    {"context of vLLM", IPW_HTTP_OK, 400,
     "{\"object\":\"error\",\"message\":\"This model's maximum context length is 10 tokens.\"}", "",
     false, true, IPW_LM_CONTEXT_FULL, IPW_ECONTEXT, false, false,
     "HTTP 400: This model's maximum context length is 10 tokens.: " URL},
    {"context of llama.cpp, old", IPW_HTTP_OK, 500,
     "{\"error\":{\"message\":\"x\",\"type\":\"exceed_context_size_error\"}}", "", false, true,
     IPW_LM_CONTEXT_FULL, IPW_ECONTEXT, false, false, "HTTP 500: x: " URL},
    {"context of OpenAI", IPW_HTTP_OK, 400,
     "{\"error\":{\"message\":\"x\",\"code\":\"context_length_exceeded\"}}", "", false, true,
     IPW_LM_CONTEXT_FULL, IPW_ECONTEXT, false, false, "HTTP 400: x: " URL},
    {"no refusal: 429 with such a text", IPW_HTTP_OK, 429, "maximum context length", "", false,
     true, IPW_LM_HTTP_ERROR, IPW_EHTTP, true, false, "HTTP 429: maximum context length: " URL},
    {"2 stream_options refused", IPW_HTTP_OK, 400, "{\"error\":\"unknown field stream_options\"}",
     "", false, true, IPW_LM_HTTP_ERROR, IPW_EHTTP, false, true,
     "HTTP 400: unknown field stream_options: " URL},
    {"2 refused though not asked for", IPW_HTTP_OK, 400, "{\"error\":\"include_usage?\"}", "",
     false, false, IPW_LM_HTTP_ERROR, IPW_EHTTP, false, false, "HTTP 400: include_usage?: " URL},
    {"8 408", IPW_HTTP_OK, 408, "", "", false, true, IPW_LM_HTTP_ERROR, IPW_EHTTP, true, false,
     "HTTP 408: " URL},
    {"8 409", IPW_HTTP_OK, 409, "", "", false, true, IPW_LM_HTTP_ERROR, IPW_EHTTP, true, false,
     "HTTP 409: " URL},
    {"8 429", IPW_HTTP_OK, 429, "slow down", "", false, true, IPW_LM_HTTP_ERROR, IPW_EHTTP, true,
     false, "HTTP 429: slow down: " URL},
    {"8 429 without credit", IPW_HTTP_OK, 429,
     "{\"error\":{\"message\":\"q\",\"type\":\"insufficient_quota\",\"code\":\"insufficient_"
     "quota\"}}",
     "", true, true, IPW_LM_HTTP_ERROR, IPW_EHTTP, false, false, "HTTP 429: q: " URL},
    {"8 500", IPW_HTTP_OK, 500, "", "", false, true, IPW_LM_HTTP_ERROR, IPW_EHTTP, true, false,
     "HTTP 500: " URL},
    {"8 529", IPW_HTTP_OK, 529, "", "", false, true, IPW_LM_HTTP_ERROR, IPW_EHTTP, true, false,
     "HTTP 529: " URL},
    {"redirect", IPW_HTTP_OK, 301, "", "", false, true, IPW_LM_HTTP_ERROR, IPW_EHTTP, false, false,
     "HTTP 301: the server redirects to https://h/: " URL ": give that address instead"},
    {"too large", IPW_HTTP_TOO_LARGE, 200, "", "", false, true, IPW_LM_TOO_LARGE, IPW_ELIMIT, false,
     false, "the answer is too large: " URL},
    {"not HTTP", IPW_HTTP_PROTOCOL, 0, "", URL "/chat/completions: weird server reply", false, true,
     IPW_LM_BAD_REPLY, IPW_EPARSE, false, false, "weird server reply: " URL},
};

static void verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct ipw_chat_reply reply = {0};
        struct ipw_err fold_err = {.text = "cut"};
        struct ipw_llm_verdict v;
        struct ipw_llm_evidence e = {.url = URL,
                                     .have_key = ROWS[i].have_key,
                                     .end = ROWS[i].end,
                                     .status = ROWS[i].status,
                                     .http_error = ROWS[i].http_error,
                                     .location = "https://h/",
                                     .body = ROWS[i].body,
                                     .body_n = strlen(ROWS[i].body),
                                     .usage_asked = ROWS[i].usage_asked,
                                     .fold_code = IPW_ENET,
                                     .fold_err = &fold_err,
                                     .reply = &reply};

        ipw_llm_verdict_from(&v, &e);
        if (v.outcome != ROWS[i].outcome || v.err.code != ROWS[i].code ||
            v.retryable != ROWS[i].retryable || v.without_usage != ROWS[i].without_usage ||
            strcmp(v.err.text, ROWS[i].text) != 0)
            fail_msg("%s: outcome %d code %d retryable %d without %d: %s", ROWS[i].what,
                     (int)v.outcome, (int)v.err.code, v.retryable, v.without_usage, v.err.text);
        if (v.outcome == IPW_LM_HTTP_ERROR) assert_int_equal(v.err.detail, ROWS[i].status);
    }
}

static void this_machine_is_reachable(void **state)
{
    static const struct {
        const char *url, *want;
    } rows[] = {
        {"http://127.0.0.1:1/v1",
         "connection refused: http://127.0.0.1:1/v1: is the server running?"},
        {"http://localhost/v1", "connection refused: http://localhost/v1: is the server running?"},
        {"http://[::1]:1/v1", "connection refused: http://[::1]:1/v1: is the server running?"},
        {"http://localhosts/v1", "Couldn't connect: http://localhosts/v1: is the server running?"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ipw_chat_reply reply = {0};
        struct ipw_err fold_err = {0};
        struct ipw_llm_verdict v;
        struct ipw_llm_evidence e = {.url = rows[i].url,
                                     .end = IPW_HTTP_REFUSED,
                                     .http_error = "Couldn't connect",
                                     .fold_err = &fold_err,
                                     .reply = &reply};

        ipw_llm_verdict_from(&v, &e);
        assert_string_equal(v.err.text, rows[i].want);
    }
}

static void an_end_after_the_finish_is_fine(void **state)
{
    static const enum ipw_http_end ends[] = {IPW_HTTP_OK, IPW_HTTP_CUT, IPW_HTTP_RESET,
                                             IPW_HTTP_TIMEOUT};
    struct ipw_chat_reply reply = {0};
    struct ipw_err fold_err = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct ipw_llm_evidence e = {.url = URL,
                                     .end = ends[i],
                                     .status = 200,
                                     .streamed = true,
                                     .finished = true,
                                     .token_seen = true,
                                     .fold_err = &fold_err,
                                     .reply = &reply};
        struct ipw_llm_verdict v;

        ipw_llm_verdict_from(&v, &e);
        assert_int_equal(v.outcome, IPW_LM_OK);
    }
}

static void a_token_forbids_a_repeat(void **state)
{
    static const enum ipw_http_end ends[] = {IPW_HTTP_OK, IPW_HTTP_CUT, IPW_HTTP_TIMEOUT};
    struct ipw_chat_reply reply = {0};
    struct ipw_err fold_err = {.text = "cut"};

    (void)state;
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct ipw_llm_evidence e = {.url = URL,
                                     .end = ends[i],
                                     .status = 200,
                                     .streamed = true,
                                     .deadline = IPW_HTTP_IDLE_DEADLINE,
                                     .fold_code = IPW_ENET,
                                     .fold_err = &fold_err,
                                     .reply = &reply};
        struct ipw_llm_verdict v;

        ipw_llm_verdict_from(&v, &e);
        assert_true(v.retryable);
        e.token_seen = true;
        ipw_llm_verdict_from(&v, &e);
        assert_false(v.retryable);
        assert_int_equal(v.outcome, ends[i] == IPW_HTTP_TIMEOUT ? IPW_LM_TIMEOUT : IPW_LM_CUT);
    }
}

static void retry_after_is_read(void **state)
{
    const int64_t s = IPW_NS_PER_S, now = INT64_C(1795220000) * s;
    static const struct {
        const char *text;
        int64_t want_ms; /* -1: nothing usable */
    } rows[] = {
        {"", -1},
        {"0", 0},
        {"2", 2000},
        {"0.5", 500},
        {"-1", -1},
        {"soon", -1},
        {"2s", -1},
        {"1000000000", INT64_C(1000000000000)},
        {"1e300", INT64_C(1000000000000)},
        {"Sat, 21 Nov 2026 00:13:25 GMT", 5000}, /* 1795220005 */
        {"Sat, 21 Nov 2026 00:13:15 GMT", 0},
        {"Sat, 21 Nov 2026 00:13:25", -1},
        {"Sat, 21 Foo 2026 00:13:25 GMT", -1},
        {"Sat, 21 ovD 2026 00:13:25 GMT", -1},
        {"Fri, 31 Dec 9999 23:59:59 GMT", INT64_C(1000000000000)},
        {"nan", -1},
        {"inf", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t got = ipw_llm_retry_after(rows[i].text, now);
        int64_t want = rows[i].want_ms < 0 ? -1 : rows[i].want_ms * IPW_NS_PER_MS;

        if (got != want) fail_msg("'%s': %lld", rows[i].text, (long long)got);
    }
}

static void waits_grow_within_bounds(void **state)
{
    uint64_t random = 1;
    int64_t sum[8] = {0};

    (void)state;
    for (int n = 0; n < 8; n++) {
        int64_t most = IPW_NS_PER_S / 2;

        for (int k = 0; k < n; k++) most *= 2;
        if (most > 8 * IPW_NS_PER_S) most = 8 * IPW_NS_PER_S;
        for (int k = 0; k < 1000; k++) {
            int64_t wait = ipw_llm_backoff(&random, IPW_NS_PER_S / 2, n);
            assert_true(wait > 0 && wait <= most);
            sum[n] += wait / 1000;
        }
        assert_true(sum[n] > most / 3 && sum[n] < most / 3 * 2);
    }
    assert_int_equal(ipw_llm_backoff(&random, 1, 0), 1);
    for (int k = 0; k < 100; k++)
        assert_true(ipw_llm_backoff(&random, 1000 * IPW_NS_PER_S, 60) <= 8 * IPW_NS_PER_S);
}

/* What decides besides the end and the status: deadlines, errors inside an answer, folds that
 * failed. */
static void what_else_decides(void **state)
{
    static const struct {
        struct ipw_llm_evidence e;
        const char *error, *type; /* of the reply */
        int error_code;
        enum ipw_lm_outcome outcome;
        bool retryable;
        const char *text;
    } rows[] = {
        {{.end = IPW_HTTP_TIMEOUT,
          .deadline = IPW_HTTP_CONNECT_DEADLINE,
          .deadline_ns = IPW_NS_PER_S},
         .outcome = IPW_LM_TIMEOUT,
         .retryable = true,
         .text = "no connection within 1 s: " URL},
        {{.end = IPW_HTTP_TIMEOUT,
          .deadline = IPW_HTTP_TOTAL_DEADLINE,
          .deadline_ns = IPW_NS_PER_S},
         .outcome = IPW_LM_TIMEOUT,
         .text = "the call took longer than 1 s: " URL},
        {{.end = IPW_HTTP_TIMEOUT,
          .deadline = IPW_HTTP_IDLE_DEADLINE,
          .deadline_ns = IPW_NS_PER_S,
          .token_seen = true,
          .retry_cut = true},
         .outcome = IPW_LM_TIMEOUT,
         .retryable = true,
         .text = "the answer stopped for 1 s: " URL},
        {{.end = IPW_HTTP_TIMEOUT,
          .deadline = IPW_HTTP_IDLE_DEADLINE,
          .deadline_ns = IPW_NS_PER_S,
          .no_event = true},
         .outcome = IPW_LM_TIMEOUT,
         .retryable = true,
         .text = "the answer held nothing but keep-alive comments for 1 s: " URL},
        {{.end = IPW_HTTP_OK, .status = 302},
         .outcome = IPW_LM_HTTP_ERROR,
         .text = "HTTP 302: the server redirects to another address: " URL
                 ": give that address instead"},
        {{.end = IPW_HTTP_OK, .status = 302, .location = ""},
         .outcome = IPW_LM_HTTP_ERROR,
         .text = "HTTP 302: the server redirects to another address: " URL
                 ": give that address instead"},
        {{.end = IPW_HTTP_OK,
          .status = 422,
          .usage_asked = true,
          .body = "include_usage",
          .body_n = 13},
         .outcome = IPW_LM_HTTP_ERROR,
         .text = "HTTP 422: include_usage: " URL},
        {{.end = IPW_HTTP_OK, .status = 425},
         .outcome = IPW_LM_HTTP_ERROR,
         .retryable = true,
         .text = "HTTP 425: " URL},
        {{.end = IPW_HTTP_OK, .status = 600},
         .outcome = IPW_LM_HTTP_ERROR,
         .text = "HTTP 600: " URL},
        {{.end = IPW_HTTP_ABORTED, .status = 200, .fold_code = IPW_ELIMIT},
         .outcome = IPW_LM_TOO_LARGE,
         .text = "cut: " URL},
        {{.end = IPW_HTTP_OK, .status = 200, .streamed = true},
         "overloaded",
         "x",
         503,
         .outcome = IPW_LM_SERVER_ERROR,
         .retryable = true,
         .text = "the server reports: overloaded: " URL},
        {{.end = IPW_HTTP_CUT, .status = 200, .streamed = true},
         "",
         NULL,
         0,
         .outcome = IPW_LM_SERVER_ERROR,
         .text = "the server reports: an error without a message: " URL},
        {{.end = IPW_HTTP_OK, .status = 200, .streamed = true},
         "no credit",
         "insufficient_quota",
         429,
         .outcome = IPW_LM_SERVER_ERROR,
         .text = "the server reports: no credit: " URL},
        {{.end = IPW_HTTP_OK, .status = 200, .streamed = true, .token_seen = true},
         "overloaded",
         NULL,
         503,
         .outcome = IPW_LM_SERVER_ERROR,
         .text = "the server reports: overloaded: " URL},
        {{.end = IPW_HTTP_OK,
          .status = 200,
          .fold_code = IPW_EPARSE,
          .body = " \r\n\t",
          .body_n = 4},
         .outcome = IPW_LM_BAD_REPLY,
         .text = "HTTP 200 with an empty body: " URL},
        {{.end = IPW_HTTP_OK, .status = 200, .fold_code = IPW_EPARSE, .body = "\0", .body_n = 1},
         .outcome = IPW_LM_BAD_REPLY,
         .text = "cut: " URL},
        {{.end = IPW_HTTP_REFUSED, .http_error = URL " without a reason"},
         .outcome = IPW_LM_REFUSED,
         .retryable = true,
         .text = URL " without a reason: " URL ": is the server running?"},
        {{.end = IPW_HTTP_TLS},
         .outcome = IPW_LM_REFUSED,
         .text = "no secure connection: no connection: " URL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ipw_chat_reply reply = {.error = (char *)rows[i].error,
                                       .error_type = (char *)rows[i].type,
                                       .error_code = rows[i].error_code};
        struct ipw_err fold_err = {.text = "cut"};
        struct ipw_llm_evidence e = rows[i].e;
        struct ipw_llm_verdict v;

        e.url = URL;
        e.reply = &reply;
        e.fold_err = &fold_err;
        ipw_llm_verdict_from(&v, &e);
        if (v.outcome != rows[i].outcome || v.retryable != rows[i].retryable ||
            strcmp(v.err.text, rows[i].text))
            fail_msg("row %zu: outcome %d retryable %d: %s", i, (int)v.outcome, v.retryable,
                     v.err.text);
    }
}

/* A server that still loads its model says so with 503 and words; only that is waited for. */
static void a_model_that_loads(void **state)
{
    static const struct {
        int status;
        const char *body;
        bool loading;
    } rows[] = {{503, "{\"error\":{\"message\":\"Loading model\"}}", true},
                {503, "{\"error\":\"the Model is loading\"}", true},
                {503, "busy", false},
                {503, "", false},
                {500, "Loading model", false}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ipw_llm_evidence e = {
            .status = rows[i].status, .body = rows[i].body, .body_n = strlen(rows[i].body)};
        assert_int_equal(ipw_llm_is_loading(&e), rows[i].loading);
    }
}

UNIT(verdict)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(what_else_decides),
        cmocka_unit_test(a_model_that_loads),
        cmocka_unit_test(this_machine_is_reachable),
        cmocka_unit_test(an_end_after_the_finish_is_fine),
        cmocka_unit_test(a_token_forbids_a_repeat),
        cmocka_unit_test(retry_after_is_read),
        cmocka_unit_test(waits_grow_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
