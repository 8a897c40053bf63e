/* Filler in place of what was said: of the same length, alike where the texts were, and nothing of
 * them; what is hidden by which mode, and what stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"
#include "trace/redact.h"
#include "unit/unit.h"

typedef void (*redact_fn)(struct ipw_buf *, const struct ipw_redactor *, const struct ipw_json *);

/* The line after redaction, parsed; what is in `text` before. */
static struct ipw_json *after(const struct ipw_redactor *r, redact_fn fn, const char *text)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    struct ipw_json *doc, *redacted;

    assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, NULL), 0);
    fn(&out, r, doc);
    ipw_json_free(doc);
    assert_int_equal(ipw_json_parse(&redacted, ipw_buf_str(&out), out.len, NULL, NULL), 0);
    ipw_buf_release(&out);
    return redacted;
}

static const char *at(const struct ipw_json *doc, const char *path)
{
    char key[64];

    while (*path) {
        size_t n = strcspn(path, ".");

        snprintf(key, sizeof key, "%.*s", (int)n, path);
        doc = key[0] >= '0' && key[0] <= '9' ? ipw_json_at(doc, (size_t)(key[0] - '0'))
                                             : ipw_json_get(doc, key);
        path += n + (path[n] == '.');
    }
    return ipw_json_str(doc, NULL);
}

static void hidden(const struct ipw_json *doc, const char *path, const char *was)
{
    const char *now = at(doc, path);

    if (!now) fail_msg("%s is no text", path);
    if (strcmp(now, was) == 0) fail_msg("%s: '%s' is there", path, now);
    assert_int_equal(strlen(now), strlen(was));
}

static void stays(const struct ipw_json *doc, const char *path, const char *was)
{
    const char *now = at(doc, path);

    if (!now || strcmp(now, was)) fail_msg("%s: '%s' is not '%s'", path, now ? now : "(null)", was);
}

static void names_of_modes(void **state)
{
    enum ipw_redact what = 0;
    struct ipw_err err;

    (void)state;
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(ipw_redact_parse(&what, ipw_redact_name((enum ipw_redact)i), NULL), 0);
        assert_int_equal(what, i);
    }
    assert_int_equal(ipw_redact_parse(&what, "", &err), IPW_EINVAL);
    assert_int_equal(ipw_redact_parse(&what, "every", &err), IPW_EINVAL);
    assert_string_equal(err.text, "--redact every: expected text, tools or all");
}

#define SAID(text)                                                                                 \
    "{\"data\":{\"text\":\"" text                                                                  \
    "\"},\"event\":\"lm_inference_end\",\"query\":0,\"span\":1,\"t_ns\":5}"
#define SIXTY_FOUR "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void fillers(void **state)
{
    struct ipw_redactor r, other;
    struct ipw_json *a, *b, *c, *d;

    (void)state;
    assert_int_equal(ipw_redactor_init(&r, IPW_REDACT_ALL, NULL), 0);
    assert_int_equal(ipw_redactor_init(&other, IPW_REDACT_ALL, NULL), 0);
    a = after(&r, ipw_redact_event, SAID(SIXTY_FOUR "and so on, one way"));
    b = after(&r, ipw_redact_event, SAID(SIXTY_FOUR "and so on, one way"));
    c = after(&r, ipw_redact_event, SAID(SIXTY_FOUR "and then, the other"));
    d = after(&other, ipw_redact_event, SAID(SIXTY_FOUR "and so on, one way"));
    hidden(a, "data.text", SIXTY_FOUR "and so on, one way");
    stays(b, "data.text", at(a, "data.text"));
    assert_int_equal(strncmp(at(a, "data.text"), at(c, "data.text"), 64), 0);
    assert_int_not_equal(strcmp(at(a, "data.text") + 64, at(c, "data.text") + 64), 0);
    /* the key is the redactor's: nobody can find out by trying what was said */
    assert_int_not_equal(strcmp(at(a, "data.text"), at(d, "data.text")), 0);
    ipw_json_free(a);
    ipw_json_free(b);
    ipw_json_free(c);
    ipw_json_free(d);
    a = after(&r, ipw_redact_event, SAID("\\u6f22\\u5b57\\n\\\"x"));
    hidden(a, "data.text", "\xE6\xBC\xA2\xE5\xAD\x97\n\"x"); /* bytes, as JSON holds them */
    ipw_json_free(a);
    a = after(&r, ipw_redact_event, SAID(""));
    stays(a, "data.text", "");
    ipw_json_free(a);
}

static const char request[] =
    "{\"attempt\":1,\"data\":{\"messages\":[{\"content\":\"a system text\",\"role\":\"system\"},"
    "{\"content\":null,\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"arguments\":\"{"
    "\\\"key\\\":1234}\","
    "\"name\":\"vault\"},\"id\":\"call_1\",\"type\":\"function\"}]},"
    "{\"content\":\"a result of "
    "it\",\"role\":\"tool\",\"tool_call_id\":\"call_1\"}],\"messages_kept\":0,"
    "\"request\":{\"model\":\"m\",\"stop\":[\"a stop "
    "word\"],\"temperature\":0.5,\"user\":\"somebody\"}},"
    "\"event\":\"lm_inference_start\",\"model\":\"m\",\"query\":0,\"span\":1,\"t_ns\":5}";

static void a_request_by_mode(void **state)
{
    struct ipw_redactor r = {.key = 17};
    struct ipw_json *doc;

    (void)state;
    for (unsigned what = 1; what <= 3; what++) {
        r.what = (enum ipw_redact)what;
        doc = after(&r, ipw_redact_event, request);
        (what & IPW_REDACT_TEXT ? hidden : stays)(doc, "data.messages.0.content", "a system text");
        (what & IPW_REDACT_TEXT ? hidden : stays)(doc, "data.request.stop.0", "a stop word");
        (what & IPW_REDACT_TEXT ? hidden : stays)(doc, "data.request.user", "somebody");
        (what & IPW_REDACT_TOOLS ? hidden : stays)(doc, "data.messages.2.content",
                                                   "a result of it");
        (what & IPW_REDACT_TOOLS ? hidden : stays)(
            doc, "data.messages.1.tool_calls.0.function.arguments", "{\"key\":1234}");
        stays(doc, "data.messages.1.tool_calls.0.function.name", "vault");
        stays(doc, "data.messages.1.tool_calls.0.id", "call_1");
        stays(doc, "data.messages.2.tool_call_id", "call_1");
        stays(doc, "data.messages.2.role", "tool");
        stays(doc, "data.request.model", "m");
        stays(doc, "event", "lm_inference_start");
        if (what & IPW_REDACT_TOOLS) { /* arguments stay an object */
            const char *arguments = at(doc, "data.messages.1.tool_calls.0.function.arguments");
            struct ipw_json *object;

            assert_int_equal(ipw_json_parse(&object, arguments, strlen(arguments), NULL, NULL), 0);
            assert_int_equal(ipw_json_kind(object), IPW_JSON_OBJ);
            ipw_json_free(object);
        }
        ipw_json_free(doc);
    }
}

/* Addresses, errors, paths and what scripts read are hidden whatever is asked for. */
static void hidden_in_each_mode(void **state)
{
    static const struct {
        const char *line, *path, *was;
    } cases[] = {
        {"{\"endpoint\":\"http://host/v1\",\"event\":\"lm_inference_end\",\"query\":0}", "endpoint",
         "http://host/v1"},
        {"{\"error\":\"HTTP 500: no\",\"event\":\"lm_inference_end\",\"query\":0}", "error",
         "HTTP 500: no"},
        {"{\"error\":\"a path\",\"event\":\"tool_call_end\",\"name\":\"t\",\"query\":0}", "error",
         "a path"},
        {"{\"error\":\"mine.lua:3: no\",\"event\":\"query_end\",\"id\":\"q\",\"query\":0}", "error",
         "mine.lua:3: no"},
        {"{\"event\":\"span_start\",\"kind\":\"http\",\"name\":\"GET host\",\"query\":0}", "name",
         "GET host"},
        {"{\"data\":{\"file\":\"/opt/x.so\",\"module\":\"x\",\"name\":\"native_module\"},\"event\":"
         "\"note\",\"query\":0}",
         "data.file", "/opt/x.so"},
    };
    struct ipw_redactor r = {.key = 17};
    struct ipw_json *doc;

    (void)state;
    for (unsigned what = 1; what <= 3; what++) {
        r.what = (enum ipw_redact)what;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            doc = after(&r, ipw_redact_event, cases[i].line);
            hidden(doc, cases[i].path, cases[i].was);
            ipw_json_free(doc);
        }
        doc = after(&r, ipw_redact_event,
                    "{\"data\":{\"id\":3,\"name\":\"effect\",\"of\":\"fs.read\",\"value\":[\"it\",{"
                    "\"hex\":\"00\"}]},"
                    "\"event\":\"note\",\"query\":0}");
        assert_int_equal(ipw_json_count(ipw_json_get(doc, "data")), 0);
        ipw_json_free(doc);
    }
}

/* What a tool was told and what it said is the tools', whatever the event is called. */
static void whose_data_it_is(void **state)
{
    static const struct {
        const char *line, *path, *was;
        enum ipw_redact whose;
    } cases[] = {
        {"{\"data\":{\"arguments\":\"not JSON\"},\"event\":\"tool_call_start\",\"name\":"
         "\"t\",\"query\":0}",
         "data.arguments", "not JSON", IPW_REDACT_TOOLS},
        {"{\"data\":{\"result\":\"a "
         "secret\"},\"event\":\"tool_call_end\",\"name\":\"t\",\"query\":0}",
         "data.result", "a secret", IPW_REDACT_TOOLS},
        {"{\"data\":{\"url\":\"http://a/"
         "b\"},\"event\":\"span_start\",\"kind\":\"http\",\"query\":0}",
         "data.url", "http://a/b", IPW_REDACT_TOOLS},
        {"{\"data\":{\"prompt\":\"who am I\"},\"event\":\"query_start\",\"id\":\"q\",\"query\":0}",
         "data.prompt", "who am I", IPW_REDACT_TEXT},
        {"{\"data\":{\"response\":\"an answer\"},\"event\":\"query_end\",\"id\":\"q\",\"query\":0}",
         "data.response", "an answer", IPW_REDACT_TEXT},
    };

    (void)state;
    for (unsigned what = IPW_REDACT_TEXT; what <= IPW_REDACT_ALL; what++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct ipw_redactor r = {.key = 17, .what = (enum ipw_redact)what};
            struct ipw_json *doc = after(&r, ipw_redact_event, cases[i].line);

            if (what & cases[i].whose)
                hidden(doc, cases[i].path, cases[i].was);
            else
                stays(doc, cases[i].path, cases[i].was);
            ipw_json_free(doc);
        }
    }
}

/* What a script notes is its own, whatever it calls it. */
static void notes(void **state)
{
    struct ipw_redactor r = {.key = 17, .what = IPW_REDACT_TEXT};
    struct ipw_json *doc =
        after(&r, ipw_redact_event,
              "{\"data\":{\"arguments\":\"my words\",\"name\":\"mine\",\"text\":\"more of them\"},"
              "\"event\":\"note\",\"query\":0}");

    (void)state;
    hidden(doc, "data.arguments", "my words");
    hidden(doc, "data.text", "more of them");
    hidden(doc, "data.name", "mine");
    ipw_json_free(doc);
}

static void times_and_counts_stay(void **state)
{
    struct ipw_redactor r = {.key = 17, .what = IPW_REDACT_ALL};
    static const char line[] =
        "{\"data\":{\"arrivals\":\"AAwCkCuB\",\"chunks\":3,\"finish\":\"stop\",\"id\":\"c1\","
        "\"logprobs\":[{\"token\":\"word\"}],\"reasoning\":\"thought\",\"usage\":{\"completion\":7}"
        "},"
        "\"event\":\"lm_inference_end\",\"first_token_ns\":123456789012,\"output_tokens\":7,"
        "\"outcome\":\"ok\",\"query\":0,\"status\":200,\"t_ns\":5}";
    struct ipw_json *doc = after(&r, ipw_redact_event, line);

    (void)state;
    stays(doc, "data.arrivals", "AAwCkCuB");
    stays(doc, "data.finish", "stop");
    stays(doc, "outcome", "ok");
    hidden(doc, "data.reasoning", "thought");
    assert_int_equal(ipw_json_int(ipw_json_get(doc, "first_token_ns"), 0), 123456789012);
    assert_int_equal(
        ipw_json_int(ipw_json_get(ipw_json_get(ipw_json_get(doc, "data"), "usage"), "completion"),
                     0),
        7);
    assert_int_equal(
        ipw_json_count(ipw_json_at(ipw_json_get(ipw_json_get(doc, "data"), "logprobs"), 0)), 0);
    ipw_json_free(doc);
}

static void a_trace(void **state)
{
    struct ipw_redactor r = {.key = 17, .what = IPW_REDACT_TOOLS};
    static const char line[] =
        "{\"answer\":\"42 of them\",\"error\":\"why it "
        "failed\",\"judge_text\":\"it is 42\",\"later\":{\"key\":\"a new key\"},\"metadata\":"
        "{\"key\":\"x\"},\"query_id\":\"q7\","
        "\"turns\":[{\"endpoint\":\"http://"
        "host\",\"energy\":{\"gpu\":{\"devices\":{\"GPU-1\":{\"reason\":\"no_samples\"}},"
        "\"estimate\":{\"by\":\"cpu model\"},\"joules\":2.5,\"provenance\":\"measured\"}},"
        "\"model\":\"m\",\"model_asked\":\"alias\","
        "\"spans\":[{\"error\":\"no such host\",\"kind\":\"http\",\"name\":\"GET host\"},"
        "{\"error\":null,\"kind\":\"tool\",\"name\":\"vault\"}]}]}";
    struct ipw_json *doc = after(&r, ipw_redact_trace, line);

    (void)state;
    stays(doc, "answer", "42 of them");
    stays(doc, "query_id", "q7");
    hidden(doc, "error", "why it failed");
    hidden(doc, "turns.0.endpoint", "http://host");
    hidden(doc, "turns.0.spans.0.name", "GET host");
    hidden(doc, "turns.0.spans.0.error", "no such host");
    stays(doc, "turns.0.spans.1.name", "vault");
    stays(doc, "turns.0.energy.gpu.provenance", "measured");
    stays(doc, "turns.0.energy.gpu.devices.GPU-1.reason", "no_samples");
    stays(doc, "turns.0.energy.gpu.estimate.by", "cpu model");
    stays(doc, "turns.0.model_asked", "alias");
    assert_null(ipw_json_get(doc, "judge_text"));
    assert_int_equal(ipw_json_count(ipw_json_get(doc, "metadata")), 0);
    ipw_json_free(doc);
    r.what = IPW_REDACT_TEXT;
    doc = after(&r, ipw_redact_trace, line);
    hidden(doc, "answer", "42 of them");
    hidden(doc, "later.key", "a new key"); /* a key that no table names */
    stays(doc, "turns.0.model", "m");
    ipw_json_free(doc);
}

static void documents(void **state)
{
    static const char *const gone[] = {
        "command", "agent_file", "telemetry", "client_base_url", "dataset_source",
        "body",    "host",       "forced",    "energy_note"};
    struct ipw_redactor r = {.key = 17, .what = IPW_REDACT_TEXT};
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_json *doc;

    (void)state;
    ipw_buf_adds(&text, "{\"model\":\"m\",\"segments\":[{");
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        ipw_buf_addf(&text, "%s\"%s\":\"secret\"", i ? "," : "", gone[i]);
    ipw_buf_adds(&text, ",\"seed\":7}]}");
    doc = after(&r, ipw_redact_document, ipw_buf_str(&text));
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        const struct ipw_json *member =
            ipw_json_get(ipw_json_at(ipw_json_get(doc, "segments"), 0), gone[i]);
        assert_int_equal(ipw_json_kind(member), IPW_JSON_NULL);
    }
    stays(doc, "model", "m");
    assert_int_equal(
        ipw_json_int(ipw_json_get(ipw_json_at(ipw_json_get(doc, "segments"), 0), "seed"), 0), 7);
    ipw_json_free(doc);
    ipw_buf_release(&text);
}

UNIT(redact)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_modes),
        cmocka_unit_test(fillers),
        cmocka_unit_test(a_request_by_mode),
        cmocka_unit_test(hidden_in_each_mode),
        cmocka_unit_test(whose_data_it_is),
        cmocka_unit_test(notes),
        cmocka_unit_test(times_and_counts_stay),
        cmocka_unit_test(a_trace),
        cmocka_unit_test(documents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
