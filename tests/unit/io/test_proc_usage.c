/* What a child has used: ipw_proc_result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>

#include "base/buf.h"
#include "base/clock.h"
#include "io/proc.h"
#include "with_loop.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LITTLE (256 * IPW_MIB) /* the helper's own memory is larger, and a child begins with it */
#else
#define LITTLE (16 * IPW_MIB)
#endif

static struct ipw_proc_result got;
static char said[200]; /* the beginning of its standard error */

static void on_done(void *ud, const struct ipw_proc_result *result)
{
    (void)ud;
    got = *result;
    snprintf(said, sizeof said, "%s", result->err);
}

static void run(const char *const *argv, struct ipw_proc_request request)
{
    struct ipw_proc *proc;
    struct ipw_err err = {0};

    request.argv = argv;
    if (ipw_proc_start(&proc, loop, &request, on_done, NULL, &err)) fail_msg("%s", err.text);
    ipw_loop_run(loop);
}

/* What the kernel says of a program is not mixed with what this process uses: it has far more
 * memory than the small program, and less than the large one. */
static void of_the_child_alone(void **state)
{
    static const char hog[] = "x = bytearray(500 << 20)\nfor i in range(3000000): pass";
    const char *const small[] = {"sh", "-c", "exit 3", NULL};
    const char *const large[] = {"python3", "-I", "-c", hog, NULL};
    size_t n = 300 * IPW_MIB;
    char *ours = malloc(n);

    (void)state;
    assert_non_null(ours);
    memset(ours, 1, n);
    assert_int_equal(ours[n - 1], 1);
    run(small, (struct ipw_proc_request){0});
    assert_int_equal(got.exit_code, 3);
    assert_in_range(got.peak_bytes, 1, LITTLE);
    assert_true(got.cpu_ns > 0);
    run(large, (struct ipw_proc_request){0});
    assert_int_equal(got.exit_code, 0);
    assert_in_range(got.peak_bytes, 500 * IPW_MIB, 700 * IPW_MIB);
    assert_true(got.cpu_ns >= 10 * IPW_NS_PER_MS);
    free(ours);
}

/* Also of processes that it waited for.  Unknown when it is killed together with its helper. */
static void of_its_descendants(void **state)
{
    const char *const below[] = {"sh", "-c", "python3 -I -c 'x = bytearray(100 << 20)'; true",
                                 NULL};
    const char *const deaf[] = {"sh", "-c", "trap '' TERM; while :; do :; done", NULL};

    (void)state;
    run(below, (struct ipw_proc_request){0});
    assert_int_equal(got.exit_code, 0);
    assert_in_range(got.peak_bytes, 100 * IPW_MIB, 300 * IPW_MIB);
    run(deaf, (struct ipw_proc_request){.wall_ns = 300 * IPW_NS_PER_MS});
    assert_true(got.timed_out);
    assert_int_equal(got.term_signal, SIGKILL);
    assert_int_equal(got.cpu_ns, -1);
    assert_int_equal(got.peak_bytes, 0);
}

/* Many that each keep to the limit are ended together; those that share their memory are not. */
static void of_all_together(void **state)
{
    const char *const many[] = {
        "sh", "-c",
        "for i in 1 2 3 4 5; do python3 -I -c '"
        "import time; x = bytearray(80 << 20); time.sleep(60)' & done; wait",
        NULL};
    const char *const shared[] = {"python3", "-I", "-c",
                                  "import os, time\nx = bytearray(120 << 20)\n"
                                  "children = [os.fork() for _ in range(2)]\n"
                                  "time.sleep(0.7)\nif all(children): print('fine')",
                                  NULL};

    (void)state;
    run(many, (struct ipw_proc_request){.memory_bytes = 200 * IPW_MIB});
    assert_int_equal(got.term_signal, SIGKILL);
    assert_false(got.timed_out);
    assert_non_null(strstr(said, "its processes together need more than 200 MiB of memory"));
    run(shared, (struct ipw_proc_request){.memory_bytes = 200 * IPW_MIB});
    assert_int_equal(got.exit_code, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_loop, free_loop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(of_the_child_alone),
        CASE(of_its_descendants),
        CASE(of_all_together),
    };

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
