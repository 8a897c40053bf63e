/* Rows one after another, and SHA-256 piece by piece: the same as at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/rows.h"
#include "data/sha256.h"
#include "unit/unit.h"

static void text_one_row_at_a_time(void **state)
{
    static const char text[] = "{\"a\":1}\n\n{\"a\":2}\n";
    char path[] = "/tmp/ipw-row-reader-XXXXXX.jsonl", sha[65], whole[65];
    int fd = mkstemps(path, 6);
    struct ipw_row_reader *reader;
    struct ipw_err err = {0};
    struct ipw_row row;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_int_equal(ipw_row_reader_open(&reader, path, NULL, &err), 0);
    assert_int_equal(ipw_row_reader_count(reader), 2);
    assert_int_equal(ipw_row_reader_next(reader, &row, &err), 1);
    assert_string_equal(row.json, "{\"a\":1}");
    assert_int_equal(row.line, 1);
    assert_int_equal(ipw_row_reader_next(reader, &row, &err), 1);
    assert_string_equal(row.json, "{\"a\":2}");
    assert_int_equal(row.line, 3);
    assert_int_equal(ipw_row_reader_next(reader, &row, &err), 0);
    assert_int_equal(ipw_row_reader_sha256(reader, sha, &err), 0);
    ipw_sha256_hex(whole, text, sizeof text - 1);
    assert_string_equal(sha, whole);
    ipw_row_reader_free(reader);
    unlink(path);
    assert_int_equal(ipw_row_reader_open(&reader, path, NULL, &err), IPW_ENOTFOUND);
    assert_non_null(strstr(err.text, path));
}

static void sha256_in_pieces(void **state)
{
    char bytes[300], whole[65], pieces[65];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 7);
    ipw_sha256_hex(whole, "abc", 3); /* FIPS 180-4's example */
    assert_string_equal(whole, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (size_t n = 0; n <= sizeof bytes; n++)
        for (size_t step = 1; step < 140; step += 23) {
            struct ipw_sha256 s;

            ipw_sha256_begin(&s);
            for (size_t at = 0; at < n; at += step)
                ipw_sha256_add(&s, bytes + at, n - at < step ? n - at : step);
            ipw_sha256_end(&s, pieces);
            ipw_sha256_hex(whole, bytes, n);
            assert_string_equal(pieces, whole);
        }
}

UNIT(row_reader)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_one_row_at_a_time),
        cmocka_unit_test(sha256_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
