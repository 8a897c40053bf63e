/* Requests found again in a record: what counts as equal, the order of equal ones, the place in a
 * conversation, and what is said of one that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "json/json.h"
#include "llm/saved_replies.h"

#include "unit/trace/folder.h"
#include "unit/unit.h"

static int open_with(struct ipw_saved_replies **out, const char *text, bool with_failures,
                     struct ipw_err *err)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return ipw_saved_replies_open(out, dir, with_failures, err);
}

#define START(q, id)                                                                               \
    "{\"event\":\"query_start\",\"id\":\"" id "\",\"query\":" #q ",\"span\":0,\"t_ns\":1}\n"
#define OVER(q) "{\"event\":\"query_end\",\"id\":\"x\",\"query\":" #q ",\"span\":0,\"t_ns\":9}\n"
#define ASK(q, at, attempt_, kept, options, messages)                                              \
    "{\"attempt\":" #attempt_ ",\"data\":{\"messages\":[" messages "],\"messages_kept\":" #kept    \
    ",\"request\":{" options "\"model\":\"m\"}},\"event\":\"lm_inference_start\",\"model\":\"m\"," \
    "\"query\":" #q ",\"span\":" #at ",\"t_ns\":2}\n"
#define SAY(q, at, attempt_, how, text_)                                                           \
    "{\"attempt\":" #attempt_ ",\"data\":{\"text\":\"" text_ "\"},\"error\":\"why\","              \
    "\"event\":\"lm_inference_end\",\"outcome\":\"" how "\",\"query\":" #q ",\"span\":" #at        \
    ",\"t_ns\":3}\n"
#define SYS    "{\"content\":\"be brief\",\"role\":\"system\"}"
#define USR(t) "{\"content\":\"" t "\",\"role\":\"user\"}"
#define AST(t) "{\"content\":\"" t "\",\"role\":\"assistant\"}"

/* Two conversations side by side, of two turns each; the second of `a` was tried twice. */
static const char two[] = START(0, "a") START(1, "b") ASK(0, 1, 1, 0, "", SYS "," USR("one"))
    ASK(1, 1, 1, 0, "", SYS "," USR("two")) SAY(1, 1, 1, "ok", "b1") SAY(0, 1, 1, "ok", "a1")
        ASK(0, 2, 1, 2, "", AST("a1") "," USR("seen 1")) SAY(0, 2, 1, "http_error", "")
            ASK(0, 3, 2, 4, "", "") SAY(0, 3, 2, "ok", "a2")
                ASK(1, 2, 1, 2, "", AST("b1") "," USR("seen 2")) SAY(1, 2, 1, "ok", "b2") OVER(0)
                    OVER(1);

/* Asks; returns the reply's text, "?" when there is none, and what there is to say about it. */
static char said[4096];
static struct ipw_saved_reply last;
static int64_t last_message;
static int last_query, last_turn;

static const char *ask(struct ipw_saved_replies *r, const char *body)
{
    static char text[64];
    struct ipw_nearest_request nearest;
    struct ipw_json *doc;
    struct ipw_err err = {0};
    int rc;

    assert_int_equal(ipw_json_parse(&doc, body, strlen(body), NULL, NULL), 0);
    rc = ipw_saved_replies_find(&last, &nearest, r, doc, &err);
    snprintf(said, sizeof said, "%s", ipw_buf_str(&nearest.text));
    last_message = nearest.message;
    last_query = nearest.query;
    last_turn = nearest.turn;
    if (rc) {
        assert_int_equal(rc, IPW_ENOTFOUND);
        snprintf(text, sizeof text, "?");
    } else {
        snprintf(text, sizeof text, "%s", ipw_json_str(ipw_json_get(last.data, "text"), ""));
    }
    ipw_nearest_request_release(&nearest);
    ipw_saved_reply_release(&last);
    ipw_json_free(doc);
    return text;
}

static const char *match_of(struct ipw_saved_replies *r, const char *body)
{
    struct ipw_nearest_request nearest;
    struct ipw_saved_reply reply;
    struct ipw_json *doc;
    const char *name;

    assert_int_equal(ipw_json_parse(&doc, body, strlen(body), NULL, NULL), 0);
    name = ipw_saved_replies_find(&reply, &nearest, r, doc, NULL)
               ? "none"
               : ipw_saved_replies_match_name(reply.match);
    ipw_nearest_request_release(&nearest);
    ipw_saved_reply_release(&reply);
    ipw_json_free(doc);
    return name;
}

#define BODY(options, messages) "{" options "\"messages\":[" messages "],\"model\":\"m\"}"

static void every_request(void **state)
{
    struct ipw_saved_replies *r;

    (void)state;
    assert_int_equal(open_with(&r, two, false, NULL), 0);
    assert_int_equal(ipw_saved_replies_count(r), 4);
    assert_string_equal(ipw_saved_replies_model(r, 0), "m");
    assert_null(ipw_saved_replies_model(r, 1));
    assert_string_equal(ask(r, BODY("", SYS "," USR("one"))), "a1");
    assert_string_equal(ask(r, BODY("", SYS "," USR("two"))), "b1");
    assert_string_equal(ask(r, BODY("", SYS "," USR("two") "," AST("b1") "," USR("seen 2"))), "b2");
    assert_string_equal(ask(r, BODY("", SYS "," USR("one") "," AST("a1") "," USR("seen 1"))), "a2");
    ipw_saved_replies_close(r);
}

static void what_is_equal(void **state)
{
    struct ipw_saved_replies *r;

    (void)state;
    assert_int_equal(
        open_with(&r,
                  START(0, "a") ASK(0, 1, 1, 0, "\"stream\":true,\"temperature\":0.5,", USR("x"))
                      SAY(0, 1, 1, "ok", "warm") ASK(0, 2, 1, 0, "\"seed\":3,", USR("x"))
                          SAY(0, 2, 1, "ok", "seeded"),
                  false, NULL),
        0);
    /* the order of keys, how it is sent, and what is null do not count */
    assert_string_equal(match_of(r, BODY("\"temperature\":0.5,", USR("x"))), "request");
    assert_string_equal(ask(r, "{\"model\":\"m\",\"tools\":null,\"stream\":false,\"messages\":[{"
                               "\"role\":\"user\",\"content\":\"\\u0078\"}],\"seed\":3}"),
                        "seeded");
    /* options decide between equal messages; without them the messages do */
    assert_string_equal(ask(r, BODY("\"temperature\":0.5,", USR("x"))), "warm");
    assert_string_equal(match_of(r, BODY("\"temperature\":0.7,", USR("x"))), "messages");
    assert_string_equal(match_of(r, BODY("", USR("x "))), "none");
    assert_string_equal(match_of(r, BODY("", AST("x"))), "none");
    assert_string_equal(match_of(r, BODY("", USR("x") "," USR("x"))), "none");
    assert_string_equal(match_of(r, BODY("", "")), "none");
    ipw_saved_replies_close(r);
}

/* What JavaScript sends for 0.0 is 0. */
static void numbers_by_value(void **state)
{
    struct ipw_saved_replies *r;

    (void)state;
    assert_int_equal(
        open_with(&r,
                  START(0, "a") ASK(0, 1, 1, 0, "\"max_tokens\":16,\"temperature\":0.0,", USR("x"))
                      SAY(0, 1, 1, "ok", "cold")
                          ASK(0, 2, 1, 0, "\"logit_bias\":{\"5\":[1e0,2.50]},", USR("x"))
                              SAY(0, 2, 1, "ok", "biased")
                                  ASK(0, 3, 1, 0, "\"seed\":9007199254740993,", USR("x"))
                                      SAY(0, 3, 1, "ok", "seeded"),
                  false, NULL),
        0);
    assert_string_equal(match_of(r, BODY("\"max_tokens\":16,\"temperature\":0,", USR("x"))),
                        "request");
    assert_string_equal(ask(r, BODY("\"max_tokens\":1.6e1,\"temperature\":-0,", USR("x"))), "cold");
    assert_string_equal(ask(r, BODY("\"logit_bias\":{\"5\":[1,2.5]},", USR("x"))), "biased");
    assert_string_equal(ask(r, BODY("\"logit_bias\":{\"5\":[1.0,25e-1]},", USR("x"))), "biased");
    assert_string_equal(ask(r, BODY("\"seed\":9007199254740993,", USR("x"))), "seeded");
    /* other values are other values, and text is not a number */
    assert_string_equal(match_of(r, BODY("\"max_tokens\":16,\"temperature\":0.1,", USR("x"))),
                        "messages");
    assert_string_equal(match_of(r, BODY("\"seed\":9007199254740992,", USR("x"))), "messages");
    assert_string_equal(match_of(r, BODY("\"max_tokens\":16,\"temperature\":\"0.0\",", USR("x"))),
                        "messages");
    ipw_saved_replies_close(r);
}

static void equal_ones_in_order(void **state)
{
    struct ipw_saved_replies *r;

    (void)state;
    assert_int_equal(open_with(&r,
                               START(0, "a") ASK(0, 1, 1, 0, "", USR("x")) SAY(0, 1, 1, "ok", "1")
                                   OVER(0) START(1, "a") ASK(1, 1, 1, 0, "", USR("x"))
                                       SAY(1, 1, 1, "ok", "2") OVER(1) START(2, "a")
                                           ASK(2, 1, 1, 0, "", USR("x")) SAY(2, 1, 1, "ok", "3"),
                               false, NULL),
                     0);
    for (int i = 1; i <= 5; i++) assert_int_equal(atoi(ask(r, BODY("", USR("x")))), i < 3 ? i : 3);
    ipw_saved_replies_close(r);
}

static void by_place(void **state)
{
    struct ipw_saved_replies *r;

    (void)state;
    assert_int_equal(open_with(&r, two, false, NULL), 0);
    assert_string_equal(
        match_of(r, BODY("", SYS "," USR("two") "," AST("b1") "," USR("seen otherwise"))), "place");
    assert_string_equal(
        ask(r, BODY("", SYS "," USR("one") "," AST("my own") "," USR("seen otherwise"))), "a2");
    /* another opening, other roles, another length: another conversation */
    assert_string_equal(match_of(r, BODY("", SYS "," USR("three") "," AST("b1") "," USR("seen 2"))),
                        "none");
    assert_string_equal(
        match_of(r, BODY("", SYS "," USR("two") "," USR("b1") "," USR("seen otherwise"))), "none");
    assert_string_equal(match_of(r, BODY("", SYS "," USR("two") "," AST("b1"))), "none");
    ipw_saved_replies_close(r);
}

static void failures(void **state)
{
    const char *second = BODY("", SYS "," USR("one") "," AST("a1") "," USR("seen 1"));
    struct ipw_saved_replies *r;

    (void)state;
    assert_int_equal(open_with(&r, two, true, NULL), 0);
    assert_int_equal(ipw_saved_replies_count(r), 5);
    assert_string_equal(ask(r, second), ""); /* the attempt that failed */
    assert_string_equal(ask(r, second), "a2");
    assert_string_equal(ask(r, second), "a2");
    ipw_saved_replies_close(r);

    assert_int_equal(open_with(&r,
                               START(0, "a") ASK(0, 1, 1, 0, "", USR("x"))
                                   SAY(0, 1, 1, "http_error", "") ASK(0, 2, 1, 0, "", USR("y"))
                                       SAY(0, 2, 1, "cancelled", "") ASK(0, 3, 1, 0, "", USR("z")),
                               false, NULL),
                     0);
    assert_int_equal(ipw_saved_replies_count(r), 0);
    assert_string_equal(ask(r, BODY("", USR("x"))), "?");
    assert_string_equal(said, "it failed (http_error: why)");
    assert_int_equal(last_message, -1);
    assert_string_equal(ask(r, BODY("", USR("z"))), "?");
    assert_string_equal(said, "its end is not in the saved run");
    ipw_saved_replies_close(r);
}

static void nearest(void **state)
{
    struct ipw_saved_replies *r;

    (void)state;
    assert_int_equal(open_with(&r, two, false, NULL), 0);
    assert_string_equal(ask(r, BODY("", SYS "," USR("twq"))), "?");
    assert_int_equal(last_query, 1);
    assert_int_equal(last_turn, 1);
    assert_int_equal(last_message, 1);
    assert_non_null(
        strstr(said, "message 2 (user) of the request differs at messages[1].content, byte 3"));
    assert_non_null(strstr(said, "saved   two"));
    assert_non_null(strstr(said, "now     twq"));

    assert_string_equal(
        ask(r, BODY("", SYS "," USR("one") "," AST("a1") "," USR("seen 1") "," USR("more"))), "?");
    assert_int_equal(last_query, 0);
    assert_int_equal(last_turn, 2);
    assert_int_equal(last_message, 4);
    assert_non_null(strstr(said, "message 5 (user) of the request is not in the saved run"));

    assert_string_equal(ask(r, BODY("", SYS)), "?");
    assert_int_equal(last_message, 1);
    assert_non_null(strstr(said, "message 2 (user) of the request is missing"));
    assert_string_equal(ask(r, BODY("", USR("quite different"))), "?");
    assert_int_equal(last_message, 0);
    ipw_saved_replies_close(r);
}

/* A query that was cut down and begun again; counts that do not fit; damage. */
static void odd_saved_runs(void **state)
{
    struct ipw_saved_replies *r = NULL;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(
        open_with(&r,
                  START(0, "a") ASK(0, 1, 1, 0, "", SYS "," USR("x")) START(0, "a")
                      ASK(0, 1, 1, 0, "", USR("x")) SAY(0, 1, 1, "ok", "again")
                          ASK(0, 2, 1, 99, "", USR("y")) SAY(0, 2, 1, "ok", "kept too many") ASK(
                              0, 3, 1, -5, "", USR("z")) SAY(0, 3, 1, "ok", "kept less than none")
                              SAY(0, 77, 1, "ok", "nobody asked") "{\"event\":\"query_e",
                  false, NULL),
        0);
    assert_int_equal(ipw_saved_replies_count(r), 3);
    assert_string_equal(ask(r, BODY("", USR("x"))), "again");
    assert_string_equal(ask(r, BODY("", USR("x") "," USR("y"))), "kept too many");
    assert_string_equal(ask(r, BODY("", USR("z"))), "kept less than none");
    ipw_saved_replies_close(r);

    assert_int_equal(open_with(&r, START(0, "a") "{\"event\":}\n" OVER(0), false, &err),
                     IPW_EPARSE);
    assert_non_null(strstr(err.text, "events.jsonl:2: "));
    assert_int_equal(open_with(&r, "", false, NULL), 0);
    assert_int_equal(ipw_saved_replies_count(r), 0);
    assert_string_equal(ask(r, BODY("", USR("x"))), "?");
    assert_string_equal(said, "");
    ipw_saved_replies_close(r);
}

static void a_file_that_changes(void **state)
{
    const char *body = BODY("", USR("x"));
    struct ipw_nearest_request nearest;
    struct ipw_saved_reply reply;
    struct ipw_saved_replies *r;
    struct ipw_json *doc;
    struct ipw_err err = {0};
    char path[64];

    (void)state;
    assert_int_equal(open_with(&r,
                               START(0, "a") ASK(0, 1, 1, 0, "", USR("x")) SAY(0, 1, 1, "ok", "1"),
                               false, NULL),
                     0);
    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    assert_int_equal(truncate(path, 10), 0);
    assert_int_equal(ipw_json_parse(&doc, body, strlen(body), NULL, NULL), 0);
    assert_int_equal(ipw_saved_replies_find(&reply, &nearest, r, doc, &err), IPW_EIO);
    assert_non_null(strstr(err.text, "is shorter than it was"));
    ipw_nearest_request_release(&nearest);
    ipw_json_free(doc);
    ipw_saved_replies_close(r);
}

UNIT(saved_replies)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request),
        cmocka_unit_test(what_is_equal),
        cmocka_unit_test(numbers_by_value),
        cmocka_unit_test(equal_ones_in_order),
        cmocka_unit_test(by_place),
        cmocka_unit_test(failures),
        cmocka_unit_test(nearest),
        cmocka_unit_test(odd_saved_runs),
        cmocka_unit_test(a_file_that_changes),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
