/* A repair, over and over, while one call on the files fails: it says so, leaves nothing open and nothing
 * locked, and the repair after it comes to the same files as one that was never disturbed.  Then the edge rows
 * of what is put in order: a query without a line, a line without a query, a lost manifest, sessions that left
 * little. */
#include <dirent.h>
#include <math.h>
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

#include "base/mem.h"
#include "json/jsonl.h"
#include "run/resume/rebuild.h"
#include "run/resume/repair.h"
#include "trace/lock.h"
#include "trace/schema.h"
#include "unit/json/failing.h"
#include "unit/trace/script.h"

#define CLOCK   "{\"boot_ns\":1,\"mono_ns\":1,\"wall_ns\":1795228267123000000}"
#define PROGRAM "{\"name\":\"ipw-agent\",\"version\":\"0.1.0\"}"
#define CONFIG                                                                                     \
    "{\"agent\":\"tools\",\"dataset\":\"rows\",\"epochs\":1,\"max_queries\":2,\"model\":\"m\"}"

static char root[64], was_told[8192];

/* The same folder again and again, without writing each event anew. */
static const char *const kept_names[] = {"run/events.jsonl", "run/traces.jsonl", "run/warmup.jsonl",
                                         "run/manifest.json", "run/summary.json"};
enum { N_KEPT = sizeof kept_names / sizeof *kept_names };
static char *kept[N_KEPT];

static int enter(void **state)
{
    (void)state;
    strcpy(root, "/tmp/ipw-repair-XXXXXX");
    return mkdtemp(root) && chdir(root) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    char command[100];

    (void)state;
    for (int i = 0; i < N_KEPT; i++) free(kept[i]);
    snprintf(command, sizeof command, "rm -rf %s", root);
    return chdir("/") == 0 ? system(command) : -1;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void add(const char *path, const char *text)
{
    FILE *f = fopen(path, "a");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* To be freed; "" of a file that is not there. */
static char *contents(const char *path)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    if (ipw_file_read(&text, path, NULL)) ipw_buf_clear(&text);
    ipw_buf_addc(&text, '\0');
    return ipw_buf_take(&text, NULL);
}

static bool holds(const char *path, const char *what)
{
    char *text = contents(path);
    bool yes = strstr(text, what) != NULL;

    free(text);
    return yes;
}

static size_t lines_of(const char *path)
{
    char *text = contents(path);
    size_t n = 0;

    for (const char *c = text; *c; c++) n += *c == '\n';
    free(text);
    return n;
}

static void remove_run(void)
{
    DIR *dir = opendir("run");

    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] != '.') assert_int_equal(unlinkat(dirfd(dir), e->d_name, 0), 0);
    }
    if (dir) closedir(dir);
    if (dir) assert_int_equal(rmdir("run"), 0);
}

/* ---- a run of two tasks after a query that warms up, without sensors ---- */

static char *session(int number, const char *end, const char *end_ns)
{
    return ipw_asprintf(
        "{\"baseline\":null,\"client_base_url\":\"http://127.0.0.1:1/v1\",\"clock\":" CLOCK
        ",\"concurrency\":1,\"end\":%s,\"end_ns\":%s,\"ended_at\":null,\"forced\":[],\"hardware\":"
        "null,"
        "\"ledger\":null,\"not_quiet\":null,\"own\":null,\"pid\":7,\"program\":" PROGRAM
        ",\"segment\":%d,\"start_ns\":%s,\"started_at\":null,\"torn\":[]}",
        end, end_ns, number, strcmp(end_ns, "null") ? "1000000000" : "null");
}

static char *manifest(const char *sessions)
{
    return ipw_asprintf("{\"clock\":" CLOCK ",\"config\":" CONFIG
                        ",\"hardware\":null,\"not_quiet\":null,\"program\":" PROGRAM
                        ",\"schema_version\":1,\"segments\":[%s],\"started_at\":null}",
                        sessions);
}

static void add_event(struct ipw_event e, int query, int segment, const char *id, const char *data)
{
    struct ipw_buf line = IPW_BUF(IPW_MIB);

    e.query = query;
    e.segment = segment;
    if (e.kind == IPW_EV_QUERY_START || e.kind == IPW_EV_QUERY_END) e.q.id = id;
    e.payload = data;
    e.payload_len = data ? strlen(data) : 0;
    ipw_event_write(&line, &e);
    add("run/events.jsonl", ipw_buf_str(&line));
    ipw_buf_release(&line);
}

static void add_start(int segment)
{
    char *one = session(segment, "null", "null"), *text = manifest(one);
    char *data = ipw_asprintf("{\"baseline_w\":{},\"clock\":" CLOCK ",\"manifest\":%s}", text);

    add_event((struct ipw_event){.kind = IPW_EV_RUN_START, .t_ns = S(1)}, -1, segment, NULL, data);
    free(data);
    free(text);
    free(one);
}

/* Events of one query that takes two seconds. */
static size_t script(struct ipw_event out[4], double t)
{
    const struct ipw_event events[] = {QS(t), LS(t + 0.5, 1, 1), LE(t + 1.5, 1, 10, 5),
                                       QE(t + 2, "answered")};

    memcpy(out, events, sizeof events);
    return sizeof events / sizeof *events;
}

static void add_query(int query, const char *id, bool warmup, bool over)
{
    struct ipw_event events[4];
    size_t n = script(events, 2 + 3 * query);
    char *start =
        ipw_asprintf("{\"epoch\":0,\"metadata\":{\"level\":2},\"prompt\":\"Q?\",\"warmup\":%s}",
                     warmup ? "true" : "false");

    for (size_t i = 0; i < n - !over; i++)
        add_event(events[i], query, 0, id, events[i].kind == IPW_EV_QUERY_START ? start : NULL);
    if (over)
        add_event((struct ipw_event){.kind = IPW_EV_NOTE,
                                     .t_ns = S(5 + 3 * query),
                                     .tool.name = "booked"},
                  query, 0, NULL, NULL);
    free(start);
}

static void add_line(const char *file, int query, const char *id)
{
    struct ipw_event events[4];
    struct ipw_query_record record = {.workload_type = "agentic",
                                      .is_resolved = -1,
                                      .cost_usd = NAN,
                                      .lua_peak_bytes = -1,
                                      .lua_cpu_ns = -1};
    struct ipw_query_trace trace;
    struct ipw_anchor clock = {1, 1, INT64_C(1795228267123000000)};
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    size_t n = script(events, 2 + 3 * query);

    for (size_t i = 0; i < n; i++) events[i].query = query, events[i].q.id = id;
    build_trace(&trace, events, n);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        trace.energy[d] = trace.energy_before[d] = (struct ipw_figure){.reason = "no_sensor"};
        trace.power_mean_w[d] = NAN;
        trace.account[d] = (struct ipw_query_account){NAN, NAN, NAN, NAN};
        for (size_t i = 0; i < trace.n_turns; i++) {
            trace.turns[i].energy[d] = (struct ipw_figure){.reason = "no_sensor"};
            trace.turns[i].power_mean_w[d] = trace.turns[i].power_peak_w[d] = NAN;
        }
    }
    ipw_schema_write_query(&line, &trace, &record, &clock);
    ipw_buf_addc(&line, '\n');
    add(file, ipw_buf_str(&line));
    ipw_buf_release(&line);
    ipw_query_trace_release(&trace);
}

static void put_manifest(const char *sessions)
{
    char *text = manifest(sessions);

    put("run/manifest.json", text);
    free(text);
}

/* The manifest says of its one session how it ended. */
static void begin(const char *end, const char *end_ns)
{
    char *one = session(0, end, end_ns);

    remove_run();
    assert_int_equal(mkdir("run", 0700), 0);
    put_manifest(one);
    free(one);
    add_start(0);
}

/* It came to its end; the run_end, the summary, the line of the second task and the end of a file are lost,
 * and there are lines that nothing stands behind. */
static void put_ended(void)
{
    begin("\"complete\"", "20000000000");
    add_query(0, "w", true, true);
    add("run/events.jsonl", "{oops\n");
    add_query(1, "a", false, true);
    add_query(2, "b", false, true);
    add_line("run/warmup.jsonl", 0, "w");
    add_line("run/traces.jsonl", 1, "a");
    add_line("run/traces.jsonl", 8, "x");
    add_line("run/traces.jsonl", 9, "y");
    add("run/traces.jsonl", "{\"torn");
    put("run/summary.json", "{");
}

/* The same, and the manifest is gone. */
static void put_lost(void)
{
    put_ended();
    put("run/manifest.json", "");
    add_event((struct ipw_event){.kind = IPW_EV_RUN_END, .t_ns = S(20)}, -1, 0, NULL, NULL);
}

/* It was killed in its second task. */
static void put_killed(void)
{
    begin("null", "null");
    add_query(0, "w", true, true);
    add_query(1, "a", false, true);
    add_query(2, "b", false, false);
    add_line("run/traces.jsonl", 1, "a");
    put("run/summary.json", "{");
}

static void (*const worlds[])(void) = {put_ended, put_lost, put_killed};

static void keep_world(size_t w)
{
    worlds[w]();
    for (int i = 0; i < N_KEPT; i++) {
        free(kept[i]);
        kept[i] = access(kept_names[i], F_OK) == 0 ? contents(kept_names[i]) : NULL;
    }
}

static void put_world(void)
{
    remove_run();
    assert_int_equal(mkdir("run", 0700), 0);
    for (int i = 0; i < N_KEPT; i++)
        if (kept[i]) put(kept_names[i], kept[i]);
}

static void keep_told(void *ud, const char *what)
{
    (void)ud;
    strncat(was_told, what, sizeof was_told - strlen(was_told) - 2);
    strcat(was_told, "\n");
}

static int repair(struct ipw_repair *r, struct ipw_err *err)
{
    *r = (struct ipw_repair){.say = keep_told};
    was_told[0] = '\0';
    return ipw_repair_run(r, "run", err);
}

/* Where a summary says when it was written. */
static void drop_date(char *summary)
{
    char *at = strstr(summary, "\"generated_at\":\"");

    if (at) memset(at + 16, '0', strcspn(at + 16, "\""));
}

static const char *const files[] = {
    "run/events.jsonl",  "run/traces.jsonl", "run/attempts.jsonl",   "run/warmup.jsonl",
    "run/manifest.json", "run/summary.json", "run/traces.jsonl.tmp", "run/lock"};
enum { N_FILES = sizeof files / sizeof *files };

static void take_files(char *texts[N_FILES])
{
    for (int i = 0; i < N_FILES; i++) drop_date(texts[i] = contents(files[i]));
}

static void drop_files(char *texts[N_FILES])
{
    for (int i = 0; i < N_FILES; i++) free(texts[i]);
}

static void a_repair_can_be_done_again(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        struct ipw_repair r;
        struct ipw_err err = {0};
        char *want[N_FILES];
        const char *failed = "";
        int n, told = 0;

        keep_world(w);
        if (repair(&r, &err)) fail_msg("world %zu: %s", w, err.text);
        take_files(want);
        for (n = 0; failed; n++) {
            size_t before = failing_descriptors();
            char *got[N_FILES];
            int rc;

            put_world();
            failing_at(n, FAILING_EIO);
            rc = repair(&r, &err);
            failed = failing_end();
            assert_int_equal(failing_descriptors(), before);
            assert_int_equal(ipw_lock_look("run", NULL), 0);
            told += rc != 0;
            if (rc && !*err.text) fail_msg("world %zu, call %d (%s): no message", w, n, failed);
            if (repair(&r, &err)) fail_msg("world %zu, call %d: then %s", w, n, err.text);
            take_files(got);
            for (int i = 0; i < N_FILES; i++) {
                if (strcmp(got[i], want[i]))
                    fail_msg("world %zu, call %d (%s): %s is\n%s\nnot\n%s", w, n, failed, files[i],
                             got[i], want[i]);
            }
            drop_files(got);
        }
        drop_files(want);
        assert_true(n > 40 && told > 20);
    }
}

static void an_interrupted_call_changes_nothing(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        struct ipw_repair r;
        struct ipw_err err = {0};
        const char *failed = "";

        keep_world(w);
        for (int n = 0; failed; n++) {
            put_world();
            failing_at(n, FAILING_EINTR);
            if (repair(&r, &err)) fail_msg("world %zu, call %d: %s", w, n, err.text);
            failed = failing_end();
        }
    }
}

/* ---- what is put in order ---- */

static void repair_well(struct ipw_repair *r)
{
    struct ipw_err err = {0};

    if (repair(r, &err)) fail_msg("%s", err.text);
}

static void assert_told(const char *what)
{
    if (!strstr(was_told, what)) fail_msg("%s is not in\n%s", what, was_told);
}

static void an_ended_run_is_whole_again(void **state)
{
    struct ipw_repair r;

    (void)state;
    put_ended();
    repair_well(&r);
    assert_int_equal(r.dropped, 1); /* of the events */
    assert_int_equal(r.torn, 1);
    assert_int_equal(r.mended, 5); /* two lines aside, an attempt, the run_end, the summary */
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
        "{\"basis\":null,\"interval_ns\":1,\"schema_version\":1,\"segment\":%d,\"sources\":[],"
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

/* The line of a query that was cut has to be as its events say; another one of it is moved aside. */
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

static int mend(struct ipw_mend *m, struct ipw_err *err)
{
    *m = (struct ipw_mend){0}; /* nobody listens */
    return ipw_mend_run(m, "run", err);
}

/* A query has its line in one file, once; what else there is of it, or of sessions that never were, goes aside. */
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

/* Where a run_end may not be made up: the session was killed, or ended before it began, or at another start. */
static void a_run_end_is_not_made_up(void **state)
{
    static const char *const sessions[][2] = {
        {"\"killed\"", "20000000000"}, {"\"complete\"", "5"}, {"\"complete\"", "null"}};
    struct ipw_mend m;
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
    struct ipw_mend m;
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
    struct ipw_mend m;
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

/* Times that somebody changed make no date, and a query without the data of its start has no text. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repair_can_be_done_again),
        cmocka_unit_test(an_interrupted_call_changes_nothing),
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

    return cmocka_run_group_tests(tests, enter, leave);
}
