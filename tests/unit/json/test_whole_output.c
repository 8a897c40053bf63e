#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "json/whole_output.h"
#include "unit/base/temp_folder.h"
#include "unit/unit.h"

static bool there(const char *path) { return access(path, F_OK) == 0; }

static void assert_holds(const char *path, const char *text)
{
    char got[64] = "";
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, text);
}

static void a_file_appears_when_it_is_complete(void **state)
{
    struct ipw_whole_output *out;
    struct ipw_err err;

    (void)state;
    assert_int_equal(ipw_whole_file(&out, "file", NULL, &err), 0);
    assert_string_equal(ipw_whole_path(out), "file.tmp");
    assert_int_equal(ipw_whole_write(out, "text", 4, &err), 0);
    assert_false(there("file"));
    assert_int_equal(ipw_whole_commit(out, &err), 0);
    assert_holds("file", "text");
    assert_int_equal(ipw_whole_file(&out, "file", NULL, &err), 0);
    assert_int_equal(ipw_whole_write(out, "other", 5, &err), 0);
    ipw_whole_drop(out);
    assert_holds("file", "text");
    assert_false(there("file.tmp"));
}

static void a_folder_appears_with_all_its_files(void **state)
{
    static const char *const refused[] = {"",   ".",      "..",    "../x", "/x",
                                          "a/", "a/../b", "a/b/c", "a"};
    struct ipw_whole_output *out;
    struct ipw_err err;

    (void)state;
    assert_int_equal(ipw_whole_folder(&out, "folder/", &err), 0);
    assert_int_equal(ipw_whole_write(out, "x", 1, &err), IPW_EINVAL);
    assert_int_equal(ipw_whole_next(out, "a", &err), 0);
    assert_int_equal(ipw_whole_write(out, "1", 1, &err), 0);
    assert_int_equal(ipw_whole_next(out, "below/b", &err), 0);
    assert_int_equal(ipw_whole_write(out, "2", 1, &err), 0);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_true(ipw_whole_next(out, refused[i], &err) < 0);
    assert_false(there("folder"));
    assert_int_equal(ipw_whole_commit(out, &err), 0);
    assert_holds("folder/a", "1");
    assert_holds("folder/below/b", "2");
    assert_int_equal(ipw_whole_folder(&out, "folder", &err), IPW_EEXISTS);
    assert_int_equal(mkdir("empty", 0700), 0);
    assert_int_equal(ipw_whole_folder(&out, "empty", &err), 0);
    assert_int_equal(ipw_whole_next(out, "a", &err), 0);
    ipw_whole_drop(out);
    assert_false(there("empty.tmp"));
}

static void a_full_disk_is_told_and_told_again(void **state)
{
    struct ipw_whole_output *out;
    struct ipw_err err;
    char text[70000] = "";

    (void)state;
    if (!there("/dev/full")) skip();
    assert_int_equal(ipw_whole_file(&out, "/dev/full", NULL, &err), 0);
    assert_int_equal(ipw_whole_write(out, text, sizeof text, &err), IPW_EIO);
    assert_non_null(strstr(err.text, "/dev/full: cannot be written: No space"));
    assert_int_equal(ipw_whole_write(out, "x", 1, &err), IPW_EIO);
    assert_int_equal(ipw_whole_commit(out, &err), IPW_EIO);
    assert_int_equal(ipw_whole_file(&out, "/dev/null/file", NULL, &err), IPW_EIO);
}

UNIT(whole_output)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_appears_when_it_is_complete),
        cmocka_unit_test(a_folder_appears_with_all_its_files),
        cmocka_unit_test(a_full_disk_is_told_and_told_again),
    };
    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
