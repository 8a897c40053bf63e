/* The scanner gives what the full path gives: over all captures, over other servers' dialects,
 * over every split of the bytes, and over chunks with changed bytes. */
#include "llm_support.h"

#include <stdio.h>

#include "unit/unit.h"

#define CHUNK(delta)                                                                               \
    "data: {\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"created\":1,"                    \
    "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":" delta ",\"logprobs\":null,"             \
    "\"finish_reason\":null}]}\n\n"

/* What other servers send, after the reference. */
static const char *const DIALECTS[] = {
    /* text with every simple escape, \u escapes, raw UTF-8, surrogates */
    CHUNK("{\"content\":\"a\"}") CHUNK("{\"content\":\"b\"}")
        CHUNK("{\"content\":\"\\n\\t\\\"\\\\\\/\\b\\f\\r\"}")
            CHUNK("{\"content\":\"\\u00e9\\u20ac\\u0041\\uFFFD\"}")
                CHUNK("{\"content\":\"\xc3\xa9\xf0\x9f\x99\x82\"}")
                    CHUNK("{\"content\":\"\\ud83d\\ude42\"}") CHUNK("{\"content\":\"\\ud83d\"}")
                        CHUNK("{\"content\":\"\\u0000\"}") CHUNK("{\"content\":\"\xff\xc3\"}")
                            CHUNK("{\"content\":\"\"}")
                                CHUNK("{\"content\":\"end\"}") "data: [DONE]\n\n",
    /* reasoning under both names, then content, then calls without an index */
    CHUNK("{\"reasoning\":\"a\",\"reasoning_content\":\"\"}") CHUNK(
        "{\"reasoning\":\"b\",\"reasoning_content\":\"\"}")
        CHUNK("{\"reasoning\":\"b\",\"reasoning_content\":\"c\"}") CHUNK(
            "{\"reasoning\":\"b\",\"reasoning_content\":\"d\"}")
            CHUNK("{\"reasoning\":\"e\",\"reasoning_content\":\"d\"}") CHUNK(
                "{\"content\":\"x\",\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}")
                CHUNK("{\"content\":\"y\",\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}") CHUNK(
                    "{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}")
                    CHUNK("{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"}\"}}]}")
                        CHUNK("{\"tool_calls\":[{\"function\":{\"arguments\":\"1\"}}]}")
                            CHUNK("{\"tool_calls\":[{\"function\":{\"arguments\":\"2\"}}]}")
                                CHUNK("{\"tool_calls\":[{\"id\":\"i\",\"function\":{\"arguments\":"
                                      "\"3\"}}]}") CHUNK("{\"tool_calls\":[{\"id\":\"i\","
                                                         "\"function\":{\"arguments\":\"4\"}}]}"),
    /* calls that all have index 0; arguments as an object, then text again */
    CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":"
          "\"{\"}}]}") CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":"
                             "\"f\",\"arguments\":\"}\"}}]}")
        CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"f\","
              "\"arguments\":\"{"
              "\"}}]}") CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]}")
            CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\" \"}}]}")
                CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":{\"x\":1}}}]}")
                    CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\" \"}}]}"),
    /* the same text outside the place it was learned from; duplicate and escaped keys; n > 1 */
    "data: {\"x\":{\"content\":\"no\"},\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
    "data: {\"x\":{\"content\":\"no\"},\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"content\":\"b\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"c\",\"content\":\"b\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"c\\u006fntent\":\"b\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"d\",\"c\\u006fntent\":\"b\"}}]}\n\n"
    "data: "
    "{\"choices\":[{\"delta\":{\"content\":\"a\"}},{\"index\":1,\"delta\":{\"content\":\"q\"}}]}"
    "\n\n"
    "data: "
    "{\"choices\":[{\"delta\":{\"content\":\"b\"}},{\"index\":1,\"delta\":{\"content\":\"q\"}}]}"
    "\n\n"
    "data: "
    "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"q\"}},{\"delta\":{\"content\":\"a\"}}]}"
    "\n\n"
    "data: "
    "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"q\"}},{\"delta\":{\"content\":\"b\"}}]}"
    "\n\n"
    "data:  {\"choices\" : [ { \"delta\" : { \"content\" : \"a\" } } ] } \n\n"
    "data:  {\"choices\" : [ { \"delta\" : { \"content\" : \"b\" } } ] } \n\n",
    /* every kind of blank between the parts, the line feed as a second line of the event's data */
    "data: \t{\"n\" :\t1\t, \"choices\"\t:\t[\t{\t\"delta\"\t:\r{ "
    "\"content\":\t\"a\"\t}\t}\t]\t}\n\n"
    "data: \t{\"n\" :\t1\t, \"choices\"\t:\t[\t{\t\"delta\"\t:\r{ "
    "\"content\":\t\"b\"\t}\t}\t]\t}\n\n"
    "data: {\"n\":1\ndata: ,\"choices\":[\ndata: {\"delta\":{\"content\":\"c\"}}]}\n\n"
    "data: {\"n\":1\ndata: ,\"choices\":[\ndata: {\"delta\":{\"content\":\"d\"}}]}\n\n",
    /* usage and timings that repeat beside the text; errors beside it */
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"completion_tokens\":1}}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}],\"usage\":{\"completion_tokens\":1}}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"timings\":{\"predicted_n\":1}}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}],\"timings\":{\"predicted_n\":1}}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"error\":\"e\"}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}],\"error\":\"e\"}\n\n",
    /* a whole reply with calls, several at once, a finish reason, usage with its details */
    CHUNK("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}") CHUNK(
        "{\"content\":null,\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"\"}},{\"index\":1,\"id\":\"b\","
        "\"function\":{\"name\":\"g\",\"arguments\":\"{\\\"x\\\":1}\"}}]}")
        CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\u007d\"}}]}") CHUNK(
            "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":null}}]}")
            CHUNK("{\"tool_calls\":null}") CHUNK("{\"tool_calls\":[]}") CHUNK(
                "{\"content\":\"\",\"content\":\"twice\"}")
                CHUNK("{\"content\":\"x\",\"unknown\":\"y\"}") CHUNK(
                    "null") "data: "
                            "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_"
                            "calls\","
                            "\"stop_reason\":null,\"native_finish_reason\":\"x\"}],\"usage\":null}"
                            "\n\n"
                            "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"q\"}}]}\n\n"
                            "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n"
                            "data: {\"choices\":[{\"index\":0,\"text\":\"q\"}]}\n\n"
                            "data: "
                            "{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":"
                            "0,"
                            "\"total_tokens\":999999999999,\"prompt_tokens_details\":{\"cached_"
                            "tokens\":3},"
                            "\"completion_tokens_details\":{\"reasoning_tokens\":null,\"audio_"
                            "tokens\":0}}}\n\n"
                            "data: "
                            "{\"choices\":[],\"usage\":{\"prompt_tokens\":08,\"completion_tokens\":"
                            "1}}\n\n"
                            "data: "
                            "{\"choices\":[],\"usage\":{\"prompt_tokens\":-8,\"completion_tokens\":"
                            "1.0}}\n\n"
                            "data: "
                            "{\"choices\":[],\"usage\":{\"prompt_tokens\":1e2,\"completion_"
                            "tokens\":null}}\n\n"
                            "data: "
                            "{\"choices\":[],\"usage\":{\"prompt_cache_hit_tokens\":5,\"reasoning_"
                            "tokens\":2,"
                            "\"prompt_tokens_details\":null,\"total_tokens\":1000000000001,"
                            "\"cost\":0.5}}\n\n"
                            "data: {\"object\":\"error\",\"choices\":[]}\n\n"
                            "data: {\"usage\":{},\"choices\":[]} x\n\n",
    /* the old function_call; a message as one event; content in parts */
    CHUNK("{\"function_call\":{\"name\":\"f\",\"arguments\":\"{\"}}")
        CHUNK("{\"function_call\":{\"arguments\":\"}\"}}")
            CHUNK("{\"function_call\":{\"arguments\":\" \"}}")
                CHUNK("{\"content\":[{\"text\":\"a\"}]}")
                    CHUNK("{\"content\":[{\"text\":\"b\"}]}") "data: "
                                                              "{\"choices\":[{\"message\":{"
                                                              "\"content\":\"a\"}}]}\n\n"
                                                              "data: "
                                                              "{\"choices\":[{\"message\":{"
                                                              "\"content\":\"b\"}}]}\n\n",
};

/* Everything there is to know about a run over some events: the flags of each, and the outcome. */
static char *trail(char *const *events, size_t n, bool exact, size_t ceiling)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(ceiling);
    struct ipw_chat_reply reply;
    struct ipw_buf out = IPW_BUF(4 * IPW_MIB);
    struct ipw_err err = {0};
    char *end;
    int rc = 0;

    ipw_chat_fold_set_exact(fold, exact);
    for (size_t i = 0; i < n && rc >= 0; i++) {
        rc = ipw_chat_fold_event(fold, "", events[i], strlen(events[i]), &err);
        ipw_buf_addf(&out, "%d ", rc);
    }
    if (rc < 0) ipw_buf_addf(&out, "(%s) ", err.text);
    rc = ipw_chat_fold_end(fold, &reply, NULL);
    end = summary(rc, &reply);
    ipw_buf_adds(&out, end);
    ipw_chat_reply_json(&out, &reply);
    free(end);
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
    return ipw_buf_take(&out, NULL);
}

static void compare(const char *what, char *const *events, size_t n, size_t ceiling)
{
    char *exact = trail(events, n, true, ceiling);

    expect_text(what, trail(events, n, false, ceiling), exact);
    free(exact);
}

static void same_over_captures_and_dialects(void **state)
{
    struct events events;
    struct ipw_buf stream;

    (void)state;
    for (size_t i = 0; i < COUNT(STREAMS); i++) {
        slurp(&stream, STREAMS[i], ".sse");
        events_of(&events, stream.data);
        assert_true(events.n > 4);
        for (size_t ceiling = 0; ceiling < 40; ceiling++)
            compare(STREAMS[i], events.data, events.n, ceiling);
        compare(STREAMS[i], events.data, events.n, IPW_MIB);
        events_free(&events);
        ipw_buf_release(&stream);
    }
    for (size_t i = 0; i < COUNT(DIALECTS); i++) {
        events_of(&events, DIALECTS[i]);
        assert_true(events.n > 4);
        compare(DIALECTS[i], events.data, events.n, IPW_MIB);
        events_free(&events);
    }
}

static uint64_t dice;

static size_t roll(size_t below)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (size_t)(dice % below);
}

/* Changes one to three bytes, or repeats or drops some, in one event. */
static char *mutate(const char *event)
{
    static const char bytes[] = "\"\\{}[]:,nu0 d8x\x01\xff\xc3\xa9";
    size_t n = strlen(event), at, len;
    char *out = ipw_malloc(2 * n + 8);

    memcpy(out, event, n + 1);
    if (n == 0) return out;
    switch (roll(4)) {
    case 0:
        for (size_t i = 0; i <= roll(3); i++) out[roll(n)] = bytes[roll(sizeof bytes - 1)];
        break;
    case 1: /* drop */
        at = roll(n);
        len = 1 + roll(n - at);
        memmove(out + at, out + at + len, n - at - len + 1);
        break;
    case 2: /* repeat */
        at = roll(n);
        len = 1 + roll(n - at);
        memmove(out + at + len, out + at, n - at + 1);
        break;
    default: /* insert inside */
        at = roll(n);
        memmove(out + at + 1, out + at, n - at + 1);
        out[at] = bytes[roll(sizeof bytes - 1)];
    }
    return out;
}

static void mutate_stream(const char *what, struct events *events, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        char **kept = ipw_malloc(events->n * sizeof *kept);

        memcpy(kept, events->data, events->n * sizeof *kept);
        for (size_t k = 0; k <= roll(3); k++) {
            size_t at = roll(events->n);

            if (events->data[at] == kept[at]) events->data[at] = mutate(kept[at]);
        }
        if (roll(4) == 0) { /* and order: an event seen again elsewhere */
            size_t from = roll(events->n), to = roll(events->n);

            if (events->data[to] == kept[to]) events->data[to] = ipw_strdup(events->data[from]);
        }
        compare(what, events->data, events->n, IPW_MIB);
        for (size_t i = 0; i < events->n; i++) {
            if (events->data[i] != kept[i]) free(events->data[i]);
            events->data[i] = kept[i];
        }
        free(kept);
    }
}

static void same_over_mutated_chunks(void **state)
{
    struct events events;
    struct ipw_buf stream;

    (void)state;
    dice = UINT64_C(88172645463325252);
    for (size_t i = 0; i < COUNT(DIALECTS); i++) {
        events_of(&events, DIALECTS[i]);
        mutate_stream(DIALECTS[i], &events, 1000);
        events_free(&events);
    }
    for (size_t i = 0; i < COUNT(STREAMS); i++) {
        slurp(&stream, STREAMS[i], ".sse");
        events_of(&events, stream.data);
        mutate_stream(STREAMS[i], &events, events.n > 30 ? 50 : 300);
        events_free(&events);
        ipw_buf_release(&stream);
    }
}

/* All bodies of three interesting bytes after some beginnings, between the same quotes. */
static void same_over_short_bodies(void **state)
{
    static const char bytes[] = "\"\\u08adn/\x7f\x1f\xc3\xa9\xe2\xed\xf4\x80";
    static const char *const starts[] = {"", "\\u0", "\\ud8", "\\\\\\", "\xf0\x9f"};
    const size_t k = sizeof bytes - 1;
    char event[128];
    char *events[3] = {0};

    (void)state;
    events[0] = ipw_strdup("{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}");
    events[2] = events[0];
    for (size_t i = 0; i < COUNT(starts) * k * k * k; i++) {
        snprintf(event, sizeof event, "{\"choices\":[{\"delta\":{\"content\":\"%s%c%c%c\"}}]}",
                 starts[i / k / k / k], bytes[i % k], bytes[i / k % k], bytes[i / k / k % k]);
        events[1] = event;
        compare(event, events, 3, IPW_MIB);
    }
    free(events[0]);
}

#ifdef __SANITIZE_ADDRESS__
enum { LONG_STREAM_STEP = 7 }; /* some 20 times slower: of the longest streams not every cut */
#else
enum { LONG_STREAM_STEP = 1 };
#endif

static void same_for_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(STREAMS); i++) {
        struct ipw_buf stream;
        struct events events;
        char *want;

        slurp(&stream, STREAMS[i], ".sse");
        events_of(&events, stream.data);
        want = fold_events((const char *const *)events.data, events.n, true);
        assert_memory_equal(want, "ok ", 3);
        expect_text(STREAMS[i], fold_stream(stream.data, stream.len, SIZE_MAX), want);
        for (size_t cut = 0; cut <= stream.len; cut += stream.len > 4096 ? LONG_STREAM_STEP : 1)
            expect_text(STREAMS[i], fold_stream(stream.data, stream.len, cut), want);
        free(want);
        events_free(&events);
        ipw_buf_release(&stream);
    }
}

UNIT(chat_scan)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_over_captures_and_dialects),
        cmocka_unit_test(same_over_mutated_chunks),
        cmocka_unit_test(same_over_short_bodies),
        cmocka_unit_test(same_for_every_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
