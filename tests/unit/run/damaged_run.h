/* unit/run/damaged_run.h: a small run on the disk, whole or damaged in one of three ways, and its
 * repair. */
#ifndef IPW_TESTS_UNIT_RUN_DAMAGED_RUN_H
#define IPW_TESTS_UNIT_RUN_DAMAGED_RUN_H

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
#include "unit/base/temp_folder.h"
#include "unit/trace/script.h"

#define CLOCK   "{\"boot_ns\":1,\"mono_ns\":1,\"wall_ns\":1795228267123000000}"
#define PROGRAM "{\"name\":\"ipw-agent\",\"version\":\"0.1.0\"}"
#define CONFIG                                                                                     \
    "{\"agent\":\"tools\",\"dataset\":\"rows\",\"epochs\":1,\"max_queries\":2,\"model\":\"m\"}"

static char was_told[8192];

static inline void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static inline void add(const char *path, const char *text)
{
    FILE *f = fopen(path, "a");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* To be freed; "" of a file that is not there. */
static inline char *contents(const char *path)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    if (ipw_file_read(&text, path, NULL)) ipw_buf_clear(&text);
    ipw_buf_addc(&text, '\0');
    return ipw_buf_take(&text, NULL);
}

static inline bool holds(const char *path, const char *what)
{
    char *text = contents(path);
    bool yes = strstr(text, what) != NULL;

    free(text);
    return yes;
}

static inline size_t lines_of(const char *path)
{
    char *text = contents(path);
    size_t n = 0;

    for (const char *c = text; *c; c++) n += *c == '\n';
    free(text);
    return n;
}

static inline void remove_run(void)
{
    DIR *dir = opendir("run");

    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] != '.') assert_int_equal(unlinkat(dirfd(dir), e->d_name, 0), 0);
    }
    if (dir) closedir(dir);
    if (dir) assert_int_equal(rmdir("run"), 0);
}

/* ---- a run of two tasks after a query that warms up, without sensors ---- */

static inline char *session(int number, const char *end, const char *end_ns)
{
    return ipw_asprintf(
        "{\"baseline\":null,\"client_base_url\":\"http://127.0.0.1:1/v1\",\"clock\":" CLOCK
        ",\"concurrency\":1,\"end\":%s,\"end_ns\":%s,\"ended_at\":null,\"forced\":[],\"hardware\":"
        "null,"
        "\"ledger\":null,\"not_quiet\":null,\"own\":null,\"pid\":7,\"program\":" PROGRAM
        ",\"segment\":%d,\"start_ns\":%s,\"started_at\":null,\"torn\":[]}",
        end, end_ns, number, strcmp(end_ns, "null") ? "1000000000" : "null");
}

static inline char *manifest(const char *sessions)
{
    return ipw_asprintf("{\"clock\":" CLOCK ",\"config\":" CONFIG
                        ",\"hardware\":null,\"not_quiet\":null,\"program\":" PROGRAM
                        ",\"schema_version\":2,\"segments\":[%s],\"started_at\":null}",
                        sessions);
}

static inline void add_event(struct ipw_event e, int query, int segment, const char *id,
                             const char *data)
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

static inline void add_start(int segment)
{
    char *one = session(segment, "null", "null"), *text = manifest(one);
    char *data = ipw_asprintf("{\"baseline_w\":{},\"clock\":" CLOCK ",\"manifest\":%s}", text);

    add_event((struct ipw_event){.kind = IPW_EV_RUN_START, .t_ns = S(1)}, -1, segment, NULL, data);
    free(data);
    free(text);
    free(one);
}

/* Events of one query that takes two seconds. */
static inline size_t script(struct ipw_event out[4], double t)
{
    const struct ipw_event events[] = {QS(t), LS(t + 0.5, 1, 1), LE(t + 1.5, 1, 10, 5),
                                       QE(t + 2, "answered")};

    memcpy(out, events, sizeof events);
    return sizeof events / sizeof *events;
}

static inline void add_query(int query, const char *id, bool warmup, bool over)
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

static inline void add_line(const char *file, int query, const char *id)
{
    struct ipw_event events[4];
    struct ipw_query_details details = {.workload_type = "agentic",
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
    ipw_schema_write_query(&line, &trace, &details, &clock);
    ipw_buf_addc(&line, '\n');
    add(file, ipw_buf_str(&line));
    ipw_buf_release(&line);
    ipw_query_trace_release(&trace);
}

static inline void put_manifest(const char *sessions)
{
    char *text = manifest(sessions);

    put("run/manifest.json", text);
    free(text);
}

/* The manifest says of its one session how it ended. */
static inline void begin(const char *end, const char *end_ns)
{
    char *one = session(0, end, end_ns);

    remove_run();
    assert_int_equal(mkdir("run", 0700), 0);
    put_manifest(one);
    free(one);
    add_start(0);
}

/* It came to its end; the run_end, the summary, the line of the second task and the end of a file
 * are lost, and there are lines that nothing stands behind. */
static inline void put_ended(void)
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
static inline void put_lost(void)
{
    put_ended();
    put("run/manifest.json", "");
    add_event((struct ipw_event){.kind = IPW_EV_RUN_END, .t_ns = S(20)}, -1, 0, NULL, NULL);
}

/* It was killed in its second task. */
static inline void put_killed(void)
{
    begin("null", "null");
    add_query(0, "w", true, true);
    add_query(1, "a", false, true);
    add_query(2, "b", false, false);
    add_line("run/traces.jsonl", 1, "a");
    put("run/summary.json", "{");
}

static inline void keep_told(void *ud, const char *what)
{
    (void)ud;
    strncat(was_told, what, sizeof was_told - strlen(was_told) - 2);
    strcat(was_told, "\n");
}

static inline int repair(struct ipw_repair *r, struct ipw_err *err)
{
    *r = (struct ipw_repair){.say = keep_told};
    was_told[0] = '\0';
    return ipw_repair_run(r, "run", err);
}

static inline void repair_well(struct ipw_repair *r)
{
    struct ipw_err err = {0};

    if (repair(r, &err)) fail_msg("%s", err.text);
}

static inline void assert_told(const char *what)
{
    if (!strstr(was_told, what)) fail_msg("%s is not in\n%s", what, was_told);
}

#endif
