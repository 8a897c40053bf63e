/* D-10: a run's files, cut at every byte, load up to their last whole line. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ledger/recompute.h"
#include "trace/rundir.h"
#include "trace/schema.h"
#include "unit/base/temp_folder.h"
#include "unit/trace/script.h"
#include "unit/unit.h"

static void no_read(struct ipw_source *self, int64_t *values)
{
    (void)self;
    (void)values;
}

static void rows(struct ipw_rundir *dir, double from, double to)
{
    for (double t = from; t <= to; t += 0.5) {
        int64_t uj = (int64_t)(t * 80e6);
        struct ipw_sampler_row row = {.source = 0, .n = 1, .t_ns = S(t), .values = &uj};

        ipw_rundir_power_row(dir, &row);
    }
}

/* A session of two queries, one of them with a tool; the second session is killed inside it. */
static void session(struct ipw_rundir *dir, const struct ipw_source_set *set, int segment,
                    bool killed)
{
    struct ipw_event start = {.kind = IPW_EV_RUN_START, .t_ns = S(1), .query = -1};
    struct ipw_event end = {.kind = IPW_EV_RUN_END, .t_ns = S(9), .query = -1};
    struct ipw_event note = {.kind = IPW_EV_NOTE, .t_ns = S(8), .tool.name = "booked"};
    struct ipw_event events[] = {
        QS(2),       LS(2.5, 1, 1),   LE(3, 1, 10, 5),  TS(3.5, 2, "calc"), TE(4, 2, "calc"),
        LS(5, 3, 1), LE(6, 3, 20, 7), QE(7, "answered")};
    size_t n = sizeof events / sizeof *events;

    ipw_rundir_set_segment(dir, segment);
    ipw_rundir_power_header(dir, set, 50000000);
    rows(dir, 0, 5);
    start.segment = segment;
    start.payload = "{}";
    start.payload_len = 2;
    ipw_rundir_event(dir, &start);
    for (int q = 0; q < 2; q++) {
        for (size_t i = 0; i < (killed ? n - 2 : n); i++) {
            events[i].query = q;
            events[i].payload = "{\"text\":\"caf\xC3\xA9 \xF0\x9F\x98\x80\"}";
            events[i].payload_len = strlen(events[i].payload);
            ipw_rundir_event(dir, &events[i]);
        }
    }
    rows(dir, 5.5, 10);
    for (int q = 0; q < 2 && !killed; q++) {
        note.query = q;
        note.rows = 21;
        ipw_rundir_event(dir, &note);
    }
    if (!killed) ipw_rundir_event(dir, &end);
}

static int write_trace(void *ud, const struct ipw_recompute_query *q, struct ipw_err *err)
{
    struct ipw_rundir *dir = ud;
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    struct ipw_query_details details = {.cost_usd = NAN,
                                        .is_resolved = -1,
                                        .lua_peak_bytes = -1,
                                        .lua_cpu_ns = -1,
                                        .segment = q->segment,
                                        .superseded = q->cut ? "cut" : NULL};
    int rc;

    ipw_schema_write_query(&line, q->trace, &details, NULL);
    rc = q->cut ? ipw_rundir_attempt(dir, line.data, line.len, err)
                : ipw_rundir_trace(dir, line.data, line.len, err);
    ipw_buf_release(&line);
    return rc;
}

static void make_run(void)
{
    static const struct ipw_channel channel = {.name = "package-0",
                                               .device = "CPU 0",
                                               .domain = IPW_DOMAIN_CPU,
                                               .max_w = 500,
                                               .in_sum = true};
    struct ipw_source source = {.name = "rapl",
                                .read = no_read,
                                .channels = &channel,
                                .n_channels = 1,
                                .period_ns = 1000000};
    struct ipw_source_set set = {.sources = {&source}, .n = 1};
    struct ipw_rundir *dir;
    struct ipw_recompute redo;
    struct ipw_recompute_options how = {.query = write_trace};

    assert_int_equal(ipw_rundir_open(&dir, "run", NULL), 0);
    assert_int_equal(ipw_rundir_write_manifest(dir, "{}", 2, NULL), 0);
    session(dir, &set, 0, false);
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    assert_int_equal(ipw_rundir_open(&dir, "run", NULL), 0);
    session(dir, &set, 1, true);
    assert_int_equal(ipw_rundir_flush(dir, NULL), 0);
    how.ud = dir;
    assert_int_equal(ipw_recompute_run(&redo, "run", &how, NULL), 0);
    assert_int_equal(redo.n_segments, 2);
    assert_false(redo.segments[0]->cut);
    assert_true(redo.segments[1]->cut);
    ipw_recompute_release(&redo);
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
}

static int count_redone(void *ud, const struct ipw_recompute_query *q, struct ipw_err *err)
{
    (void)q;
    (void)err;
    ++*(size_t *)ud;
    return 0;
}

static int count_loaded(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    (void)q;
    (void)err;
    ++*(size_t *)ud;
    return 0;
}

static size_t line_feeds(const char *text, size_t n)
{
    size_t lines = 0;

    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    return lines;
}

/* The file of the run, shorter and shorter; then whole again. */
static void cut_down(const char *name, void (*check)(const char *path, const char *text, size_t n))
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    char path[64];

    snprintf(path, sizeof path, "run/%s", name);
    assert_int_equal(ipw_file_read(&text, path, NULL), 0);
    assert_true(text.len > 100);
    for (size_t n = text.len; n > 0; n--) {
        assert_int_equal(truncate(path, (off_t)n), 0);
        check(path, text.data, n);
    }
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(ipw_file_write_atomic(path, text.data, text.len, NULL), 0);
    ipw_buf_release(&text);
}

static void check_traces(const char *path, const char *text, size_t n)
{
    size_t queries = 0;
    int torn = 0;

    assert_int_equal(ipw_rundir_each_query(path, count_loaded, &queries, &torn, NULL), 0);
    assert_int_equal(queries, line_feeds(text, n));
    assert_int_equal(torn, text[n - 1] != '\n');
}

static void check_redo(const char *path, const char *text, size_t n)
{
    struct ipw_recompute redo;
    struct ipw_err err = {0};
    size_t queries = 0;
    struct ipw_recompute_options how = {.query = count_redone, .ud = &queries};
    int rc = ipw_recompute_run(&redo, "run", &how, &err);

    if (rc) print_error("%s cut at byte %zu: %s\n", path, n, err.text);
    assert_int_equal(rc, 0);
    assert_true(queries <= 4);
    (void)text;
    ipw_recompute_release(&redo);
}

static void every_prefix_loads(void **state)
{
    (void)state;
    make_run();
    cut_down("traces.jsonl", check_traces);
    cut_down("attempts.jsonl", check_traces);
    cut_down("events.jsonl", check_redo);
    cut_down("power.jsonl", check_redo);
}

UNIT(prefix)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_prefix_loads)};

    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
