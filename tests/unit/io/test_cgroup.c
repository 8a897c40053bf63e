/* Control groups, in a folder that stands in for the kernel's tree. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/bubblewrap.h"
#include "io/cgroup.h"
#include "io/proc.h"

static char root[] = "/tmp/ipw-cgroup.XXXXXX";
static const char *const files[] = {"memory.max", "memory.swap.max", "memory.oom.group",
                                    "pids.max",   "cgroup.procs",    "cgroup.kill"};
enum { N_FILES = sizeof files / sizeof *files };

static void put(const char *folder, const char *name, const char *text)
{
    char *path = ipw_asprintf("%s/%s", folder, name);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    free(path);
}

static void assert_holds(const char *folder, const char *name, const char *text)
{
    char *path = ipw_asprintf("%s/%s", folder, name), got[64] = "";
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    if (!fgets(got, sizeof got, f)) got[0] = '\0';
    fclose(f);
    free(path);
    assert_string_equal(got, text);
}

/* The kernel makes a group's files with its folder: here they lie there before. */
static char *group(unsigned number)
{
    char *folder = ipw_asprintf("%s/ipw-%ld-%u", root, (long)getpid(), number);

    assert_int_equal(mkdir(folder, 0700), 0);
    for (int i = 0; i < N_FILES; i++) put(folder, files[i], "");
    return folder;
}

/* As the kernel does once the last process has ended. */
static void empty(const char *folder)
{
    for (int i = 0; i < N_FILES; i++) {
        char *path = ipw_asprintf("%s/%s", folder, files[i]);

        assert_int_equal(unlink(path), 0);
        free(path);
    }
}

static void limits_are_written_and_nothing_is_left(void **state)
{
    char *first = group(1), *made;
    struct ipw_err err = {0};

    (void)state;
    assert_string_equal(ipw_cgroup_parent(), root);
    assert_int_equal(ipw_cgroup_make(&made, 1000000, &err), 0);
    assert_string_equal(made, first);
    assert_holds(first, "memory.max", "1000000");
    assert_holds(first, "pids.max", "512");
    assert_holds(first, "memory.swap.max", "0");
    assert_holds(first, "memory.oom.group", "1");
    assert_int_equal(ipw_cgroup_enter(first), 0);
    assert_holds(first, "cgroup.procs", "0");
    ipw_cgroup_end(made);
    assert_holds(first, "cgroup.kill", "1");
    assert_int_equal(access(first, F_OK), 0); /* a process of it still ends */
    empty(first);
    ipw_cgroup_end(NULL);
    assert_int_equal(access(first, F_OK), -1);
    free(first);
}

static void what_cannot_be_written_is_an_error(void **state)
{
    struct ipw_err err = {0};
    char *made;

    (void)state; /* the files of the second group are missing */
    assert_int_not_equal(ipw_cgroup_make(&made, 1, &err), 0);
    assert_null(made);
    assert_non_null(strstr(err.text, "cannot make the control group"));
    assert_non_null(strstr(err.text, root));
    assert_int_not_equal(ipw_cgroup_enter("/nonexistent"), 0);
}

static void on_done(void *ud, const struct ipw_proc_result *result)
{
    *(struct ipw_proc_result *)ud = *result;
}

/* A child in a sandbox enters it; one without has none. */
static void a_child_has_one(void **state)
{
    const char *const argv[] = {"true", NULL};
    char *third = group(3);
    struct ipw_proc_result result = {0};
    struct ipw_loop *loop;
    struct ipw_proc *proc;
    struct ipw_err err = {0};

    (void)state;
    if (!ipw_bubblewrap_works()) {
        print_message("left out: bubblewrap cannot make a sandbox here\n");
        empty(third);
        rmdir(third);
        free(third);
        skip();
    }
    assert_int_equal(ipw_loop_new(&loop, &err), 0);
    for (int sandbox = 0; sandbox < 2; sandbox++) {
        const struct ipw_proc_request request = {
            .argv = argv, .sandbox = sandbox, .memory_bytes = (size_t)1 << 30};

        assert_int_equal(ipw_proc_start(&proc, loop, &request, on_done, &result, &err), 0);
        ipw_loop_run(loop);
        assert_int_equal(result.exit_code, 0);
        assert_holds(third, "cgroup.procs", sandbox ? "0" : "");
    }
    assert_holds(third, "memory.max", "1342177280"); /* with the 256 MiB of /tmp */
    assert_holds(third, "cgroup.kill", "1");
    empty(third);
    ipw_loop_free(loop);
    assert_int_equal(access(third, F_OK), -1);
    free(third);
}

static int make(void **state)
{
    (void)state;
    if (!mkdtemp(root)) return -1;
    put(root, "cgroup.procs", "");
    put(root, "cgroup.subtree_control", "cpu memory pids\n");
    return setenv("IPW_CGROUP_ROOT", root, 1);
}

static int clear(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -r -- '%s'", root);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_written_and_nothing_is_left),
        cmocka_unit_test(what_cannot_be_written_is_an_error),
        cmocka_unit_test(a_child_has_one),
    };

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    return cmocka_run_group_tests_name("cgroup", tests, make, clear);
}
