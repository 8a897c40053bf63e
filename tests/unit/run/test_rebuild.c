/* The edge rows of what is put in order: a query without a line, a line without a query, a lost
 * manifest, sessions that left little, and files that somebody changed. */
#include "unit/run/damaged_run.h"
#include "unit/unit.h"

static void an_ended_run_is_whole_again(void **state)
{
    struct ipw_repair r;

    (void)state;
    put_ended();
    repair_well(&r);
    assert_int_equal(r.dropped, 1); /* of the events */
    assert_int_equal(r.torn, 1);
    /* two lines aside, an attempt, the run_end, the summary; two have the form of the program */
    assert_int_equal(r.mended, 7);
    assert_int_equal(r.queries, 4);
    assert_told("run/events.jsonl: 1 damaged line taken out, kept in events.jsonl.damaged");
    assert_told("run/traces.jsonl: 2 lines are moved to traces.jsonl.damaged");
    assert_told("run/events.jsonl: the run_end of its last session is written again");
    assert_told("run/summary.json: computed again from the other files");
    assert_true(holds("run/traces.jsonl.damaged", "\"query_id\":\"x\""));
    assert_true(holds("run/traces.jsonl.damaged", "\"query_id\":\"y\""));
    assert_true(holds("run/traces.jsonl.torn", "{\"torn"));
    assert_int_equal(lines_of("run/traces.jsonl"), 1);
    assert_int_equal(lines_of("run/attempts.jsonl"), 1);
    assert_true(holds("run/attempts.jsonl", "\"query_id\":\"b\""));
    assert_true(holds("run/attempts.jsonl", "\"metadata\":{\"level\":2}"));
    assert_true(holds("run/summary.json", "\"interrupted\""));
}

static void a_lost_manifest_is_rebuilt(void **state)
{
    struct ipw_repair r;
    struct ipw_err err = {0};

    (void)state;
    put_lost();
    assert_false(ipw_repair_has_manifest("run"));
    repair_well(&r);
    assert_true(ipw_repair_has_manifest("run"));
    assert_told("run/manifest.json: rebuilt from events.jsonl");
    assert_true(holds("run/manifest.json", "\"end\":\"interrupted\""));
    assert_true(holds("run/manifest.json", "\"end_ns\":20000000000"));
    /* and when no event carries it */
    begin("null", "null");
    unlink("run/manifest.json");
    put("run/events.jsonl",
        "{\"data\":{},\"event\":\"run_start\",\"query\":-1,\"segment\":0,\"span\":0,"
        "\"t_ns\":1}\n");
    assert_int_equal(repair(&r, &err), IPW_EPARSE);
    assert_string_equal(
        err.text, "run/manifest.json: cannot be rebuilt: no run_start in events.jsonl carries it");
}

/* Session 1 left samples and nothing else, session 2 no samples. */
static void sessions_that_left_little_keep_their_numbers(void **state)
{
    static const char header[] =
        "{\"basis\":null,\"interval_ns\":1,\"schema_version\":2,\"segment\":%d,\"sources\":[],"
        "\"verdicts\":[]}\n";
    struct ipw_repair r;
    char text[200];

    (void)state;
    begin("null", "null");
    put("run/manifest.json", "[]");
    add_start(2);
    for (int i = 0; i < 5; i += 2) {
        snprintf(text, sizeof text, header, i == 4 ? 2000000 : i + 1);
        add("run/power.jsonl", text);
    }
    repair_well(&r);
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "\"segment\":%d,", i);
        assert_true(holds("run/manifest.json", text));
    }
    assert_false(holds("run/manifest.json", "\"segment\":4,"));
}

static void a_killed_run_is_booked_as_far_as_it_went(void **state)
{
    struct ipw_repair r;

    (void)state;
    put_killed();
    repair_well(&r);
    assert_told("run/summary.json: is damaged, and summary.json.damaged now");
    assert_int_equal(access("run/summary.json", F_OK), -1);
    assert_true(holds("run/summary.json.damaged", "{"));
    assert_true(holds("run/manifest.json", "\"end\":\"killed\""));
    assert_int_equal(lines_of("run/attempts.jsonl"), 1); /* the open one */
    assert_int_equal(lines_of("run/warmup.jsonl"), 1);
    /* nothing is left to do */
    repair_well(&r);
    assert_int_equal(r.mended + r.dropped + r.torn, 0);
    assert_string_equal(was_told, "");
}

/* The line of a query that was cut has to be as its events say; another one of it is moved
 * aside. */
static void a_changed_line_of_a_cut_query_goes(void **state)
{
    struct ipw_repair r;
    char *line, *at;

    (void)state;
    put_killed();
    repair_well(&r);
    line = contents("run/attempts.jsonl");
    at = strstr(line, "\"query_text\":\"Q?\"");
    assert_non_null(at);
    memcpy(at + 14, "R?", 2); /* a text that the program did not write: it is kept as it is */
    put("run/attempts.jsonl", line);
    repair_well(&r);
    assert_int_equal(r.mended, 0);
    at = strstr(line, "\"num_turns\":1");
    assert_non_null(at);
    at[12] = '2';
    put("run/attempts.jsonl", line);
    repair_well(&r);
    assert_told("run/attempts.jsonl: 1 line is moved to attempts.jsonl.damaged");
    assert_true(holds("run/attempts.jsonl", "\"num_turns\":1"));
    free(line);
}

static int mend(struct ipw_rebuild *m, struct ipw_err *err)
{
    *m = (struct ipw_rebuild){0}; /* nobody listens */
    return ipw_rebuild_run(m, "run", err);
}

/* A query has its line in one file, once; what else there is of it, or of sessions that never were,
 * goes aside. */
static void each_query_has_one_line(void **state)
{
    struct ipw_repair r;
    char *line, *at;

    (void)state;
    put_killed();
    repair_well(&r);
    line = contents("run/attempts.jsonl");
    add("run/traces.jsonl", line); /* a query that was cut is no finished one */
    repair_well(&r);
    assert_told("run/traces.jsonl: 1 line is moved to traces.jsonl.damaged");
    assert_int_equal(lines_of("run/traces.jsonl"), 1);
    at = strstr(line, "\"segment\":0");
    assert_non_null(at);
    at[10] = '7';
    add("run/attempts.jsonl", line);
    at[10] = '0';
    at = strstr(line, "\"query_id\":\"b\"");
    assert_non_null(at);
    at[12] = 'c';
    add("run/attempts.jsonl", line);
    add("run/attempts.jsonl", line);
    repair_well(&r);
    assert_told("run/attempts.jsonl: 3 lines are moved to attempts.jsonl.damaged");
    assert_int_equal(lines_of("run/attempts.jsonl"), 1);
    assert_true(holds("run/attempts.jsonl", "\"query_id\":\"b\""));
    free(line);
}

/* Where a run_end may not be made up: the session was killed, or ended before it began, or at
 * another start. */
static void a_run_end_is_not_made_up(void **state)
{
    static const char *const sessions[][2] = {
        {"\"killed\"", "20000000000"}, {"\"complete\"", "5"}, {"\"complete\"", "null"}};
    struct ipw_rebuild m;
    struct ipw_err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++) {
        begin(sessions[i][0], sessions[i][1]);
        add_query(1, "a", false, true);
        add_line("run/traces.jsonl", 1, "a");
        if (mend(&m, &err)) fail_msg("session %zu: %s", i, err.text);
        assert_false(holds("run/events.jsonl", "run_end"));
        assert_true(holds("run/manifest.json", "\"end\":\"killed\""));
    }
}

/* Starts that carry nothing, come twice, or have a wild number, beside one that can be used. */
static void odd_starts_are_passed_over(void **state)
{
    static const char lines[] = "{\"data\":{\"manifest\":{\"segments\":[]}},\"event\":\"run_"
                                "start\",\"query\":-1,\"segment\":0,\"span\":0,"
                                "\"t_ns\":1}\n"
                                "{\"data\":{\"text\":{\"event\":\"run_start\"}},\"event\":\"note\","
                                "\"query\":-1,\"span\":0,\"t_ns\":1}\n";
    struct ipw_rebuild m;
    struct ipw_err err = {0};

    (void)state;
    begin("null", "null");
    unlink("run/manifest.json");
    add("run/events.jsonl", lines);
    add_start(0);
    add_query(1, "a", false, true);
    add_line("run/traces.jsonl", 1, "a");
    if (mend(&m, &err)) fail_msg("%s", err.text);
    assert_int_equal(m.files, 1);
    assert_false(holds("run/manifest.json", "\"segment\":1,"));
    /* a start that cannot be read is told by its line */
    unlink("run/manifest.json");
    add("run/events.jsonl", "{\"event\":\"run_start\",}x\n");
    assert_int_equal(mend(&m, &err), IPW_EPARSE);
    assert_int_equal(strncmp(err.text, "run/events.jsonl:10: ", 21), 0);
}

static void a_manifest_that_is_none_of_ours(void **state)
{
    struct ipw_rebuild m;
    struct ipw_err err = {0};

    (void)state;
    begin("null", "null");
    unlink("run/manifest.json");
    assert_int_equal(symlink("/dev/null", "run/manifest.json"), 0);
    assert_int_equal(mend(&m, &err), IPW_EINVAL); /* not lost: something else is there */
    assert_non_null(strstr(err.text, "run/manifest.json: a device"));
    unlink("run/manifest.json");
    /* a replay's files are what its own run made of them */
    put("run/manifest.json", "{\"replay\":{},\"segments\":[]}");
    assert_int_equal(mend(&m, &err), 0);
    assert_int_equal(m.aside + m.attempts + m.sessions + m.files, 0);
}

/* Times that somebody changed make no date, and a query without the data of its start has no
 * text. */
static void changed_times_make_no_date(void **state)
{
    static const char bare[] =
        "{\"event\":\"query_start\",\"id\":\"c\",\"query\":4,\"span\":0,\"t_ns\":15000000000}\n";
    struct ipw_repair r;
    char *text, *at;

    (void)state;
    begin("\"complete\"", "20000000000");
    add_query(1, "a", false, true);
    add("run/events.jsonl", bare);
    add_event((struct ipw_event){.kind = IPW_EV_QUERY_END, .t_ns = S(16), .q.outcome = "error"}, 4,
              0, "c", NULL);
    add_event((struct ipw_event){.kind = IPW_EV_RUN_END, .t_ns = S(20)}, -1, 0, NULL, NULL);
    add_line("run/traces.jsonl", 1, "a");
    text = contents("run/manifest.json");
    at = strstr(text, "\"segments\"");
    assert_non_null(at);
    at = strstr(at, "1795228267123000000");
    assert_non_null(at);
    memcpy(at, "9223372036854775807", 19);
    put("run/manifest.json", text);
    free(text);
    repair_well(&r);
    assert_int_equal(lines_of("run/attempts.jsonl"), 1);
    assert_true(holds("run/attempts.jsonl", "\"query_text\":\"\"") ||
                holds("run/attempts.jsonl", "\"query_text\":null"));
    assert_true(holds("run/summary.json", "\"interrupted\""));
    assert_false(holds("run/summary.json", "292"));
}

static void a_folder_without_a_run_is_named(void **state)
{
    struct ipw_repair r;
    struct ipw_err err = {0};

    (void)state;
    remove_run();
    assert_int_equal(repair(&r, &err), IPW_ENOTFOUND);
    assert_string_equal(err.text, "run: no such run: No such file or directory");
    assert_int_equal(mkdir("run", 0700), 0);
    assert_int_equal(repair(&r, &err), IPW_ENOTFOUND);
    assert_string_equal(err.text,
                        "run/manifest.json: cannot be read as a run: No such file or directory");
}

UNIT(rebuild)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ended_run_is_whole_again),
        cmocka_unit_test(a_lost_manifest_is_rebuilt),
        cmocka_unit_test(sessions_that_left_little_keep_their_numbers),
        cmocka_unit_test(a_killed_run_is_booked_as_far_as_it_went),
        cmocka_unit_test(a_changed_line_of_a_cut_query_goes),
        cmocka_unit_test(each_query_has_one_line),
        cmocka_unit_test(a_run_end_is_not_made_up),
        cmocka_unit_test(odd_starts_are_passed_over),
        cmocka_unit_test(a_manifest_that_is_none_of_ours),
        cmocka_unit_test(changed_times_make_no_date),
        cmocka_unit_test(a_folder_without_a_run_is_named),
    };

    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
