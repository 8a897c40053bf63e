/* Calls against a server that answers by script: attempts, repeats, messages, stamps. */
#include "client_world.h"
#include "unit/unit.h"

static void a_stream(void **state)
{
    static const struct script_line script[] = {{OK_STREAM, THEN_CLOSE}};
    struct world w;
    const struct ipw_lm_facts *f = &w.watch.facts[0];

    (void)state;
    RUN(&w, script, .api_key = "sk-secret-key");
    assert_int_equal(w.watch.code, 0);
    assert_string_equal(w.watch.text, "Hello");
    assert_int_equal(w.watch.ended, 1);
    assert_int_equal(f->outcome, IPW_LM_OK);
    assert_int_equal(f->status, 200);
    assert_int_equal(f->input_tokens, 3);
    assert_int_equal(f->output_tokens, 2);
    assert_int_equal(f->cached_tokens, -1);
    assert_false(f->tokens_estimated);
    assert_int_equal(f->chunks, 2);
    assert_true(f->times.sent_ns > 0 && f->times.first_byte_ns >= f->times.sent_ns);
    assert_true(f->times.first_token_ns >= f->times.first_byte_ns &&
                f->times.last_token_ns >= f->times.first_token_ns);
    assert_int_equal(f->bytes_sent, strlen(w.watch.bodies[0]));
    assert_int_equal(f->bytes_received, strlen(C("Hel") C("lo") FINISH USAGE DONE));
    assert_string_equal(w.watch.bodies[0],
                        "{\"messages\":[{\"content\":\"Hi\",\"role\":\"user\"}],\"model\":\"m\","
                        "\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    assert_memory_equal(w.server.seen[0], "POST /v1/chat/completions HTTP/1.1\r\n", 36);
    assert_non_null(strstr(w.server.seen[0], "\r\nAccept: text/event-stream\r\n"));
    assert_non_null(strstr(w.server.seen[0], "\r\nAuthorization: Bearer sk-secret-key\r\n"));
    assert_non_null(strstr(w.server.seen[0], w.watch.bodies[0]));
    world_close(&w);
}

/* Section 1.2: what came counts, not what was asked for. */
static void answers_that_are_understood(void **state)
{
#define WHOLE "{\"choices\":[{\"message\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}"
    static const struct {
        const char *what;
        struct script_line line;
        int64_t output; /* tokens, estimated; -1 not known */
    } rows[] = {
        {"a whole answer", {JSON200 WHOLE, THEN_CLOSE}, -1},
        {"a whole answer that calls itself a stream", {STREAM "\n" WHOLE, THEN_CLOSE}, -1},
        {"no content type, whole",
         {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" WHOLE, THEN_CLOSE},
         -1},
        {"no content type, stream",
         {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" C("Hello") FINISH, THEN_CLOSE},
         1},
        {"text/plain stream with a comment",
         {HEAD("200 OK", "text/plain") "\r\n: ping\n\n" C("Hello") FINISH, THEN_CLOSE},
         1},
        {"charset",
         {HEAD("200 OK", "text/event-stream; charset=utf-8") "\r\n" C("Hello") FINISH, THEN_CLOSE},
         1},
        {"no usage: deltas are counted", {STREAM C("Hel") C("lo") FINISH, THEN_CLOSE}, 2},
        {"usage of 0 is not believed",
         {STREAM C("Hello") FINISH "data: {\"usage\":{\"completion_tokens\":0}}\n\n", THEN_CLOSE},
         1},
        {"[DONE] without a blank line", {STREAM C("Hello") "data: [DONE]", THEN_CLOSE}, 1},
        {"no end of the chunked body after the finish",
         {HEAD("200 OK", "text/event-stream") "Transfer-Encoding: chunked\r\n\r\n"
                                              "80\r\n" C("Hello") FINISH,
          THEN_CLOSE},
         1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w;

        world_open(&w, &rows[i].line, 1, (struct ipw_llm_options){0});
        world_start(&w);
        ipw_loop_run(w.loop);
        if (w.watch.code || strcmp(w.watch.text, "Hello") != 0)
            fail_msg("%s: %s", rows[i].what, w.watch.code ? w.watch.error : w.watch.text);
        if (w.watch.facts[0].output_tokens != rows[i].output)
            fail_msg("%s: %lld tokens", rows[i].what, (long long)w.watch.facts[0].output_tokens);
        assert_int_equal(w.watch.facts[0].tokens_estimated, rows[i].output >= 0);
        world_close(&w);
    }
}

/* [DONE] ends the answer even when the server keeps the connection. */
static void done_and_no_end(void **state)
{
    static const struct script_line script[] = {
        {HEAD("200 OK", "text/event-stream") "\r\n" C("Hello") FINISH DONE, THEN_HOLD}};
    struct world w;

    (void)state;
    RUN(&w, script, .idle_ns = 60 * IPW_NS_PER_S);
    assert_string_equal(w.watch.text, "Hello");
    world_close(&w);
}

static void repeats_until_it_works(void **state)
{
    static const struct script_line script[] = {
        {HEAD("429 Too Many Requests", "application/json") "Retry-After: 0\r\n\r\n{}", THEN_CLOSE},
        {NULL, THEN_RESET},
        {NULL, THEN_CLOSE},
        {ERROR("500 Internal Server Error", "x"), THEN_CLOSE},
        {STREAM ": nothing\n\n", THEN_CLOSE},
        {STREAM "data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n" DONE, THEN_CLOSE},
        {OK_STREAM, THEN_CLOSE}};
    static const enum ipw_lm_outcome outcomes[] = {
        IPW_LM_HTTP_ERROR, IPW_LM_RESET,        IPW_LM_RESET, IPW_LM_HTTP_ERROR,
        IPW_LM_CUT,        IPW_LM_SERVER_ERROR, IPW_LM_OK};
    struct world w;

    (void)state;
    RUN(&w, script, .max_retries = 10);
    assert_int_equal(w.watch.code, 0);
    assert_string_equal(w.watch.text, "Hello");
    assert_int_equal(w.watch.started, COUNT(outcomes));
    for (size_t i = 0; i < COUNT(outcomes); i++) {
        assert_int_equal(w.watch.facts[i].outcome, outcomes[i]);
        assert_true(w.watch.next[i] <= 1000 * IPW_NS_PER_MS);
        assert_int_equal(w.watch.next[i] > 0, i + 1 < COUNT(outcomes));
        assert_string_equal(w.watch.bodies[i], w.watch.bodies[0]);
    }
    world_close(&w);
}

static void n2_n6_n10_repeats_end(void **state)
{
    static const struct {
        const char *what;
        struct script_line lines[2];
        int retries, attempts;
        enum ipw_code code;
        bool retryable;
        const char *error; /* after "URL: " */
    } rows[] = {
        {"503 for ever",
         {{ERROR("503 Service Unavailable", "try later"), THEN_CLOSE}},
         2,
         3,
         IPW_EHTTP,
         true,
         "HTTP 503: try later"},
        {"no retries",
         {{ERROR("503 x", "busy"), THEN_CLOSE}},
         0,
         1,
         IPW_EHTTP,
         true,
         "HTTP 503: busy"},
        {"500 as often as any",
         {{ERROR("500 x", "boom"), THEN_CLOSE}},
         4,
         5,
         IPW_EHTTP,
         true,
         "HTTP 500: boom"},
        {"500 without retries",
         {{ERROR("500 x", "boom"), THEN_CLOSE}},
         0,
         1,
         IPW_EHTTP,
         true,
         "HTTP 500: boom"},
        {"400 never",
         {{ERROR("400 x", "bad"), THEN_CLOSE}},
         5,
         1,
         IPW_EHTTP,
         false,
         "HTTP 400: bad"},
        {"401 never",
         {{ERROR("401 x", "Invalid API Key"), THEN_CLOSE}},
         5,
         1,
         IPW_EHTTP,
         false,
         "the server wants an API key: --api-key-env NAME (HTTP 401: Invalid API Key)"},
        {"no credit",
         {{HEAD("429 x", "application/json") "\r\n{\"error\":{\"message\":\"q\",\"code\":"
                                             "\"insufficient_quota\"}}",
           THEN_CLOSE}},
         5,
         1,
         IPW_EHTTP,
         false,
         "HTTP 429: q"},
        {"a wait of 10^9 s",
         {{HEAD("429 x", "text/plain") "Retry-After: 1000000000\r\n\r\nlater", THEN_CLOSE}},
         5,
         1,
         IPW_EHTTP,
         true,
         "HTTP 429: later: @ (it asks to wait 1000000000 s: given up)"},
        {"an unreadable wait",
         {{HEAD("429 x", "text/plain") "Retry-After: soon\r\n\r\nlater", THEN_CLOSE}},
         1,
         2,
         IPW_EHTTP,
         true,
         "HTTP 429: later"},
        {"N-10 HTML",
         {{HEAD("200 OK", "text/html") "\r\n<html><title>Router</title>", THEN_CLOSE}},
         5,
         1,
         IPW_EPARSE,
         false,
         "answered with HTML, not with the API (an HTML page titled \"Router\"): @: is the "
         "address right?"},
        {"N-10 an empty body",
         {{JSON200, THEN_CLOSE}},
         5,
         1,
         IPW_EPARSE,
         false,
         "HTTP 200 with an empty body"},
        {"not the API",
         {{JSON200 "{\"a\":1}", THEN_CLOSE}},
         5,
         1,
         IPW_EPARSE,
         false,
         "the answer has no \"choices\": {\"a\":1}"},
        {"a stream of another protocol",
         {{STREAM
           "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":"
           "\"resp_1\",\"object\":\"response\"}}\n\n",
           THEN_CLOSE}},
         5,
         1,
         IPW_EPARSE,
         false,
         "this is a /v1/responses stream, not chat completions; --base-url must name a server that "
         "speaks chat completions"},
        {"N-10 cut after a token",
         {{STREAM C("Hel"), THEN_CLOSE}},
         5,
         1,
         IPW_ENET,
         false,
         "the answer was cut: no finish reason after 1 events with content"},
        {"N-10 broken after a token",
         {{HEAD("200 OK", "text/event-stream") "Content-Length: 1000\r\n\r\n" C("Hel"),
           THEN_CLOSE}},
         5,
         1,
         IPW_ENET,
         false,
         "the connection broke inside the answer"},
        {"N-10 an error after a token",
         {{STREAM C("Hel") "data: {\"error\":{\"message\":\"boom\",\"code\":500}}\n\n",
           THEN_CLOSE}},
         5,
         1,
         IPW_EHTTP,
         false,
         "the server reports: boom"},
        {"8 an error, then [DONE]",
         {{STREAM "data: {\"error\":\"boom\"}\n\n" DONE, THEN_CLOSE}},
         5,
         1,
         IPW_EHTTP,
         false,
         "the server reports: boom"},
        {"8 an error in a whole 200",
         {{JSON200 "{\"error\":\"boom\"}", THEN_CLOSE}},
         5,
         1,
         IPW_EHTTP,
         false,
         "the server reports: boom"},
        {"8 an error that calls itself a stream",
         {{STREAM "{\"error\":{\"message\":\"boom\"}}", THEN_CLOSE}},
         5,
         1,
         IPW_EHTTP,
         false,
         "the server reports: boom"},
        {"a redirect",
         {{HEAD("308 x", "text/html") "Location: https://h/v1\r\n\r\n", THEN_CLOSE}},
         5,
         1,
         IPW_EHTTP,
         false,
         "HTTP 308: the server redirects to https://h/v1: @: give that address instead"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w;

        world_open(&w, rows[i].lines, 1, (struct ipw_llm_options){.max_retries = rows[i].retries});
        world_start(&w);
        ipw_loop_run(w.loop);
        if (w.watch.started != rows[i].attempts || w.watch.retryable != rows[i].retryable ||
            w.watch.code != (int)rows[i].code)
            fail_msg("%s: %d attempts, code %d, retryable %d: %s", rows[i].what, w.watch.started,
                     w.watch.code, w.watch.retryable, w.watch.error);
        expect_error(&w, rows[i].code, rows[i].error);
        world_close(&w);
    }
}

/* llama-server loads its model for minutes: asked for its health, and no repeat is spent on it. */
static void a_loading_server_is_waited_for(void **state)
{
    static const struct script_line script[] = {
        {ERROR("503 x", "Loading model"), THEN_CLOSE}, /* the attempt */
        {ERROR("503 x", "Loading model"), THEN_CLOSE}, /* health */
        {ERROR("503 x", "Loading model"), THEN_CLOSE},
        {JSON200 "{\"status\":\"ok\"}", THEN_CLOSE},
        {OK_STREAM, THEN_CLOSE},
    };
    struct world w;

    (void)state;
    RUN(&w, script, .max_retries = 0);
    assert_int_equal(w.watch.code, 0);
    assert_string_equal(w.watch.text, "Hello");
    assert_int_equal(w.watch.started, 2);
    assert_true(w.watch.facts[0].retry_wait_ns > 0);
    assert_int_equal(w.server.requests, 5);
    assert_non_null(strstr(w.server.seen[1], "GET /health HTTP/1.1"));
    world_close(&w);

    RUN(&w, script, .max_retries = 0, .loading_ns = 1); /* not any longer than it is told */
    assert_int_equal(w.watch.code, IPW_EHTTP);
    world_close(&w);
}

/* The wait that the server asks for: not until the whole allowance is back, unless it says no
 * more. */
static void n5_what_the_server_asks_for(void **state)
{
    static const struct script_line script[] = {
        {"HTTP/1.1 429 x\r\nRetry-After: 0\r\nretry-after-ms: 20\r\nx-ratelimit-reset-tokens: "
         "6m0s\r\nConnection: close\r\n\r\n{}",
         THEN_CLOSE},
        {"HTTP/1.1 400 x\r\nx-should-retry: true\r\nConnection: close\r\n\r\n{}", THEN_CLOSE},
        {"HTTP/1.1 503 x\r\nx-should-retry: false\r\nx-ratelimit-reset-requests: 1h\r\n"
         "Connection: close\r\n\r\n{}",
         THEN_CLOSE},
    };
    struct world w;

    (void)state;
    RUN(&w, script, .max_retries = 5);
    assert_int_equal(w.watch.code, IPW_EHTTP);
    assert_int_equal(w.watch.started, 3);
    assert_true(w.watch.next[0] > 20 * IPW_NS_PER_MS && w.watch.next[0] < 22 * IPW_NS_PER_MS);
    assert_true(w.watch.next[1] > 0 && w.watch.next[1] <= 2 * IPW_NS_PER_MS);
    assert_int_equal(w.watch.next[2], 0);
    world_close(&w);
}

/* Pings and a role are no token: the first token's own deadline passes. */
static void no_token_in_time(void **state)
{
    static const struct script_line script[] = {
        {STREAM ": ping\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n",
         THEN_HOLD}};
    struct world w;

    (void)state;
    RUN(&w, script, .first_token_ns = 30 * IPW_NS_PER_MS);
    assert_int_equal(w.watch.code, IPW_ETIMEOUT);
    assert_int_equal(w.watch.facts[0].outcome, IPW_LM_TIMEOUT);
    expect_error(&w, IPW_ETIMEOUT, "no token within 0.03 s");
    world_close(&w);
}

static void a_cut_answer_is_repeated_when_asked(void **state)
{
    static const struct script_line script[] = {{STREAM C("Hel"), THEN_CLOSE},
                                                {OK_STREAM, THEN_CLOSE}};
    struct world w;

    (void)state;
    RUN(&w, script, .max_retries = 2);
    assert_int_equal(w.watch.started, 1);
    assert_int_equal(w.watch.facts[0].outcome, IPW_LM_CUT);
    world_close(&w);
    RUN(&w, script, .max_retries = 2, .retry_cut = true);
    assert_int_equal(w.watch.code, 0);
    assert_int_equal(w.watch.started, 2);
    assert_string_equal(w.watch.text, "Hello");
    world_close(&w);
}

/* A base URL where nobody listens is left out; its calls go to the other at once. */
static void a_dead_server_is_left_out(void **state)
{
    static const struct script_line script[] = {{OK_STREAM, THEN_CLOSE}};
    struct world w;
    const char *more[2] = {NULL, NULL};
    struct server dead = {0};
    char *dead_url;

    (void)state;
    server_start(&dead, script, 1);
    dead_url = ipw_asprintf("http://127.0.0.1:%d", dead.port);
    server_stop(&dead);
    world_open(&w, script, 1, (struct ipw_llm_options){.base_url = dead_url, .max_retries = 0});
    ipw_llm_free(w.llm);
    more[0] = w.url;
    assert_int_equal(ipw_llm_new(&w.llm, w.loop, w.http,
                                 &(struct ipw_llm_options){.base_url = dead_url, .more_urls = more},
                                 NULL),
                     0);
    world_start(&w);
    ipw_loop_run(w.loop);
    assert_int_equal(w.watch.code, 0);
    assert_int_equal(w.watch.started, 2);
    assert_int_equal(w.watch.facts[0].outcome, IPW_LM_REFUSED);
    assert_string_equal(w.watch.facts[1].endpoint, ipw_llm_url_at(w.llm, 1));
    for (int i = 0; i < 3; i++) { /* from now on straight to the one that answers */
        watch_release(&w.watch);
        world_start(&w);
        ipw_loop_run(w.loop);
        assert_int_equal(w.watch.code, 0);
        assert_int_equal(w.watch.started, 1);
    }
    free(dead_url);
    world_close(&w);
}

static void not_json_in_the_stream(void **state)
{
    static const struct script_line script[] = {{STREAM C("Hel") "data: {oops\n\n", THEN_HOLD}};
    struct world w;

    (void)state;
    RUN(&w, script, .max_retries = 3);
    assert_int_equal(w.watch.code, IPW_EPARSE);
    assert_non_null(strstr(w.watch.error, "a stream event is not JSON: at byte 1"));
    assert_int_equal(w.watch.facts[0].outcome, IPW_LM_BAD_REPLY);
    assert_int_equal(w.watch.facts[0].chunks, 1);
    assert_true(w.watch.had_reply[0]);
    world_close(&w);
}

static void n1_nobody_listens(void **state)
{
    static const struct script_line script[] = {{OK_STREAM, THEN_CLOSE}};
    struct world w;
    char *url, *want;
    int port, fd = server_listen(&port);

    (void)state;
    close(fd); /* the port was ours: nobody else listens on it */
    url = ipw_asprintf("http://127.0.0.1:%d/v1/chat/completions", port);
    RUN(&w, script, .base_url = url, .max_retries = 1);
    want = ipw_asprintf("connection refused: http://127.0.0.1:%d/v1: is the server running?", port);
    assert_string_equal(w.watch.error, want);
    assert_int_equal(w.watch.code, IPW_ENET);
    assert_int_equal(w.watch.started, 2);
    assert_int_equal(w.watch.facts[1].outcome, IPW_LM_REFUSED);
    assert_true(w.watch.retryable);
    world_close(&w);
    free(url);
    free(want);
}

/* Section 2: asked once more without it, told as an attempt, not counted, remembered. */
static void the_usage_option_is_refused(void **state)
{
    static const struct script_line script[] = {
        {ERROR("400 x", "unknown field: stream_options"), THEN_CLOSE}, {OK_STREAM, THEN_CLOSE}};
    struct world w;

    (void)state;
    RUN(&w, script, .max_retries = 0);
    assert_int_equal(w.watch.code, 0);
    assert_int_equal(w.watch.started, 2);
    assert_int_equal(w.watch.facts[0].outcome, IPW_LM_HTTP_ERROR);
    assert_non_null(strstr(w.watch.bodies[0], "stream_options"));
    assert_string_equal(w.watch.bodies[1],
                        "{\"messages\":[{\"content\":\"Hi\",\"role\":\"user\"}],\"model\":\"m\","
                        "\"stream\":true}");
    watch_release(&w.watch);
    world_start(&w);
    ipw_loop_run(w.loop);
    assert_int_equal(w.watch.code, 0);
    assert_int_equal(w.watch.started, 1);
    assert_null(strstr(w.watch.bodies[0], "stream_options"));
    world_close(&w);
}

static void keys_stay_out_of_messages(void **state)
{
    static const struct script_line script[] = {
        {ERROR("401 x", "Incorrect API key provided: sk-secret-key"), THEN_CLOSE}};
    struct world w;

    (void)state;
    RUN(&w, script, .api_key = "sk-secret-key");
    expect_error(&w, IPW_EHTTP,
                 "the server does not accept the API key (HTTP 401: Incorrect API key provided: "
                 "***)");
    world_close(&w);
}

/* N-13: the first attempt's answer never comes; the repeat is its own attempt. */
static void n13_a_deadline_passes(void **state)
{
    static const struct script_line script[] = {{NULL, THEN_HOLD}, {OK_STREAM, THEN_CLOSE}};
    struct world w;

    (void)state;
    RUN(&w, script, .max_retries = 1, .first_byte_ns = IPW_NS_PER_S);
    assert_int_equal(w.watch.code, 0);
    assert_int_equal(w.watch.started, 2);
    assert_int_equal(w.watch.facts[0].outcome, IPW_LM_TIMEOUT);
    assert_int_equal(w.watch.facts[0].times.first_token_ns, 0);
    assert_true(w.watch.facts[1].times.sent_ns - w.watch.facts[0].times.sent_ns >= IPW_NS_PER_S);
    assert_int_equal(w.server.closed_by_peer, 1);
    world_close(&w);
}

/* The limit of a call holds over its attempts and the waits between them. */
static void the_total_limit_is_the_calls(void **state)
{
    static const struct script_line script[] = {
        {HEAD("503 x", "text/plain") "Retry-After: 60\r\n\r\nbusy", THEN_CLOSE}};
    struct world w;

    (void)state;
    RUN(&w, script, .max_retries = 5, .total_ns = 30 * IPW_NS_PER_S);
    assert_int_equal(w.watch.started, 1);
    expect_error(&w, IPW_EHTTP, "HTTP 503: busy");
    world_close(&w);
}

UNIT(client)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream),
        cmocka_unit_test(answers_that_are_understood),
        cmocka_unit_test(done_and_no_end),
        cmocka_unit_test(repeats_until_it_works),
        cmocka_unit_test(n2_n6_n10_repeats_end),
        cmocka_unit_test(a_loading_server_is_waited_for),
        cmocka_unit_test(n5_what_the_server_asks_for),
        cmocka_unit_test(no_token_in_time),
        cmocka_unit_test(a_cut_answer_is_repeated_when_asked),
        cmocka_unit_test(a_dead_server_is_left_out),
        cmocka_unit_test(not_json_in_the_stream),
        cmocka_unit_test(n1_nobody_listens),
        cmocka_unit_test(the_usage_option_is_refused),
        cmocka_unit_test(keys_stay_out_of_messages),
        cmocka_unit_test(n13_a_deadline_passes),
        cmocka_unit_test(the_total_limit_is_the_calls),
    };
    return cmocka_run_group_tests(tests, global_init, global_release);
}
