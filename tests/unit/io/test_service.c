/* A child of our own that stays: its first line, what it says after it, how it ends by itself, and
 * being stopped though it does not want to. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/proc.h"

static struct ipw_loop *loop;
static struct {
    char line[5000];
    int lines, ends, exit_code, term_signal;
} seen;

static int set_up(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    return ipw_loop_new(&loop, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(ipw_loop_leftovers(loop), 0);
    ipw_loop_free(loop);
    return 0;
}

static void on_line(void *ud, const char *line)
{
    (void)ud;
    seen.lines++;
    snprintf(seen.line, sizeof seen.line, "%s", line);
    ipw_loop_stop(loop);
}

static void on_exit_(void *ud, int exit_code, int term_signal)
{
    (void)ud;
    seen.ends++;
    seen.exit_code = exit_code;
    seen.term_signal = term_signal;
    ipw_loop_stop(loop);
}

static struct ipw_service *start(const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct ipw_service *service;
    struct ipw_err err = {0};

    if (ipw_service_start(&service, loop, argv, on_line, on_exit_, NULL, &err))
        fail_msg("%s", err.text);
    return service;
}

static struct ipw_timer *tick;

static void on_tick(void *ud)
{
    (void)ud;
    tick = NULL;
    ipw_loop_stop(loop);
}

/* A service that has said its first line keeps no loop running: a timer does. */
static void await_end(void)
{
    while (!seen.ends) {
        if (!tick) tick = ipw_timer_start(loop, 5 * IPW_NS_PER_MS, on_tick, NULL);
        ipw_loop_run(loop);
    }
    ipw_timer_cancel(tick);
    tick = NULL;
}

static void an_end_is_told_with_its_status(void **state)
{
    (void)state;
    start("echo ready at once; exit 7");
    await_end();
    assert_string_equal(seen.line, "ready at once");
    assert_int_equal(seen.lines, 1);
    assert_int_equal(seen.exit_code, 7);
    assert_int_equal(seen.ends, 1);
}

static void an_end_without_a_line(void **state)
{
    (void)state;
    start("kill -9 $$");
    await_end();
    assert_int_equal(seen.lines, 0);
    assert_int_equal(seen.term_signal, SIGKILL);
}

/* Longer than any line is: what there is room for is the first line, the rest goes to the log. */
static void a_line_without_an_end_is_cut(void **state)
{
    struct ipw_service *service;

    (void)state;
    ipw_log_set_level(IPW_LOG_ERROR);
    service = start("head -c 10000 /dev/zero | tr '\\0' x; echo; echo more; exec sleep 100");
    while (!seen.lines) ipw_loop_run(loop);
    assert_int_equal(strlen(seen.line), 4096);
    ipw_service_stop(service);
    ipw_loop_run(loop);
    assert_int_equal(seen.lines, 1);
    assert_int_equal(seen.ends, 0); /* who stops it is not told */
    ipw_log_set_level(IPW_LOG_WARN);
}

static void one_that_ignores_the_signal_is_killed(void **state)
{
    struct ipw_service *service;

    (void)state;
    service = start("trap '' TERM; echo on; while :; do sleep 1; done");
    while (!seen.lines) ipw_loop_run(loop);
    ipw_service_stop(service);
    ipw_loop_run(loop);
    assert_int_equal(seen.ends, 0);
    ipw_service_stop(NULL);
}

static void a_program_has_to_be_named(void **state)
{
    const char *none[] = {NULL}, *empty[] = {"", NULL}, *missing[] = {"/no/such/program", NULL};
    struct ipw_service *service = NULL;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_service_start(&service, loop, NULL, NULL, NULL, NULL, &err), IPW_EINVAL);
    assert_int_equal(ipw_service_start(&service, loop, none, NULL, NULL, NULL, &err), IPW_EINVAL);
    assert_int_equal(ipw_service_start(&service, loop, empty, NULL, NULL, NULL, &err), IPW_EINVAL);
    assert_string_equal(err.text, "no program was named");
    assert_null(service);
    /* one that is not there ends at once */
    assert_int_equal(ipw_service_start(&service, loop, missing, on_line, on_exit_, NULL, &err), 0);
    await_end();
    assert_int_equal(seen.exit_code, 127);
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(an_end_is_told_with_its_status), CASE(an_end_without_a_line),
        CASE(a_line_without_an_end_is_cut),   CASE(one_that_ignores_the_signal_is_killed),
        CASE(a_program_has_to_be_named),
    };

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
