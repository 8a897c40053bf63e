#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/trace/script.h"
#include "unit/unit.h"

#define MAX_EVENTS 14
#define MAX_TURNS  3

/* One turn as expected: edges in seconds, tokens, attempts, seconds of agent time, its tools in
 * order ("name:seconds"). */
struct want_turn {
    double start_s, end_s;
    int64_t in, out;
    int attempts;
    double agent_s;
    const char *tools;
    const char *error;
};

static const struct {
    const char *name;
    struct ipw_event events[MAX_EVENTS];
    size_t n_turns;
    struct want_turn turns[MAX_TURNS];
    double before_s, end_s;
    int64_t in, out;
    const char *outcome;
    bool completed;
} cases[] = {
    {"upstream 1: a tool inside the first call's window",
     {QS(0), LS(1, 1, 1), TS(1.5, 2, "a"), TE(1.7, 2, "a"), LE(2, 1, 50, 20), LS(3, 3, 1),
      LE(4, 3, 30, 10), QE(5, "answered")},
     2,
     {{1, 3, 50, 20, 1, 1, "a:0.2", NULL}, {3, 5, 30, 10, 1, 1, "", NULL}},
     1,
     5,
     80,
     30,
     "answered",
     true},
    {"upstream 2: a tool between two calls belongs to the first",
     {QS(0), LS(0, 1, 1), LE(1, 1, 5, 5), TS(1.1, 2, "a"), TE(2, 2, "a"), LS(2, 3, 1),
      LE(3, 3, 5, 5), QE(3, "answered")},
     2,
     {{0, 2, 5, 5, 1, 0.1, "a:0.9", NULL}, {2, 3, 5, 5, 1, 0, "", NULL}},
     0,
     3,
     10,
     10,
     "answered",
     true},
    {"upstream 4: no events make no turn, and none is made up",
     {QS(0), QE(2, "answered")},
     0,
     {{0}},
     2,
     2,
     0,
     0,
     "answered",
     true},
    {"upstream 17: the agent raises, its turns are kept",
     {QS(0), LS(1, 1, 1), LE(2, 1, 7, 3), TS(2, 2, "a"), TE(3, 2, "a"), QF(4, "error", "boom")},
     1,
     {{1, 4, 7, 3, 1, 1, "a:1", NULL}},
     1,
     4,
     7,
     3,
     "error",
     false},
    {"a tool after the last call is its turn's",
     {QS(0), LS(0, 1, 1), LE(1, 1, 1, 1), TS(2, 2, "submit"), TE(2.5, 2, "submit"),
      QE(3, "answered")},
     1,
     {{0, 3, 1, 1, 1, 1.5, "submit:0.5", NULL}},
     0,
     3,
     1,
     1,
     "answered",
     true},
    {"two calls of one tool side by side keep their own durations",
     {QS(0), LS(0, 1, 1), LE(0.5, 1, 1, 1), TS(1.0, 2, "a"), TS(1.1, 3, "a"), TE(2.0, 2, "a"),
      TE(9.0, 3, "a"), QE(9, "answered")},
     1,
     {{0, 9, 1, 1, 1, 0.5, "a:1 a:7.9", NULL}},
     0,
     9,
     1,
     1,
     "answered",
     true},
    {"the same without span numbers: first in, first out",
     {QS(0), LS(0, 1, 1), LE(0.5, 1, 1, 1), TS(1.0, 0, "a"), TS(1.1, 0, "a"), TE(2.0, 0, "a"),
      TE(9.0, 0, "a"), QE(9, "answered")},
     1,
     {{0, 9, 1, 1, 1, 0.5, "a:1 a:7.9", NULL}},
     0,
     9,
     1,
     1,
     "answered",
     true},
    {"overlapping tools: their union is not agent time",
     {QS(0), LS(0, 1, 1), LE(1, 1, 1, 1), TS(1, 2, "a"), TS(1.5, 3, "b"), TE(2, 2, "a"),
      TE(3, 3, "b"), QE(4, "answered")},
     1,
     {{0, 4, 1, 1, 1, 1, "a:1 b:1.5", NULL}},
     0,
     4,
     1,
     1,
     "answered",
     true},
    {"attempts of one call share a turn; the waits between them are not agent time",
     {QS(0), LS(0, 1, 1), LX(1, 1, 1, IPW_LM_TIMEOUT, true), LS(2, 2, 2),
      LX(3, 2, 2, IPW_LM_RESET, true), LS(4, 3, 3), LE(5, 3, 9, 8), QE(5, "answered")},
     1,
     {{0, 5, 9, 8, 3, 0, "", NULL}},
     0,
     5,
     9,
     8,
     "answered",
     true},
    {"attempts that all fail: a turn with an error and unknown tokens",
     {QS(0), LS(0, 1, 1), LX(1, 1, 1, IPW_LM_REFUSED, true), LS(2, 2, 2),
      LX(3, 2, 2, IPW_LM_REFUSED, false), QF(3, "error", "no server")},
     1,
     {{0, 3, -1, -1, 2, 0, "", "why"}},
     0,
     3,
     -1,
     -1,
     "error",
     false},
    {"a new call after a failed one is a new turn",
     {QS(0), LS(0, 1, 1), LX(1, 1, 1, IPW_LM_HTTP_ERROR, false), LS(1, 2, 1), LE(2, 2, 4, 4),
      QE(2, "answered")},
     2,
     {{0, 1, -1, -1, 1, 0, "", "why"}, {1, 2, 4, 4, 1, 0, "", NULL}},
     0,
     2,
     -1,
     -1,
     "answered",
     true},
    {"nothing ends: everything ends with the query",
     {QS(0), LS(1, 1, 1), LE(2, 1, 1, 1), TS(2, 2, "slow"), LS(3, 3, 1), QF(5, "timeout", "5 s")},
     2,
     {{1, 3, 1, 1, 1, 0, "slow:3", NULL}, {3, 5, -1, -1, 1, 0, "", "unfinished"}},
     1,
     5,
     -1,
     -1,
     "timeout",
     false},
    {"a tool still running in the next turn is not that turn's agent time",
     {QS(0), LS(0, 1, 1), LE(1, 1, 1, 1), TS(1, 2, "bg"), LS(2, 3, 1), LE(3, 3, 1, 1),
      TE(4, 2, "bg"), QE(5, "answered")},
     2,
     {{0, 2, 1, 1, 1, 0, "bg:3", NULL}, {2, 5, 1, 1, 1, 1, "", NULL}},
     0,
     5,
     2,
     2,
     "answered",
     true},
    {"a program tells when its tools ran: before their end, after it, and one that nobody called",
     {QS(0), LS(1, 1, 1), LE(2, 1, 50, 20), TS(2, 2, "a"), TS(2, 3, "b"), TT(3.5, 2, "a", 2.5, 3),
      TE(4, 2, "a"), TE(4, 3, "b"), LS(4, 4, 1), LE(5, 4, 30, 10), TT(6, 3, "b", 3, 3.25),
      TT(6, 5, "c", 5.5, 6), TT(6, 6, "never", 7, 8), QE(7, "answered")},
     2,
     {{1, 4, 50, 20, 1, 1.25, "a:0.5 b:0.25", NULL}, {4, 7, 30, 10, 1, 1.5, "c:0.5", NULL}},
     1,
     7,
     80,
     30,
     "answered",
     true},
    {"a session that was silent ended with its last event",
     {QS(0), LS(1, 1, 1), LE(2, 1, 50, 20), TS(2, 2, "a"), QL(9, 2.5)},
     1,
     {{1, 2.5, 50, 20, 1, 0, "a:0.5", NULL}},
     1,
     2.5,
     50,
     20,
     "answered",
     true},
    {"a tool before any call opens a turn that asked no model",
     {QS(0), TS(1, 1, "fetch"), TE(2, 1, "fetch"), LS(3, 2, 1), LE(4, 2, 6, 2), QE(4, "answered")},
     2,
     {{1, 3, 0, 0, 0, 1, "fetch:1", NULL}, {3, 4, 6, 2, 1, 0, "", NULL}},
     1,
     4,
     6,
     2,
     "answered",
     true},
    {"an end without a start is listed without duration",
     {QS(0), LS(0, 1, 1), LE(1, 1, 1, 1), TE(2, 9, "ghost"), QE(3, "answered")},
     1,
     {{0, 3, 1, 1, 1, 2, "ghost:0", NULL}},
     0,
     3,
     1,
     1,
     "answered",
     true},
    {"no query end: the last event is the end",
     {QS(0), LS(1, 1, 1), LE(2, 1, 1, 1)},
     1,
     {{1, 2, 1, 1, 1, 0, "", NULL}},
     1,
     2,
     1,
     1,
     "unfinished",
     false},
    {"what comes after the query's end is not the query's",
     {QS(0), LS(0, 1, 1), LE(1, 1, 1, 1), TS(1, 2, "a"), QF(2, "cancelled", NULL), TE(7, 2, "a"),
      LS(8, 3, 1)},
     1,
     {{0, 2, 1, 1, 1, 0, "a:1", NULL}},
     0,
     2,
     1,
     1,
     "cancelled",
     false},
};

static void near(double a, double b) { assert_true(fabs(a - b) < 1e-9); }

static void check_tools(const struct ipw_turn *turn, const char *want)
{
    char text[200] = "";

    for (size_t k = 0; k < turn->n_spans; k++) {
        const struct ipw_span *span = &turn->spans[k];
        size_t n = strlen(text);

        if (k) assert_true(turn->spans[k - 1].start_ns <= span->start_ns);
        if (span->kind != IPW_SPAN_TOOL) continue;
        snprintf(text + n, sizeof text - n, "%s%s:%g", n ? " " : "", span->name,
                 ipw_ns_to_s(span->end_ns - span->start_ns));
    }
    assert_string_equal(text, want);
}

static void turns_are_built(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_query_trace q;
        size_t n = 0, tools = 0;
        int64_t tiled = 0;

        while (n < MAX_EVENTS && cases[i].events[n].kind != IPW_EV_RUN_START) n++;
        print_message("  %s\n", cases[i].name);
        build_trace(&q, cases[i].events, n);
        assert_string_equal(q.id, "q0000");
        assert_string_equal(q.outcome, cases[i].outcome);
        assert_int_equal(q.completed, cases[i].completed);
        assert_int_equal(q.timed_out, !strcmp(cases[i].outcome, "timeout"));
        assert_int_equal(q.n_turns, cases[i].n_turns);
        assert_int_equal(q.input_tokens, cases[i].in);
        assert_int_equal(q.output_tokens, cases[i].out);
        near(q.agent_before_s, cases[i].before_s);
        near(ipw_ns_to_s(q.end_ns), cases[i].end_s);
        for (size_t t = 0; t < q.n_turns; t++) {
            const struct ipw_turn *turn = &q.turns[t];
            const struct want_turn *want = &cases[i].turns[t];

            assert_int_equal(turn->index, t);
            near(ipw_ns_to_s(turn->start_ns), want->start_s);
            near(ipw_ns_to_s(turn->end_ns), want->end_s);
            assert_int_equal(turn->input_tokens, want->in);
            assert_int_equal(turn->output_tokens, want->out);
            assert_int_equal(turn->attempts, want->attempts);
            near(turn->agent_s, want->agent_s);
            assert_int_equal(isnan(turn->inference_s), want->attempts == 0);
            check_tools(turn, want->tools);
            if (want->error) {
                assert_string_equal(turn->error, want->error);
            } else {
                assert_null(turn->error);
            }
            tiled += turn->end_ns - turn->start_ns;
            for (size_t k = 0; k < turn->n_spans; k++)
                tools += turn->spans[k].kind == IPW_SPAN_TOOL;
        }
        near(ipw_ns_to_s(tiled) + q.agent_before_s, ipw_ns_to_s(q.end_ns - q.start_ns));
        assert_int_equal(q.n_tool_calls, tools);
        ipw_query_trace_release(&q);
        assert_null(q.turns);
    }
}

static void phases_of_the_successful_attempt(void **state)
{
    struct ipw_event events[] = {QS(0),       LS(1, 1, 1),     LX(2, 1, 1, IPW_LM_CUT, true),
                                 LS(3, 2, 2), LE(6, 2, 10, 5), QE(7, "answered")};
    struct ipw_query_trace q;
    const struct ipw_turn *turn;

    (void)state;
    events[2].lm.times.sent_ns = S(1);
    events[2].lm.times.first_token_ns = S(1.5); /* of a failed attempt: no phase */
    events[4].lm.times.sent_ns = S(3);
    events[4].lm.times.first_token_ns = S(4);
    events[4].lm.times.last_token_ns = S(5.5);
    events[4].lm.attempt = 2;
    events[4].lm.times.headers_ns = S(3.25);
    events[4].lm.times.first_reasoning_ns = S(4);
    events[4].lm.times.second_token_ns = S(4.125);
    events[4].lm.times.first_call_ns = S(5);
    events[4].lm.times.first_text_ns = S(4.5);
    events[4].lm.times.gaps = 3;
    events[4].lm.times.gap_p50_ns = S(0.5);
    events[4].lm.times.gap_p90_ns = S(0.6);
    events[4].lm.times.gap_p99_ns = S(0.75);
    events[4].lm.times.connect_ns = S(0.25);
    events[4].lm.times.tls_ns = S(0.5);
    events[4].lm.times.server_prefill_ns = S(0.875);
    events[4].lm.endpoint = "http://h/v1";
    build_trace(&q, events, 6);
    turn = q.turns;
    assert_int_equal(q.n_turns, 1);
    near(turn->ttft_s, 1);
    near(turn->decode_s, 1.5);
    near(turn->inference_s, 1 + 3);
    near(turn->times.ttfo_s, 1.5);
    near(turn->times.ttst_s, 0.125);
    near(turn->times.itl_mean_s, 1.5 / 4); /* 5 tokens */
    near(turn->times.gap_p50_s, 0.5);
    near(turn->times.gap_p99_s, 0.75);
    near(turn->times.latency_content_s, 2.5);
    near(turn->times.latency_close_s, 3);
    near(turn->times.headers_s, 0.25);
    near(turn->times.connect_s, 0.75);
    near(turn->times.server_prefill_s, 0.875);
    assert_true(isnan(turn->times.server_queue_s));
    near(turn->retry_wait_s, 1);
    assert_string_equal(turn->endpoint, "http://h/v1");
    assert_string_equal(turn->model, "m");
    assert_string_equal(turn->finish_reason, "stop");
    assert_int_equal(turn->n_spans, 4);
    assert_int_equal(turn->spans[0].kind, IPW_SPAN_LM);
    assert_string_equal(turn->spans[0].outcome, "cut");
    assert_string_equal(turn->spans[0].error, "why");
    assert_int_equal(turn->spans[1].kind, IPW_SPAN_LM);
    assert_int_equal(turn->spans[1].attempt, 2);
    assert_int_equal(turn->spans[2].kind, IPW_SPAN_PREFILL);
    assert_int_equal(turn->spans[3].kind, IPW_SPAN_DECODE);
    assert_true(turn->spans[3].end_ns == S(5.5));
    ipw_query_trace_release(&q);
}

/* A request that waited to be let go: that was not the agent's time. */
static void a_turn_that_was_held_back(void **state)
{
    struct ipw_event events[] = {QS(0),       LS(2, 1, 1),     LE(3, 1, 10, 5),
                                 LS(7, 2, 1), LE(9, 2, 10, 5), QE(10, "answered")};
    struct ipw_query_trace q;

    (void)state;
    events[1].lm.held_ns = S(1); /* before there is a turn */
    events[3].lm.held_ns = S(3);
    build_trace(&q, events, 6);
    assert_int_equal(q.n_turns, 2);
    near(q.turns[0].inference_s, 1);
    near(q.turns[0].retry_wait_s, 3);
    near(q.turns[0].agent_s, 1);
    near(q.turns[1].retry_wait_s, 0);
    near(q.turns[1].agent_s, 1);
    ipw_query_trace_release(&q);
}

static void what_attempts_cost(void **state)
{
    static const struct {
        bool first_known, second_known;
        double usd; /* NAN: not known */
    } costs[] = {{true, true, 0.75}, {false, true, 0.5}, {true, false, NAN}, {false, false, NAN}};

    (void)state;
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        struct ipw_event events[] = {
            QS(0),       LS(1, 1, 1),      LX(2, 1, 1, IPW_LM_CUT, true),
            LS(3, 2, 2), LE(4, 2, 100, 5), QE(5, "answered"),
        };
        struct ipw_query_trace q;

        events[2].lm.cost.known = costs[i].first_known;
        events[2].lm.cost.usd = 0.25;
        events[4].lm.attempt = 2;
        events[4].lm.cost.known = costs[i].second_known;
        events[4].lm.cost.usd = 0.5;
        build_trace(&q, events, 6);
        if (isnan(costs[i].usd))
            assert_true(isnan(q.turns[0].cost_usd));
        else
            near(q.turns[0].cost_usd, costs[i].usd);
        ipw_query_trace_release(&q);
    }
}

/* What was counted of a stream that was cut stays, marked as counted, when the next attempt says
 * nothing; a reply that was used has the last word. */
static void what_attempts_say_of_tokens(void **state)
{
    static const struct {
        enum ipw_lm_outcome second;
        int64_t told[4],
            want[4]; /* input, output, cached, reasoning; the first one's are 9, 3, 8, 2 */
        bool told_estimated, want_estimated;
    } rows[] = {
        {IPW_LM_REFUSED, {-1, -1, -1, -1}, {9, 3, 8, 2}, false, true},
        {IPW_LM_CUT, {10, 4, 0, 0}, {9, 3, 8, 2}, false, true},
        {IPW_LM_OK, {10, 4, 0, 1}, {10, 4, 0, 1}, false, false},
        {IPW_LM_OK, {10, 4, -1, -1}, {10, 4, -1, -1}, true, true},
        {IPW_LM_OK, {-1, -1, -1, -1}, {-1, -1, -1, -1}, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_event events[] = {QS(0),       LS(1, 1, 1),     LX(2, 1, 1, IPW_LM_CUT, true),
                                     LS(3, 2, 2), LE(4, 2, 10, 4), QE(5, "answered")};
        struct ipw_lm_facts *first = &events[2].lm, *second = &events[4].lm;
        struct ipw_query_trace q;

        first->input_tokens = 9;
        first->output_tokens = 3;
        first->cached_tokens = 8;
        first->reasoning_tokens = 2;
        first->cache_write_tokens = 5;
        first->cache_write_1h_tokens = 1;
        first->tokens_estimated = true;
        second->attempt = 2;
        second->outcome = rows[i].second;
        second->input_tokens = rows[i].told[0];
        second->output_tokens = rows[i].told[1];
        second->cached_tokens = rows[i].told[2];
        second->reasoning_tokens = rows[i].told[3];
        second->cache_write_tokens = 7;
        second->tokens_estimated = rows[i].told_estimated;
        build_trace(&q, events, 6);
        assert_int_equal(q.n_turns, 1);
        assert_int_equal(q.turns[0].input_tokens, rows[i].want[0]);
        assert_int_equal(q.turns[0].output_tokens, rows[i].want[1]);
        assert_int_equal(q.turns[0].cached_tokens, rows[i].want[2]);
        assert_int_equal(q.turns[0].reasoning_tokens, rows[i].want[3]);
        assert_int_equal(q.turns[0].cache_write_tokens, rows[i].second == IPW_LM_OK ? 7 : 5);
        assert_int_equal(q.turns[0].cache_write_1h_tokens, rows[i].second == IPW_LM_OK ? 0 : 1);
        assert_int_equal(q.turns[0].tokens_estimated, rows[i].want_estimated);
        ipw_query_trace_release(&q);
    }
}

/* A failed attempt told 0 of each: that is known, and a later failed one does not change it. */
static void tokens_of_0_are_known(void **state)
{
    struct ipw_event events[] = {QS(0),       LS(1, 1, 1),     LX(2, 1, 1, IPW_LM_CUT, true),
                                 LS(3, 2, 2), LE(4, 2, 10, 4), QE(5, "answered")};
    struct ipw_lm_facts *first = &events[2].lm, *second = &events[4].lm;
    struct ipw_query_trace q;

    (void)state;
    first->input_tokens = first->output_tokens = 0;
    first->cached_tokens = first->reasoning_tokens = 0;
    second->attempt = 2;
    second->outcome = IPW_LM_CUT;
    second->cached_tokens = second->reasoning_tokens = 2;
    build_trace(&q, events, 6);
    assert_int_equal(q.turns[0].input_tokens, 0);
    assert_int_equal(q.turns[0].output_tokens, 0);
    assert_int_equal(q.turns[0].cached_tokens, 0);
    assert_int_equal(q.turns[0].reasoning_tokens, 0);
    ipw_query_trace_release(&q);
}

/* The first output is the first text or the first call, whichever came; the second token counts
 * only beside a first. */
static void when_output_began(void **state)
{
    static const struct {
        double text, call, first, second, ttfo, ttst; /* 0: none came; NAN: not known */
    } rows[] = {{4, 0, 4, 5, 1, 1},   {0, 5, 4, 0, 2, NAN},   {6, 5, 5, 0, 2, NAN},
                {4, 5, 4, 0, 1, NAN}, {0, 0, 0, 5, NAN, NAN}, {3, 0, 3, 3, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_event events[] = {QS(0), LS(3, 1, 1), LE(8, 1, 10, 4), QE(9, "answered")};
        struct ipw_lm_facts *f = &events[2].lm;
        struct ipw_query_trace q;

        f->times.sent_ns = S(3);
        f->times.first_text_ns = S(rows[i].text);
        f->times.first_call_ns = S(rows[i].call);
        f->times.first_token_ns = S(rows[i].first);
        f->times.second_token_ns = S(rows[i].second);
        f->times.last_token_ns = S(7);
        build_trace(&q, events, 4);
        assert_true(isnan(rows[i].ttfo) == isnan(q.turns[0].times.ttfo_s));
        assert_true(isnan(rows[i].ttst) == isnan(q.turns[0].times.ttst_s));
        if (!isnan(rows[i].ttfo)) near(q.turns[0].times.ttfo_s, rows[i].ttfo);
        if (!isnan(rows[i].ttst)) near(q.turns[0].times.ttst_s, rows[i].ttst);
        ipw_query_trace_release(&q);
    }
}

static void a_builder_can_be_thrown_away(void **state)
{
    struct ipw_event events[] = {QS(0), LS(1, 1, 1), LE(2, 1, 1, 1)};
    struct ipw_turn_builder *b = ipw_turn_builder_new();

    (void)state;
    for (size_t i = 0; i < 3; i++) ipw_turn_builder_add(b, &events[i]);
    ipw_turn_builder_free(b);
    ipw_turn_builder_free(NULL);
}

/* energy.md 6, case 23: an end before its start gives no negative length, and the parts still
 * sum. */
static void case_23_an_end_before_its_start_has_no_length(void **state)
{
    struct ipw_event events[] = {QS(0),         LS(2, 1, 1),   LE(1, 1, 5, 5),
                                 TS(4, 2, "a"), TE(3, 2, "a"), QE(5, "answered")};
    struct ipw_query_trace q;
    double sum = 0;

    (void)state;
    build_trace(&q, events, 6);
    for (size_t t = 0; t < q.n_turns; t++) {
        assert_true(q.turns[t].end_ns >= q.turns[t].start_ns);
        sum += ipw_ns_to_s(q.turns[t].end_ns - q.turns[t].start_ns);
        for (size_t i = 0; i < q.turns[t].n_spans; i++)
            assert_true(q.turns[t].spans[i].end_ns >= q.turns[t].spans[i].start_ns);
    }
    near(sum + q.agent_before_s, ipw_ns_to_s(q.end_ns - q.start_ns));
    ipw_query_trace_release(&q);
}

/* Case 36: a reply that came whole has no first token: its model span stands alone. */
static void case_36_without_a_first_token_there_is_no_prefill(void **state)
{
    struct ipw_event events[] = {QS(0), LS(1, 1, 1), LE(3, 1, 10, 5), QE(4, "answered")};
    struct ipw_query_trace q;

    (void)state;
    events[2].lm.times.sent_ns = S(1);
    build_trace(&q, events, 4);
    assert_int_equal(q.turns[0].n_spans, 1);
    assert_int_equal(q.turns[0].spans[0].kind, IPW_SPAN_LM);
    assert_true(isnan(q.turns[0].ttft_s));
    assert_true(isnan(q.turns[0].decode_s));
    near(q.turns[0].inference_s, 2);
    ipw_query_trace_release(&q);
}

/* A script's own spans: in the turn where they begin, or before the first; no turn is made of them,
 * and their time stays the agent's. */
static void spans_of_the_script_open_no_turn(void **state)
{
    struct ipw_event events[] = {QS(0),
                                 ES(0.5, 1, "index", "event"),
                                 ES(0.6, 2, "GET a", "http"),
                                 EE(0.8, 2, "GET a", "http"),
                                 LS(1, 3, 1),
                                 EE(1.5, 1, "index", "event"),
                                 LE(2, 3, 10, 5),
                                 ES(2, 4, "think", "event"),
                                 QE(4, "answered")};
    struct ipw_query_trace q;

    (void)state;
    build_trace(&q, events, sizeof events / sizeof *events);
    assert_int_equal(q.n_turns, 1);
    assert_int_equal(q.n_tool_calls, 0);
    assert_int_equal(q.before.n_spans, 2);
    assert_int_equal(q.before.spans[0].kind, IPW_SPAN_EVENT);
    assert_string_equal(q.before.spans[0].name, "index");
    assert_true(q.before.spans[0].end_ns == S(1.5)); /* it ends inside the turn */
    assert_string_equal(q.before.spans[0].outcome, "ok");
    assert_int_equal(q.before.spans[1].kind, IPW_SPAN_HTTP);
    assert_int_equal(q.turns[0].n_spans, 2);
    assert_int_equal(q.turns[0].spans[1].kind, IPW_SPAN_EVENT);
    assert_string_equal(q.turns[0].spans[1].outcome, "unfinished");
    assert_true(q.turns[0].spans[1].end_ns == S(4));
    near(q.agent_before_s, 1);
    near(q.turns[0].agent_s, 2);
    ipw_query_trace_release(&q);
}

UNIT(turn)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_built),
        cmocka_unit_test(phases_of_the_successful_attempt),
        cmocka_unit_test(a_turn_that_was_held_back),
        cmocka_unit_test(what_attempts_cost),
        cmocka_unit_test(case_23_an_end_before_its_start_has_no_length),
        cmocka_unit_test(case_36_without_a_first_token_there_is_no_prefill),
        cmocka_unit_test(tokens_of_0_are_known),
        cmocka_unit_test(spans_of_the_script_open_no_turn),
        cmocka_unit_test(what_attempts_say_of_tokens),
        cmocka_unit_test(when_output_began),
        cmocka_unit_test(a_builder_can_be_thrown_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
