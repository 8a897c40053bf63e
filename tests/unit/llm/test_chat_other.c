/* Replies of /v1/responses and Anthropic messages, as streams and whole, row by row. */
#include "llm/chat_other.h"
#include "llm_support.h"
#include "unit/unit.h"

struct row {
    const char *what;
    enum ipw_chat_protocol protocol;
    bool whole; /* the first event is the whole answer */
    const char *events[12];
    const char *want;
    int64_t written; /* expected usage.written; 0: not looked at */
};

#define RESPONSES IPW_CHAT_RESPONSES
#define MESSAGES  IPW_CHAT_MESSAGES
#define CREATED                                                                                    \
    "{\"type\":\"response.created\",\"response\":{\"id\":\"r1\",\"model\":\"m\",\"status\":"       \
    "\"in_progress\",\"output\":[],\"usage\":null,\"error\":null}}"
#define ADDED(item)     "{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":" item "}"
#define ITEM(item)      "{\"type\":\"response.output_item.done\",\"item\":" item "}"
#define PIECE(of, text) "{\"type\":\"response." of ".delta\",\"delta\":\"" text "\"}"
#define COMPLETED(rest)                                                                            \
    "{\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\"" rest   \
    "}}"
#define R_USAGE                                                                                    \
    ",\"usage\":{\"input_tokens\":100,\"input_tokens_details\":{\"cached_tokens\":60,"             \
    "\"cache_write_tokens\":7},\"output_tokens\":9,\"output_tokens_details\":"                     \
    "{\"reasoning_tokens\":4},\"total_tokens\":109}"
#define CALL(arguments)                                                                            \
    "{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"c1\",\"name\":\"run\","             \
    "\"arguments\":\"" arguments "\"}"

#define START                                                                                      \
    "{\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"model\":\"claude\",\"content\":[],"  \
    "\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":80,"                               \
    "\"cache_creation_input_tokens\":5,\"cache_creation\":{\"ephemeral_1h_input_tokens\":"         \
    "3},\"output_tokens\":1}}}"
#define BLOCK(block) "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":" block "}"
#define DELTA(kind, key, text)                                                                     \
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"" kind "\",\"" key        \
    "\":\"" text "\"}}"
#define STOP(reason, usage)                                                                        \
    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\"},\"usage\":" usage "}"
#define END "{\"type\":\"message_stop\"}"

static const struct row ROWS[] = {
    {"responses: text, reasoning, usage of the last event",
     RESPONSES,
     false,
     {CREATED, ADDED("{\"type\":\"reasoning\"}"), PIECE("reasoning_summary_text", "hm"),
      ADDED("{\"type\":\"message\"}"), PIECE("output_text", "a"), PIECE("output_text", "b"),
      "{\"type\":\"response.something_new\",\"delta\":\"x\"}",
      COMPLETED(",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\","
                "\"text\":\"ab\"}]}]" R_USAGE)},
     "ok text=[ab] reasoning=[hm] finish=completed/1 prompt=100 completion=9 total=109 cached=60 "
     "thought=4 chunks=3 model=m",
     7},
    {"responses: a call in pieces, and whole again",
     RESPONSES,
     false,
     {CREATED, ADDED(CALL("")), PIECE("function_call_arguments", "{\\\"a\\\""),
      PIECE("function_call_arguments", ":1}"), ITEM(CALL("{\\\"a\\\":1}")), COMPLETED("")},
     "ok finish=completed/3 chunks=4 model=m call=[c1 run {\"a\":1}]",
     0},
    {"responses: calls whole only, a custom one and a server's own",
     RESPONSES,
     false,
     {ITEM(CALL("{}")),
      ITEM("{\"type\":\"custom_tool_call\",\"call_id\":\"c2\",\"name\":\"patch\",\"input\":\"x\"}"),
      ITEM("{\"type\":\"local_shell_call\",\"call_id\":\"c3\",\"action\":{\"command\":[\"ls\"]}}"),
      ITEM("{\"type\":\"web_search_call\",\"id\":\"ws\"}"), COMPLETED("")},
     "ok finish=completed/3 chunks=3 call=[c1 run {}] call=[c2 patch x] call=[c3 local_shell_call "
     "{\"command\":[\"ls\"]}]",
     0},
    {"responses: too long",
     RESPONSES,
     false,
     {PIECE("output_text", "a"),
      "{\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\","
      "\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}"},
     "ok text=[a] finish=max_output_tokens/2 chunks=1",
     0},
    {"responses: failed",
     RESPONSES,
     false,
     {CREATED, "{\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":"
               "{\"code\":\"server_error\",\"message\":\"broke\"}}}"},
     "http model=m error=[broke] type=server_error",
     0},
    {"responses: cut",
     RESPONSES,
     false,
     {CREATED, PIECE("output_text", "a")},
     "network text=[a] chunks=1 model=m",
     0},
    {"responses: whole",
     RESPONSES,
     true,
     {"{\"object\":\"response\",\"id\":\"r1\",\"model\":\"m\",\"status\":\"completed\",\"error\":"
      "null,"
      "\"output\":[{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"}"
      "]},"
      "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]}," CALL(
          "{}") "]" R_USAGE "}"},
     "ok text=[a] reasoning=[hm] finish=completed/3 prompt=100 completion=9 total=109 cached=60 "
     "thought=4 model=m call=[c1 run {}]",
     7},
    {"messages: text and thinking; the counts replace, never add",
     MESSAGES,
     false,
     {START, "{\"type\":\"ping\"}", BLOCK("{\"type\":\"thinking\",\"thinking\":\"\"}"),
      DELTA("thinking_delta", "thinking", "hm"), DELTA("signature_delta", "signature", "s"),
      BLOCK("{\"type\":\"text\",\"text\":\"\"}"), DELTA("text_delta", "text", "a"),
      STOP("end_turn", "{\"output_tokens\":12}"), STOP("end_turn", "{\"output_tokens\":15}"), END},
     "ok text=[a] reasoning=[hm] finish=end_turn/1 prompt=95 completion=15 total=110 cached=80 "
     "chunks=2 model=claude done",
     5},
    {"messages: the last delta has the input's side too (server tools)",
     MESSAGES,
     false,
     {START, DELTA("text_delta", "text", "a"),
      STOP("end_turn", "{\"input_tokens\":400,\"cache_read_input_tokens\":80,"
                       "\"cache_creation_input_tokens\":20,\"output_tokens\":12,"
                       "\"output_tokens_details\":{\"thinking_tokens\":3}}"),
      END},
     "ok text=[a] finish=end_turn/1 prompt=500 completion=12 total=512 cached=80 thought=3 "
     "chunks=1 model=claude done",
     20},
    {"messages: a call",
     MESSAGES,
     false,
     {START, BLOCK("{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"run\",\"input\":{}}"),
      DELTA("input_json_delta", "partial_json", ""),
      DELTA("input_json_delta", "partial_json", "{\\\"a\\\":1}"),
      STOP("tool_use", "{\"output_tokens\":9}"), END},
     "ok finish=tool_use/3 prompt=95 completion=9 total=104 cached=80 chunks=2 model=claude "
     "call=[t1 run {\"a\":1}] done",
     5},
    {"messages: pieces of a tool of the server are not the call's",
     MESSAGES,
     false,
     {START, BLOCK("{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"run\",\"input\":{}}"),
      DELTA("input_json_delta", "partial_json", "{\\\"a\\\":1}"),
      BLOCK("{\"type\":\"server_tool_use\",\"id\":\"s1\",\"name\":\"web_search\",\"input\":{}}"),
      DELTA("input_json_delta", "partial_json", "{\\\"query\\\":2}"),
      STOP("tool_use", "{\"output_tokens\":9}"), END},
     "ok finish=tool_use/3 prompt=95 completion=9 total=104 cached=80 chunks=2 model=claude "
     "call=[t1 run {\"a\":1}] done",
     5},
    {"messages: cut, the placeholder is no count",
     MESSAGES,
     false,
     {START, DELTA("text_delta", "text", "a")},
     "network text=[a] prompt=95 cached=80 chunks=1 model=claude",
     5},
    {"messages: an error inside the stream",
     MESSAGES,
     false,
     {START, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}"},
     "http prompt=95 cached=80 model=claude error=[busy] type=overloaded_error",
     5},
    {"messages: whole",
     MESSAGES,
     true,
     {"{\"type\":\"message\",\"id\":\"m1\",\"model\":\"claude\",\"content\":[{\"type\":\"text\","
      "\"text\":\"a\"},{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"run\",\"input\":{\"a\":1}}],"
      "\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}"},
     "ok text=[a] finish=tool_use/3 prompt=3 completion=2 total=5 model=claude call=[t1 run "
     "{\"a\":1}]",
     0},
};

static void replies_become_one_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const struct row *row = &ROWS[i];
        struct ipw_chat_fold *fold = ipw_chat_fold_new(10000);
        struct ipw_chat_reply reply;
        struct ipw_err err = {0};
        char *line;
        int rc = 0;

        ipw_chat_fold_set_protocol(fold, row->protocol);
        for (size_t k = 0; row->events[k] && rc >= 0; k++) {
            const char *e = row->events[k];

            rc = row->whole ? ipw_chat_fold_whole(fold, e, strlen(e), &err)
                            : ipw_chat_fold_event(fold, "", e, strlen(e), &err);
            if (rc < 0) fail_msg("%s: %s", row->what, err.text);
        }
        rc = ipw_chat_fold_end(fold, &reply, &err);
        line = summary(rc, &reply);
        if (strcmp(line, row->want) != 0)
            fail_msg("%s:\n  got  %s\n  want %s", row->what, line, row->want);
        if (row->written) assert_int_equal(reply.usage.written, row->written);
        if (row->written == 5) assert_int_equal(reply.usage.written_1h, 3); /* START has it */
        free(line);
        ipw_chat_reply_release(&reply);
        ipw_chat_fold_free(fold);
    }
}

/* An answer without content is told of by the member that its protocol has for it. */
static void what_is_missing_is_named(void **state)
{
    static const char *const members[] = {[IPW_CHAT_COMPLETIONS] = "\"choices\"",
                                          [IPW_CHAT_RESPONSES] = "\"output\"",
                                          [IPW_CHAT_MESSAGES] = "\"content\"",
                                          [IPW_CHAT_PROMPT] = "\"choices\""};

    (void)state;
    for (size_t i = 0; i < COUNT(members); i++) {
        struct ipw_chat_fold *fold = ipw_chat_fold_new(10000);
        struct ipw_err err = {0};

        ipw_chat_fold_set_protocol(fold, (enum ipw_chat_protocol)i);
        assert_true(ipw_chat_fold_whole(fold, "{}", 2, &err) < 0);
        if (!strstr(err.text, members[i])) fail_msg("%s: %s", members[i], err.text);
        ipw_chat_fold_free(fold);
    }
}

UNIT(chat_other)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(replies_become_one_form),
                                       cmocka_unit_test(what_is_missing_is_named)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
