#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/sse.h"
#include "unit/unit.h"

/* What a parser delivered, as one line of text: "name=data|name=data|". */
struct seen {
    struct ipw_buf text;
    int events, stop_at;
};

static int on_event(void *ud, const struct ipw_sse_event *event, struct ipw_err *err)
{
    struct seen *seen = ud;

    assert_int_equal(event->data[event->data_len], '\0');
    ipw_buf_adds(&seen->text, event->name);
    ipw_buf_addc(&seen->text, '=');
    ipw_buf_add(&seen->text, event->data, event->data_len);
    ipw_buf_addc(&seen->text, '|');
    if (++seen->events == seen->stop_at) return ipw_fail(err, IPW_ECANCELLED, "enough");
    return 0;
}

static const struct {
    const char *in, *out;
    int comments;
} cases[] = {
    {"", "", 0},
    {"\n\n\n", "", 0},
    {"data: a\n\n", "=a|", 0},
    {"data:a\n\n", "=a|", 0},
    {"data:  a\n\n", "= a|", 0},
    {"data: a\r\n\r\ndata: b\r\n\r\n", "=a|=b|", 0},
    {"data: a\r\rdata: b\r\r", "=a|=b|", 0},
    {"data: a\r\n\rdata: b\n\r\n", "=a|=b|", 0},
    {"data: a\ndata: b\n\n", "=a\nb|", 0},
    {"data: a\ndata\ndata: b\n\n", "=a\n\nb|", 0},
    {"data:\n\n", "=|", 0},
    {"data\n\n", "=|", 0},
    {"event: error\ndata: x\n\ndata: y\n\n", "error=x|=y|", 0},
    {"event: lost\n\ndata: y\n\n", "=y|", 0},
    {"event: a\nevent: b\ndata: y\n\n", "b=y|", 0},
    {"event\ndata: y\n\n", "=y|", 0},
    {": keep-alive\n\n:\n\ndata: a\n\n", "=a|", 2},
    {"data: a\n: in between\ndata: b\n\n", "=a\nb|", 1},
    {"id: 7\nretry: 10\nnonsense\ndata : no\nDATA: no\ndata: a\n\n", "=a|", 0},
    {"\xEF\xBB\xBF"
     "data: a\n\n",
     "=a|", 0},
    {"\xEF\xBB\xBF\xEF\xBB\xBF"
     "data: a\n\ndata: b\n\n",
     "=b|", 0},
    {"\n\xEF\xBB\xBF"
     "data: a\n\n",
     "", 0},
    {"\xEF\xBB\xBF\n\n", "", 0},
    {"data: {\"x\":\"a:b\"}\n\ndata: [DONE]\n\n", "={\"x\":\"a:b\"}|=[DONE]|", 0},
    {"data: \xC3\xA4\xE2\x82\xAC\n\n", "=\xC3\xA4\xE2\x82\xAC|", 0},
    /* Ends that no blank line marks. */
    {"data: a", "=a|", 0},
    {"data: a\n", "=a|", 0},
    {"data: a\r", "=a|", 0},
    {"data: a\r\n", "=a|", 0},
    {"data: a\ndata: b", "=a\nb|", 0},
    {"data: a\n\nevent: b", "=a|", 0},
    {"dat", "", 0},
    {":", "", 1},
};

static void check(size_t i, const size_t *cuts, size_t n_cuts)
{
    struct seen seen = {.text = IPW_BUF(1000)};
    struct ipw_sse sse;
    size_t from = 0, n = strlen(cases[i].in);

    ipw_sse_init(&sse, 1000, on_event, &seen);
    for (size_t k = 0; k <= n_cuts; k++) {
        size_t to = k < n_cuts ? cuts[k] : n;
        /* A copy of the exact size: reading beyond it is an error the sanitizer sees. */
        char *piece = malloc(to - from + !(to - from));
        memcpy(piece, cases[i].in + from, to - from);
        assert_int_equal(ipw_sse_feed(&sse, piece, to - from, NULL), 0);
        free(piece);
        from = to;
    }
    assert_int_equal(ipw_sse_end(&sse, NULL), 0);
    if (strcmp(ipw_buf_str(&seen.text), cases[i].out) != 0)
        fail_msg("case %zu: \"%s\" instead of \"%s\"", i, ipw_buf_str(&seen.text), cases[i].out);
    assert_int_equal(sse.comments, cases[i].comments);
    ipw_sse_release(&sse);
    ipw_buf_release(&seen.text);
}

static void test_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(i, NULL, 0);
}

static void j5_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].in);
        for (size_t a = 0; a <= n; a++) {
            for (size_t b = a; b <= n; b++) {
                size_t cuts[] = {a, b};
                check(i, cuts, 2);
            }
        }
    }
}

static void j5_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t cuts[200], n = strlen(cases[i].in);
        assert_true(n <= 200);
        for (size_t k = 0; k < n; k++) cuts[k] = k;
        check(i, cuts, n);
    }
}

/* The ceiling holds for an event, for a line, and wherever the bytes are cut. */
static void n4_the_ceiling_of_an_event(void **state)
{
    static const struct {
        const char *in;
        int rc;
    } limits[] = {
        {"data: 0123456789\n\n", 0}, /* 16 bytes a line */
        {"data: 01234567890\n\n", IPW_ELIMIT},
        {"data:01234567\ndata:0123456\n\n", 0}, /* 16 bytes of data with the LF between */
        {"data:01234567\ndata:01234567\n\n", IPW_ELIMIT},
        {":0123456789abcdef\n\n", IPW_ELIMIT},
        {"0123456789abcdefgh", IPW_ELIMIT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        size_t n = strlen(limits[i].in);
        for (size_t cut = 0; cut <= n; cut++) {
            struct seen seen = {.text = IPW_BUF(1000)};
            struct ipw_err err = {0};
            struct ipw_sse sse;
            int rc;
            ipw_sse_init(&sse, 16, on_event, &seen);
            rc = ipw_sse_feed(&sse, limits[i].in, cut, &err);
            if (!rc) rc = ipw_sse_feed(&sse, limits[i].in + cut, n - cut, &err);
            if (!rc) rc = ipw_sse_end(&sse, &err);
            if (rc != limits[i].rc) fail_msg("case %zu cut at %zu: %d", i, cut, rc);
            if (rc) assert_non_null(strstr(err.text, "16 bytes"));
            ipw_sse_release(&sse);
            ipw_buf_release(&seen.text);
        }
    }
}

static void n4_an_endless_line(void **state)
{
    static char block[1 << 16];
    struct seen seen = {.text = IPW_BUF(1000)};
    struct ipw_sse sse;
    int rc = 0, blocks = 0;

    (void)state;
    memset(block, 'x', sizeof block);
    ipw_sse_init(&sse, 1 << 20, on_event, &seen);
    while (!rc && blocks < 1000) {
        rc = ipw_sse_feed(&sse, block, sizeof block, NULL);
        blocks++;
    }
    assert_int_equal(rc, IPW_ELIMIT);
    assert_int_equal(blocks, 17);
    assert_true(sse.line.cap <= 2 << 20);
    assert_int_equal(ipw_sse_feed(&sse, "\n", 1, NULL), IPW_ELIMIT); /* it stays failed */
    ipw_sse_release(&sse);
    ipw_buf_release(&seen.text);
}

static void test_stop(void **state)
{
    struct seen seen = {.text = IPW_BUF(1000), .stop_at = 2};
    struct ipw_err err = {0};
    struct ipw_sse sse;

    (void)state;
    ipw_sse_init(&sse, 1000, on_event, &seen);
    assert_int_equal(ipw_sse_feed(&sse, "data: a\n\ndata: b\n\ndata: c\n\n", 27, &err),
                     IPW_ECANCELLED);
    assert_string_equal(err.text, "enough");
    assert_string_equal(ipw_buf_str(&seen.text), "=a|=b|");
    ipw_sse_release(&sse);
    ipw_buf_release(&seen.text);
}

static void test_long_name(void **state)
{
    struct seen seen = {.text = IPW_BUF(1000)};
    struct ipw_sse sse;
    char in[300];

    (void)state;
    memset(in, 'n', sizeof in);
    memcpy(in, "event: ", 7);
    memcpy(in + 280, "\ndata: a\n\n", 10);
    ipw_sse_init(&sse, 1000, on_event, &seen);
    assert_int_equal(ipw_sse_feed(&sse, in, 290, NULL), 0);
    assert_int_equal(seen.text.len, 63 + 3);
    ipw_sse_release(&sse);
    ipw_buf_release(&seen.text);
}

UNIT(sse)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),         cmocka_unit_test(j5_every_cut),
        cmocka_unit_test(j5_byte_by_byte),    cmocka_unit_test(n4_the_ceiling_of_an_event),
        cmocka_unit_test(n4_an_endless_line), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_long_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
