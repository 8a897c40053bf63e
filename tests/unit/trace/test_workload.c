/* Workloads: what one row may hold, the index over rows and over records, and what is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "trace/workload.h"
#include "trace/workload_priv.h"
#include "trace/workload_prompt.h"
#include "unit/unit.h"

static char dir[] = "/tmp/ipw-workload.XXXXXX", rows_path[64], events_path[64];

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static struct ipw_workload *open_at(const char *path, const char *file, const char *text)
{
    struct ipw_workload *w = NULL;
    struct ipw_err err = {0};

    write_file(file, text);
    if (ipw_workload_open(&w, path, &err)) fail_msg("%s", err.text);
    return w;
}

static struct ipw_workload *rows(const char *text) { return open_at(rows_path, rows_path, text); }
static struct ipw_workload *record(const char *text) { return open_at(dir, events_path, text); }

static void refused(const char *path, const char *file, const char *text, const char *part)
{
    struct ipw_workload *w = NULL;
    struct ipw_err err = {0};

    write_file(file, text);
    assert_true(ipw_workload_open(&w, path, &err) < 0);
    if (!strstr(err.text, part)) fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    assert_null(w);
}

/* ---- one row ---- */

static void row_fails(const char *text, const char *part)
{
    struct ipw_workload_turn turn;
    struct ipw_err err = {0};
    char *session;

    assert_true(ipw_workload_row(&turn, &session, text, strlen(text), &err) < 0);
    if (!strstr(err.text, part)) fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    ipw_workload_turn_release(&turn);
    free(session);
}

static void a_row(void **state)
{
    static const char text[] =
        "{\"timestamp\":12.5,\"delay\":2,\"input_length\":513,\"output_length\":0,"
        "\"hash_ids\":[7,-9223372036854775808],\"session_id\":42,\"priority\":\"high\"}";
    struct ipw_workload_turn turn;
    char *session;

    (void)state;
    assert_int_equal(ipw_workload_row(&turn, &session, text, strlen(text), NULL), 0);
    assert_int_equal(turn.at_ns, 12500000);
    assert_int_equal(turn.gap_ns, 2 * IPW_NS_PER_MS);
    assert_int_equal(turn.input_tokens, 513);
    assert_int_equal(turn.output_tokens, 0);
    assert_int_equal(turn.n_blocks, 2);
    assert_true(turn.blocks[0] == 7 && turn.blocks[1] == INT64_MIN);
    assert_string_equal(session, "42");
    ipw_workload_turn_release(&turn);
    free(session);
}

static void rows_that_are_none(void **state)
{
    (void)state;
    row_fails("", "byte 0");
    row_fails("[]", "expected an object");
    row_fails("{\"timestamp\":1}", "input_length");
    row_fails("{\"timestamp\":1,\"input_length\":4}", "output_length");
    row_fails("{\"timestamp\":1,\"input_length\":-4,\"output_length\":1}",
              "input_length: expected");
    row_fails("{\"timestamp\":1,\"input_length\":1e300,\"output_length\":1}", "input_length");
    row_fails("{\"timestamp\":1,\"input_length\":16777217,\"output_length\":1}",
              "at most 16777216");
    row_fails("{\"timestamp\":-1,\"input_length\":1,\"output_length\":1}", "timestamp: expected");
    row_fails("{\"timestamp\":1e12,\"input_length\":1,\"output_length\":1}", "timestamp: expected");
    row_fails("{\"timestamp\":\"1\",\"input_length\":1,\"output_length\":1}", "timestamp");
    row_fails("{\"timestamp\":1,\"delay\":-0.5,\"input_length\":1,\"output_length\":1}", "delay");
    row_fails("{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":7}", "a list");
    row_fails("{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":[1,2.5]}",
              "hash_ids[1]");
    row_fails("{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"session_id\":[]}",
              "session_id");
}

/* ---- a file of rows ---- */

/* "id:at/gap/in,at/gap/in ..." of all queries, in ms. */
static void said(char *out, size_t size, struct ipw_workload *w)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < ipw_workload_count(w); i++) {
        struct ipw_workload_query *q = NULL;
        struct ipw_err err = {0};
        int rc;

        if (ipw_workload_take(&q, w, i, &err)) fail_msg("%s", err.text);
        assert_string_equal(q->id, ipw_workload_id(w, i));
        used += (size_t)snprintf(out + used, size - used, "%s%s:", i ? " " : "", q->id);
        while ((rc = ipw_workload_next(q, &err)) > 0) {
            if (q->n_read == 1) assert_true(q->turn.at_ns >= ipw_workload_at(w, i));
            used += (size_t)snprintf(
                out + used, size - used, "%s%lld/%lld/%lld", q->n_read > 1 ? "," : "",
                (long long)(q->turn.at_ns / IPW_NS_PER_MS),
                (long long)(q->turn.gap_ns / IPW_NS_PER_MS), (long long)q->turn.input_tokens);
        }
        if (rc) fail_msg("%s", err.text);
        assert_int_equal(q->n_read, q->n);
        ipw_workload_drop(q);
    }
}

static void says(struct ipw_workload *w, const char *want)
{
    char text[1024];

    said(text, sizeof text, w);
    assert_string_equal(text, want);
}

#define ROW(t, in) "{\"timestamp\":" #t ",\"input_length\":" #in ",\"output_length\":1}\n"
#define TURN(t, s, in)                                                                             \
    "{\"timestamp\":" #t ",\"session_id\":\"" s "\",\"delay\":5,\"input_length\":" #in             \
    ",\"output_length\":1}\n"
#define LATER(s, d, in)                                                                            \
    "{\"session_id\":\"" s "\",\"delay\":" #d ",\"input_length\":" #in ",\"output_length\":1}\n"

/* By time, whatever the order of the file; the first request is time 0. */
static void by_time(void **state)
{
    struct ipw_workload *w = rows(ROW(1300, 3) "\n" ROW(1000, 1) ROW(1200, 2) ROW(1200, 4));

    (void)state;
    assert_true(ipw_workload_is_lines(w));
    assert_int_equal(ipw_workload_requests(w), 4);
    says(w, "r00002:0/0/1 r00003:200/0/2 r00004:200/0/4 r00000:300/0/3");
    assert_int_equal(ipw_workload_at(w, 1), 200 * IPW_NS_PER_MS);
    /* Again, and in another order. */
    says(w, "r00002:0/0/1 r00003:200/0/2 r00004:200/0/4 r00000:300/0/3");
    ipw_workload_free(w);
}

static void sessions(void **state)
{
    struct ipw_workload *w = rows(TURN(100, "b", 1) ROW(100, 2) TURN(150, "a", 3) LATER("b", 7, 4)
                                      TURN(300, "a", 5) LATER("b", 2, 6));

    (void)state;
    assert_int_equal(ipw_workload_requests(w), 6);
    says(w, "b:0/5/1,7/7/4,9/2/6 r00001:0/0/2 a:50/5/3,200/5/5");
    ipw_workload_free(w);
    refused(rows_path, rows_path, ROW(1, 1) LATER("x", 3, 2), "rows.jsonl:2: timestamp");
    refused(rows_path, rows_path, "\n\n", "contains no request");
    refused(rows_path, rows_path, ROW(1, 1) "{\n", "rows.jsonl:2: at byte");
}

static void kept(void **state)
{
    static const char text[] = ROW(10, 1) TURN(20, "a", 2) ROW(30, 3) TURN(40, "a", 4);
    struct ipw_workload *w = rows(text);
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_workload_keep(w, NULL, 2, &err), 0);
    assert_int_equal(ipw_workload_requests(w), 3);
    says(w, "r00000:0/0/1 a:10/5/2,30/5/4");
    assert_int_equal(ipw_workload_keep(w, "a", 0, &err), 0);
    says(w, "a:10/5/2,30/5/4");
    assert_true(ipw_workload_keep(w, "b", 0, &err) < 0);
    assert_non_null(strstr(err.text, "there is no query \"b\""));
    ipw_workload_free(w);
}

/* As many sessions as rows, twice: each is found again. */
static void many_sessions(void **state)
{
    enum { MANY = 30000 };
    FILE *f = fopen(rows_path, "w");
    struct ipw_workload *w = NULL;
    struct ipw_err err = {0};

    (void)state;
    assert_non_null(f);
    for (int i = 0; i < 2 * MANY; i++)
        fprintf(
            f,
            "{\"timestamp\":%d,\"session_id\":\"s%d\",\"input_length\":1,\"output_length\":%d}\n",
            i, i * 7919 % MANY, i);
    fclose(f);
    if (ipw_workload_open(&w, rows_path, &err)) fail_msg("%s", err.text);
    assert_int_equal(ipw_workload_count(w), MANY);
    assert_int_equal(ipw_workload_requests(w), 2 * MANY);
    for (size_t i = 0; i < MANY; i += 997) {
        struct ipw_workload_query *q;

        assert_int_equal(ipw_workload_take(&q, w, i, &err), 0);
        assert_int_equal(q->n, 2);
        assert_int_equal(ipw_workload_next(q, &err), 1);
        assert_int_equal(q->turn.output_tokens, i);
        assert_int_equal(ipw_workload_next(q, &err), 1);
        assert_int_equal(q->turn.output_tokens, i + MANY);
        assert_int_equal(ipw_workload_next(q, &err), 0);
        ipw_workload_drop(q);
    }
    ipw_workload_free(w);
}

/* A file that is not what it was when it was opened is no workload any more. */
static void changed(void **state)
{
    struct ipw_workload *w = rows(ROW(1, 1) ROW(2, 2));
    struct ipw_workload_query *q;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(truncate(rows_path, 0), 0);
    assert_int_equal(ipw_workload_take(&q, w, 1, &err), 0);
    assert_true(ipw_workload_next(q, &err) < 0);
    assert_non_null(strstr(err.text, "read again: the file became shorter"));
    ipw_workload_drop(q);
    ipw_workload_free(w);
}

/* ---- a record ---- */

#define EVENT(name, q, span, t, more)                                                              \
    "{\"event\":\"" name "\"," more "\"query\":" #q ",\"span\":" #span ",\"t_ns\":" #t "000000}\n"
#define RUN(t) EVENT("run_start", -1, 0, t, "")
#define BEGIN(q, id, t)                                                                            \
    EVENT("query_start", q, 0, t, "\"data\":{\"prompt\":\"p-" id "\"},\"id\":\"" id "\",")
#define WARM(q, id, t)                                                                             \
    EVENT("query_start", q, 0, t, "\"data\":{\"warmup\":true},\"id\":\"" id "\",")
#define ASK(q, span, t, nth, kept, messages)                                                       \
    EVENT("lm_inference_start", q, span, t,                                                        \
          "\"attempt\":" #nth ",\"data\":{\"messages\":[" messages "],\"messages_kept\":" #kept    \
          ",\"request\":{\"max_tokens\":9,\"model\":\"m\",\"temperature\":0.5}},")
#define TOLD(q, span, t, in, out)                                                                  \
    EVENT("lm_inference_end", q, span, t,                                                          \
          "\"input_tokens\":" #in ",\"outcome\":\"ok\",\"output_tokens\":" #out ",")
#define FAILED(q, span, t)                                                                         \
    EVENT("lm_inference_end", q, span, t, "\"outcome\":\"reset\",\"will_retry\":true,")
#define END(q, t) EVENT("query_end", q, 0, t, "\"completed\":true,\"outcome\":\"answered\",")

static void a_record(void **state)
{
    struct ipw_workload *w =
        record(RUN(100) WARM(9, "w", 101) ASK(9, 1, 101, 1, 0, "0") BEGIN(0, "a", 110)
                   ASK(0, 1, 112, 1, 0, "1,2") BEGIN(1, "b", 113) TOLD(0, 1, 120, 11, 21)
                       ASK(1, 1, 121, 1, 0, "7") ASK(0, 2, 150, 1, 2, "3,4") FAILED(1, 1, 160)
                           ASK(1, 2, 165, 2, 1, "") TOLD(0, 2, 170, 12, 22) TOLD(1, 2, 180, 13, 23)
                               ASK(0, 3, 200, 1, 1, "5") END(1, 190) "{\"event\":\"que");
    struct ipw_workload_query *q;
    struct ipw_err err = {0};

    (void)state;
    assert_false(ipw_workload_is_lines(w));
    assert_int_equal(ipw_workload_requests(w), 4);
    /* The gap is after the last reply of the same query; what was sent again is one request. */
    says(w, "a:12/2/11,50/30/12,100/30/-1 b:21/8/13");
    assert_int_equal(ipw_workload_take(&q, w, 0, &err), 0);
    assert_string_equal(q->prompt, "p-a");
    assert_int_equal(ipw_workload_next(q, &err), 1);
    assert_int_equal(q->turn.n_messages, 2);
    assert_int_equal(q->turn.output_tokens, 21);
    assert_string_equal(q->turn.rest, "{\"temperature\":0.5}");
    assert_int_equal(ipw_workload_next(q, &err), 1);
    assert_int_equal(q->turn.n_messages, 4);
    assert_string_equal(q->turn.messages[3], "4");
    assert_int_equal(ipw_workload_next(q, &err), 1);
    assert_int_equal(q->turn.n_messages, 2); /* one kept */
    assert_string_equal(q->turn.messages[0], "1");
    assert_string_equal(q->turn.messages[1], "5");
    ipw_workload_drop(q);
    ipw_workload_free(w);
}

/* Two requests of one query at once: each has its own reply. */
/* What was counted of a stream that was cut is no length to ask for, whatever the next attempt
 * says. */
static void counted_lengths(void **state)
{
    struct ipw_workload *w = record(RUN(100) BEGIN(0, "a", 110) ASK(0, 1, 112, 1, 0, "1") EVENT(
        "lm_inference_end", 0, 1, 120,
        "\"outcome\":\"cut\",\"output_tokens\":3,\"tokens_estimated\":true,\"will_retry\":true,")
                                        ASK(0, 2, 130, 2, 1, "")
                                            EVENT("lm_inference_end", 0, 2, 140,
                                                  "\"outcome\":\"refused\",") END(0, 150));
    struct ipw_workload_query *q;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_workload_take(&q, w, 0, &err), 0);
    assert_int_equal(ipw_workload_next(q, &err), 1);
    assert_int_equal(q->turn.output_tokens, 3);
    assert_true(q->turn.tokens_estimated);
    ipw_workload_drop(q);
    ipw_workload_free(w);
}

static void side_by_side(void **state)
{
    struct ipw_workload *w =
        record(RUN(1) BEGIN(0, "a", 1) ASK(0, 1, 10, 1, 0, "1") ASK(0, 2, 11, 1, 0, "2")
                   TOLD(0, 2, 20, 2, 2) TOLD(0, 1, 30, 1, 1) ASK(0, 3, 31, 1, 1, "3")
                       TOLD(0, 3, 40, 3, 3) END(0, 41));

    (void)state;
    says(w, "a:9/9/1,10/10/2,30/1/3");
    ipw_workload_free(w);
}

/* A run that was resumed: the sessions' clocks are laid end to end, and a query that was cut down
 * counts as it was begun last. */
static void resumed(void **state)
{
    struct ipw_workload *w =
        record(RUN(1000) BEGIN(0, "a", 1000) ASK(0, 1, 1010, 1, 0, "1") TOLD(0, 1, 1020, 1, 1)
                   END(0, 1020) BEGIN(1, "b", 1020) ASK(1, 1, 1030, 1, 0, "2") RUN(5)
                       BEGIN(1, "b", 10) ASK(1, 1, 15, 1, 0, "3") TOLD(1, 1, 25, 3, 1) END(1, 26)
                           BEGIN(2, "c", 26) END(2, 27));

    (void)state;
    says(w, "a:10/10/1 b:40/5/3"); /* c never asked */
    ipw_workload_free(w);
}

static void damaged(void **state)
{
    (void)state;
    refused(dir, events_path, RUN(1) "{\"event\":\"query_start\"\n" END(0, 1), "events.jsonl:2: ");
    refused(dir, events_path, RUN(1) BEGIN(0, "a", 1) END(0, 2), "contains no request");
}

/* ---- prompts ---- */

static size_t words_of(const struct ipw_buf *text)
{
    const char *at = strstr(text->data, ":\"");
    size_t n = 0;

    for (at += 2; *at != '"'; at++) n += *at == ' ';
    return n;
}

static void prompts(void **state)
{
    static int64_t blocks[] = {5, 6};
    static const int64_t lengths[] = {0, 1, 511, 512, 513, 1024, 1500, 70000};
    struct ipw_workload_turn turn = {.blocks = blocks, .n_blocks = 2};
    struct ipw_buf first = IPW_BUF(IPW_MIB), other = IPW_BUF(IPW_MIB);
    size_t same = 0;

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        ipw_buf_clear(&first);
        turn.input_tokens = lengths[i];
        ipw_workload_prompt(&first, &turn, 1);
        assert_int_equal(words_of(&first), lengths[i] ? lengths[i] : 1);
        ipw_buf_clear(&other);
        ipw_workload_prompt(&other, &turn, 1);
        assert_string_equal(first.data, other.data);
    }
    /* Its blocks are those of all that have them; what follows is its own. */
    ipw_buf_clear(&other);
    ipw_workload_prompt(&other, &turn, 2);
    while (first.data[same] == other.data[same]) same++;
    first.data[same] = '"';
    first.data[same + 1] = '\0';
    assert_in_range(words_of(&first), 1024, 1030);
    ipw_buf_release(&first);
    ipw_buf_release(&other);
    /* One that does not fit says so. */
    other = IPW_BUF(1000);
    ipw_workload_prompt(&other, &turn, 2);
    assert_true(other.failed);
    ipw_buf_release(&other);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(dir)) return -1;
    snprintf(rows_path, sizeof rows_path, "%s/rows.jsonl", dir);
    snprintf(events_path, sizeof events_path, "%s/events.jsonl", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(rows_path);
    unlink(events_path);
    return rmdir(dir);
}

UNIT(workload)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row),
        cmocka_unit_test(rows_that_are_none),
        cmocka_unit_test(by_time),
        cmocka_unit_test(sessions),
        cmocka_unit_test(kept),
        cmocka_unit_test(many_sessions),
        cmocka_unit_test(changed),
        cmocka_unit_test(a_record),
        cmocka_unit_test(counted_lengths),
        cmocka_unit_test(side_by_side),
        cmocka_unit_test(resumed),
        cmocka_unit_test(damaged),
        cmocka_unit_test(prompts),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
