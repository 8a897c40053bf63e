/* Error bodies of all shapes that src/llm/chat_error.c lists. */
#include "llm_support.h"
#include "unit/unit.h"

static const struct {
    const char *what, *body, *text, *type;
} ROWS[] = {
    {"8 (a) code a number", "{\"error\":{\"code\":400,\"message\":\"m\",\"type\":\"T\"}}", "m",
     "T"},
    {"8 (a) code a word",
     "{\"error\":{\"message\":\"m\",\"type\":\"T\",\"param\":null,"
     "\"code\":\"insufficient_quota\"}}",
     "m", "insufficient_quota"},
    {"8 (a) code null", "{\"error\":{\"message\":\"m\",\"type\":null,\"code\":null}}", "m", ""},
    {"8 (a) only a number", "{\"error\":{\"message\":\"m\",\"code\":418}}", "m", "418"},
    {"8 (b)", "{\"error\":\"Unauthorized\"}", "Unauthorized", ""},
    {"8 (c)", "{\"object\":\"error\",\"message\":\"m\",\"type\":\"BadRequestError\",\"code\":400}",
     "m", "BadRequestError"},
    {"8 (d) text", "{\"detail\":\"Not Found\"}", "Not Found", ""},
    {"8 (d) list",
     "{\"detail\":[{\"loc\":[\"body\",\"messages\",0],\"msg\":\"field required\","
     "\"type\":\"missing\"}]}",
     "body.messages.0: field required", "missing"},
    {"8 LM Studio", "{\"error\":{\"type\":\"x\"},\"message\":\"m\"}", "m", "x"},
    {"8 message alone", "{\"message\":\"no Route matched\"}", "no Route matched", ""},
    {"8 (e) HTML with a title", "\n<html><head><Title> 502 Bad\n Gateway</title>",
     "an HTML page titled \"502 Bad  Gateway\"", ""},
    {"8 (e) HTML without", "<html><body>x</body>", "<html><body>x</body>", ""},
    {"8 (e) HTML whose title does not end", "<html><title>Bad", "<html><title>Bad", ""},
    {"8 (e) HTML with an empty title", "<title> </title>", "<title> </title>", ""},
    {"8 (d) object", "{\"detail\":{\"msg\":\"m\"}}", "m", ""},
    {"8 (d) no place", "{\"detail\":[{\"msg\":\"m\"}]}", "m", ""},
    {"8 (d) nothing in it", "{\"detail\":[{}]}", "{\"detail\":[{}]}", ""},
    {"8 (e) plain", "  upstream timed out\r\n", "upstream timed out", ""},
    {"8 (e) nothing", "", "", ""},
    {"8 unknown JSON is shown", "{\"x\":1}", "{\"x\":1}", ""},
    {"8 one line", "{\"error\":\"a\\nb\"}", "a b", ""},
};

static void all_shapes(void **state)
{
    char text[600], type[64];

    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        ipw_chat_error_text(text, sizeof text, type, sizeof type, ROWS[i].body,
                            strlen(ROWS[i].body));
        if (strcmp(text, ROWS[i].text) != 0 || strcmp(type, ROWS[i].type) != 0)
            fail_msg("%s: '%s' '%s'", ROWS[i].what, text, type);
    }
}

static void captured_errors(void **state)
{
    static const struct {
        const char *file, *text, *type;
    } rows[] = {
        {"03-loading-503", "Loading model", "unavailable_error"},
        {"38-auth", "Invalid API Key", "authentication_error"},
        {"36-error-context-overflow",
         "request (6011 tokens) exceeds the available context size "
         "(4096 tokens), try increasing it",
         "exceed_context_size_error"},
        {"30-error-bad-json",
         "[json.exception.parse_error.101] parse error at line 1, column 22: "
         "syntax error while parsing value - unexpected end of input; expected"
         " '[', '{', or a literal",
         "server_error"},
    };
    char text[600], type[64];
    struct ipw_buf body;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        slurp(&body, rows[i].file, ".json");
        ipw_chat_error_text(text, sizeof text, type, sizeof type, body.data, body.len);
        assert_string_equal(text, rows[i].text);
        assert_string_equal(type, rows[i].type);
        ipw_buf_release(&body);
    }
}

static void an_unknown_body_is_cut_between_characters(void **state)
{
    char text[2000], type[8], body[1200];
    size_t n;

    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        memset(body, 'x', sizeof body);
        for (size_t i = shift; i + 3 <= sizeof body; i += 3) memcpy(body + i, "\xe2\x82\xac", 3);
        ipw_chat_error_text(text, sizeof text, type, sizeof type, body, sizeof body);
        n = strlen(text);
        assert_in_range(n, 498, 500);
        assert_int_equal((n - shift) % 3, 0);
        ipw_chat_error_text(text, 20, type, sizeof type, body, sizeof body);
        assert_in_range(strlen(text), 17, 19);
        assert_int_equal((strlen(text) - shift) % 3, 0);
    }
    ipw_chat_error_text(text, 1, type, 1, "{\"error\":\"abc\"}", 15);
    assert_string_equal(text, "");
}

static void terminals_are_safe(void **state)
{
    char text[600], type[8];

    (void)state;
    ipw_chat_error_text(text, sizeof text, type, sizeof type, "\x1b[2Jx\0y", 7);
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strchr(text, 'y'));
}

UNIT(chat_error)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shapes),
        cmocka_unit_test(captured_errors),
        cmocka_unit_test(an_unknown_body_is_cut_between_characters),
        cmocka_unit_test(terminals_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
