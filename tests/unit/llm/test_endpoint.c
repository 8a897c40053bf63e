/* Base URLs as users write them, keys, and what a message must not hold. */
#include "llm_support.h"

#include <strings.h>

#include "llm/client_priv.h"
#include "unit/unit.h"

static void urls_are_normalised(void **state)
{
    static const struct {
        const char *given, *want; /* NULL: refused */
    } rows[] = {
        {"http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"},
        {"http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"},
        {"http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"},
        {"http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"},
        {"127.0.0.1:8000", "http://127.0.0.1:8000/v1"},
        {"localhost", "http://localhost/v1"},
        {"  localhost:1234/v1\n", "http://localhost:1234/v1"},
        {"HTTPS://api.openai.com/v1", "https://api.openai.com/v1"},
        {"https://openrouter.ai/api/v1//", "https://openrouter.ai/api/v1"},
        {"http://h/v1/chat/completions", "http://h/v1"},
        {"http://h/v1/chat/completions/", "http://h/v1"},
        {"http://h/chat/completions", "http://h/v1"},
        {"http://h/openai", "http://h/openai"},
        {"http://[::1]:8080", "http://[::1]:8080/v1"},
        {"", NULL},
        {"http://", NULL},
        {"http:///v1", NULL},
        {"http://:8000", NULL},
        {"ftp://h/v1", NULL},
        {"unix:///tmp/s", NULL},
        {"http://user:secret@h/v1", NULL},
        {"http://h/v1?x=1", NULL},
        {"http://h/v1#x", NULL},
        {"http://h /v1", NULL},
        {"http://h/\x01", NULL},
        {"http://h/\x7f", NULL},
        {"http://h/\"", NULL},
        {"http://h/\\", NULL},
        {"\t\n\r http://h\t", "http://h/v1"},
        {"https", "http://https/v1"}, /* a host of that name */
        {"httpx://h", NULL},
        {"HTTPS://", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ipw_buf out = IPW_BUF(1000);
        struct ipw_err err = {0};
        int rc = ipw_llm_normalise_url(&out, rows[i].given, &err);

        if (rows[i].want) {
            if (rc) fail_msg("'%s': %s", rows[i].given, err.text);
            assert_string_equal(ipw_buf_str(&out), rows[i].want);
        } else {
            if (rc != IPW_EINVAL) fail_msg("'%s' was taken", rows[i].given);
            assert_true(strlen(err.text) > 10);
            assert_null(strstr(err.text, "secret"));
        }
        ipw_buf_release(&out);
    }
}

static void keys_are_checked_and_sent(void **state)
{
    struct ipw_llm_options options = {.base_url = "https://h", .api_key = "sk-12345678"};
    const struct ipw_http_header *headers;
    struct ipw_err err = {0};
    struct ipw_llm *llm;

    (void)state;
    assert_int_equal(ipw_llm_new(&llm, NULL, NULL, &options, &err), 0);
    headers = llm->headers[1];
    assert_int_equal(llm->n_headers[1], 3);
    assert_string_equal(headers[0].name, "Accept");
    assert_string_equal(headers[0].value, "text/event-stream");
    assert_string_equal(headers[1].name, "Authorization");
    assert_string_equal(headers[1].value, "Bearer sk-12345678");
    assert_string_equal(headers[2].name, "Content-Type");
    ipw_llm_free(llm);

    options.api_key = "sk\r\nX: y";
    assert_int_equal(ipw_llm_new(&llm, NULL, NULL, &options, &err), IPW_EINVAL);
    assert_null(llm);
    assert_null(strstr(err.text, "sk"));

    options.api_key = "";
    assert_int_equal(ipw_llm_new(&llm, NULL, NULL, &options, &err), 0);
    assert_int_equal(llm->n_headers[0], 1);
    assert_string_equal(llm->headers[0][0].value, "application/json");
    ipw_llm_free(llm);
}

static void keys_are_struck_out_of_messages(void **state)
{
    struct ipw_llm_options options = {.base_url = "https://h", .api_key = "sk-12345678"};
    char text[] = "Incorrect key sk-12345678 (sk-12345678) sk-1234567";
    char plain[] = "the ollama server";
    struct ipw_llm *llm;

    (void)state;
    assert_int_equal(ipw_llm_new(&llm, NULL, NULL, &options, NULL), 0);
    ipw_llm_redact(llm, text);
    assert_string_equal(text, "Incorrect key *** (***) sk-1234567");
    ipw_llm_free(llm);
    options.api_key = "ollama"; /* a word, not a secret */
    assert_int_equal(ipw_llm_new(&llm, NULL, NULL, &options, NULL), 0);
    ipw_llm_redact(llm, plain);
    assert_string_equal(plain, "the ollama server");
    ipw_llm_free(llm);
}

/* 2.3, N-12: over plain http a key goes to this machine only, unless that was asked for; never to a
 * proxy that reads along. */
static void n12_keys_are_not_sent_in_the_clear(void **state)
{
    static const struct ipw_http_header team[] = {{"X-Team", "blue"}}, own[] = {{"api-Key", "k"}};
    static const struct {
        const char *url, *more, *key, *proxy;
        const struct ipw_http_header *header;
        bool secret, insecure;
        const char *says; /* NULL: accepted */
    } rows[] = {
        {.url = "https://h", .key = "sk-12345678"},
        {.url = "http://127.0.0.1:8000", .key = "sk-12345678"},
        {.url = "http://127.9.9.9", .key = "sk-12345678"},
        {.url = "localhost:8000", .key = "sk-12345678"},
        {.url = "http://[::1]:8000", .key = "sk-12345678"},
        {.url = "http://h"},
        {.url = "http://h", .key = "ollama"}, /* a word, not a secret */
        {.url = "http://h", .header = team},
        {.url = "http://h", .key = "sk-12345678", .says = "--insecure-key"},
        {.url = "HTTP://H", .key = "sk-12345678", .says = "--insecure-key"},
        {.url = "h:443", .key = "sk-12345678", .says = "--insecure-key"},
        {.url = "http://127.0.0.1.example", .key = "sk-12345678", .says = "--insecure-key"},
        {.url = "http://localhosts", .key = "sk-12345678", .says = "--insecure-key"},
        {.url = "http://[2001:db8::1]", .key = "sk-12345678", .says = "--insecure-key"},
        {.url = "https://h", .more = "http://h", .key = "sk-12345678", .says = "--insecure-key"},
        {.url = "http://h", .header = own, .says = "--insecure-key"},
        {.url = "http://h", .header = team, .secret = true, .says = "--insecure-key"},
        {.url = "http://h", .key = "sk-12345678", .insecure = true},
        {.url = "http://h",
         .key = "sk-12345678",
         .insecure = true,
         .proxy = "http://u:pw@p:1",
         .says = "the proxy http://p:1"},
        {.url = "https://h", .key = "sk-12345678", .proxy = "http://p:1"},
        {.url = "http://127.0.0.1", .key = "sk-12345678", .proxy = "http://p:1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *more[] = {rows[i].more, NULL};
        struct ipw_llm_options options = {.base_url = rows[i].url,
                                          .more_urls = rows[i].more ? more : NULL,
                                          .api_key = rows[i].key,
                                          .headers = rows[i].header,
                                          .n_headers = rows[i].header != NULL,
                                          .secret_headers = rows[i].secret,
                                          .insecure_key = rows[i].insecure};
        struct ipw_err err = {0};
        struct ipw_llm *llm;
        int rc;

        unsetenv("http_proxy");
        if (rows[i].proxy) setenv("http_proxy", rows[i].proxy, 1);
        rc = ipw_llm_new(&llm, NULL, NULL, &options, &err);
        if ((rc == 0) != (rows[i].says == NULL)) fail_msg("row %zu: %d %s", i, rc, err.text);
        if (rc) {
            assert_int_equal(rc, IPW_EINVAL);
            assert_null(llm);
            if (!strstr(err.text, rows[i].says)) fail_msg("row %zu: %s", i, err.text);
            assert_null(strstr(err.text, "sk-12345678"));
            assert_null(strstr(err.text, "pw"));
        }
        ipw_llm_free(llm);
    }
    unsetenv("http_proxy");
}

/* An address that does not fit is refused before and after "/v1" is put behind it. */
static void too_long_urls(void **state)
{
    (void)state;
    for (size_t room = 1; room < 30; room++) {
        struct ipw_buf out = IPW_BUF(room);
        struct ipw_err err = {0};
        int rc = ipw_llm_normalise_url(&out, "http://some.host:8000", &err);

        assert_int_equal(rc, room < strlen("http://some.host:8000/v1") ? IPW_ELIMIT : 0);
        if (rc) assert_string_equal(err.text, "base URL: too long");
        ipw_buf_release(&out);
    }
}

/* The users' own members of each request are an object, else the message says so. */
static void extra_fields_are_an_object(void **state)
{
    static const struct {
        const char *body, *says; /* says NULL: accepted */
    } rows[] = {{NULL, NULL},
                {"{}", NULL},
                {"{\"top_k\":1}", NULL},
                {"[1]", "extra request fields: expected a JSON object"},
                {"7", "extra request fields: expected a JSON object"},
                {"null", "extra request fields: expected a JSON object"},
                {"{\"top_k\":", "extra request fields: "},
                {"", "extra request fields: "}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ipw_llm_options options = {.base_url = "https://h", .body = rows[i].body};
        struct ipw_err err = {0};
        struct ipw_llm *llm;
        int rc = ipw_llm_new(&llm, NULL, NULL, &options, &err);

        if ((rc == 0) != (rows[i].says == NULL)) fail_msg("row %zu: %d %s", i, rc, err.text);
        if (rc) assert_int_equal(rc, IPW_EINVAL);
        if (rc && !strstr(err.text, rows[i].says)) fail_msg("row %zu: %s", i, err.text);
        ipw_llm_free(llm);
    }
}

/* OpenAI's own host takes max_completion_tokens, other servers max_tokens, unless the user
 * decides. */
static void which_field_limits_tokens(void **state)
{
    static const char old[] = "max_tokens", new[] = "max_completion_tokens";
    static const struct {
        const char *url, *more;
        enum ipw_llm_tokens_field field;
        const char *want;
    } rows[] = {
        {"https://api.openai.com/v1", NULL, IPW_LLM_TOKENS_AUTO, new},
        {"https://API.openai.com:443", NULL, IPW_LLM_TOKENS_AUTO, new},
        {"https://api.openai.com.example", NULL, IPW_LLM_TOKENS_AUTO, old},
        {"http://h", NULL, IPW_LLM_TOKENS_AUTO, old},
        {"http://h", "https://api.openai.com", IPW_LLM_TOKENS_AUTO, new},
        {"https://api.openai.com", NULL, IPW_LLM_MAX_TOKENS, old},
        {"http://h", NULL, IPW_LLM_MAX_COMPLETION_TOKENS, new},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *more[] = {rows[i].more, NULL};
        struct ipw_llm_options options = {
            .base_url = rows[i].url, .more_urls = more, .tokens_field = rows[i].field};
        struct ipw_llm *llm;

        assert_int_equal(ipw_llm_new(&llm, NULL, NULL, &options, NULL), 0);
        assert_string_equal(ipw_llm_tokens_field(llm), rows[i].want);
        assert_int_equal(ipw_llm_n_urls(llm), rows[i].more ? 2 : 1);
        ipw_llm_free(llm);
    }
}

/* A header of the user's takes the place of ours; one bad address among several is named. */
static void headers_and_more_urls(void **state)
{
    static const struct ipw_http_header own[] = {{"ACCEPT", "text/x"}, {"X-Team", "blue"}};
    const char *more[258] = {"ftp://other"};
    struct ipw_llm_options options = {.base_url = "https://h", .headers = own, .n_headers = 2};
    struct ipw_err err = {0};
    struct ipw_llm *llm;
    int accepts = 0;

    (void)state;
    assert_int_equal(ipw_llm_new(&llm, NULL, NULL, &options, &err), 0);
    for (size_t i = 0; i < llm->n_headers[1]; i++)
        accepts += !strcasecmp(llm->headers[1][i].name, "accept");
    assert_int_equal(accepts, 1);
    ipw_llm_free(llm);
    options.more_urls = more;
    assert_int_equal(ipw_llm_new(&llm, NULL, NULL, &options, &err), IPW_EINVAL);
    assert_null(llm);
    assert_non_null(strstr(err.text, "ftp://other"));
    for (size_t i = 0; i < COUNT(more) - 1; i++) more[i] = "https://h";
    assert_int_equal(ipw_llm_new(&llm, NULL, NULL, &options, &err), IPW_EINVAL);
    assert_string_equal(err.text, "more than 256 base URLs");
}

UNIT(endpoint)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_normalised),
        cmocka_unit_test(keys_are_checked_and_sent),
        cmocka_unit_test(keys_are_struck_out_of_messages),
        cmocka_unit_test(n12_keys_are_not_sent_in_the_clear),
        cmocka_unit_test(too_long_urls),
        cmocka_unit_test(extra_fields_are_an_object),
        cmocka_unit_test(which_field_limits_tokens),
        cmocka_unit_test(headers_and_more_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
