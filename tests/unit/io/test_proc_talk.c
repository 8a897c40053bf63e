/* A child that stays and is talked to: ipw_proc_write(), on_output, ipw_proc_rest_output(). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "io/proc.h"
#include "with_loop.h"

struct talk {
    struct ipw_proc *proc;
    struct ipw_buf said;
    const char *until; /* ends the child when it has said this */
    struct ipw_timer *timer;
    size_t seen; /* said when it began to rest */
    int done;
};

static void on_said(void *ud, const char *bytes, size_t n)
{
    struct talk *t = ud;

    ipw_buf_add(&t->said, bytes, n);
    if (!strstr(ipw_buf_str(&t->said), t->until)) return;
    ipw_proc_cancel(t->proc);
    t->proc = NULL;
}

static void on_talk_over(void *ud, const struct ipw_proc_result *result)
{
    struct talk *t = ud;

    t->done++;
    assert_int_equal(result->out_len, 0); /* it went to on_said */
}

static void start_talk(struct talk *t, const char *script,
                       void (*on_output)(void *ud, const char *bytes, size_t n))
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct ipw_proc_request request = {.argv = argv, .on_output = on_output};
    struct ipw_err err = {0};

    t->said = IPW_BUF(64 * IPW_MIB);
    if (ipw_proc_start(&t->proc, loop, &request, on_talk_over, t, &err)) fail_msg("%s", err.text);
}

static void test_talk(void **state)
{
    struct talk t = {.until = "got two"};
    struct ipw_err err = {0};

    (void)state;
    start_talk(&t, "while read word; do echo got $word; done", on_said);
    assert_int_equal(ipw_proc_write(t.proc, "one\n", 4, &err), 0);
    assert_int_equal(ipw_proc_write(t.proc, "two\n", 4, &err), 0);
    ipw_loop_run(loop);
    assert_string_equal(ipw_buf_str(&t.said), "got one\ngot two\n");
    assert_int_equal(t.done, 0); /* it was cancelled in its own callback */
    ipw_buf_release(&t.said);
}

static void test_talk_that_ends(void **state)
{
    struct talk t = {.until = "never"};
    struct ipw_err err = {0};

    (void)state;
    start_talk(&t, "exec <&-; echo last; exit 3", on_said);
    assert_int_equal(ipw_proc_write(t.proc, "not read\n", 9, &err), 0);
    ipw_loop_run(loop);
    assert_string_equal(ipw_buf_str(&t.said), "last\n");
    assert_int_equal(t.done, 1);
    ipw_buf_release(&t.said);
}

static void test_talk_to_the_deaf(void **state)
{
    struct talk t = {.until = "never"};
    char *block = ipw_calloc(1, IPW_MIB);
    struct ipw_err err = {0};
    int rc = 0;

    (void)state;
    start_talk(&t, "sleep 100", on_said);
    for (int i = 0; i < 40 && !rc; i++) rc = ipw_proc_write(t.proc, block, IPW_MIB, &err);
    assert_int_equal(rc, IPW_ELIMIT);
    assert_string_equal(err.text, "it does not read: more than 16777216 bytes wait for it");
    ipw_proc_cancel(t.proc);
    ipw_loop_run(loop);
    assert_int_equal(t.done, 0);
    ipw_buf_release(&t.said);
    free(block);
}

static void go_on(void *ud)
{
    struct talk *t = ud;

    t->timer = NULL;
    assert_int_equal(t->said.len, t->seen); /* nothing came while it rested */
    t->until = "y";
    ipw_proc_rest_output(t->proc, false);
}

static void on_first(void *ud, const char *bytes, size_t n)
{
    struct talk *t = ud;

    on_said(t, bytes, n);
    if (!t->proc || t->seen) return;
    t->seen = t->said.len;
    ipw_proc_rest_output(t->proc, true);
    t->timer = ipw_timer_start(loop, 50 * IPW_NS_PER_MS, go_on, t);
}

static void test_talk_that_rests(void **state)
{
    struct talk t = {.until = "never"};

    (void)state;
    start_talk(&t, "yes", on_first);
    ipw_loop_run(loop);
    assert_true(t.said.len > t.seen);
    assert_null(t.timer);
    ipw_buf_release(&t.said);
}

/* ---- a program of ours ---- */

struct ours {
    struct ipw_proc *proc;
    char said[64];
    int ends, exit_code, exec_errno;
};

static void on_ours(void *ud, const char *bytes, size_t n)
{
    struct ours *o = ud;

    strncat(o->said, bytes, n);
    if (strchr(o->said, '\n')) ipw_proc_background(o->proc);
}

static void on_ours_over(void *ud, const struct ipw_proc_result *result)
{
    struct ours *o = ud;

    o->ends++;
    o->exit_code = result->exit_code;
    o->exec_errno = result->exec_errno;
    o->proc = NULL;
}

static void start_ours(struct ours *o, const char *program, const char *script)
{
    const char *const argv[] = {program, "-c", script, NULL};
    const struct ipw_proc_request request = {
        .argv = argv, .whose = IPW_PROC_OURS, .on_output = on_ours};
    struct ipw_err err = {0};

    *o = (struct ours){0};
    if (ipw_proc_start(&o->proc, loop, &request, on_ours_over, o, &err)) fail_msg("%s", err.text);
}

/* It has our environment; the loop runs for it until it is in the background, and again until it
 * has ended, TERM or not. */
static void test_ours(void **state)
{
    struct ours o;

    (void)state;
    setenv("IPW_TEST_OURS", "here", 1);
    start_ours(&o, "/bin/sh", "trap '' TERM; echo $IPW_TEST_OURS; while :; do sleep 1; done");
    ipw_loop_run(loop);
    assert_string_equal(o.said, "here\n");
    assert_int_equal(o.ends, 0);
    assert_int_equal(ipw_loop_leftovers(loop), 1);
    ipw_proc_cancel(o.proc);
    ipw_loop_run(loop);
    assert_int_equal(o.ends, 0); /* who cancels it is not told */
    start_ours(&o, "/bin/sh", "exit 7");
    ipw_loop_run(loop);
    assert_int_equal(o.ends, 1);
    assert_int_equal(o.exit_code, 7);
    start_ours(&o, "/no/such/program", "");
    ipw_loop_run(loop);
    assert_int_equal(o.exec_errno, ENOENT);
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_loop, free_loop)
    const struct CMUnitTest tests[] = {
        CASE(test_talk),
        CASE(test_talk_that_ends),
        CASE(test_talk_to_the_deaf),
        CASE(test_talk_that_rests),
        CASE(test_ours),
    };

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
