/* Which session, and which agent inside of it, by the table that the program comes with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/http.h"
#include "proxy/session_rules.h"
#include "script/table_text.h"
#include "unit/unit.h"

static const struct {
    struct ipw_http_header headers[5];
    const char *body;
    const char *rule, *session, *agent, *parent;
} rows[] = {
    {{{"X-Claude-Code-Session-Id", "s"}}, NULL, "x-claude-code-session-id", "s", NULL, NULL},
    {{{"x-claude-code-session-id", "s"}, {"x-claude-code-agent-id", "a"}},
     NULL,
     "x-claude-code-session-id",
     "s",
     "a",
     NULL},
    {{{"x-claude-code-session-id", "s"},
      {"x-claude-code-agent-id", "b"},
      {"x-claude-code-parent-agent-id", "a"}},
     NULL,
     "x-claude-code-session-id",
     "s",
     "b",
     "a"},
    /* Codex: the root thread, then a thread below it */
    {{{"session-id", "root"}, {"thread-id", "root"}}, NULL, "session-id", "root", NULL, NULL},
    {{{"session-id", "root"}, {"thread-id", "t2"}, {"x-codex-parent-thread-id", "root"}},
     NULL,
     "session-id",
     "root",
     "t2",
     "root"},
    {{{"session_id", "root"}, {"thread_id", "t1"}}, NULL, "session_id", "root", NULL, NULL},
    {{{"session-id", "root"}, {"thread-id", "t1"}, {"x-codex-parent-thread-id", "t1"}},
     NULL,
     "session-id",
     "root",
     NULL,
     NULL},
    {{{"session_id", "root"}, {"thread_id", "t2"}, {"x-codex-parent-thread-id", "t1"}},
     NULL,
     "session_id",
     "root",
     "t2",
     "t1"},
    {{{"thread-id", "t1"}, {"x-codex-parent-thread-id", "t1"}},
     NULL,
     "thread-id",
     "t1",
     NULL,
     NULL},
    {{{"x-session-id", "child"}, {"x-parent-session-id", "main"}},
     NULL,
     "x-session-id",
     "child",
     "child",
     "main"},
    {{{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
     NULL,
     "traceparent",
     "0af7651916cd43dd8448eb211c80319c",
     NULL,
     NULL},
    {{{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
      {"x-claude-code-session-id", "s"},
      {"x-claude-code-agent-id", "a"}},
     NULL,
     "traceparent",
     "0af7651916cd43dd8448eb211c80319c",
     "a",
     NULL},
    {{{"traceparent", "nonsense"}, {"x-session-id", "x"}}, NULL, "x-session-id", "x", NULL, NULL},
    {{{"traceparent", "nonsense"}}, NULL, NULL, NULL, NULL, NULL},
    {{{"helicone-session-id", ""}}, "{\"user\":\"u\"}", "user", "u", NULL, NULL},
    {{{"accept", "x"}}, "{\"metadata\":{\"user_id\":\"m\"}}", "metadata.user_id", "m", NULL, NULL},
    {{{"accept", "x"}}, "{\"metadata\":\"m\"}", NULL, NULL, NULL, NULL},
    /* the stronger row decides */
    {{{"x-session-id", "b"}, {"x-dynamo-session-id", "a"}},
     "{\"user\":\"u\"}",
     "x-dynamo-session-id",
     "a",
     NULL,
     NULL},
};

static const char *header(const void *of, const char *name)
{
    const struct ipw_http_header *h = of;

    for (; h->name; h++)
        if (strcasecmp(h->name, name) == 0) return h->value;
    return NULL;
}

static void same(const char *got, const char *want, size_t row)
{
    if (!got != !want || (got && strcmp(got, want)))
        fail_msg("row %zu: '%s', not '%s'", row, got ? got : "-", want ? want : "-");
}

static void the_strongest_name_decides(void **state)
{
    struct ipw_json *rules;
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    (void)state;
    assert_int_equal(ipw_table_text(&text, "lua/ipw/sessions.lua", NULL), 0);
    assert_int_equal(ipw_json_parse(&rules, ipw_buf_str(&text), text.len, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_session_found found;
        struct ipw_json *body = NULL;

        if (rows[i].body)
            assert_int_equal(ipw_json_parse(&body, rows[i].body, strlen(rows[i].body), NULL, NULL),
                             0);
        ipw_session_rules_find(&found, rules, header, rows[i].headers, body);
        same(found.rule, rows[i].rule, i);
        same(found.session, rows[i].session, i);
        same(found.agent, rows[i].agent, i);
        same(found.parent, rows[i].parent, i);
        free(found.session);
        ipw_json_free(body);
    }
    ipw_json_free(rules);
    ipw_buf_release(&text);
}

UNIT(session_rules)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_strongest_name_decides)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
