/* Streams and whole answers as different servers send them, row by row. */
#include "llm_support.h"
#include "unit/unit.h"

/* A chunk of choice 0 with this delta, and one with a finish reason. */
#define D(delta)   "{\"choices\":[{\"index\":0,\"delta\":" delta "}]}"
#define F(word)    "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" word "\"}]}"
#define U(usage)   "{\"choices\":[],\"usage\":" usage "}"
#define TEXT(text) D("{\"content\":\"" text "\"}")
#define DONE       "[DONE]"

struct row {
    const char *what;
    const char *events[10];
    const char *want;
};

static const struct row ROWS[] = {
    {"1.6 complete with a finish reason",
     {TEXT("a"), F("stop")},
     "ok text=[a] finish=stop/1 chunks=1"},
    {"1.6 complete with [DONE]", {TEXT("a"), DONE}, "ok text=[a] chunks=1 done"},
    {"1.6 end without either is cut", {TEXT("a"), TEXT("b")}, "network text=[ab] chunks=2"},
    {"1.6 nothing at all is cut", {NULL}, "network"},
    {"1.6 N-10 data after [DONE] does not count",
     {TEXT("a"), DONE, TEXT("b"), "not json"},
     "ok text=[a] chunks=1 done"},
    {"1.5 chunks of unknown shape are ignored",
     {"{}", "[]", "7", "null", "{\"choices\":null}", "{\"choices\":7}", "{\"choices\":[7]}",
      "{\"object\":\"ping\"}", TEXT("a"), F("stop")},
     "ok text=[a] finish=stop/1 chunks=1"},
    {"1.5 blank data is ignored", {"", "  ", TEXT("a"), " [DONE] "}, "ok text=[a] chunks=1 done"},
    {"1.5 data that is not JSON is refused",
     {TEXT("a"), "{\"choices\":["},
     "parse text=[a] chunks=1"},
    {"1.7 empty choices do not mean usage",
     {"{\"choices\":[]}", TEXT("a"), F("stop")},
     "ok text=[a] finish=stop/1 chunks=1"},
    {"1.7 usage does not mean the end",
     {U("{\"prompt_tokens\":1}"), TEXT("a"), F("stop")},
     "ok text=[a] finish=stop/1 prompt=1 chunks=1"},
    {"4 role-only chunks, null and empty content",
     {D("{\"role\":\"assistant\",\"content\":null}"),
      D("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}"),
      D("{\"role\":\"assistant\"}"), TEXT("a"), F("stop")},
     "ok text=[a] finish=stop/1 chunks=1"},
    {"4 role in every chunk (older Ollama)",
     {D("{\"role\":\"assistant\",\"content\":\"a\"}"),
      D("{\"role\":\"assistant\",\"content\":\"b\"}"), F("stop")},
     "ok text=[ab] finish=stop/1 chunks=2"},
    {"4 the finish chunk may carry text",
     {"{\"choices\":[{\"delta\":{\"content\":\"end\"},\"finish_reason\":\"stop\","
      "\"stop_reason\":null,\"index\":0}]}"},
     "ok text=[end] finish=stop/1 chunks=1"},
    {"4 interim finish reasons null, absent, empty",
     {"{\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}",
      "{\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"\"}]}",
      "{\"choices\":[{\"delta\":{\"content\":\"c\"}}]}"},
     "network text=[abc] chunks=3"},
    {"4 usage after the finish is still read",
     {TEXT("a"), F("stop"), U("{\"prompt_tokens\":3,\"completion_tokens\":1,\"total_tokens\":4}")},
     "ok text=[a] finish=stop/1 prompt=3 completion=1 total=4 chunks=1"},
    {"4 usage on the finish chunk",
     {"{\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],"
      "\"usage\":{\"completion_tokens\":1}}"},
     "ok text=[a] finish=stop/1 completion=1 chunks=1"},
    {"4 growing usage: the last non-null one counts",
     {"{\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"completion_tokens\":1}}",
      "{\"choices\":[{\"delta\":{\"content\":\"b\"}}],\"usage\":{\"completion_tokens\":2}}",
      "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}"},
     "ok text=[ab] finish=stop/1 completion=2 chunks=2"},
    {"4 SGLang: a chunk with sglext before usage",
     {TEXT("a"), F("stop"), "{\"choices\":[],\"sglext\":{\"x\":1}}", U("{\"completion_tokens\":1}"),
      DONE},
     "ok text=[a] finish=stop/1 completion=1 chunks=1 done"},
    {"4 OpenAI: obfuscation and service_tier",
     {"{\"choices\":[{\"delta\":{\"content\":\"a\"},\"index\":0}],\"obfuscation\":\"x1\","
      "\"service_tier\":\"default\",\"usage\":null}",
      F("stop")},
     "ok text=[a] finish=stop/1 chunks=1"},
    {"4 a whole answer as a single event",
     {"{\"choices\":[{\"index\":0,\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}"},
     "ok text=[a] finish=stop/1 chunks=1"},
    {"4 a last chunk with the whole message again is not added",
     {TEXT("a"),
      "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}"},
     "ok text=[a] finish=stop/1 chunks=1"},
    {"4 content in parts",
     {D("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"x\"},{\"text\":\"b\"}]}"),
      F("stop")},
     "ok text=[ab] finish=stop/1 chunks=1"},
    {"2 n>1: choice 0 only, the others counted",
     {"{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}},"
      "{\"index\":1,\"delta\":{\"content\":\"x\"}}]}",
      "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"y\"},\"finish_reason\":\"stop\"}]}"},
     "network text=[a] chunks=1 ignored=2"},
    {"3 ids and models: the first that is not empty",
     {"{\"id\":\"\",\"model\":\"\",\"choices\":[]}", "{\"model\":\"m\",\"choices\":[]}",
      "{\"model\":\"n\",\"choices\":[]}", F("stop")},
     "ok finish=stop/1 model=m"},
    {"6 usage null", {TEXT("a"), F("stop"), U("null")}, "ok text=[a] finish=stop/1 chunks=1"},
    {"6 J-7 negative, float, null, text, 10^18: unknown, not 0",
     {F("stop"), U("{\"prompt_tokens\":-1,\"completion_tokens\":1.5,\"total_tokens\":null,"
                   "\"prompt_tokens_details\":{\"cached_tokens\":1000000000000000000},"
                   "\"completion_tokens_details\":{\"reasoning_tokens\":\"7\"}}")},
     "ok finish=stop/1"},
    {"6 J-7 a whole float counts",
     {F("stop"), U("{\"completion_tokens\":5.0}")},
     "ok finish=stop/1 completion=5"},
    {"6 J-7 10^12 at most",
     {F("stop"), U("{\"prompt_tokens\":1000000000000,"
                   "\"completion_tokens\":1000000000001}")},
     "ok finish=stop/1 prompt=1000000000000"},
    {"6 OpenAI and vLLM details",
     {F("stop"), U("{\"prompt_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":4},"
                   "\"completion_tokens_details\":{\"reasoning_tokens\":2}}")},
     "ok finish=stop/1 prompt=9 cached=4 thought=2"},
    {"6 SGLang: reasoning_tokens at the top of usage, details null",
     {F("stop"), U("{\"reasoning_tokens\":6,\"prompt_tokens_details\":null}")},
     "ok finish=stop/1 thought=6"},
    {"6 DeepSeek: prompt_cache_hit_tokens",
     {F("stop"), U("{\"prompt_cache_hit_tokens\":8}")},
     "ok finish=stop/1 cached=8"},
    {"6 no usage but timings: prompt is cache_n + prompt_n",
     {TEXT("a"), "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],"
                 "\"timings\":{\"cache_n\":12,\"prompt_n\":1,\"predicted_n\":3}}"},
     "ok text=[a] finish=stop/1 prompt=13 completion=3 cached=12 chunks=1 "
     "timings={\"cache_n\":12,\"predicted_n\":3,\"prompt_n\":1}"},
    {"6 usage that says 0 cached tokens, and timings that say more",
     {TEXT("a"), "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],"
                 "\"usage\":{\"prompt_tokens_details\":{\"cached_tokens\":0}},"
                 "\"timings\":{\"cache_n\":12,\"prompt_n\":1,\"predicted_n\":3}}"},
     "ok text=[a] finish=stop/1 prompt=13 completion=3 cached=0 chunks=1 "
     "timings={\"cache_n\":12,\"predicted_n\":3,\"prompt_n\":1}"},
    {"9 vLLM's metrics are kept",
     {F("stop"), "{\"choices\":[],\"metrics\":{\"mean_itl_ms\":1.25}}"},
     "ok finish=stop/1 timings={\"mean_itl_ms\":1.25}"},
    {"9 metrics null", {F("stop"), "{\"choices\":[],\"metrics\":null}"}, "ok finish=stop/1"},
    {"7 reasoning_content",
     {D("{\"reasoning_content\":\"r\"}"), TEXT("a"), F("stop")},
     "ok text=[a] reasoning=[r] finish=stop/1 chunks=2"},
    {"7 reasoning",
     {D("{\"reasoning\":\"r\",\"content\":\"\"}"), TEXT("a"), F("stop")},
     "ok text=[a] reasoning=[r] finish=stop/1 chunks=2"},
    {"7 both names at once are one text",
     {D("{\"reasoning\":\"r\",\"reasoning_content\":\"r\"}"), F("stop")},
     "ok reasoning=[r] finish=stop/1 chunks=1"},
    {"7 both names, one empty or null",
     {D("{\"reasoning\":\"a\",\"reasoning_content\":\"\"}"),
      D("{\"reasoning\":null,\"reasoning_content\":\"b\"}"), F("stop")},
     "ok reasoning=[ab] finish=stop/1 chunks=2"},
    {"7 an empty answer is complete",
     {D("{\"reasoning\":\"r\"}"), F("length")},
     "ok reasoning=[r] finish=length/2 chunks=1"},
    {"7 finish words", {F("tool_calls")}, "ok finish=tool_calls/3"},
    {"7 the old word", {F("function_call")}, "ok finish=function_call/3"},
    {"7 filter", {F("content_filter")}, "ok finish=content_filter/4"},
    {"7 unknown words are kept", {F("repetition")}, "ok finish=repetition/5"},
    {"7 a word another interface uses", {F("end_turn")}, "ok finish=end_turn/5"},
    {"8 error object, then close",
     {TEXT("a"), "{\"error\":{\"code\":500,\"message\":\"boom\","
                 "\"type\":\"server_error\"}}"},
     "http text=[a] chunks=1 error=[boom] type=server_error status=500"},
    {"8 error object, then [DONE]",
     {"{\"error\":{\"message\":\"boom\",\"type\":null,\"param\":null,\"code\":\"bad\"}}", DONE},
     "http done error=[boom] type=bad"},
    {"8 error after a finish reason is an error",
     {TEXT("a"), F("stop"), "{\"error\":\"late\"}"},
     "http text=[a] finish=stop/1 chunks=1 error=[late]"},
    {"8 (c) at top level",
     {"{\"object\":\"error\",\"message\":\"m\",\"type\":\"T\",\"code\":404}"},
     "http error=[m] type=T status=404"},
    {"8 LM Studio: event error",
     {"!{\"error\":{\"message\":\"m\"},\"message\":\"m\"}"},
     "http error=[m]"},
    {"8 event error that is only text",
     {TEXT("a"), "!it broke"},
     "http text=[a] chunks=1 error=[it broke]"},
    {"8 event error of another shape", {"!{\"why\":\"x\"}"}, "http error=[{\"why\":\"x\"}]"},
    {"8 the first error is kept",
     {"{\"error\":\"one\"}", "{\"error\":\"two\"}"},
     "http error=[one]"},
    {"8 \"error\": null and \"\" are none",
     {"{\"error\":null}", "{\"error\":\"\"}", F("stop")},
     "ok finish=stop/1"},
    {"8 error object without a message",
     {"{\"error\":{\"x\":1}}"},
     "http error=[{\"error\":{\"x\":1}}]"},
    {"8 Ollama's lost error is a cut",
     {TEXT("a"), "{\"id\":\"chatcmpl-1\",\"model\":\"\",\"choices\":[{\"index\":0,\"delta\":"
                 "{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}"},
     "network text=[a] chunks=1"},
    {"1.4 J-1 lone surrogates are repaired and counted",
     {TEXT("a\\ud800b"), F("stop")},
     "ok text=[a\xef\xbf\xbd"
     "b] finish=stop/1 chunks=1 repairs=1"},
    {"3 duplicate keys: the last one wins",
     {"{\"choices\":[{\"delta\":{\"content\":\"x\",\"content\":\"a\"}}]}", F("stop")},
     "ok text=[a] finish=stop/1 chunks=1"},
};

static void streams_follow_the_reference(void **state)
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

static void each_event_says_what_it_carried(void **state)
{
    static const struct {
        const char *data;
        int seen;
    } rows[] = {
        {TEXT("a"), IPW_SEEN_TEXT},
        {TEXT("b"), IPW_SEEN_TEXT},
        {TEXT(""), 0},
        {D("{\"role\":\"assistant\",\"content\":null}"), 0},
        {D("{\"reasoning\":\"a\"}"), IPW_SEEN_REASONING},
        {D("{\"reasoning\":\"a\",\"content\":\"b\"}"), IPW_SEEN_REASONING | IPW_SEEN_TEXT},
        {D("{\"tool_calls\":[]}"), 0},
        {D("{\"tool_calls\":[{\"index\":0}]}"), 0},
        {D("{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\"}}]}"), IPW_SEEN_CALL},
        {D("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\"}}]}"), IPW_SEEN_CALL},
        {"{\"choices\":[{\"delta\":{\"content\":\"z\"},\"finish_reason\":\"stop\"}],"
         "\"usage\":{}}",
         IPW_SEEN_TEXT | IPW_SEEN_FINISH | IPW_SEEN_USAGE},
        {"{\"unknown\":1}", 0},
        {"{\"error\":\"e\"}", IPW_SEEN_ERROR},
        {DONE, IPW_SEEN_DONE},
        {TEXT("late"), 0},
    };
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int seen = ipw_chat_fold_event(fold, "", rows[i].data, strlen(rows[i].data), NULL);
        if (seen != rows[i].seen) fail_msg("%s: %d, not %d", rows[i].data, seen, rows[i].seen);
    }
    ipw_chat_fold_free(fold);
}

static void whole_answers(void **state)
{
    static const struct {
        const char *what, *body, *want;
    } rows[] = {
        {"3 keys in any order",
         "{\"choices\":[{\"finish_reason\":\"stop\",\"message\":{\"content\":\"a\"},"
         "\"index\":0}],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1},\"model\":\"m\"}",
         "ok text=[a] finish=stop/1 prompt=2 completion=1 chunks=1 model=m"},
        {"3 content null beside calls",
         "{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"id\":\"i\",\"function\":"
         "{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}",
         "ok finish=tool_calls/3 chunks=1 call=[i f {}]"},
        {"3 no finish reason: a whole body is complete",
         "{\"choices\":[{\"message\":{\"content\":\"a\"}}]}", "ok text=[a] chunks=1"},
        {"3 an error object with status 200", "{\"error\":{\"message\":\"m\",\"code\":429}}",
         "http error=[m] type=429 status=429"},
        {"8 (c) with status 200",
         "{\"object\":\"error\",\"message\":\"m\",\"type\":\"T\",\"code\":40303}",
         "http error=[m] type=T"},
        {"8 the old function_call",
         "{\"choices\":[{\"message\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
         "\"finish_reason\":\"function_call\"}]}",
         "ok finish=function_call/3 chunks=1 call=[call_1 f {}]"},
        {"not the protocol", "{\"hello\":1}", "parse"},
        {"not the protocol: no choice", "{\"choices\":[]}", "parse"},
        {"not JSON", "<html>", "parse"},
        {"empty", "", "parse"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_text(rows[i].what, fold_whole(rows[i].body), rows[i].want);
}

static void captured_whole_answers(void **state)
{
    static const struct {
        const char *file, *want; /* up to the timings */
    } rows[] = {
        {"10-nonstream", "ok text=[ Pac Hist during adm Wind phase hall Labor Labor Toronto"
                         "<tool_call> exercise] finish=length/2 prompt=13 completion=12 total=25 "
                         "cached=12 chunks=1 model=tiny-agent timings={"},
        {"15-stop-word", "ok text=[ Pac Hist during adm Wind phas] finish=stop/1 prompt=13 "
                         "completion=6 total=19 cached=12 chunks=1 model=tiny-agent timings={"},
        {"18-logprobs", "ok text=[ Pac Hist] finish=length/2 prompt=13 completion=2 total=15 "
                        "cached=12 chunks=1 model=tiny-agent timings={"},
        {"19-json-schema", "ok text=[{\"ok\": true,\"name\" :\" border Wind de\",\"n\":55}] "
                           "finish=stop/1 prompt=13 completion=26 total=39 cached=12 chunks=1 "
                           "model=tiny-agent timings={"},
        {"20-tools-nonstream", "ok text=[active Number] finish=tool_calls/3 prompt=309 "
                               "completion=85 total=394 cached=0 chunks=1 model=tiny-tools "
                               "timings={"},
        {"33-unknown-model", "ok text=[ promot Wind] finish=length/2 prompt=13 completion=2 "
                             "total=15 cached=12 chunks=1 model=tiny-agent timings={"},
        {"61-reasoning-nonstream", "ok text=[ unless committed magazine hall Windows<tool_call> "},
    };
    struct ipw_buf body;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *got;

        slurp(&body, rows[i].file, ".json");
        got = fold_whole(body.data);
        if (strncmp(got, rows[i].want, strlen(rows[i].want)) != 0)
            fail_msg("%s\n  got:  %s\n  want: %s", rows[i].file, got, rows[i].want);
        free(got);
        ipw_buf_release(&body);
    }
    slurp(&body, "20-tools-nonstream", ".json");
    {
        char *got = fold_whole(body.data);
        assert_non_null(strstr(got, " call=[xOwL67zZPYjq6t0xKQ06piXRJ5Orm7cp get_weather "
                                    "{\"city\":\"Rome\",\"days\":6}] "
                                    "call=[WrITOO3E3SebkXVB26oIDx4LUvaLZaBT read_file "
                                    "{\"path\" :\"<tool_call><tool_call>\"}]"));
        free(got);
    }
    ipw_buf_release(&body);
}

static void a_reply_has_a_ceiling(void **state)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(10);
    struct ipw_chat_reply reply;
    struct ipw_err err = {0};
    const char *big = TEXT("0123456789"), *more = TEXT("x");

    (void)state;
    assert_int_equal(ipw_chat_fold_event(fold, "", big, strlen(big), &err), IPW_SEEN_TEXT);
    assert_int_equal(ipw_chat_fold_event(fold, "", more, strlen(more), &err), IPW_ELIMIT);
    assert_string_equal(err.text, "the reply is larger than 10 bytes");
    assert_int_equal(ipw_chat_fold_end(fold, &reply, &err), IPW_ENET);
    assert_string_equal(reply.text.data, "0123456789");
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
}

/* Servers speak them beside chat completions; each is named, not called cut. */
static void other_protocols(void **state)
{
    static const struct {
        const char *event, *name;
    } cases[] = {
        {"{\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}", "a /v1/responses "},
        {"{\"type\":\"response.output_text.delta\",\"delta\":\"a\"}", "a /v1/responses "},
        {"{\"object\":\"response\",\"output\":[]}", "a /v1/responses "},
        {"{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{}}}",
         "an Anthropic Messages "},
        {"{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}",
         "an Anthropic Messages "},
        {"{\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}", "an Anthropic Messages "},
        {"{\"object\":\"text_completion\",\"choices\":[{\"text\":\"a\",\"index\":0}]}",
         "a /v1/completions "},
        {"{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"a\"},\"done\":false}",
         "an Ollama /api/chat "},
        {"{\"type\":\"ping\"}", NULL},
        {"{\"choices\":[],\"type\":\"message\"}", NULL},
        {TEXT("a"), NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_chat_fold *fold = ipw_chat_fold_new(1000);
        const char *event = cases[i].event;
        struct ipw_err err = {0};
        int rc = ipw_chat_fold_event(fold, "", event, strlen(event), &err);

        if (cases[i].name) {
            assert_int_equal(rc, IPW_EPARSE);
            if (!strstr(err.text, cases[i].name) ||
                !strstr(err.text, "stream, not chat completions"))
                fail_msg("%s: %s", event, err.text);
            assert_int_equal(ipw_chat_fold_whole(fold, event, strlen(event), &err), IPW_EPARSE);
            assert_non_null(strstr(err.text, "answer, not chat completions"));
        } else if (rc < 0) {
            fail_msg("%s: %s", event, err.text);
        }
        ipw_chat_fold_free(fold);
    }
}

/* What was understood so far is not given up for an event of another kind. */
static void other_protocols_in_between(void **state)
{
    static const char *const events[] = {TEXT("a"), "{\"type\":\"response.done\"}",
                                         "{\"type\":\"message_stop\"}", F("stop")};
    struct ipw_chat_fold *fold = ipw_chat_fold_new(1000);
    struct ipw_chat_reply reply;

    (void)state;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        assert_true(ipw_chat_fold_event(fold, "", events[i], strlen(events[i]), NULL) >= 0);
    assert_int_equal(ipw_chat_fold_end(fold, &reply, NULL), 0);
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
}

UNIT(chat_fold)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_follow_the_reference),
        cmocka_unit_test(each_event_says_what_it_carried),
        cmocka_unit_test(other_protocols),
        cmocka_unit_test(other_protocols_in_between),
        cmocka_unit_test(whole_answers),
        cmocka_unit_test(captured_whole_answers),
        cmocka_unit_test(a_reply_has_a_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
