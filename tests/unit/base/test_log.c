/* Lines on stderr: whole, one write each, without what a terminal would obey. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>

#include <cmocka.h>

#include "base/log.h"
#include "unit/unit.h"

static int ends[2], was;
static char said[3 * PIPE_BUF];

/* Until end_capture() stderr is a pipe. */
static void capture(void)
{
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    was = dup(STDERR_FILENO);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
}

static size_t end_capture(void)
{
    ssize_t n;

    assert_true(dup2(was, STDERR_FILENO) >= 0);
    close(was);
    close(ends[1]);
    n = read(ends[0], said, sizeof said - 1);
    close(ends[0]);
    if (n < 0) n = 0;
    said[n] = '\0';
    return (size_t)n;
}

static void a_line_is_harmless(void **state)
{
    (void)state;
    capture();
    ipw_log(IPW_LOG_WARN, "%s", "a\033[2J\nerror: not ours\n    ours");
    assert_int_equal(end_capture() > 0, 1);
    assert_string_equal(strchr(said, ':'), ": warning: a\\u{1b}[2J error: not ours\n    ours\n");
}

/* Whatever is told, it is one line, and no more than a pipe takes at once. */
static void a_long_line_is_cut(void **state)
{
    static char text[3 * PIPE_BUF];
    size_t n;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    capture();
    ipw_log(IPW_LOG_ERROR, "%s", text);
    n = end_capture();
    assert_in_range(n, 1000, PIPE_BUF);
    assert_ptr_equal(strchr(said, '\n'), said + n - 1);
    /* each byte may need several places */
    memset(text, 1, sizeof text - 1);
    capture();
    ipw_log(IPW_LOG_ERROR, "%s", text);
    n = end_capture();
    assert_in_range(n, 1000, PIPE_BUF);
    assert_ptr_equal(strchr(said, '\n'), said + n - 1);
    /* what is written as it is has the same end */
    capture();
    assert_true(ipw_log_write(text, sizeof text - 1, 1000));
    assert_int_equal(end_capture(), PIPE_BUF);
}

static int calls;
static void before(void *ud) { (void)ud, calls++; }

static void a_line_that_shows_progress_makes_way(void **state)
{
    (void)state;
    ipw_log_set_hook(before, NULL);
    capture();
    ipw_log(IPW_LOG_WARN, "one");
    ipw_log(IPW_LOG_DEBUG, "not told");
    end_capture();
    assert_int_equal(calls, 1);
    assert_null(strstr(said, "not told"));
    ipw_log_set_hook(NULL, NULL);
    ipw_log_set_level(IPW_LOG_DEBUG);
    capture();
    ipw_log(IPW_LOG_DEBUG, "told now");
    end_capture();
    assert_non_null(strstr(said, "debug: told now"));
    ipw_log_set_level(IPW_LOG_WARN);
    assert_int_equal(calls, 1);
}

/* A reader that takes nothing does not hold up the program. */
static void a_full_pipe_is_not_waited_for(void **state)
{
    static const char block[PIPE_BUF] = "";

    (void)state;
    capture();
    while (write(ends[1], block, sizeof block) > 0) continue;
    assert_false(ipw_log_write("lost", 4, 0));
    end_capture();
}

UNIT(log)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_harmless),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(a_line_that_shows_progress_makes_way),
        cmocka_unit_test(a_full_pipe_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
