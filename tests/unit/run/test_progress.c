/* The line that tells how far a run is: what it shows of each kind of sensor, and that it fits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/progress.h"
#include "unit/unit.h"

static const struct ipw_progress_state some = {.n_queries = 4,
                                               .n_done = 2,
                                               .ok = 1,
                                               .wrong = 1,
                                               .turns = 1,
                                               .tools = 12,
                                               .joules = 312.4,
                                               .watts = 95,
                                               .seconds = 3.3,
                                               .left_s = 3.3};

static void joules_and_watts_stand_before_the_time(void **state)
{
    struct ipw_progress_state s = some;
    char line[600];

    (void)state;
    ipw_progress_line(line, sizeof line, &s, 120);
    assert_string_equal(line,
                        "[##########..........] 2/4 done  1 correct  1 wrong  0 failed  312 J  "
                        "95.0 W  3 s  3.30 s left  1 turn  12 tool calls");
    s.joules = s.watts = s.left_s = NAN; /* nothing was read yet: nothing is claimed */
    ipw_progress_line(line, sizeof line, &s, 120);
    assert_null(strstr(line, " J"));
    assert_null(strstr(line, " W"));
    assert_null(strstr(line, "left"));
    s.joules = s.watts = 0; /* known, and not much of it */
    ipw_progress_line(line, sizeof line, &s, 120);
    assert_non_null(strstr(line, "  0 J  0 W  "));
}

/* Whole fields go, the last ones first; nothing is cut inside, and nothing is wider. */
static void a_narrow_terminal_drops_fields(void **state)
{
    struct ipw_progress_state s = some;
    char all[600], line[600];

    (void)state;
    s.wait_s = 7;
    ipw_progress_line(all, sizeof all, &s, 500);
    for (unsigned width = 8; width < 130; width++) {
        size_t n = ipw_progress_line(line, sizeof line, &s, width);
        const char *text = strstr(line, "2/4 done");

        assert_int_equal(n, strlen(line));
        assert_true(n <= width);
        assert_non_null(text);
        assert_int_equal(strncmp(strstr(all, "2/4 done"), text, strlen(text)), 0);
        assert_true(strchr("  ", strstr(all, text)[strlen(text)]) != NULL);
    }
    ipw_progress_line(line, sizeof line, &s, 77);
    assert_non_null(strstr(line, "312 J  95.0 W  3 s  3.30 s left"));
}

/* A mark, the end of the id, what it took, and its answer or why it failed, in the width. */
static void a_row_of_a_query(void **state)
{
    struct ipw_query_trace q = {.id = "frames/2026/question-027",
                                .completed = true,
                                .outcome = "answered",
                                .n_turns = 4,
                                .input_tokens = 9000,
                                .output_tokens = 640,
                                .end_ns = 5700 * IPW_NS_PER_MS};
    struct ipw_query_details d = {.is_resolved = 1,
                                  .answer = "Paris,\nthe capital of France, that is"};
    struct ipw_buf out = IPW_BUF(1000);

    (void)state;
    q.energy[IPW_DOMAIN_GPU] = (struct ipw_figure){.known = true, .j = 1000};
    q.energy[IPW_DOMAIN_CPU] = (struct ipw_figure){.known = true, .j = 270};
    ipw_progress_row(&out, &q, &d, 80, false);
    assert_string_equal(
        ipw_buf_str(&out),
        " \xE2\x9C\x93 \xE2\x80\xA6/question-027      4 turns   9640 tokens  5.70 s  "
        "1.27 kJ  Paris, the capit\xE2\x80\xA6");
    ipw_buf_clear(&out);
    q = (struct ipw_query_trace){.id = "q1",
                                 .outcome = "timeout",
                                 .error = "no reply",
                                 .input_tokens = -1,
                                 .output_tokens = -1,
                                 .end_ns = IPW_NS_PER_S};
    ipw_progress_row(&out, &q, &(struct ipw_query_details){.is_resolved = -1}, 80, false);
    assert_non_null(strstr(ipw_buf_str(&out), " ! q1 "));
    assert_non_null(strstr(ipw_buf_str(&out), "  no reply"));
    ipw_buf_clear(&out);
    ipw_progress_row(&out, &q, &(struct ipw_query_details){.is_resolved = -1}, 40, false);
    assert_null(strstr(ipw_buf_str(&out), "no reply")); /* no room for it */
    ipw_buf_release(&out);
}

UNIT(progress)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joules_and_watts_stand_before_the_time),
        cmocka_unit_test(a_narrow_terminal_drops_fields),
        cmocka_unit_test(a_row_of_a_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
