/* What a session knows of its conversation, and the events that it gives to its query. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/session.h"
#include "unit/unit.h"

static struct ipw_buf seen; /* the events, without their data */

static void note(void *ud, struct ipw_event *event)
{
    (void)ud;
    ipw_buf_addf(&seen, "%s %s %d in %d\n", ipw_event_name(event->kind),
                 event->tool.name ? event->tool.name : "-", event->span, event->inside);
}

static struct ipw_host host = {.start_ns = 1, .on = {.emit = note}};

static void over(void *ud, bool limited) { (void)ud, (void)limited; }

static struct ipw_proxy_session *open_session(void)
{
    struct ipw_proxy_session *s = ipw_proxy_session_new(NULL, "key", "connection", 0);

    host.count.spans = 0;
    seen = IPW_BUF(IPW_MIB);
    s->face.open(s, &host, over, NULL);
    return s;
}

static void close_session(struct ipw_proxy_session *s)
{
    s->face.close(s);
    ipw_proxy_session_free(s);
    ipw_buf_release(&seen);
    ipw_host_release(&host);
}

static struct ipw_proxy_call call_of(const char *path, const char *body)
{
    struct ipw_proxy_call call;

    ipw_proxy_call_of_path(&call, "POST", path);
    assert_int_equal(ipw_proxy_call_read(&call, body, strlen(body), NULL), 0);
    return call;
}

static void turn(struct ipw_proxy_session *s, const char *path, const char *body,
                 enum ipw_lm_outcome outcome, char *reply_id)
{
    struct ipw_proxy_call call = call_of(path, body);
    int32_t span = ipw_proxy_session_begin(s, &call, 1, 2);
    struct ipw_chat_reply reply = {.id = reply_id};

    ipw_proxy_session_end(s, &call, span, 3, &(struct ipw_lm_facts){.outcome = outcome}, &reply);
    ipw_proxy_call_release(&call);
}

static bool goes_on(struct ipw_proxy_session *s, const char *path, const char *body)
{
    struct ipw_proxy_call call = call_of(path, body);
    bool yes = ipw_proxy_session_goes_on(s, &call);

    ipw_proxy_call_release(&call);
    return yes;
}

#define CHAT   "/v1/chat/completions"
#define ASK    "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}"
#define MORE   "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\"}]}"
#define OTHER  "{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}"
#define BEHIND "{\"input\":\"b\",\"previous_response_id\":\"r1\"}"

static void a_new_connection_finds_its_conversation(void **state)
{
    static const struct {
        enum ipw_lm_outcome outcome; /* of the first request, ASK */
        const char *body;
        bool goes_on;
    } rows[] = {
        {IPW_LM_OK, MORE, true},    {IPW_LM_OK, ASK, false}, /* another client that asks the same */
        {IPW_LM_OK, OTHER, false},  {IPW_LM_RESET, ASK, true}, /* sent again */
        {IPW_LM_RESET, MORE, true}, {IPW_LM_RESET, OTHER, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_proxy_session *s = open_session();

        turn(s, CHAT, ASK, rows[i].outcome, NULL);
        if (goes_on(s, CHAT, rows[i].body) != rows[i].goes_on) fail_msg("row %zu", i);
        close_session(s);
    }
}

static void a_failed_call_leaves_the_last_reply(void **state)
{
    struct ipw_proxy_session *s = open_session();
    char id[] = "r1", cut[] = "r2";

    (void)state;
    turn(s, "/v1/responses", "{\"input\":\"a\"}", IPW_LM_OK, id);
    turn(s, "/v1/responses", BEHIND, IPW_LM_HTTP_ERROR, NULL);
    turn(s, "/v1/responses", BEHIND, IPW_LM_CUT, cut);
    assert_true(goes_on(s, "/v1/responses", BEHIND));
    close_session(s);
}

static void agents_are_a_tree(void **state)
{
    static const struct {
        const char *id, *parent;
    } rows[] = {{"a", "main"}, {NULL, NULL}, {"b", "a"}, {"a", "main"}, {"c", "b"}};
    struct ipw_proxy_session *s = open_session();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_proxy_call call = call_of("/v1/models", "{}");

        call.inside = ipw_proxy_session_agent(s, rows[i].id, rows[i].parent, 2);
        ipw_proxy_session_other(s, &call, 2);
        ipw_proxy_call_release(&call);
    }
    assert_string_equal(ipw_buf_str(&seen), "span_start a 1 in 0\nspan_start models 2 in 1\n"
                                            "span_start models 3 in 0\n"
                                            "span_start b 4 in 1\nspan_start models 5 in 4\n"
                                            "span_start models 6 in 1\n"
                                            "span_start c 7 in 4\nspan_start models 8 in 7\n");
    assert_true(ipw_proxy_session_has_agent(s, "c"));
    assert_false(ipw_proxy_session_has_agent(s, "main"));
    close_session(s);
}

UNIT(session)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_connection_finds_its_conversation),
        cmocka_unit_test(a_failed_call_leaves_the_last_reply),
        cmocka_unit_test(agents_are_a_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
