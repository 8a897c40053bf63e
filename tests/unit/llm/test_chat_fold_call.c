/* Tool calls out of deltas, by the rules at the head of src/llm/chat_fold_call.c. */
#include "llm_support.h"
#include "unit/unit.h"

#define T(calls) "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[" calls "]}}]}"
#define END      "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}"
#define OK_      "ok finish=tool_calls/3"

static const struct {
    const char *what;
    const char *events[8];
    const char *want;
} ROWS[] = {
    {"5.1 indexes are keys, not positions: gaps, a start at 1, interleaved",
     {T("{\"index\":1,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}"),
      T("{\"index\":7,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}"),
      T("{\"index\":1,\"function\":{\"arguments\":\"}\"}}"),
      T("{\"index\":7,\"function\":{\"arguments\":\"}\"}}"), END},
     OK_ " chunks=4 call=[a f {}] call=[b g {}]"},
    {"5.2 the same index with another id is another call (Ollama)",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"),
      T("{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"), END},
     OK_ " chunks=2 call=[a f {}] call=[b f {}]"},
    {"5.2 all in one chunk with index 0",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}},"
        "{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"),
      END},
     OK_ " chunks=1 call=[a f {\"x\":1}] call=[b f {}]"},
    {"5.2 the same id again, an empty one and null change nothing",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}"),
      T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":null,\"arguments\":\"\\\"k\\\":\"}}"),
      T("{\"index\":0,\"id\":\"\",\"function\":{\"arguments\":\"1\"}}"),
      T("{\"index\":0,\"id\":null,\"function\":{\"name\":\"\",\"arguments\":\"}\"}}"), END},
     OK_ " chunks=4 call=[a f {\"k\":1}]"},
    {"5.2 back to the first of two with one index, by its id",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}"),
      T("{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}"),
      T("{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"}\"}}"),
      T("{\"index\":0,\"function\":{\"arguments\":\"}\"}}"), END},
     OK_ " chunks=4 call=[a f {}] call=[b g {}]"},
    {"5.3 no index: a new id begins a call, nothing appends to the last",
     {T("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}"),
      T("{\"function\":{\"arguments\":\"}\"}}"),
      T("{\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"), END},
     OK_ " chunks=3 call=[a f {}] call=[b f {}]"},
    {"5.3 no index and no id: a name begins a call (also the same name)",
     {T("{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"),
      T("{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"), END},
     OK_ " chunks=2 call=[call_1 f {}] call=[call_2 f {}]"},
    {"5.3 no index, the id repeated with each fragment",
     {T("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}"),
      T("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"}\"}}"), END},
     OK_ " chunks=2 call=[a f {}]"},
    {"5.4 no id ever: one is made up",
     {T("{\"index\":0,\"id\":null,\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"), END},
     OK_ " chunks=1 call=[call_1 f {}]"},
    {"5.4 a late id is kept",
     {T("{\"index\":0,\"function\":{\"name\":\"f\"}}"),
      T("{\"index\":0,\"id\":\"late\",\"function\":{\"arguments\":\"{}\"}}"), END},
     OK_ " chunks=2 call=[late f {}]"},
    {"5.4 a made-up id takes no other's, a repeated id is replaced (J-6)",
     {T("{\"index\":0,\"function\":{\"name\":\"f\"}}"),
      T("{\"index\":1,\"id\":\"call_1\",\"function\":{\"name\":\"g\"}}"),
      T("{\"index\":2,\"id\":\"call_1\",\"function\":{\"name\":\"h\"}}"), END},
     OK_ " chunks=3 call=[call_4 f {}] call=[call_1 g {}] call=[call_3 h {}]"},
    {"5.5 the first name counts",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}"),
      T("{\"index\":0,\"function\":{\"name\":\"other\",\"arguments\":\"}\"}}"), END},
     OK_ " chunks=2 call=[a f {}]"},
    {"5.6 arguments null or absent are nothing",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":null}}"),
      T("{\"index\":0,\"function\":{\"arguments\":null}}"), T("{\"index\":0,\"function\":null}"),
      T("{\"index\":0}"), END},
     OK_ " chunks=1 call=[a f {}]"},
    {"5.6 arguments as an object are the whole",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":"
        "{\"b\":[1,2.50],\"a\":\"x\"}}}"),
      END},
     OK_ " chunks=1 call=[a f {\"a\":\"x\",\"b\":[1,2.50]}]"},
    {"5.7 type may come or not",
     {T("{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\"}}"),
      T("{\"index\":0,\"type\":null,\"function\":{\"arguments\":\"{}\"}}"), END},
     OK_ " chunks=2 call=[a f {}]"},
    {"5 arguments that never parse are kept as written",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"c\"}}"),
      "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}"},
     "ok finish=length/2 chunks=1 call=[a f {\"c]"},
    {"5 blank arguments are {}",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\" \\n\"}}"), END},
     OK_ " chunks=1 call=[a f {}]"},
    {"5 an element that says nothing is no call", {T("{\"index\":0},{},7,null"), END}, OK_},
    {"5 calls with finish stop, and text beside them",
     {"{\"choices\":[{\"delta\":{\"content\":\"hm\",\"tool_calls\":[{\"index\":0,\"id\":\"a\","
      "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}"},
     "ok text=[hm] finish=stop/1 chunks=1 call=[a f {}]"},
    {"5 tool_calls null", {"{\"choices\":[{\"delta\":{\"tool_calls\":null}}]}", END}, OK_},
    {"5 a fragment before any call (J-6)",
     {T("{\"function\":{\"arguments\":\"{}\"}}"), END},
     OK_ " chunks=1 call=[call_1  {}]"},
    {"5 identical calls are two calls",
     {T("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"),
      T("{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"), END},
     OK_ " chunks=2 call=[a f {}] call=[b f {}]"},
};

static void j6_calls_follow_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        expect_text(ROWS[i].what, fold_events(ROWS[i].events, COUNT(ROWS[i].events), false),
                    ROWS[i].want);
        expect_text(ROWS[i].what, fold_events(ROWS[i].events, COUNT(ROWS[i].events), true),
                    ROWS[i].want);
        expect_at_every_split(ROWS[i].what, ROWS[i].events, COUNT(ROWS[i].events), ROWS[i].want);
    }
}

static void calls_have_a_ceiling(void **state)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
    int rc = 0, made = 0;

    (void)state;
    while (rc >= 0 && made < 5000) {
        char *event = ipw_asprintf(T("{\"index\":%d,\"id\":\"x%d\"}"), made, made);

        rc = ipw_chat_fold_event(fold, "", event, strlen(event), NULL);
        if (rc >= 0) made++;
        free(event);
    }
    assert_int_equal(rc, IPW_ELIMIT);
    assert_int_equal(made, 1024);
    ipw_chat_fold_free(fold);
}

static void captured_calls(void **state)
{
    struct ipw_buf stream;
    struct events events;
    char *got;

    (void)state;
    slurp(&stream, "21-tools-stream", ".sse");
    events_of(&events, stream.data);
    got = fold_events((const char *const *)events.data, events.n, false);
    assert_non_null(strstr(got, "ok text=[into explos] finish=tool_calls/3 prompt=309 "
                                "completion=48 total=357 cached=308 "));
    assert_non_null(strstr(got, " call=[2ocVt3tZ1RQ8xNcRxSlttmf9OQXEnt7U get_weather {\"city\""));
    free(got);
    events_free(&events);
    ipw_buf_release(&stream);

    slurp(&stream, "22-tools-stream-parallel", ".sse");
    events_of(&events, stream.data);
    got = fold_events((const char *const *)events.data, events.n, false);
    assert_non_null(strstr(
        got,
        " call=[Y8fVmIPGtNwaCQzc3DoU77yaiWqhnuSh read_file {\"path\":\" border Year designed\"}]"
        " call=[qi7jDB8RKJTc0sVgaMJGaojEsrsd3slj read_file {\"path\" :\" exceed Labor\"}]"
        " call=[dOxlDmOuaWGTz8sombF11CzYFxtym1YK read_file"
        " {\"path\":\" white exceed Mer Harry\"}]"
        " call=[sMSr9G0V9PPG6RPMk7DNmPi4xMnU5IMS read_file"
        " {\"path\" :\" firm<tool_call> unless\"}]"
        " call=[VXc57IJz45FJOR8dU5aJbxtniLU4iTa4 read_file"
        " {\"path\":\"<tool_call> Jul assum\"}] done"));
    free(got);
    events_free(&events);
    ipw_buf_release(&stream);
}

UNIT(chat_fold_call)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(j6_calls_follow_the_reference),
        cmocka_unit_test(calls_have_a_ceiling),
        cmocka_unit_test(captured_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
