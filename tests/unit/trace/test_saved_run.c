#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/saved_run.h"
#include "unit/base/temp_folder.h"
#include "unit/unit.h"

#define A "{\"query_id\":\"q0000\", \"turns\":[] }"
#define B "{\"query_id\":\"q0001\",\"query_text\":\"secret words\"}"

static void write_text(const char *path, const char *mode, const char *text)
{
    FILE *f = fopen(path, mode);

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void put(const char *path, const char *text) { write_text(path, "w", text); }
static void add(const char *path, const char *text) { write_text(path, "a", text); }

static void queries_come_one_by_one(void **state)
{
    static const struct {
        const char *traces;
        int n, rc, torn;
        const char *message;
    } cases[] = {
        {"", 0, 0, 0, NULL},
        {A "\n\n" B "\r\n", 2, 0, 0, NULL},
        {A "\n{\"query_id\":\"q00", 1, 0, 1, NULL},
        {A "\n{\"query_id\":\n" B "\n", 1, IPW_EPARSE, 0, "run/traces.jsonl:2: "},
        {A "\n{\"turns\":[]}\n", 1, IPW_EPARSE, 0, "query_id"},
    };

    (void)state;
    mkdir("run", 0700);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_saved_run *run = NULL;
        struct ipw_saved_line line;
        struct ipw_err err = {0};
        int n = 0, rc;

        put("run/traces.jsonl", cases[i].traces);
        assert_int_equal(ipw_saved_run_open(&run, i % 2 ? "run/" : "run", NULL, &err), 0);
        while ((rc = ipw_saved_run_query(&line, run, &err)) > 0) {
            assert_string_equal(ipw_json_get_str(line.doc, "query_id"), n ? "q0001" : "q0000");
            assert_memory_equal(line.text, n ? B : A, line.n);
            n++;
        }
        assert_int_equal(rc, cases[i].rc);
        assert_int_equal(n, cases[i].n);
        assert_int_equal(ipw_saved_run_torn(run), cases[i].torn);
        if (cases[i].message) assert_non_null(strstr(err.text, cases[i].message));
        ipw_saved_run_close(run);
    }
}

static void attempts_come_after_queries(void **state)
{
    struct ipw_saved_run *run;
    struct ipw_saved_line line;
    struct ipw_err err = {0};

    (void)state;
    mkdir("run", 0700);
    put("run/traces.jsonl", A "\n");
    assert_int_equal(ipw_saved_run_open(&run, "run", NULL, &err), 0);
    assert_int_equal(ipw_saved_run_attempts(run, &err), 0);
    assert_int_equal(ipw_saved_run_query(&line, run, &err), 1); /* the queries, as before */
    put("run/attempts.jsonl", B "\n{\"query_id\":");
    assert_int_equal(ipw_saved_run_attempts(run, &err), 1);
    assert_int_equal(ipw_saved_run_query(&line, run, &err), 1);
    assert_string_equal(ipw_json_get_str(line.doc, "query_id"), "q0001");
    assert_int_equal(ipw_saved_run_query(&line, run, &err), 0);
    assert_true(ipw_saved_run_torn(run));
    ipw_saved_run_close(run);
    unlink("run/attempts.jsonl");
}

static void a_redacted_line_has_no_text(void **state)
{
    struct ipw_redactor redactor;
    struct ipw_saved_run *run;
    struct ipw_saved_line line;
    struct ipw_err err;

    (void)state;
    assert_int_equal(ipw_redactor_init(&redactor, IPW_REDACT_ALL, &err), 0);
    put("traces", B "\n");
    assert_int_equal(ipw_saved_run_open(&run, "traces", &redactor, &err), 0);
    assert_int_equal(ipw_saved_run_query(&line, run, &err), 1);
    assert_null(strstr(line.text, "secret"));
    assert_int_equal(strlen(ipw_json_get_str(line.doc, "query_text")), strlen("secret words"));
    /* A file of traces has no events, power or documents beside it. */
    assert_int_equal(ipw_saved_run_events(run, 0, &err), 0);
    assert_int_equal(ipw_saved_run_power(&line, NULL, run, &err), 0);
    ipw_saved_run_close(run);
}

/* Events of queries that ran at once, of an earlier session, and one whose texts hold the key. */
static void a_redacted_document_has_no_text(void **state)
{
    struct ipw_redactor r = {.key = 17, .what = IPW_REDACT_ALL};

    (void)state;
    mkdir("run", 0700);
    put("run/traces.jsonl", A "\n");
    put("run/manifest.json", "{\"model\":\"m\",\"segments\":[{\"command\":\"secret words\"}]}");
    for (int redacted = 0; redacted <= 1; redacted++) {
        struct ipw_saved_run *run = NULL;
        const struct ipw_json *first;
        struct ipw_json *doc;
        struct ipw_err err = {0};

        assert_int_equal(ipw_saved_run_open(&run, "run", redacted ? &r : NULL, &err), 0);
        assert_int_equal(ipw_saved_run_document(&doc, run, "manifest.json", &err), 0);
        assert_string_equal(ipw_json_get_str(doc, "model"), "m");
        first = ipw_json_at(ipw_json_get(doc, "segments"), 0);
        assert_int_equal(ipw_json_kind(ipw_json_get(first, "command")),
                         redacted ? IPW_JSON_NULL : IPW_JSON_STR);
        ipw_json_free(doc);
        ipw_saved_run_close(run);
    }
}

static void events_are_those_of_the_query(void **state)
{
    static const char events[] = "{\"event\":\"run_start\",\"query\":-1,\"t_ns\":0}\n"
                                 "{\"event\":\"query_start\",\"query\":0,\"t_ns\":1}\n"
                                 "{\"event\":\"query_start\",\"query\":1,\"t_ns\":2}\n"
                                 "{\"event\":\"run_start\",\"query\":-1,\"segment\":1,\"t_ns\":0}\n"
                                 "{\"event\":\"query_start\",\"query\":1,\"t_ns\":3}\n"
                                 "{\"data\":{\"arguments\":{\"query\":1}},\"event\":\"tool_call_"
                                 "start\",\"query\":2,\"t_ns\":4}\n"
                                 "{\"event\":\"query_end\",\"query\":1,\"t_ns\":5}\n"
                                 "{\"event\":\"query_end\",\"query\":2,\"t_ns\":6}\n"
                                 "{\"event\":\"query_end\",\"quer";
    static const struct {
        int64_t query, times[3];
    } cases[] = {{0, {1}}, {1, {3, 5}}, {2, {4, 6}}, {1, {3, 5}}, {3, {0}}, {-1, {0}}};
    struct ipw_saved_run *run;
    struct ipw_saved_line line;
    struct ipw_err err;

    (void)state;
    mkdir("with_events", 0700);
    put("with_events/traces.jsonl", A "\n");
    put("with_events/events.jsonl", events);
    assert_int_equal(ipw_saved_run_open(&run, "with_events", NULL, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = 0, rc = ipw_saved_run_events(run, cases[i].query, &err);

        assert_int_equal(rc, cases[i].times[0] != 0);
        while (rc > 0 && (rc = ipw_saved_run_event(&line, run, &err)) > 0)
            assert_int_equal(ipw_json_int(ipw_json_get(line.doc, "t_ns"), -1), cases[i].times[n++]);
        assert_int_equal(rc, 0);
        assert_int_equal(n < 3 ? cases[i].times[n] : 0, 0);
    }
    ipw_saved_run_close(run);
}

/* What a process wants that follows a resumed run: also when that session has not begun yet. */
static void earlier_sessions_are_passed_over(void **state)
{
    static const char *const events[] = {
        "{\"event\":\"run_start\",\"query\":-1,\"segment\":0,\"t_ns\":1}\n"
        "{\"event\":\"note\",\"query\":-1,\"t_ns\":2}\n"
        "{\"data\":{\"event\":\"run_start\",\"segment\":1},\"event\":\"note\",\"t_ns\":3}\n"
        "not parsed\n",
        "{\"event\":\"run_start\",\"query\":-1,\"segment\":1,\"t_ns\":4}\n"
        "{\"event\":\"note\",\"query\":-1,\"t_ns\":5}\n",
    };
    static const char *const power[] = {"{\"segment\":0}\n[5,0,7]\n", "{\"segment\":1}\n[9,0,7]\n"};
    struct ipw_saved_run *run;
    struct ipw_sampler_row row = {0};
    struct ipw_saved_line line;
    struct ipw_err err;
    int64_t offset, sum = 0;

    (void)state;
    mkdir("resumed", 0700);
    put("resumed/traces.jsonl", "");
    put("resumed/events.jsonl", events[0]);
    put("resumed/power.jsonl", power[0]);
    assert_int_equal(ipw_saved_run_open(&run, "resumed", NULL, &err), 0);
    ipw_saved_run_since(run, 1);
    assert_int_equal(ipw_saved_run_each_event(&line, &offset, run, &err), 0);
    assert_int_equal(ipw_saved_run_power(&line, &row, run, &err), 0);
    add("resumed/events.jsonl", events[1]);
    add("resumed/power.jsonl", power[1]);
    while (ipw_saved_run_each_event(&line, &offset, run, &err) > 0)
        sum += ipw_json_int(ipw_json_get(line.doc, "t_ns"), 0);
    assert_int_equal(sum, 4 + 5);
    assert_int_equal(ipw_saved_run_power(&line, &row, run, &err), 1);
    assert_non_null(line.doc);
    assert_int_equal(ipw_saved_run_power(&line, &row, run, &err), 1);
    assert_int_equal(row.t_ns, 9);
    ipw_saved_run_close(run);
}

static void power_is_headers_and_rows(void **state)
{
    struct ipw_saved_run *run;
    struct ipw_sampler_row row;
    struct ipw_saved_line line;
    struct ipw_err err;

    (void)state;
    mkdir("powered", 0700);
    put("powered/traces.jsonl", "");
    put("powered/power.jsonl", "{\"segment\":0}\n[5,0,7,null]\n[6,x]\n[7,0");
    assert_int_equal(ipw_saved_run_open(&run, "powered", NULL, &err), 0);
    assert_int_equal(ipw_saved_run_power(&line, &row, run, &err), 1);
    assert_non_null(line.doc);
    assert_int_equal(ipw_saved_run_power(&line, &row, run, &err), 1);
    assert_null(line.doc);
    assert_int_equal(row.t_ns, 5);
    assert_int_equal(row.values[0], 7);
    assert_int_equal(row.values[1], IPW_NO_VALUE);
    assert_int_equal(ipw_saved_run_power(&line, &row, run, &err), IPW_EPARSE);
    assert_non_null(strstr(err.text, "powered/power.jsonl:3: "));
    assert_int_equal(ipw_saved_run_power(&line, &row, run, &err), 0);
    ipw_saved_run_close(run);
}

UNIT(saved_run)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_come_one_by_one),
        cmocka_unit_test(attempts_come_after_queries),
        cmocka_unit_test(a_redacted_line_has_no_text),
        cmocka_unit_test(a_redacted_document_has_no_text),
        cmocka_unit_test(events_are_those_of_the_query),
        cmocka_unit_test(earlier_sessions_are_passed_over),
        cmocka_unit_test(power_is_headers_and_rows),
    };
    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
