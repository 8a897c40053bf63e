/* A stream without what was asked for in the client's place, in all splittings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "proxy/usage_filter.h"
#include "unit/unit.h"

#define TOKEN(text, rest) "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]" rest "}\n\n"
#define USAGE             "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n"

static const struct {
    const char *what, *in, *out;
} rows[] = {
    {"the chunk of usage alone goes", TOKEN("a", "") USAGE "data: [DONE]\n\n",
     TOKEN("a", "") "data: [DONE]\n\n"},
    {"so does null in the others", TOKEN("a", ",\"usage\":null"), TOKEN("a", "")},
    {"a text that says so stays", TOKEN(",\\\"usage\\\":null", ""),
     TOKEN(",\\\"usage\\\":null", "")},
    {"usage beside content stays", TOKEN("a", ",\"usage\":{\"x\":1}"),
     TOKEN("a", ",\"usage\":{\"x\":1}")},
    {"comments and other events stay", ": ping\n\nevent: x\ndata: {}\n\n",
     ": ping\n\nevent: x\ndata: {}\n\n"},
    {"CRLF", "data: {\"choices\":[],\"usage\":{}}\r\n\r\ndata: [DONE]\r\n\r\n",
     "data: [DONE]\r\n\r\n"},
    {"a rest without its blank line", "data: {\"cho", "data: {\"cho"},
    {"what is no JSON", "data: {\"usage\"\n\n", "data: {\"usage\"\n\n"},
};

static void run(struct ipw_buf *out, const char *in, size_t step)
{
    struct ipw_usage_filter f;
    size_t n = strlen(in);

    ipw_usage_filter_init(&f);
    for (size_t at = 0; at < n; at += step)
        ipw_usage_filter_feed(&f, out, in + at, n - at < step ? n - at : step);
    ipw_usage_filter_end(&f, out);
    ipw_usage_filter_release(&f);
}

static void only_what_was_asked_for_goes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t step = 1; step <= strlen(rows[i].in); step++) {
            struct ipw_buf out = IPW_BUF(10000);

            run(&out, rows[i].in, step);
            if (strcmp(ipw_buf_str(&out), rows[i].out))
                fail_msg("%s, step %zu: %s", rows[i].what, step, ipw_buf_str(&out));
            ipw_buf_release(&out);
        }
}

static void an_event_without_end_passes(void **state)
{
    struct ipw_buf in = IPW_BUF(4 * IPW_MIB), out = IPW_BUF(4 * IPW_MIB);

    (void)state;
    while (in.len < 3 * IPW_MIB) ipw_buf_adds(&in, "data: 0123456789");
    run(&out, ipw_buf_str(&in), 1000);
    assert_int_equal(in.len, out.len);
    assert_memory_equal(in.data, out.data, in.len);
    ipw_buf_release(&in);
    ipw_buf_release(&out);
}

UNIT(usage_filter)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_was_asked_for_goes),
                                       cmocka_unit_test(an_event_without_end_passes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
