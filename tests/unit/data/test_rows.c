#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "data/rows.h"
#include "unit/unit.h"

/* Parses text from the heap without a NUL after it, so that a sanitizer sees a byte too far. */
static int parse(struct ipw_rows *rows, const char *name, const char *text, size_t n,
                 struct ipw_err *err)
{
    char *bytes = malloc(n ? n : 1);
    int rc;

    assert_non_null(bytes);
    memcpy(bytes, text, n);
    *err = (struct ipw_err){0};
    rc = ipw_rows_parse(rows, name, bytes, n, err);
    free(bytes);
    return rc;
}

/* Rows written as "line:json" with a space between, or "!" and a part of the message. */
struct row_case {
    const char *what, *name, *text, *want;
};

static void check(const struct row_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct ipw_buf got = IPW_BUF(IPW_MIB);
        struct ipw_rows rows;
        struct ipw_err err;
        int rc = parse(&rows, cases[i].name, cases[i].text, strlen(cases[i].text), &err);

        if (cases[i].want[0] == '!') {
            if (rc == 0) fail_msg("%s: expected an error", cases[i].what);
            assert_int_equal(rc, err.code);
            if (!strstr(err.text, cases[i].want + 1))
                fail_msg("%s: \"%s\" not in \"%s\"", cases[i].what, cases[i].want + 1, err.text);
            if (strncmp(err.text, cases[i].name, strlen(cases[i].name)) != 0)
                fail_msg("%s: \"%s\" does not name the file", cases[i].what, err.text);
            assert_int_equal(rows.n, 0);
            assert_null(rows.rows);
        } else {
            if (rc) fail_msg("%s: %s", cases[i].what, err.text);
            for (size_t k = 0; k < rows.n; k++) {
                assert_int_equal(strlen(rows.rows[k].json), rows.rows[k].n);
                ipw_buf_addf(&got, "%s%lld:%s", k ? " " : "", (long long)rows.rows[k].line,
                             rows.rows[k].json);
            }
            assert_int_equal(strlen(rows.sha256), 64);
            if (strcmp(ipw_buf_str(&got), cases[i].want) != 0)
                fail_msg("%s: got %s, expected %s", cases[i].what, ipw_buf_str(&got),
                         cases[i].want);
        }
        ipw_rows_release(&rows);
        ipw_buf_release(&got);
    }
}

#define CHECK(cases) check(cases, sizeof cases / sizeof *cases)

static void test_jsonl(void **state)
{
    static const struct row_case cases[] = {
        {"empty", "x.jsonl", "", ""},
        {"one", "x.jsonl", "{\"a\":1}\n", "1:{\"a\":1}"},
        {"no last newline", "x.jsonl", "{}\n{\"a\":2}", "1:{} 2:{\"a\":2}"},
        {"blank lines count", "x.jsonl", "\n{}\n \t\r\n\n{}\n\n", "2:{} 5:{}"},
        {"BOM", "x.jsonl", "\xef\xbb\xbf{}\n{}\n", "1:{} 2:{}"},
        {"CRLF", "x.ndjson", "{}\r\n{}\r\n", "1:{} 2:{}"},
        {"ending in capitals", "X.JSONL", "{}\n", "1:{}"},
        {"a list as row", "x.jsonl", "{}\n[1]\n", "!x.jsonl:2: a row must be"},
        {"a word as row", "x.jsonl", "null\n", "!x.jsonl:1: a row must be"},
        {"damaged", "x.jsonl", "{}\n\n{\"a\":}\n{}\n", "!x.jsonl:3: "},
        {"two on a line", "x.jsonl", "{} {}\n", "!x.jsonl:1: "},
        {"cut off", "x.jsonl", "{}\n{\"a\":\"b", "!is the file cut off?"},
        {"a BOM in the middle", "x.jsonl", "{}\n\xef\xbb\xbf[]\n", "!x.jsonl:2: "},
        {"a BOM before a later line", "x.jsonl", "{\"a\":1}\n\xef\xbb\xbf{}\n", "1:{\"a\":1} 2:{}"},
        {"UTF-16", "x.jsonl", "\xff\xfe{", "!UTF-16"},
        {"unknown ending", "x.yaml", "", "!ends in .jsonl"},
        {"no ending", "jsonl", "", "!ends in .jsonl"},
        {"Parquet", "x.parquet", "", "!x.parquet: 0 bytes are too few for a Parquet file"},
    };

    (void)state;
    CHECK(cases);
}

static void test_json(void **state)
{
    static const struct row_case cases[] = {
        {"array", "x.json", "[{\"a\":1},{\"a\":2}]", "1:{\"a\":1} 1:{\"a\":2}"},
        {"lines", "x.json", "[\n  {\"a\":\n 1},\n\n  {\"a\": 2}\n]\n",
         "2:{\"a\":\n 1} 5:{\"a\": 2}"},
        {"empty array", "x.json", " [ ] ", ""},
        {"rows", "x.json", "{\"n\": [1, {\"x\": \"]}\"}], \"rows\": [{}, {}]}", "1:{} 1:{}"},
        {"data", "x.json", "{\"a\": 1.5e3, \"b\": null,\n\"data\":\n[{\"q\":\"\\\"]\"}]}",
         "3:{\"q\":\"\\\"]\"}"},
        {"rows before data", "x.json", "{\"data\": [{\"d\":1}], \"rows\": [{\"r\":1}]}",
         "1:{\"r\":1}"},
        {"data when rows is no array", "x.json", "{\"rows\": 2, \"data\": [{}]}", "1:{}"},
        {"nested rows do not count", "x.json", "{\"a\": {\"rows\": []}}", "!\"rows\" or \"data\""},
        {"BOM", "x.json", "\xef\xbb\xbf[{}]", "1:{}"},
        {"brackets in keys", "x.json", "[{\"}]\": \"[{\"}]", "1:{\"}]\": \"[{\"}"},
        {"a number as row", "x.json", "[{},\n3]", "!x.json:2: a row must be"},
        {"a word", "x.json", "true", "!expected an array"},
        {"damaged", "x.json", "[{}", "!at byte"},
        {"empty file", "x.json", "", "!x.json"},
        {"empty object", "x.json", "{}", "!\"rows\" or \"data\""},
    };

    (void)state;
    CHECK(cases);
}

static void test_csv(void **state)
{
    static const struct row_case cases[] = {
        {"plain", "x.csv", "b,a\n1,2\n3,4\n",
         "2:{\"a\":\"2\",\"b\":\"1\"} 3:{\"a\":\"4\",\"b\":\"3\"}"},
        {"CRLF, no last newline", "x.csv", "a,b\r\n1,2", "2:{\"a\":\"1\",\"b\":\"2\"}"},
        {"CR alone", "x.csv", "a\r1\r2\r", "2:{\"a\":\"1\"} 3:{\"a\":\"2\"}"},
        {"BOM before a quoted name", "x.csv", "\xef\xbb\xbf\"a\"\n1\n", "2:{\"a\":\"1\"}"},
        {"quotes", "x.csv", "a,b\n\"x,\"\"y\"\"\",\"\"\n", "2:{\"a\":\"x,\\\"y\\\"\",\"b\":\"\"}"},
        {"breaks in quotes", "x.csv", "a,b\n\"1\n2\r\n3\",4\n5,6\n",
         "2:{\"a\":\"1\\n2\\r\\n3\",\"b\":\"4\"} 5:{\"a\":\"5\",\"b\":\"6\"}"},
        {"blank lines", "x.csv", "\n \na\n\n1\n\t\n\n2\n\n", "5:{\"a\":\"1\"} 8:{\"a\":\"2\"}"},
        {"empty fields", "x.csv", "a,b,c\n,,\n", "2:{\"a\":\"\",\"b\":\"\",\"c\":\"\"}"},
        {"separator at the very end", "x.csv", "a,b\n1,", "2:{\"a\":\"1\",\"b\":\"\"}"},
        {"a quoted empty field as row", "x.csv", "a\n\"\"\n", "2:{\"a\":\"\"}"},
        {"spaces stay", "x.csv", "a\n 1 \n", "2:{\"a\":\" 1 \"}"},
        {"spaces round names go", "x.csv", " a , b\n1,2\n", "2:{\"a\":\"1\",\"b\":\"2\"}"},
        {"a quote inside plain text", "x.csv", "a\n5\" pipe\n", "2:{\"a\":\"5\\\" pipe\"}"},
        {"quoted at the end of the file", "x.csv", "a\n\"1\"", "2:{\"a\":\"1\"}"},
        {"unnamed index column", "x.csv", ",a\n0,1\n", "2:{\"a\":\"1\",\"column_1\":\"0\"}"},
        {"header only", "x.csv", "a,b\n", ""},
        {"tabs", "x.tsv", "a\tb\n1,2\t\"3\t4\"\n", "2:{\"a\":\"1,2\",\"b\":\"3\\t4\"}"},
        {"an empty first field of a TSV", "x.tsv", "a\tb\n\t1\n", "2:{\"a\":\"\",\"b\":\"1\"}"},
        {"empty file", "x.csv", "", "!x.csv:1: the file is empty"},
        {"blank file", "x.csv", "\n\n", "!the file is empty"},
        {"too few", "x.csv", "a,b\n1,2\n3\n", "!x.csv:3: 1 fields, but the header has 2"},
        {"too many", "x.csv", "a,b\n1,2,3\n", "!x.csv:2: 3 fields"},
        {"never closed", "x.csv", "a\n1\n\"2\n3\n", "!x.csv:3: a quoted field is opened"},
        {"text after a quote", "x.csv", "a\n\"1\"x\n", "!x.csv:2: text after the closing quote"},
        {"same name twice", "x.csv", "a,b,a\n", "!x.csv:1: the header names column \"a\" twice"},
        {"semicolons", "x.csv", "a;b\n\"1,5;x\";2\n3,5;4\n",
         "2:{\"a\":\"1,5;x\",\"b\":\"2\"} 3:{\"a\":\"3,5\",\"b\":\"4\"}"},
        {"tabs", "x.csv", "a\tb\n1;2\t3,4\n", "2:{\"a\":\"1;2\",\"b\":\"3,4\"}"},
        {"semicolons, header only", "x.csv", "a;b;c,d\n", ""},
        {"as many of both: commas", "x.csv", "a,b;c\n1,2;3\n", "2:{\"a\":\"1\",\"b;c\":\"2;3\"}"},
        {"the rows decide", "x.csv", "a,b;c;d\n1;2,3\n", "2:{\"a\":\"1;2\",\"b;c;d\":\"3\"}"},
        {"a .tsv has tabs", "x.tsv", "a;b\tc\n1;2\t3\n", "2:{\"a;b\":\"1;2\",\"c\":\"3\"}"},
        {"too few, and what separates them", "x.csv", "a;b\n1;2\n3\n",
         "!x.csv:3: 1 fields, but the header has 2 (fields are separated by semicolons)"},
        {"invalid UTF-8 in a name", "x.csv", "a\xff,b\n1,2\n",
         "!x.csv:1: byte 2 of the line (0xFF)"},
        {"Latin-1", "x.csv", "a\n\xc3\xa9 caf\xe9 2\n",
         "!x.csv:2: byte 7 of the line (0xE9) is not UTF-8"},
    };

    (void)state;
    CHECK(cases);
}

static void test_hash_is_of_the_bytes(void **state)
{
    struct ipw_rows rows;
    struct ipw_err err;

    (void)state;
    assert_int_equal(parse(&rows, "x.jsonl", "\xef\xbb\xbf{}\n", 6, &err), 0);
    assert_string_equal(rows.sha256,
                        "ec2f00596f643c3181e6f3c6bfb64bb07cf8994f019df013681c886bee0d8b6a");
    ipw_rows_release(&rows);
}

static void test_many_columns(void **state)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_rows rows;
    struct ipw_err err;

    (void)state;
    for (int i = 0; i < 10001; i++) ipw_buf_addf(&text, "c%d,", i);
    assert_int_equal(parse(&rows, "x.csv", ipw_buf_str(&text), text.len, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "x.csv:1"));
    ipw_buf_release(&text);
}

/* One byte past the ceiling of a row, in each form. */
static void test_row_ceiling(void **state)
{
    const size_t n = 64 * IPW_MIB + 64;
    char *text = malloc(n);
    struct ipw_rows rows;
    struct ipw_err err = {0};

    (void)state;
    assert_non_null(text);
    memset(text, 'x', n);
    memcpy(text, "{}\n{\"a\":\"", 9);
    memcpy(text + n - 3, "\"}\n", 3);
    assert_int_equal(ipw_rows_parse(&rows, "x.jsonl", text, n, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "x.jsonl:2"));
    memset(text, 'x', n);
    memcpy(text, "a\n", 2);
    assert_int_equal(ipw_rows_parse(&rows, "x.csv", text, n, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "x.csv:2"));
    free(text);
}

/* What is wanted is the first row: the others are let go. */
static void test_first_rows(void **state)
{
    static const struct {
        const char *ending, *text;
    } files[] = {{"json", "[{\"a\":1},{\"a\":2},{\"a\":3}]"},
                 {"jsonl", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n"},
                 {"csv", "a\n1\n2\n3\n"}};
    char folder[] = "/tmp/ipw-dataset-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = ipw_asprintf("%s/a.%s", folder, files[i].ending);
        struct ipw_rows rows;
        struct ipw_err err = {0};
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        assert_true(fputs(files[i].text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(ipw_rows_read(&rows, path, &(struct ipw_rows_wanted){.most = 1}, &err), 0);
        assert_int_equal(rows.n, 1);
        assert_non_null(strchr(rows.rows[0].json, '1'));
        ipw_rows_release(&rows);
        assert_int_equal(unlink(path), 0);
        free(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void test_files(void **state)
{
    char folder[] = "/tmp/ipw-dataset-XXXXXX";
    struct ipw_rows rows;
    struct ipw_err err = {0};
    char *path, *other;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(folder));
    path = ipw_asprintf("%s/a.jsonl", folder);
    other = ipw_asprintf("%s/b.jsonl", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("{\"a\":1}\n", f) >= 0);
    assert_int_equal(fclose(f), 0);

    assert_int_equal(symlink("a.jsonl", other), 0);
    assert_int_equal(ipw_rows_read(&rows, other, NULL, &err), 0);
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.rows[0].json, "{\"a\":1}");
    ipw_rows_release(&rows);
    assert_int_equal(unlink(other), 0);

    assert_int_equal(ipw_rows_read(&rows, other, NULL, &err), IPW_ENOTFOUND);
    assert_non_null(strstr(err.text, other));
    assert_int_equal(mkfifo(other, 0600), 0); /* would block if it were opened */
    assert_int_equal(ipw_rows_read(&rows, other, NULL, &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_int_equal(unlink(other), 0);
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(ipw_rows_read(&rows, other, NULL, &err), IPW_ENOTFOUND);
    /* Bytes are what their name says, also where a folder has that name. */
    assert_int_equal(ipw_rows_parse(&rows, other, "{\"a\":1}\n", 8, &err), 0);
    assert_int_equal(rows.n, 1);
    ipw_rows_release(&rows);
    assert_int_equal(rmdir(other), 0);

    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    free(path);
    free(other);
}

/* The bundled sample and the fixtures of the Lua tests. */
static void test_repository_files(void **state)
{
    static const struct {
        const char *path;
        size_t rows;
    } files[] = {
        {IPW_SOURCE_DIR "/datasets/gaia-sample/metadata.jsonl", 22},
        {IPW_SOURCE_DIR "/datasets/gaia-sample/power_log.csv", 36},
        {IPW_SOURCE_DIR "/datasets/gaia-sample/expenses.csv", 13},
        {IPW_TEST_DATA "/dataset/plain.csv", 2},
        {IPW_TEST_DATA "/dataset/gaia_like/2023/validation/metadata.jsonl", 6},
    };
    struct ipw_err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct ipw_rows rows;
        if (ipw_rows_read(&rows, files[i].path, NULL, &err) != 0) fail_msg("%s", err.text);
        assert_int_equal(rows.n, files[i].rows);
        ipw_rows_release(&rows);
        assert_null(rows.rows);
        assert_int_equal(rows.cap, 0);
    }
}

UNIT(rows)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jsonl),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_hash_is_of_the_bytes),
        cmocka_unit_test(test_many_columns),
        cmocka_unit_test(test_row_ceiling),
        cmocka_unit_test(test_first_rows),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_repository_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
