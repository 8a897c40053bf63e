#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/format.h"
#include "report/timeline.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "unit/base/temp_folder.h"
#include "unit/report/fixture.h"
#include "unit/trace/script.h"
#include "unit/unit.h"

static const char question[] =
    "How many more blocks does the Polish edition's list have than the English one's, as of the "
    "last revision in 2022? Answer with a number.\n\n(See the attached file.)";

struct said {
    struct ipw_event event;
    const char *payload;
};

static const struct said said[] = {
    {QS(100), "{\"prompt\":\"...\"}"},
    {LS(100.25, 1, 1), NULL},
    {LX(101, 1, 1, IPW_LM_TIMEOUT, true), NULL},
    {LS(101.5, 2, 2), NULL},
    {LE(103, 2, 1204, 57),
     "{\"text\":\"I should look at both lists.\\nFirst the \\u001b[1mPolish one.\"}"},
    {TS(103, 3, "visit_page"),
     "{\"arguments\":{\"url\":\"https://pl.example.org/lista\"},\"call_id\":\"c1\"}"},
    {TS(103.0, 4, "calculator"), "{\"arguments\":\"{\\\"expression\\\": \\\"2+\\\"}\"}"},
    {TE(103.01, 4, "calculator"), "{\"content\":\"\",\"error\":\"the expression ends early\"}"},
    {TE(105, 3, "visit_page"), "{\"content\":\"Lista blok\\u00f3w ... a long page with very many "
                               "words, of which only the first are shown here\",\"error\":null}"},
    {LS(105.25, 5, 1), NULL},
    {LE(106, 5, 2400, 12), "{\"text\":\"FINAL ANSWER: 7\"}"},
    {QE(106.5, "answered"), NULL},
};
#define N_SAID (sizeof said / sizeof *said)

static void write_text(const char *name, const char *text, size_t n)
{
    FILE *f = fopen(name, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static void book(struct ipw_query_trace *q)
{
    for (size_t i = 0; i < q->n_turns; i++) {
        struct ipw_turn *turn = &q->turns[i];

        turn->energy[IPW_DOMAIN_GPU] = figure(640.5, IPW_PROV_INTERPOLATED);
        turn->energy[IPW_DOMAIN_CPU] = figure(31, IPW_PROV_DISTRIBUTED);
        for (size_t k = 0; k < turn->n_spans; k++) {
            turn->spans[k].energy[IPW_DOMAIN_GPU] = figure(99.9, IPW_PROV_INTERPOLATED);
            turn->spans[k].energy[IPW_DOMAIN_CPU] = figure(3, IPW_PROV_DISTRIBUTED);
        }
    }
    q->energy[IPW_DOMAIN_GPU] = figure(1281, IPW_PROV_INTERPOLATED);
    q->energy[IPW_DOMAIN_CPU] = figure(62, IPW_PROV_DISTRIBUTED);
}

/* A run folder with two queries: one with a story, one that failed at once. */
static int enter(void **state)
{
    const struct ipw_anchor anchor = {.wall_ns = INT64_C(1795228267123000000)};
    struct ipw_buf traces = IPW_BUF(IPW_MIB), lines = IPW_BUF(IPW_MIB);
    struct ipw_event events[N_SAID];
    struct ipw_query_trace q;
    struct ipw_query_details r = {.query_text = question,
                                  .response_text = "FINAL ANSWER: 7",
                                  .answer = "7",
                                  .is_resolved = 1,
                                  .cost_usd = NAN,
                                  .lua_peak_bytes = -1,
                                  .lua_cpu_ns = -1};
    const struct ipw_event failed[] = {
        {.kind = IPW_EV_QUERY_START, .t_ns = S(200), .query = 1, .q = {.id = "q0001"}},
        {.kind = IPW_EV_QUERY_END,
         .t_ns = S(201),
         .query = 1,
         .q = {.outcome = "error", .error = "agents/mine.lua:7: attempt to index a nil value"}}};

    if (enter_temp_folder(state)) return -1;
    for (size_t i = 0; i < N_SAID; i++) {
        events[i] = said[i].event;
        events[i].payload = said[i].payload;
        events[i].payload_len = said[i].payload ? strlen(said[i].payload) : 0;
        if (i == 4) {
            events[i].lm.attempt = 2;
            events[i].lm.times.first_token_ns = S(101.9);
            events[i].lm.times.last_token_ns = S(102.9);
        }
        ipw_event_write(&lines, &events[i]);
    }
    build_trace(&q, events, N_SAID);
    book(&q);
    ipw_schema_write_query(&traces, &q, &r, &anchor);
    ipw_buf_addc(&traces, '\n');
    ipw_query_trace_release(&q);
    build_trace(&q, failed, 2);
    r = (struct ipw_query_details){.query_text = "?",
                                   .is_resolved = -1,
                                   .cost_usd = NAN,
                                   .lua_peak_bytes = -1,
                                   .lua_cpu_ns = -1};
    ipw_schema_write_query(&traces, &q, &r, &anchor);
    ipw_buf_addc(&traces, '\n');
    ipw_query_trace_release(&q);
    write_text("traces.jsonl", traces.data, traces.len);
    write_text("events.jsonl", lines.data, lines.len);
    ipw_buf_release(&traces);
    ipw_buf_release(&lines);
    return 0;
}

static int gather(void *ud, const char *text, size_t n, struct ipw_err *err)
{
    struct ipw_buf *all = ud;

    (void)err;
    ipw_buf_add(all, text, n);
    return 0;
}

static void check(const char *golden, const char *run, const char *id,
                  struct ipw_timeline_options options)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_err err = {0};

    if (ipw_timeline_run(run, id, &options, gather, &text, &err) < 0) fail_msg("%s", err.text);
    for (const char *line = ipw_buf_str(&text); *line;) {
        size_t n = strcspn(line, "\n");

        if (ipw_format_width(line, n) > (options.width < 80 ? 80 : options.width)) {
            fail_msg("too wide: %.*s", (int)n, line);
        }
        line += n + (line[n] == '\n');
    }
    check_golden(golden, &text);
    ipw_buf_release(&text);
}

static void a_run_as_timelines(void **state)
{
    (void)state;
    check("replay-all.txt", ".", NULL, (struct ipw_timeline_options){.width = 80});
    check("replay-one.txt", temp_folder, "q0000", (struct ipw_timeline_options){.width = 110});
    check("replay-colour.txt", ".", "q0001", (struct ipw_timeline_options){.colour = true});
}

static void without_events(void **state)
{
    (void)state;
    check("replay-no-events.txt", "traces.jsonl", "q0000",
          (struct ipw_timeline_options){.width = 80});
}

static void damaged_events_are_said(void **state)
{
    struct ipw_timeline_options options = {.width = 80};
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    FILE *f;

    (void)state;
    f = fopen("events.jsonl", "a");
    assert_non_null(f);
    fputs("{\"event\":\"no", f); /* torn: the writer was killed here, which is no damage */
    fclose(f);
    assert_int_equal(ipw_timeline_run(".", "q0000", &options, gather, &text, NULL), 0);
    assert_null(strstr(ipw_buf_str(&text), "may be missing"));
    assert_non_null(strstr(ipw_buf_str(&text), "the expression ends early"));
    f = fopen("events.jsonl", "a");
    assert_non_null(f);
    fputs("\n", f);
    fclose(f);
    ipw_buf_clear(&text);
    assert_int_equal(ipw_timeline_run(".", "q0000", &options, gather, &text, NULL), 0);
    assert_non_null(strstr(ipw_buf_str(&text), "texts may be missing: ./events.jsonl:13:"));
    ipw_buf_release(&text);
}

/* A title is one line whatever the id; what failed is said once. */
static void long_ids_and_failures(void **state)
{
    static const char id[] =
        "a-rather-long-identifier-\xE6\xBC\xA2\xE5\xAD\x97-of-a-query-that-goes-on";
    struct ipw_event events[] = {QS(100), QF(101, "run_token_limit", "why it failed")};
    struct ipw_anchor anchor = {.mono_ns = S(100), .wall_ns = S(1763692367)};
    struct ipw_query_details r = {.query_text = "?",
                                  .response_text = "why it failed",
                                  .is_resolved = 0,
                                  .cost_usd = NAN,
                                  .lua_peak_bytes = -1,
                                  .lua_cpu_ns = -1};
    struct ipw_timeline_options options = {.width = 80};
    struct ipw_buf line = IPW_BUF(IPW_MIB), text = IPW_BUF(IPW_MIB);
    struct ipw_query_trace q;
    const char *title;

    (void)state;
    events[0].q.id = id;
    build_trace(&q, events, 2);
    ipw_schema_write_query(&line, &q, &r, &anchor);
    ipw_buf_addc(&line, '\n');
    write_text("long.jsonl", line.data, line.len);
    ipw_query_trace_release(&q);
    assert_int_equal(ipw_timeline_run("long.jsonl", NULL, &options, gather, &text, NULL), 0);
    title = ipw_buf_str(&text) + 1;
    assert_true(ipw_format_width(title, strcspn(title, "\n")) <= 80);
    assert_non_null(strstr(title, "  run_token_limit, wrong  2025-11-21T02:32:47.000Z\n"));
    assert_non_null(strstr(title, "\n error      why it failed\n"));
    assert_null(strstr(title, "answer"));
    ipw_buf_release(&line);
    ipw_buf_release(&text);
}

static void unknown_queries_and_runs(void **state)
{
    struct ipw_timeline_options options = {.width = 80};
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_timeline_run(".", "x0001", &options, gather, &text, &err), IPW_ENOTFOUND);
    assert_string_equal(err.text, ".: there is no query \"x0001\"; did you mean \"q0001\"?");
    assert_int_equal(ipw_timeline_run("none", NULL, &options, gather, &text, &err), IPW_ENOTFOUND);
    assert_int_equal(text.len, 0);
    ipw_buf_release(&text);
}

UNIT(timeline)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_as_timelines),       cmocka_unit_test(without_events),
        cmocka_unit_test(unknown_queries_and_runs), cmocka_unit_test(damaged_events_are_said),
        cmocka_unit_test(long_ids_and_failures),
    };

    return cmocka_run_group_tests(tests, enter, leave_temp_folder);
}
