/* Verdicts wait in grades.jsonl, survive a kill, and end in traces.jsonl in one step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/grade_book.h"
#include "unit/unit.h"

static char root[64];

static int enter(void **state)
{
    (void)state;
    strcpy(root, "/tmp/ipw-grades-XXXXXX");
    return mkdtemp(root) && chdir(root) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return chdir("/") == 0 ? system(command) : -1;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void assert_contents(const char *path, const char *want)
{
    struct ipw_buf bytes = IPW_BUF(IPW_MIB);

    assert_int_equal(ipw_file_read(&bytes, path, NULL), 0);
    assert_string_equal(ipw_buf_str(&bytes), want);
    ipw_buf_release(&bytes);
}

static struct ipw_rundir *open_run(void)
{
    struct ipw_rundir *dir;
    struct ipw_err err = {0};

    put("manifest.json", "{}\n");
    put("traces.jsonl", "{\"is_resolved\":null,\"judge_reason\":\"down\",\"query_index\":0}\n"
                        "{\"is_resolved\":null,\"query_index\":1}\n"
                        "{\"is_resolved\":true,\"query_index\":7}\n");
    assert_int_equal(ipw_rundir_open(&dir, ".", &err), 0);
    return dir;
}

static void verdicts_replace_keys_of_their_own_lines(void **state)
{
    struct ipw_rundir *dir = open_run();
    struct ipw_grade_book book;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_grade_book_open(&book, dir, &err), 0);
    assert_int_equal(ipw_grade_book_add(&book, 0, IPW_GRADER_JUDGE,
                                        "{\"is_resolved\":true,\"judge_verdict\":\"correct\"}",
                                        &err),
                     0);
    assert_int_equal(ipw_grade_book_add(&book, 1, IPW_GRADER_CODE, "{\"is_resolved\":false}", &err),
                     0);
    assert_int_equal(
        ipw_grade_book_add(&book, 1, IPW_GRADER_JUDGE, "{\"judge_reason\":\"x\"}", &err), 0);
    assert_int_equal(ipw_grade_book_settle(&book, &err), 0);
    ipw_grade_book_release(&book);
    assert_int_equal(ipw_rundir_close(dir, &err), 0);
    assert_contents("traces.jsonl",
                    "{\"is_resolved\":true,\"judge_verdict\":\"correct\",\"query_index\":0}\n"
                    "{\"is_resolved\":false,\"judge_reason\":\"x\",\"query_index\":1}\n"
                    "{\"is_resolved\":true,\"query_index\":7}\n");
    assert_false(ipw_grade_book_left("."));
}

/* The process ends between the verdicts and the traces; its last line is torn. */
static void a_killed_process_leaves_its_verdicts(void **state)
{
    struct ipw_rundir *dir = open_run();
    struct ipw_grade_book book;
    struct ipw_err err = {0};
    FILE *f;

    (void)state;
    assert_int_equal(ipw_grade_book_open(&book, dir, &err), 0);
    assert_int_equal(
        ipw_grade_book_add(&book, 1, IPW_GRADER_JUDGE, "{\"judge_verdict\":\"v\"}", &err), 0);
    ipw_grade_book_release(&book);
    assert_true(ipw_grade_book_left("."));
    f = fopen("grades.jsonl", "a");
    assert_non_null(f);
    fputs("{\"grader\":0,\"pa", f);
    fclose(f);
    assert_int_equal(ipw_grade_book_open(&book, dir, &err), 0);
    assert_true(ipw_grade_book_has(&book, 1, IPW_GRADER_JUDGE));
    assert_false(ipw_grade_book_has(&book, 1, IPW_GRADER_CODE));
    assert_false(ipw_grade_book_has(&book, 0, IPW_GRADER_JUDGE));
    assert_int_equal(ipw_grade_book_settle(&book, &err), 0);
    ipw_grade_book_release(&book);
    assert_int_equal(ipw_rundir_close(dir, &err), 0);
    assert_contents("traces.jsonl",
                    "{\"is_resolved\":null,\"judge_reason\":\"down\",\"query_index\":0}\n"
                    "{\"is_resolved\":null,\"judge_verdict\":\"v\",\"query_index\":1}\n"
                    "{\"is_resolved\":true,\"query_index\":7}\n");
}

static void a_damaged_book_is_named(void **state)
{
    struct ipw_rundir *dir = open_run();
    struct ipw_grade_book book;
    struct ipw_err err = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        static const char *const lines[] = {"{\"patch\":{},\"query\":0}\n",
                                            "{\"grader\":9,\"patch\":{},\"query\":0}\n",
                                            "{\"grader\":0,\"patch\":{},\"query\":900000000000}\n"};

        put("grades.jsonl", lines[i]);
        assert_int_equal(ipw_grade_book_open(&book, dir, &err), IPW_EPARSE);
        assert_non_null(strstr(err.text, "grades.jsonl:1"));
        assert_non_null(strstr(err.text, "grader"));
        ipw_grade_book_release(&book);
    }
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
}

UNIT(grade_book)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(verdicts_replace_keys_of_their_own_lines, enter, leave),
        cmocka_unit_test_setup_teardown(a_killed_process_leaves_its_verdicts, enter, leave),
        cmocka_unit_test_setup_teardown(a_damaged_book_is_named, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
