/* Pairing what a query does with the lines of its record: what is equal, what comes early, what
 * differs, what is missing, and the words for it. */
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
#include "io/loop.h"
#include "llm/playback.h"

#include "unit/trace/folder.h"
#include "unit/unit.h"

struct world {
    struct ipw_loop *loop;
    struct ipw_event_reader *events;
    struct ipw_playback *replay;
    int n_written, n_paired, n_diverged, n_tools, n_stirred;
    char said[2048];
    char tool_was[64];
};

static void on_write(void *ud, struct ipw_event *event, const struct ipw_event_line *line)
{
    struct world *w = ud;

    w->n_written++;
    if (!line) return;
    w->n_paired++;
    assert_int_equal(event->t_ns, line->event.t_ns); /* it has the record's time */
}

static void on_stir(void *ud) { ((struct world *)ud)->n_stirred++; }

static void on_diverged(void *ud, const char *text)
{
    struct world *w = ud;

    w->n_diverged++;
    snprintf(w->said, sizeof w->said, "%s", text);
}

static void on_tool(void *ud, const struct ipw_event_line *now, const struct ipw_event_line *was)
{
    struct world *w = ud;

    (void)now;
    w->n_tools++;
    snprintf(w->tool_was, sizeof w->tool_was, "%s",
             ipw_json_str(ipw_json_get(was->data, "content"), ""));
}

/* The record's lines are what the events below are written as. */
static void open_world(struct world *w, enum ipw_playback_mode mode, const struct ipw_event *events,
                       size_t n)
{
    struct ipw_playback_options options = {.mode = mode,
                                           .query = 0,
                                           .reach = 100,
                                           .write = on_write,
                                           .stir = on_stir,
                                           .diverged = on_diverged,
                                           .tool = on_tool,
                                           .ud = w};
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    char path[64];
    FILE *f;

    *w = (struct world){0};
    for (size_t i = 0; i < n; i++) ipw_event_write(&text, &events[i]);
    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(ipw_buf_str(&text), f);
    fclose(f);
    ipw_buf_release(&text);
    assert_int_equal(ipw_loop_new(&w->loop, NULL), 0);
    assert_int_equal(ipw_event_reader_open(&w->events, dir, NULL), 0);
    options.events = w->events;
    options.loop = w->loop;
    w->replay = ipw_playback_new(&options);
}

static void close_world(struct world *w)
{
    ipw_playback_free(w->replay);
    ipw_event_reader_close(w->events);
    assert_int_equal(ipw_loop_leftovers(w->loop), 0);
    ipw_loop_free(w->loop);
}

static struct ipw_event tool(enum ipw_event_kind kind, int32_t span, const char *payload)
{
    return (struct ipw_event){
        .kind = kind,
        .t_ns = 1000 + span,
        .span = span,
        .payload = payload,
        .payload_len = payload ? strlen(payload) : 0,
        .tool = {
            .name = "calculator", .call_id = "c", .ok = true, .outcome = "ok", .result_bytes = 1}};
}

#define BEGINS(span, payload) tool(IPW_EV_TOOL_START, span, payload)
#define ENDS(span, payload)   tool(IPW_EV_TOOL_END, span, payload)

/* Steps over the record as far as it goes; how many lines were taken. */
static int go(struct world *w)
{
    const struct ipw_event_line *line;
    int taken = 0;

    while (ipw_event_reader_head(w->events, &line, NULL) == 1 &&
           ipw_playback_step(w->replay, line) == IPW_PLAYBACK_TAKEN) {
        ipw_event_reader_drop(w->events, line);
        taken++;
        if (w->n_diverged) break;
    }
    return taken;
}

/* What the agent does now is at another time and may be ahead of the record. */
static void emit(struct world *w, struct ipw_event event)
{
    event.t_ns = 77777;
    ipw_playback_emit(w->replay, &event);
}

static void as_recorded(void **state)
{
    const struct ipw_event events[] = {BEGINS(1, "{\"arguments\":{\"x\":1}}"),
                                       BEGINS(2, "{\"arguments\":{\"x\":2}}")};
    struct world w;

    (void)state;
    open_world(&w, IPW_PLAYBACK_EXACT, events, 2);
    assert_true(ipw_playback_answers(w.replay));
    assert_int_equal(go(&w), 0); /* the agent has done nothing yet */
    emit(&w, events[0]);
    assert_int_equal(w.n_stirred, 1);
    emit(&w, events[1]);
    assert_int_equal(w.n_written, 0);
    assert_int_equal(go(&w), 2);
    assert_int_equal(w.n_paired, 2);
    assert_int_equal(w.n_diverged, 0);
    close_world(&w);
}

static void a_changed_byte(void **state)
{
    const struct ipw_event events[] = {BEGINS(1, "{\"arguments\":{\"text\":\"two hours\"}}")};
    struct world w;

    (void)state;
    open_world(&w, IPW_PLAYBACK_EXACT, events, 1);
    emit(&w, BEGINS(1, "{\"arguments\":{\"text\":\"two hourS\"}}"));
    go(&w);
    assert_int_equal(w.n_diverged, 1);
    assert_string_equal(w.said, "tool_call_start differs at arguments.text, byte 9\n"
                                "    saved   two hours\n    now     two hourS");
    /* once is enough, and what follows is nobody's */
    emit(&w, BEGINS(2, NULL));
    ipw_playback_stalled(w.replay, NULL);
    assert_int_equal(w.n_diverged, 1);
    assert_int_equal(w.n_written, 0);
    close_world(&w);
}

static void parallel_calls_in_another_order(void **state)
{
    const struct ipw_event events[] = {BEGINS(3, "{\"arguments\":{\"x\":2}}"),
                                       BEGINS(2, "{\"arguments\":{\"x\":1}}")};
    struct world w;

    (void)state;
    open_world(&w, IPW_PLAYBACK_EXACT, events, 2);
    emit(&w, events[1]);
    emit(&w, events[0]);
    go(&w);
    assert_int_equal(w.n_diverged, 1);
    assert_string_equal(w.said, "the agent does something else\n"
                                "    saved   line 1: tool_call_start calculator, span 3 {\"x\":2}\n"
                                "    now     tool_call_start calculator, span 2 {\"x\":1}");
    close_world(&w);
}

struct waiter {
    struct world *w;
    int n_called;
    char content[64];
    bool answered;
};

static void on_result(void *ud, const struct ipw_event_line *line)
{
    struct waiter *waiter = ud;

    waiter->n_called++;
    waiter->answered = line != NULL;
    if (!line) return;
    snprintf(waiter->content, sizeof waiter->content, "%s",
             ipw_json_str(ipw_json_get(line->data, "content"), ""));
    emit(waiter->w, ENDS(1, "{\"content\":\"4\"}"));
}

/* A result is handed to who waits for it, and what he does with it pairs with the same line. */
static void a_result(void **state)
{
    const struct ipw_event events[] = {BEGINS(1, "{\"arguments\":{}}"),
                                       ENDS(1, "{\"content\":\"4\"}")};
    struct waiter waiter = {0};
    struct world w;

    (void)state;
    open_world(&w, IPW_PLAYBACK_EXACT, events, 2);
    waiter.w = &w;
    emit(&w, events[0]);
    assert_int_equal(go(&w), 1);
    ipw_playback_wait(w.replay, 1, on_result, &waiter);
    assert_int_equal(go(&w), 1);
    assert_int_equal(waiter.n_called, 1);
    assert_string_equal(waiter.content, "4");
    assert_int_equal(w.n_paired, 2);
    assert_int_equal(w.n_diverged, 0);
    close_world(&w);
}

/* He who was forgotten is not called; a result that is not in the record is told. */
static void a_missing_result(void **state)
{
    const struct ipw_event events[] = {BEGINS(1, "{\"arguments\":{}}"),
                                       BEGINS(2, "{\"arguments\":{}}")};
    struct waiter gone = {0}, waiter = {0};
    const struct ipw_event_line *line;
    struct world w;

    (void)state;
    open_world(&w, IPW_PLAYBACK_EXACT, events, 2);
    emit(&w, events[0]);
    assert_int_equal(go(&w), 1);
    ipw_playback_wait(w.replay, 9, on_result, &gone);
    ipw_playback_forget(w.replay, &gone);
    ipw_playback_wait(w.replay, 1, on_result, &waiter);
    assert_int_equal(go(&w), 0);
    assert_int_equal(ipw_event_reader_head(w.events, &line, NULL), 1);
    ipw_playback_stalled(w.replay, line);
    assert_int_equal(w.n_diverged, 1);
    assert_string_equal(w.said, "an event is missing from the saved run\n"
                                "    saved   line 2: tool_call_start calculator, span 2 {}\n"
                                "    now     the agent waits for the end of span 1");
    assert_int_equal(gone.n_called + waiter.n_called, 0);
    close_world(&w);
}

static void an_early_end(void **state)
{
    const struct ipw_event events[] = {BEGINS(1, "{\"arguments\":{\"x\":1}}")};
    const struct ipw_event_line *line;
    struct world w;

    (void)state;
    open_world(&w, IPW_PLAYBACK_EXACT, events, 1);
    assert_int_equal(ipw_event_reader_head(w.events, &line, NULL), 1);
    ipw_playback_ended(w.replay, line, "answered");
    assert_string_equal(w.said, "the agent ended, but the saved run continues\n"
                                "    saved   line 1: tool_call_start calculator, span 1 {\"x\":1}\n"
                                "    now     the agent is over (answered)");
    close_world(&w);
}

static void effects(void **state)
{
    static const char *const notes[] = {
        "{\"id\":1,\"name\":\"effect\",\"of\":\"now\",\"value\":[1.5]}",
        "{\"id\":2,\"name\":\"effect\",\"of\":\"fs.read\",\"value\":[null]}"};
    struct ipw_event events[2];
    const struct ipw_event_line *line;
    struct world w;

    (void)state;
    for (size_t i = 0; i < 2; i++)
        events[i] = (struct ipw_event){
            .kind = IPW_EV_NOTE, .t_ns = 5, .payload = notes[i], .payload_len = strlen(notes[i])};
    open_world(&w, IPW_PLAYBACK_EXACT, events, 2);
    line = ipw_playback_effect(w.replay, 1, "now");
    assert_non_null(line);
    assert_int_equal(ipw_playback_effect_id(line), 1);
    assert_false(ipw_playback_is_own(line));
    assert_non_null(ipw_playback_effect(w.replay, 2, "fs.read")); /* ahead of its turn */
    assert_null(ipw_playback_effect(w.replay, 2, "now"));
    assert_int_equal(w.n_diverged, 1);
    assert_non_null(strstr(w.said, "saved   fs.read\n    now     effect 2: now"));
    close_world(&w);
}

/* What the program itself wrote among them passes, whatever the agent does. */
static void own_lines_and_inner_ones(void **state)
{
    struct ipw_event events[] = {
        {.kind = IPW_EV_NOTE, .t_ns = 3, .tool = {.name = "booked"}},
        BEGINS(IPW_SPAN_INSIDE + 4, "{\"arguments\":{}}"),
        {.kind = IPW_EV_NOTE, .t_ns = 4, .payload = "{\"text\":\"mine\"}", .payload_len = 15},
    };
    struct world w;

    (void)state;
    open_world(&w, IPW_PLAYBACK_EXACT, events, 3);
    assert_int_equal(go(&w), 3);
    assert_int_equal(w.n_paired, 3);
    close_world(&w);
}

/* Only the decisions: calls pair by their order, results are set side by side, times are real. */
static void decisions(void **state)
{
    const struct ipw_event events[] = {BEGINS(5, "{\"arguments\":{\"x\":1}}"),
                                       ENDS(5, "{\"content\":\"then\"}")};
    struct world w;

    (void)state;
    open_world(&w, IPW_PLAYBACK_DECISIONS, events, 2);
    assert_false(ipw_playback_answers(w.replay));
    emit(&w, BEGINS(1, "{\"arguments\":{\"x\":1}}")); /* another span than then */
    assert_int_equal(w.n_written, 1);                 /* at once, as itself */
    assert_int_equal(go(&w), 1);
    emit(&w, ENDS(1, "{\"content\":\"now\"}"));
    assert_int_equal(go(&w), 1);
    assert_int_equal(w.n_tools, 1);
    assert_string_equal(w.tool_was, "then");
    assert_int_equal(w.n_paired, 0);
    assert_int_equal(w.n_diverged, 0);
    close_world(&w);

    open_world(&w, IPW_PLAYBACK_DECISIONS, events, 2);
    emit(&w, BEGINS(1, "{\"arguments\":{\"x\":9}}"));
    go(&w);
    assert_int_equal(w.n_diverged, 1);
    assert_non_null(strstr(w.said, "span 5 {\"x\":1}\n"));
    assert_non_null(strstr(w.said, "span 1 {\"x\":9}"));
    close_world(&w);
}

static void messages_in_words(void **state)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);

    (void)state;
    assert_false(ipw_playback_say_message(&out, 0, "{\"content\":\"x\",\"role\":\"user\"}",
                                          "{\"role\":\"user\",\"content\":\"x\"}"));
    assert_int_equal(out.len, 0);
    assert_true(ipw_playback_say_message(&out, 3,
                                         "{\"content\":\"a\\nb \\u001b[2J\",\"role\":\"tool\"}",
                                         "{\"content\":\"a\\nc\",\"role\":\"tool\"}"));
    assert_string_equal(
        ipw_buf_str(&out),
        "message 4 (tool) of the request differs at messages[3].content, byte 3 (line 2)\n"
        "    saved   a b \\u{1b}[2J\n    now     a c");
    ipw_buf_release(&out);
}

UNIT(playback)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_recorded),
        cmocka_unit_test(a_changed_byte),
        cmocka_unit_test(parallel_calls_in_another_order),
        cmocka_unit_test(a_result),
        cmocka_unit_test(a_missing_result),
        cmocka_unit_test(an_early_end),
        cmocka_unit_test(effects),
        cmocka_unit_test(own_lines_and_inner_ones),
        cmocka_unit_test(decisions),
        cmocka_unit_test(messages_in_words),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
