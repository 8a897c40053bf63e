/* Parquet and Arrow files by other writers: every row equals the one that was put in, as JSON; only
 * the columns that are wanted are there; every beginning of a file is an error that names it. */
#include <math.h>
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
#include "data/rows.h"
#include "json/json.h"
#include "json/jsonl.h"
#include "unit/unit.h"

#define FOLDER IPW_TEST_DATA "/columnar/"

/* Numbers count by their value: 0, 0.0 and -0 are the same. */
static bool are_equal(const struct ipw_json *a, const struct ipw_json *b)
{
    const struct ipw_json *m = ipw_json_first(a);
    bool numbers = ipw_json_kind(a) == IPW_JSON_NUM || ipw_json_kind(b) == IPW_JSON_NUM;

    if (numbers) return ipw_json_num(a, NAN) == ipw_json_num(b, NAN);
    if (ipw_json_kind(a) != ipw_json_kind(b) || ipw_json_count(a) != ipw_json_count(b))
        return false;
    switch (ipw_json_kind(a)) {
    case IPW_JSON_INT: return ipw_json_int(a, 0) == ipw_json_int(b, 1);
    case IPW_JSON_BOOL: return ipw_json_bool(a, false) == ipw_json_bool(b, false);
    case IPW_JSON_STR: return strcmp(ipw_json_str(a, ""), ipw_json_str(b, "")) == 0;
    case IPW_JSON_ARR:
    case IPW_JSON_OBJ:
        for (size_t i = 0; m; m = ipw_json_next(m), i++)
            if (!are_equal(m,
                           ipw_json_key(m) ? ipw_json_get(b, ipw_json_key(m)) : ipw_json_at(b, i)))
                return false;
        return true;
    default: return true;
    }
}

static struct ipw_json *parse(const char *text, size_t n)
{
    struct ipw_json *root;
    struct ipw_err err = {0};

    if (ipw_json_parse(&root, text, n, NULL, &err)) fail_msg("%.200s: %s", text, err.text);
    return root;
}

/* Rows that are made, not stored: those of duckdb-groups.parquet. */
static char *made_row(size_t i)
{
    return i % 3 ? ipw_asprintf("{\"id\":%zu,\"seven\":\"%zu\",\"some\":%zu}", i, i % 7, i)
                 : ipw_asprintf("{\"id\":%zu,\"seven\":\"%zu\",\"some\":null}", i, i % 7);
}

static void check_rows(const char *file, const char *of)
{
    char *path = ipw_asprintf(FOLDER "%s", file), *want_path = ipw_asprintf(FOLDER "%s", of);
    struct ipw_rows got, want = {0};
    struct ipw_err err = {0};
    int rc = ipw_rows_read(&got, path, NULL, &err);

    if (of[0] == '!') {
        assert_int_equal(rc, IPW_EUNSUPPORTED);
        if (!strstr(err.text, path) || !strstr(err.text, of + 1))
            fail_msg("%s: %s", file, err.text);
    } else if (rc) {
        fail_msg("%s: %s", file, err.text);
    } else {
        size_t made = of[0] == '#' ? strtoul(of + 1, NULL, 10) : 0;

        if (!made) assert_int_equal(ipw_rows_read(&want, want_path, NULL, &err), 0);
        if (got.n != (made ? made : want.n)) fail_msg("%s: %zu rows", file, got.n);
        for (size_t i = 0; i < got.n; i++) {
            char *expected = made ? made_row(i) : ipw_memdup(want.rows[i].json, want.rows[i].n);
            struct ipw_json *a = parse(got.rows[i].json, got.rows[i].n);
            struct ipw_json *b = parse(expected, strlen(expected));

            assert_int_equal(got.rows[i].line, i + 1);
            if (!are_equal(a, b))
                fail_msg("%s, row %zu:\n%s\nshould be\n%s", file, i + 1, got.rows[i].json,
                         expected);
            free(expected);
            ipw_json_free(a);
            ipw_json_free(b);
        }
        ipw_rows_release(&got);
    }
    ipw_rows_release(&want);
    free(path);
    free(want_path);
}

/* Calls `each` with the columns of cases.tsv. */
static size_t each_case(void (*each)(const char *file, const char *of))
{
    char line[200];
    FILE *f = fopen(FOLDER "cases.tsv", "r");
    size_t n = 0;

    assert_non_null(f);
    for (; fgets(line, sizeof line, f); n++) {
        char *tab = strchr(line, '\t');

        assert_non_null(tab);
        *tab = '\0';
        tab[1 + strcspn(tab + 1, "\n")] = '\0';
        each(line, tab + 1);
    }
    fclose(f);
    return n;
}

static void every_row_of_every_writer(void **state)
{
    (void)state;
    assert_true(each_case(check_rows) >= 36);
}

static void check_columns(const char *file, const char *of)
{
    static const char *const columns[] = {"NAME", "id", "no such column", NULL};
    const struct ipw_rows_wanted wanted = {.columns = columns};
    char *path = ipw_asprintf(FOLDER "%s", file);
    struct ipw_row_reader *reader;
    struct ipw_row row;
    struct ipw_err err = {0};
    size_t n = 0;

    if (strcmp(of, "rows.jsonl") == 0 || strcmp(of, "flat.jsonl") == 0) {
        assert_int_equal(ipw_row_reader_open(&reader, path, &wanted, &err), 0);
        while (ipw_row_reader_next(reader, &row, &err) == 1) {
            struct ipw_json *root;

            assert_int_equal(ipw_json_parse(&root, row.json, row.n, NULL, &err), 0);
            assert_int_equal(ipw_json_count(root), 2);
            assert_int_equal(ipw_json_int(ipw_json_get(root, "id"), -1), n);
            assert_non_null(ipw_json_get(root, "name"));
            ipw_json_free(root);
            n++;
        }
        assert_int_equal(err.code, 0);
        assert_int_equal(n, 24);
        if (strstr(file, ".parquet")) assert_int_equal(ipw_row_reader_count(reader), 24);
        ipw_row_reader_free(reader);
    }
    free(path);
}

static void wanted_columns_only(void **state)
{
    static const char *const columns[] = {"id", NULL};
    const struct ipw_rows_wanted wanted = {.columns = columns};
    /* Another column has a type that is not read. */
    static const char *const refused[] = {FOLDER "duckdb-interval.parquet",
                                          FOLDER "js-duration.arrow"};
    struct ipw_row_reader *reader;
    struct ipw_row row;

    (void)state;
    each_case(check_columns);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(ipw_row_reader_open(&reader, refused[i], &wanted, NULL), 0);
        assert_int_equal(ipw_row_reader_next(reader, &row, NULL), 1);
        assert_string_equal(row.json, "{\"id\":1}");
        assert_int_equal(ipw_row_reader_next(reader, &row, NULL), 0);
        ipw_row_reader_free(reader);
    }
}

static void every_beginning(void **state)
{
    static const char *const files[] = {
        "duckdb-v1-snappy.parquet",    "duckdb-v2-uncompressed.parquet",
        "duckdb-types.parquet",        "rust-v2-lz4-pages.parquet",
        "hyparquet-encodings.parquet", "hyparquet-gzip-pages.parquet",
        "js-stream-zstd.arrow",        "js-file-lz4.arrow",
        "js-dictionary-stream.arrow",  "js-dictionary-file.arrow"};

    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        struct ipw_buf whole = IPW_BUF(IPW_MIB);
        char *path = ipw_asprintf(FOLDER "%s", files[k]);

        assert_int_equal(ipw_file_read(&whole, path, NULL), 0);
        for (size_t n = 0; n < whole.len; n++) {
            char *bytes = malloc(n ? n : 1); /* so that a sanitizer sees a byte too far */
            struct ipw_err err = {0};
            struct ipw_rows rows;
            int rc;

            assert_non_null(bytes);
            memcpy(bytes, whole.data, n);
            rc = ipw_rows_parse(&rows, files[k], bytes, n, &err);
            if (!rc) fail_msg("%s, %zu bytes: no error", files[k], n);
            assert_int_equal(rc, err.code);
            if (strncmp(err.text, files[k], strlen(files[k])) != 0 ||
                strlen(err.text) < strlen(files[k]) + 10)
                fail_msg("%s, %zu bytes: \"%s\"", files[k], n, err.text);
            free(bytes);
        }
        ipw_buf_release(&whole);
        free(path);
    }
}

static void check_refused(const char *path, const char *what)
{
    struct ipw_rows rows;
    struct ipw_err err = {0};

    assert_int_not_equal(ipw_rows_read(&rows, path, NULL, &err), 0);
    if (!strstr(err.text, what) || !strstr(err.text, path)) fail_msg("%s: %s", path, err.text);
}

static void folders(void **state)
{
    struct ipw_rows rows;
    struct ipw_err err = {0};

    (void)state;
    check_refused(FOLDER "saved", "several splits; name one: " FOLDER "saved/train");
    check_refused(IPW_TEST_DATA "/columnar/gaia", "neither state.json");
    check_refused(FOLDER "none.parquet", "No such file");
    assert_int_equal(ipw_rows_read(&rows, FOLDER "gaia/2023/validation/", NULL, &err), 0);
    assert_int_equal(rows.n, 3);
    assert_non_null(strstr(rows.rows[1].json, "\"How long did this take?\":\"2 minutes\""));
    assert_non_null(strstr(rows.rows[2].json, "\"Annotator Metadata\":null"));
    ipw_rows_release(&rows);
}

/* Copies a Parquet file of 24 rows to FOLDER/NAME. */
static void put_copy(const char *folder, const char *name)
{
    struct ipw_buf bytes = IPW_BUF(IPW_MIB);
    char *path = ipw_asprintf("%s/%s", folder, name);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(ipw_file_read(&bytes, FOLDER "hyparquet-encodings.parquet", NULL), 0);
    assert_int_equal(fwrite(bytes.data, 1, bytes.len, f), bytes.len);
    assert_int_equal(fclose(f), 0);
    ipw_buf_release(&bytes);
    free(path);
}

static void take_away(const char *folder, const char *name)
{
    char *path = ipw_asprintf("%s/%s", folder, name);

    assert_int_equal(unlink(path), 0);
    free(path);
}

static void shards(void **state)
{
    static const char first[] = "test-00000-of-00002.parquet",
                      last[] = "test-00001-of-00002.parquet";
    char folder[] = "/tmp/ipw-shards-XXXXXX";
    struct ipw_rows rows;
    struct ipw_err err = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    put_copy(folder, first);
    check_refused(folder, "1 of the 2 files of ");
    put_copy(folder, last);
    assert_int_equal(ipw_rows_read(&rows, folder, NULL, &err), 0);
    assert_int_equal(rows.n, 48);
    assert_int_equal(rows.rows[47].line, 48);
    ipw_rows_release(&rows);
    put_copy(folder, "train-00000-of-00001.parquet");
    check_refused(folder, "several sets, ");
    check_refused(folder, "/train; name one");
    take_away(folder, first);
    take_away(folder, last);
    assert_int_equal(ipw_rows_read(&rows, folder, NULL, &err), 0);
    assert_int_equal(rows.n, 24);
    ipw_rows_release(&rows);
    put_copy(folder, "metadata.parquet");
    check_refused(folder, "several sets, ");
    take_away(folder, "train-00000-of-00001.parquet");
    take_away(folder, "metadata.parquet");
    assert_int_equal(rmdir(folder), 0);
}

UNIT(columnar_files)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_every_writer),
        cmocka_unit_test(wanted_columns_only),
        cmocka_unit_test(every_beginning),
        cmocka_unit_test(folders),
        cmocka_unit_test(shards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
