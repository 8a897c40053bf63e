/* Files while the calls on them fail: each call of each operation, one at a time.  The caller is
 * told which file it was, no descriptor stays open, and what was on the disk is there still, or
 * what was to be. */
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
#include "json/jsonl.h"
#include "unit/base/temp_folder.h"
#include "unit/json/failing.h"

/* ---- a whole file ---- */

static int write_whole(struct ipw_err *err)
{
    return ipw_file_write_atomic("whole.json", "{\"new\":2}", 9, err);
}

static void a_whole_file_is_the_old_or_the_new_one(void **state)
{
    const char *failed;
    int n = 0;

    (void)state;
    for (;; n++) {
        struct ipw_err err = {0};
        size_t before = failing_descriptors();
        int rc;

        failing_put("whole.json", "{\"old\":1}");
        failing_at(n, FAILING_EIO);
        rc = write_whole(&err);
        failed = failing_end();
        assert_int_equal(failing_descriptors(), before);
        /* one that was only just made stays, and goes the next time */
        if (!failed || strcmp(failed, "fstat"))
            assert_int_equal(access("whole.json.tmp", F_OK), -1);
        if (!failed) break;
        if (rc == 0) { /* nothing is lost with a folder's descriptor */
            assert_string_equal(failed, "close");
            assert_string_equal(failing_contents("whole.json"), "{\"new\":2}");
            continue;
        }
        assert_int_equal(rc, IPW_EIO);
        assert_true(strncmp(err.text, "whole.json", 10) == 0 ||
                    strncmp(err.text, ".: sync: ", 9) == 0);
        assert_non_null(strstr(err.text, ": Input/output error"));
        if (strcmp(failing_contents("whole.json"), "{\"new\":2}"))
            assert_string_equal(failing_contents("whole.json"), "{\"old\":1}");
    }
    assert_true(n >= 7); /* open, fstat, write, fsync, close, rename, and the folder's three */
    for (enum failing_how how = FAILING_EINTR; how <= FAILING_SHORT; how++) {
        if (how == FAILING_NOTHING) continue;
        for (n = 0, failed = ""; failed; n++) {
            struct ipw_err err = {0};

            failing_put("whole.json", "{\"old\":1}");
            failing_at(n, how);
            assert_int_equal(write_whole(&err), 0);
            failed = failing_end();
            assert_string_equal(failing_contents("whole.json"), "{\"new\":2}");
        }
        assert_true(n > 1);
    }
}

static void a_device_that_takes_nothing_is_full(void **state)
{
    struct ipw_err err = {0};

    (void)state;
    failing_put("whole.json", "{\"old\":1}");
    failing_at(0, FAILING_NOTHING);
    assert_int_equal(write_whole(&err), IPW_EIO);
    assert_string_equal(failing_end(), "write");
    assert_string_equal(err.text, "whole.json.tmp: write: No space left on device");
    assert_string_equal(failing_contents("whole.json"), "{\"old\":1}");
}

static int read_whole(struct ipw_buf *out, struct ipw_err *err)
{
    ipw_buf_clear(out);
    return ipw_file_read(out, "read.json", err);
}

static void reading_says_which_file(void **state)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    const char *failed = "";
    int n;

    (void)state;
    failing_put("read.json", "[1,2,3]\n");
    for (n = 0; failed; n++) {
        struct ipw_err err = {0};
        size_t before = failing_descriptors();
        int rc;

        failing_at(n, FAILING_EIO);
        rc = read_whole(&out, &err);
        failed = failing_end();
        assert_int_equal(failing_descriptors(), before);
        if (!failed || !strcmp(failed, "close")) {
            assert_int_equal(rc, 0);
            assert_string_equal(ipw_buf_str(&out), "[1,2,3]\n");
        } else {
            assert_int_equal(rc, IPW_EIO);
            assert_string_equal(err.text, "read.json: Input/output error");
        }
    }
    assert_true(n >= 4);
    for (int how = FAILING_EINTR; how <= FAILING_SHORT; how += FAILING_SHORT - FAILING_EINTR) {
        for (n = 0, failed = ""; failed; n++) {
            failing_at(n, (enum failing_how)how);
            assert_int_equal(read_whole(&out, NULL), 0);
            failed = failing_end();
            assert_string_equal(ipw_buf_str(&out), "[1,2,3]\n");
        }
        assert_true(n > 1);
    }
    ipw_buf_release(&out);
}

/* ---- lines ---- */

/* Appends two lines, then a third; what the first failing step said is in err. */
static int append_lines(struct ipw_err *err)
{
    struct ipw_jsonl_appender *a;
    struct ipw_err again = {0}, closed = {0};
    int rc = ipw_jsonl_append_open(&a, "lines.jsonl", false, err), first, last;

    if (rc) return rc;
    first = ipw_jsonl_append(a, "{\"b\":2}\n{\"c\":3}\n", 16, err);
    last = ipw_jsonl_append(a, "{\"d\":4}\n", 8, first ? &again : err);
    if (first) { /* it stays with that */
        assert_int_equal(last, first);
        assert_string_equal(again.text, err->text);
    }
    rc = ipw_jsonl_append_close(a, &closed);
    if (rc && !first && !last) *err = closed;
    return first ? first : last ? last : rc;
}

static void only_whole_lines_are_appended(void **state)
{
    static const char *const may_be[] = {"{\"a\":1}\n", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n",
                                         "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n"};

    (void)state;
    for (enum failing_how how = FAILING_EIO; how <= FAILING_SHORT; how++) {
        const char *failed = "";
        int n;

        for (n = 0; failed; n++) {
            struct ipw_err err = {0};
            size_t before = failing_descriptors();
            int rc, lines = 0;

            failing_put("lines.jsonl", may_be[0]);
            failing_at(n, how);
            rc = append_lines(&err);
            failed = failing_end();
            assert_int_equal(failing_descriptors(), before);
            while (lines < 3 && strcmp(failing_contents("lines.jsonl"), may_be[lines])) lines++;
            assert_in_range(lines, 0, 2);
            if (rc == 0) assert_int_equal(lines, 2);
            if (rc) assert_int_equal(strncmp(err.text, "lines.jsonl: ", 13), 0);
            if (!failed || how == FAILING_EINTR || how == FAILING_SHORT) assert_int_equal(rc, 0);
            if (failed && how == FAILING_EIO) assert_int_equal(rc, IPW_EIO);
            if (failed && how == FAILING_NOTHING && !strcmp(failed, "write"))
                assert_string_equal(err.text, "lines.jsonl: write: No space left on device");
        }
        assert_true(n > 2);
    }
}

/* The half line cannot be taken away again: whoever reads the message knows of it. */
static void a_line_that_stays_half_is_told(void **state)
{
    struct ipw_err err = {0};

    (void)state;
    failing_put("lines.jsonl", "{\"a\":1}\n");
    failing_at(0, FAILING_FULL);
    assert_int_equal(append_lines(&err), IPW_EIO);
    assert_string_equal(failing_end(), "write");
    assert_string_equal(err.text,
                        "lines.jsonl: write: No space left on device, and it could not be cut back "
                        "to 8 bytes: No space left on device");
    assert_int_equal(append_lines(&err), IPW_EPARSE);
    assert_string_equal(err.text, "lines.jsonl: last line is incomplete: no newline after byte 16");
}

static int read_lines(char *to, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc = ipw_jsonl_open(&reader, "lines.jsonl", 100, err);

    *to = '\0';
    if (rc) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0) strcat(strcat(to, line.text), ";");
    ipw_jsonl_close(reader);
    return rc;
}

static void a_line_that_cannot_be_read_is_numbered(void **state)
{
    char text[100];
    const char *failed = "";

    (void)state;
    failing_put("lines.jsonl", "1\n\n3\n");
    for (int n = 0; failed; n++) {
        struct ipw_err err = {0};
        size_t before = failing_descriptors();
        int rc;

        failing_at(n, FAILING_EIO);
        rc = read_lines(text, &err);
        failed = failing_end();
        assert_int_equal(failing_descriptors(), before);
        if (!failed || !strcmp(failed, "close")) {
            assert_int_equal(rc, 0);
            assert_string_equal(text, "1;3;");
        } else if (!strcmp(failed, "read")) {
            assert_int_equal(rc, IPW_EIO);
            assert_string_equal(err.text, *text ? "lines.jsonl: line 4: Input/output error"
                                                : "lines.jsonl: line 1: Input/output error");
        } else {
            assert_true(rc < 0);
            assert_int_equal(strncmp(err.text, "lines.jsonl: ", 13), 0);
        }
    }
    for (int how = FAILING_EINTR; how <= FAILING_SHORT; how += FAILING_SHORT - FAILING_EINTR) {
        failed = "";
        for (int n = 0; failed; n++) {
            failing_at(n, (enum failing_how)how);
            assert_int_equal(read_lines(text, NULL), 0);
            failed = failing_end();
            assert_string_equal(text, "1;3;");
        }
    }
}

/* ---- a torn end ---- */

static int cut(struct ipw_jsonl_cut *cut, struct ipw_err *err)
{
    return ipw_jsonl_cut_tail(cut, "cut.jsonl", err);
}

static void a_torn_end_is_in_one_of_two_files(void **state)
{
    (void)state;
    for (enum failing_how how = FAILING_EIO; how <= FAILING_SHORT; how++) {
        const char *failed = "";
        int n;

        for (n = 0; failed; n++) {
            struct ipw_jsonl_cut what;
            struct ipw_err err = {0};
            size_t before = failing_descriptors();
            int rc;

            unlink("cut.jsonl.torn");
            failing_put("cut.jsonl", "{\"a\":1}\n{\"b\":2");
            failing_at(n, how);
            rc = cut(&what, &err);
            failed = failing_end();
            assert_int_equal(failing_descriptors(), before);
            if (strcmp(failing_contents("cut.jsonl"), "{\"a\":1}\n{\"b\":2")) {
                assert_string_equal(failing_contents("cut.jsonl"), "{\"a\":1}\n");
                assert_string_equal(failing_contents("cut.jsonl.torn"), "{\"b\":2");
            }
            if (rc == 0) {
                assert_string_equal(failing_contents("cut.jsonl"), "{\"a\":1}\n");
                assert_int_equal(what.offset, 8);
                assert_int_equal(what.bytes, 6);
            } else {
                assert_int_equal(rc, IPW_EIO);
                assert_int_equal(strncmp(err.text, "cut.jsonl", 9), 0);
            }
            if (how == FAILING_EINTR || how == FAILING_SHORT) assert_int_equal(rc, 0);
            if (how == FAILING_NOTHING && failed && !strcmp(failed, "pread"))
                assert_string_equal(err.text, "cut.jsonl: became shorter while it was read");
            if (how == FAILING_NOTHING && failed && !strcmp(failed, "write"))
                assert_string_equal(err.text, "cut.jsonl.torn: write: No space left on device");
        }
        assert_true(n > 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_is_the_old_or_the_new_one),
        cmocka_unit_test(a_device_that_takes_nothing_is_full),
        cmocka_unit_test(reading_says_which_file),
        cmocka_unit_test(only_whole_lines_are_appended),
        cmocka_unit_test(a_line_that_stays_half_is_told),
        cmocka_unit_test(a_line_that_cannot_be_read_is_numbered),
        cmocka_unit_test(a_torn_end_is_in_one_of_two_files),
    };

    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
