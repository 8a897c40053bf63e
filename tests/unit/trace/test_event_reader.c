/* A record read as a script: in order, ahead for one query, without a torn end, damage by its
 * line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/event_reader.h"

#include "unit/trace/folder.h"
#include "unit/unit.h"

static struct ipw_event_reader *open_with(const char *text)
{
    struct ipw_event_reader *events;
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(ipw_event_reader_open(&events, dir, NULL), 0);
    return events;
}

#define START(q, id)                                                                               \
    "{\"event\":\"query_start\",\"id\":\"" id "\",\"query\":" #q ",\"span\":0,\"t_ns\":1}\n"
#define ASK(q, span, kept, messages)                                                               \
    "{\"attempt\":1,\"data\":{\"messages\":[" messages "],\"messages_kept\":" #kept "},"           \
    "\"event\":\"lm_inference_start\",\"model\":\"m\",\"query\":" #q ",\"span\":" #span            \
    ",\"t_ns\":2}\n"

static const char two[] = START(0, "a") START(1, "b") ASK(0, 1, 0, "{\"n\":1},{\"n\":2}")
    ASK(1, 1, 0, "{\"other\":1}") ASK(0, 2, 1, "{\"n\":3}") "{\"event\":\"query_e";

static void in_order(void **state)
{
    struct ipw_event_reader *r = open_with(two);
    const struct ipw_event_line *line;
    struct ipw_err err;
    int64_t n = 0;

    (void)state;
    while (ipw_event_reader_head(r, &line, &err) == 1) {
        assert_int_equal(line->number, ++n);
        ipw_event_reader_drop(r, line);
    }
    assert_int_equal(n, 5); /* the torn line is no part of it */
    ipw_event_reader_close(r);
}

static void ahead(void **state)
{
    struct ipw_event_reader *r = open_with(two);
    const struct ipw_event_line *line = ipw_event_reader_peek(r, 1, 1, SIZE_MAX), *head;

    (void)state;
    assert_int_equal(line->number, 4);
    assert_null(ipw_event_reader_peek(r, 1, 2, SIZE_MAX));
    assert_null(ipw_event_reader_peek(r, 1, 1, 3)); /* beyond the reach */
    ipw_event_reader_drop(r, line);
    assert_null(ipw_event_reader_peek(r, 1, 1, SIZE_MAX));
    assert_int_equal(ipw_event_reader_head(r, &head, NULL), 1);
    assert_int_equal(head->number, 1);
    ipw_event_reader_close(r);
}

static void messages(void **state)
{
    struct ipw_event_reader *r = open_with(two);
    struct ipw_request_messages m;

    (void)state;
    assert_int_equal(ipw_request_messages(&m, r, 0, 4, NULL), 0);
    assert_int_equal(m.n, 2);
    ipw_request_messages_release(&m);
    assert_int_equal(ipw_request_messages(&m, r, 0, 5, NULL), 0);
    assert_int_equal(m.n, 2);
    assert_string_equal(m.texts[0], "{\"n\":1}");
    assert_string_equal(m.texts[1], "{\"n\":3}");
    ipw_request_messages_release(&m);
    ipw_event_reader_close(r);
}

static void damage(void **state)
{
    struct ipw_event_reader *r = open_with(START(0, "a") "{\"event\":\"nothing\"}\n" START(1, "b"));
    const struct ipw_event_line *line;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_event_reader_head(r, &line, &err), 1);
    ipw_event_reader_drop(r, line);
    assert_true(ipw_event_reader_head(r, &line, &err) < 0);
    assert_non_null(strstr(err.text, "events.jsonl:2"));
    ipw_event_reader_close(r);
}

static void begun_last(void **state)
{
    struct ipw_event_reader *r = open_with(START(0, "a") START(2, "c") ASK(0, 1, 0, "{}") START(
        0, "a") START(2000000000, "far") "{\"event\":\"query_start\"");
    struct ipw_query_starts starts;

    (void)state;
    assert_int_equal(ipw_query_starts(&starts, r, NULL), 0);
    assert_int_equal(starts.n, 3); /* an index that no run has is passed over */
    assert_int_equal(starts.lines[0], 4);
    assert_int_equal(starts.lines[1], 0);
    assert_int_equal(starts.lines[2], 2);
    ipw_query_starts_release(&starts);
    ipw_event_reader_close(r);
}

/* Lines that are no event are passed over where only some are looked for; who reads them all is
 * told. */
static void damage_elsewhere(void **state)
{
    static const char text[] =
        "{\"event\":\"query_start\",\"id\":\n"
        "{\"event\":\"query_start\",\"query\":\"x\",\"id\":5}\n"
        "{\"event\":\"query_start\",\"id\":\"n\",\"query\":-1,\"span\":0,\"t_ns\":1}\n"
        "{\"event\":\"note\",\"name\":\"\\\"event\\\":\\\"query_start\\\"\","
        "\"query\":5,\"span\":0,\"t_ns\":1}\n" START(0, "a") ASK(0, 1, 0, "{\"n\":1}") START(0, "a")
            ASK(0, 1, 0, "{\"n\":2}") "{\"torn";
    struct ipw_event_reader *r = open_with(text);
    struct ipw_query_starts starts;
    struct ipw_request_messages m;
    const struct ipw_event_line *line;

    (void)state;
    assert_int_equal(ipw_query_starts(&starts, r, NULL), 0);
    assert_int_equal(starts.n, 1);
    assert_int_equal(starts.lines[0], 7);
    ipw_query_starts_release(&starts);
    /* one that is run again has none of the messages before */
    assert_int_equal(ipw_request_messages(&m, r, 0, 100, NULL), 0);
    assert_int_equal(m.n, 1);
    assert_string_equal(m.texts[0], "{\"n\":2}");
    ipw_request_messages_release(&m);
    assert_int_equal(ipw_event_reader_head(r, &line, NULL), IPW_EPARSE);
    assert_null(line);
    ipw_event_reader_close(r);
}

static void a_run_that_goes_away(void **state)
{
    char path[64];
    struct ipw_event_reader *r;
    struct ipw_query_starts starts;
    struct ipw_request_messages m;
    const struct ipw_event_line *line;
    struct ipw_err err = {0};

    (void)state;
    ipw_event_reader_close(open_with(START(0, "a")));
    snprintf(path, sizeof path, "%s/", dir); /* as a shell completes it */
    assert_int_equal(ipw_event_reader_open(&r, path, NULL), 0);
    assert_int_equal(ipw_event_reader_head(r, &line, &err), 1);
    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    unlink(path);
    assert_int_equal(ipw_query_starts(&starts, r, &err), IPW_ENOTFOUND);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(ipw_request_messages(&m, r, 0, 5, &err), IPW_ENOTFOUND);
    ipw_event_reader_close(r);
    ipw_event_reader_close(NULL);
    assert_int_equal(ipw_event_reader_open(&r, dir, &err), IPW_ENOTFOUND);
    assert_non_null(strstr(err.text, path));
}

UNIT(event_reader)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_order),
                                       cmocka_unit_test(ahead),
                                       cmocka_unit_test(messages),
                                       cmocka_unit_test(damage),
                                       cmocka_unit_test(begun_last),
                                       cmocka_unit_test(damage_elsewhere),
                                       cmocka_unit_test(a_run_that_goes_away)};

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
