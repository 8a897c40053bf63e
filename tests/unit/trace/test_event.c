#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "trace/event.h"
#include "unit/unit.h"

#define DATA "{\"list\":[{\"data\":{}}],\"text\":\"caf\xC3\xA9 } \\\"]\\\\\"}"

static const struct ipw_event samples[] = {
    {.kind = IPW_EV_RUN_START,
     .t_ns = 1,
     .query = -1,
     .payload = DATA,
     .payload_len = sizeof DATA - 1},
    {.kind = IPW_EV_QUERY_START, .t_ns = 5, .query = 0, .q = {.id = "q0000 \"x\"\n"}},
    {.kind = IPW_EV_LM_START,
     .t_ns = 7,
     .query = 3,
     .span = 1,
     .lm = {.attempt = 2, .model = "m/1"},
     .payload = DATA,
     .payload_len = sizeof DATA - 1},
    {.kind = IPW_EV_LM_END,
     .t_ns = INT64_MAX / 3,
     .query = 3,
     .span = 1,
     .lm = {.attempt = 2,
            .will_retry = true,
            .outcome = IPW_LM_CUT,
            .status = 200,
            .error = "cut after 3 events",
            .model = "m/1",
            .finish_reason = NULL,
            .times.sent_ns = 10,
            .times.first_byte_ns = 11,
            .times.first_token_ns = 12,
            .times.last_token_ns = 13,
            .input_tokens = 0,
            .output_tokens = -1,
            .cached_tokens = 4,
            .cache_write_tokens = 3,
            .cache_write_1h_tokens = 2,
            .reasoning_tokens = -1,
            .tokens_estimated = true,
            .calls = 2,
            .chunks = 3,
            .bytes_sent = 100,
            .bytes_received = -1,
            .malformed = true,
            .times.headers_ns = 21,
            .times.first_event_ns = 22,
            .times.first_text_ns = 23,
            .times.first_reasoning_ns = 24,
            .times.first_call_ns = 25,
            .times.second_token_ns = 26,
            .times.dns_ns = 27,
            .times.connect_ns = 28,
            .times.tls_ns = 29,
            .times.gaps = 30,
            .times.gap_p50_ns = 31,
            .times.gap_p90_ns = 32,
            .times.gap_p99_ns = 33,
            .times.gap_max_ns = INT64_MAX / 3,
            .times.server_queue_ns = 34,
            .times.server_prefill_ns = 35,
            .times.server_decode_ns = 36,
            .retry_wait_ns = 37,
            .endpoint = "http://127.0.0.1:1/v1",
            .reused = true,
            .resent = true,
            .cost.known = true,
            .cost.usd = 0.1,
            .cost.source = "provider"},
     .payload = DATA,
     .payload_len = sizeof DATA - 1},
    {.kind = IPW_EV_LM_END,
     .t_ns = 8,
     .query = 0,
     .span = 2,
     .lm = {.attempt = 1,
            .outcome = IPW_LM_OK,
            .finish_reason = "tool_calls",
            .input_tokens = 50,
            .output_tokens = 20,
            .cached_tokens = -1,
            .reasoning_tokens = -1,
            .chunks = -1,
            .bytes_sent = -1,
            .bytes_received = -1}},
    {.kind = IPW_EV_TOOL_START,
     .t_ns = 9,
     .query = 0,
     .span = 3,
     .tool = {.name = "calculator", .call_id = NULL, .argument_bytes = 17}},
    {.kind = IPW_EV_TOOL_END,
     .t_ns = 10,
     .query = 0,
     .span = 3,
     .tool = {.name = "calculator",
              .call_id = "call \"data\":{",
              .ok = false,
              .outcome = "timeout",
              .result_bytes = 0,
              .error = "60 s passed",
              .cut_bytes = 3,
              .child_cpu_ns = 2500000000,
              .child_peak_bytes = 4096,
              .child_provenance = "rusage"},
     .payload = DATA,
     .payload_len = sizeof DATA - 1},
    {.kind = IPW_EV_SPAN_START,
     .t_ns = 10,
     .query = 0,
     .span = 4,
     .tool = {.name = "retrieve", .kind = "event"},
     .payload = DATA,
     .payload_len = sizeof DATA - 1},
    {.kind = IPW_EV_SPAN_END,
     .t_ns = 11,
     .query = 0,
     .span = 4,
     .tool = {.name = "GET a",
              .kind = "http",
              .ok = true,
              .outcome = "ok",
              .result_bytes = 9,
              .error = "none"}},
    {.kind = IPW_EV_NOTE,
     .t_ns = 11,
     .query = 0,
     .span = 4,
     .payload = DATA,
     .payload_len = sizeof DATA - 1},
    {.kind = IPW_EV_QUERY_END,
     .t_ns = 12,
     .query = 0,
     .q = {.id = "q0000", .outcome = "max_turns", .completed = true, .error = "\x01"}},
    {.kind = IPW_EV_RUN_END, .t_ns = 13, .query = -1},
};
#define N_SAMPLES (sizeof samples / sizeof *samples)

static void assert_text(const char *a, const char *b)
{
    if (!a || !b) {
        assert_null(a);
        assert_null(b);
        return;
    }
    assert_string_equal(a, b);
}

static void assert_sorted(const struct ipw_json *node)
{
    const char *last = NULL;

    for (const struct ipw_json *m = ipw_json_first(node); m; m = ipw_json_next(m)) {
        if (ipw_json_kind(node) == IPW_JSON_OBJ) {
            if (last) assert_true(strcmp(last, ipw_json_key(m)) < 0);
            last = ipw_json_key(m);
        }
        assert_sorted(m);
    }
}

static void every_kind_reads_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        const struct ipw_event *in = &samples[i];
        struct ipw_buf text = IPW_BUF(IPW_MIB), again = IPW_BUF(IPW_MIB);
        struct ipw_json *doc;
        struct ipw_event out;
        struct ipw_err err;

        ipw_event_write(&text, in);
        assert_false(text.failed);
        assert_int_equal(text.data[text.len - 1], '\n');
        assert_null(memchr(text.data, '\n', text.len - 1));
        assert_int_equal(ipw_json_parse(&doc, text.data, text.len, NULL, &err), 0);
        assert_sorted(doc);
        assert_int_equal(ipw_event_read(&out, doc, &err), 0);
        assert_int_equal(out.kind, in->kind);
        assert_true(out.t_ns == in->t_ns);
        assert_int_equal(out.query, in->query);
        assert_int_equal(out.span, in->span);
        assert_text(out.lm.error, in->lm.error);
        assert_int_equal(out.lm.cost.known, in->lm.cost.known);
        assert_true(out.lm.cost.usd == in->lm.cost.usd);
        assert_text(out.lm.cost.source, in->lm.cost.source);
        assert_text(out.lm.model, in->lm.model);
        assert_text(out.tool.call_id, in->tool.call_id);
        assert_text(out.q.outcome, in->q.outcome);
        if (in->payload) {
            struct ipw_buf data = IPW_BUF(IPW_MIB);

            ipw_json_print(&data, ipw_json_get(doc, "data"));
            assert_string_equal(ipw_buf_str(&data), in->payload);
            ipw_buf_release(&data);
            ipw_event_take_payload(&out, text.data, text.len);
            assert_int_equal(out.payload_len, in->payload_len);
        } else {
            assert_null(ipw_json_get(doc, "data"));
        }
        ipw_event_write(&again, &out); /* every fact is in the line: it comes out the same */
        assert_string_equal(again.data, text.data);
        ipw_json_free(doc);
        ipw_buf_release(&text);
        ipw_buf_release(&again);
    }
}

static void unknown_is_null(void **state)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_json *doc;

    (void)state;
    ipw_event_write(&text, &samples[4]);
    assert_int_equal(ipw_json_parse(&doc, text.data, text.len, NULL, NULL), 0);
    assert_int_equal(ipw_json_kind(ipw_json_get(doc, "sent_ns")), IPW_JSON_NULL);
    assert_int_equal(ipw_json_kind(ipw_json_get(doc, "cached_tokens")), IPW_JSON_NULL);
    assert_int_equal(ipw_json_int(ipw_json_get(doc, "input_tokens"), -7), 50);
    ipw_json_free(doc);
    ipw_buf_release(&text);
}

static void refuses_what_is_no_event(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"[]", "an event must be a JSON object"},
        {"{\"t_ns\":1}", "event"},
        {"{\"event\":\"note\"}", "t_ns"},
        {"{\"event\":\"note\",\"t_ns\":\"1\"}", "t_ns"},
        {"{\"event\":\"lunch\",\"t_ns\":1}", "event: unknown kind \"lunch\""},
        {"{\"event\":\"lm_inference_end\",\"outcome\":\"odd\",\"t_ns\":1}",
         "outcome: unknown value \"odd\""},
        {"{\"event\":\"lm_inference_end\",\"t_ns\":1}", "outcome"},
        {"{\"event\":\"tool_call_end\",\"t_ns\":1}", "name"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_json *doc;
        struct ipw_event out;
        struct ipw_err err = {0};

        assert_int_equal(ipw_json_parse(&doc, cases[i].line, strlen(cases[i].line), NULL, NULL), 0);
        assert_int_equal(ipw_event_read(&out, doc, &err), IPW_EPARSE);
        assert_non_null(strstr(err.text, cases[i].message));
        ipw_json_free(doc);
    }
}

/* Not a test of time: prints what one event costs, for the record. */
static void cost_of_an_event(void **state)
{
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);
    int64_t start = ipw_cpu_self_ns();
    int n = 100000;

    (void)state;
    for (int i = 0; i < n; i++) {
        if (text.len > IPW_MIB) ipw_buf_clear(&text);
        ipw_event_write(&text, &samples[4]);
    }
    print_message("lm_inference_end: %.0f ns a line\n", (double)(ipw_cpu_self_ns() - start) / n);
    assert_false(text.failed);
    ipw_buf_release(&text);
}

UNIT(event)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_reads_back),
        cmocka_unit_test(unknown_is_null),
        cmocka_unit_test(refuses_what_is_no_event),
        cmocka_unit_test(cost_of_an_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
