/* Where a call goes, and with which headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/upstream.h"
#include "unit/unit.h"

static void the_table_decides(void **state)
{
    static const struct {
        const char *path, *model, *url;
    } rows[] = {
        {"/v1/chat/completions", "m", "http://a:1/v1/chat/completions"},
        {"/chat/completions?x=1", "m", "http://a:1/v1/chat/completions?x=1"},
        {"/v1/chat/completions", "gpt-5", "https://b/openai/chat/completions"},
        {"/v1/embeddings", "", "http://c/v1/embeddings"},
        {"/v1/messages?beta=true", "claude", "https://api.anthropic.com/v1/messages?beta=true"},
        {"/v1/messages/count_tokens", "", "https://api.anthropic.com/v1/messages/count_tokens"},
    };
    struct ipw_upstreams all = {0};

    (void)state;
    assert_int_equal(ipw_upstreams_add(&all, "http://a:1/v1/", "key", false, NULL), 0);
    assert_int_equal(ipw_upstreams_add(&all, "gpt-*=https://b/openai", NULL, false, NULL), 0);
    assert_int_equal(ipw_upstreams_add(&all, "/v1/embeddings=http://c/v1", NULL, false, NULL), 0);
    assert_int_equal(ipw_upstreams_add(&all, "https://api.anthropic.com", "k2", true, NULL), 0);
    assert_int_equal(ipw_upstreams_add(&all, "ftp://x", NULL, false, NULL), IPW_EINVAL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ipw_upstream *u;
        struct ipw_proxy_call call;
        char *url;

        ipw_proxy_call_of_path(&call, "POST", rows[i].path);
        call.model = rows[i].model;
        u = ipw_upstreams_for(&all, &call, rows[i].path);
        assert_non_null(u);
        url = ipw_upstream_url(u, &call, rows[i].path);
        assert_string_equal(url, rows[i].url);
        free(url);
    }
    ipw_upstreams_release(&all);
}

/* A local server speaks all three APIs below one address. */
static void one_server_for_all(void **state)
{
    struct ipw_upstreams all = {0};
    struct ipw_proxy_call call;
    char *url;

    (void)state;
    assert_int_equal(ipw_upstreams_add(&all, "http://a:1/v1", NULL, false, NULL), 0);
    ipw_proxy_call_of_path(&call, "POST", "/v1/messages");
    url = ipw_upstream_url(ipw_upstreams_for(&all, &call, "/v1/messages"), &call, "/v1/messages");
    assert_string_equal(url, "http://a:1/v1/messages");
    free(url);
    ipw_upstreams_release(&all);
}

static void headers_go_on_but_for_the_connections_own(void **state)
{
    static const struct {
        const char *name, *value, *want; /* "name: value", or NULL: it does not go on */
        bool messages;
    } rows[] = {
        {"Accept-Encoding", "gzip", NULL},
        {"anthropic-beta", "a,b", "anthropic-beta: a,b"},
        {"Authorization", "Bearer word", "Authorization: Bearer true-key"},
        {"authorization", "Bearer word", "x-api-key: true-key", true},
        {"x-api-key", "word", "x-api-key: true-key", true},
        {"x-api-key", "word", "Authorization: Bearer true-key"},
        {"Authorization", "Bearer the-clients-own", "Authorization: Bearer the-clients-own"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char key[] = "true-key";
        struct ipw_upstream u = {.key = key, .messages = rows[i].messages};
        struct ipw_proxy_headers out = {0};
        char line[100];

        ipw_upstream_header(&out, &u, rows[i].name, rows[i].value, "word");
        assert_int_equal(out.n, rows[i].want != NULL);
        if (out.n) {
            snprintf(line, sizeof line, "%s: %s", out.list[0].name, out.list[0].value);
            assert_string_equal(line, rows[i].want);
        }
        ipw_proxy_headers_release(&out);
    }
}

UNIT(upstream)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_decides),
        cmocka_unit_test(one_server_for_all),
        cmocka_unit_test(headers_go_on_but_for_the_connections_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
