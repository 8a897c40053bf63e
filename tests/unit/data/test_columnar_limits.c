/* Parquet files that no writer makes: what they claim is checked before it is believed, what is not
 * supported is refused by its name; and a million rows in one row group, which are read within 100
 * MB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/rows.h"
#include "parquet_frame.h"
#include "unit/unit.h"

enum { INT32 = 1, INT64 = 2, BYTES = 6 };
enum { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };
enum { PLAIN = 0, BIT_PACKED = 4, DELTA = 5, DICTIONARY = 8 };

static void expect(struct ipw_buf *file, const char *what)
{
    struct ipw_err err = {0};
    struct ipw_rows rows;
    int rc = ipw_rows_parse(&rows, "f.parquet", ipw_buf_str(file), file->len, &err);

    if (!rc || strncmp(err.text, "f.parquet: ", 11) != 0 || !strstr(err.text, what))
        fail_msg("'%s', not '%s'", rc ? err.text : "no error", what);
    ipw_buf_release(file);
}

/* One column `q` with one page, whose header is put before `n` bytes. */
static void expect_page(struct frame_column column, int64_t unpacked, int encoding,
                        const char *bytes, size_t n, const char *what)
{
    struct ipw_buf file = IPW_BUF(IPW_MIB);

    column.name = "q";
    column.at = 4;
    ipw_buf_adds(&file, "PAR1");
    put_page_header(&file, unpacked, (int64_t)n, column.values, encoding);
    ipw_buf_add(&file, bytes, n);
    column.bytes = (int64_t)file.len - 4;
    put_footer(&file, &column, 1, column.values);
    expect(&file, what);
}

static void damaged_pages(void **state)
{
    struct frame_column two = {.physical = INT32, .values = 2};
    struct frame_column text = {.physical = BYTES, .values = 1};
    struct frame_column optional = {.physical = INT32, .repetition = OPTIONAL, .values = 2};

    (void)state;
    expect_page(two, 4, PLAIN, "\1\0\0\0", 4,
                "column 'q', row 2: page at byte 4: its values end too soon");
    expect_page(two, 9, PLAIN, "\1\0\0\0\2\0\0\0", 8, "8 bytes, uncompressed, are said to be 9");
    expect_page(two, 2, DICTIONARY, "\1\3", 2, "not in the dictionary");
    expect_page(two, 4, BIT_PACKED, "\1\0\0\0", 4, "the encoding BIT_PACKED is not supported");
    expect_page(two, 4, 77, "\1\0\0\0", 4, "encoding 77 is not supported for this type");
    expect_page(text, 4, DELTA, "\1\0\0\0", 4, "encoding 5 is not supported for this type");
    expect_page(two, 5, DELTA, "\200\1\5\2\0", 5,
                "the head of its values"); /* 128 by 5 miniblocks */
    expect_page(text, 4, PLAIN, "\377\377\377\177", 4, "its values end too soon");
    expect_page(optional, 4, PLAIN, "\5\0\0\0", 4, "its levels are longer than the page");
    expect_page(optional, 6, PLAIN, "\2\0\0\0\4\2", 6,
                "definition levels end too soon or are too high");
}

static void names(void **state)
{
    struct frame_column b = {.name = "b", .physical = INT32, .values = 1, .at = 4}, a = b;
    struct ipw_buf file = IPW_BUF(IPW_MIB);

    (void)state;
    a.name = "a";
    ipw_buf_adds(&file, "PAR1");
    put_footer(&file, (struct frame_column[]){b, a, b}, 3, 1);
    expect(&file, "column 'b': two columns have this name");
}

static void claims(void **state)
{
    struct frame_column c = {.name = "q", .physical = INT32, .values = 1000, .codec = 6, .at = 4};
    struct ipw_buf file = IPW_BUF(IPW_MIB);
    size_t start;

    (void)state;
    /* Little that unpacks to much, for each codec. */
    expect_page(c, 500000000, PLAIN, "0123456789", 10,
                "10 bytes of zstd cannot unpack to the 500000000 bytes");
    c.codec = 1;
    expect_page(c, 100000, PLAIN, "0123456789", 10,
                "10 bytes of snappy cannot unpack to the 100000 bytes");
    expect_page(c, 600, PLAIN, "0123456789", 10,
                "damaged: 10 bytes of snappy do not unpack to the 600");
    expect_page(c, 2000000000, PLAIN, "0123456789", 10, "512 MiB is the limit");
    c.codec = 3;
    expect_page(c, 10, PLAIN, "0123456789", 10, "compression with LZO is not supported");
    c.codec = 42;
    expect_page(c, 10, PLAIN, "0123456789", 10, "compression codec 42 is not known");

    c.codec = 0;
    c.bytes = 1000000;
    ipw_buf_adds(&file, "PAR1");
    put_footer(&file, &c, 1, 1);
    expect(&file, "column 'q': its column chunk (1000000 bytes at byte 4) is not in the file");

    file = IPW_BUF(IPW_MIB);
    ipw_buf_adds(&file, "PAR1");
    start = file.len;
    put_number(&file, 1, THRIFT_I32, 1);
    ipw_buf_add(&file, "\x19\xfc\xff\xff\xff\x7f", 6); /* a schema of 2^28 elements */
    put_tail(&file, start);
    expect(&file, "footer: ends in the middle");

    file = IPW_BUF(IPW_MIB);
    ipw_buf_adds(&file, "PAR1");
    start = file.len;
    put_structs(&file, 2, 14); /* each the only child of the one before */
    for (int i = 0; i < 14; i++) {
        put_text(&file, 4, "g");
        put_number(&file, 1, THRIFT_I32, i == 0 ? 20 : 1);
        put_end(&file);
    }
    put_end(&file);
    put_tail(&file, start);
    expect(&file, "a group whose children are not in the schema");

    file = IPW_BUF(IPW_MIB);
    ipw_buf_adds(&file, "PAR1");
    start = file.len;
    ipw_buf_addc(&file, 0x29); /* a list of 40 structs, nested */
    ipw_buf_add(&file, "\xfc\x28", 2);
    for (int i = 0; i < 40; i++) {
        put_text(&file, 4, "g");
        put_number(&file, 1, THRIFT_I32, 1);
        put_end(&file);
    }
    put_end(&file);
    put_tail(&file, start);
    expect(&file, "more than 32 levels of groups");

    file = IPW_BUF(IPW_MIB);
    ipw_buf_adds(&file, "PAR1");
    start = file.len;
    put_schema(&file, &c, 1); /* its list is field 1 here: another type than the version's */
    put_tail(&file, start);
    expect(&file, "footer: ");

    file = IPW_BUF(IPW_MIB);
    ipw_buf_add(&file, "PAR1\0\0\0\0PARE", 12);
    expect(&file, "its footer is encrypted");
}

/* ---- lists as older writers stored them ---- */

struct element {
    const char *name;
    int physical, repetition, children, converted; /* -1: there is none */
};

enum { GROUP = -1, LIST = 3 };

static void put_elements(struct ipw_buf *out, const struct element *e, size_t n)
{
    put_structs(out, 2, n + 1);
    put_text(out, 4, "root");
    put_number(out, 1, THRIFT_I32, 1);
    put_end(out);
    for (; n--; e++) {
        if (e->physical >= 0) put_number(out, 1, THRIFT_I32, e->physical);
        put_number(out, e->physical >= 0 ? 2 : 3, THRIFT_I32, e->repetition);
        put_text(out, 1, e->name);
        if (e->children) put_number(out, 1, THRIFT_I32, e->children);
        if (e->converted >= 0) put_number(out, e->children ? 1 : 2, THRIFT_I32, e->converted);
        put_end(out);
    }
}

/* Each level as a run of one. */
static void put_levels(struct ipw_buf *out, const char *levels)
{
    char length[4] = {(char)(2 * strlen(levels))};

    ipw_buf_add(out, length, 4);
    for (; *levels; levels++) {
        ipw_buf_addc(out, 2);
        ipw_buf_addc(out, (char)(*levels - '0'));
    }
}

/* The leaf's levels, a digit each; its values are 1, 2, ... */
static void check_lists(const struct element *elements, size_t n, const char *repeats,
                        const char *definitions, int values, const char *const *rows)
{
    struct frame_column leaf = {.physical = INT32, .values = (int64_t)strlen(repeats), .at = 4};
    struct ipw_buf file = IPW_BUF(IPW_MIB), page = IPW_BUF(IPW_MIB);
    struct ipw_err err = {0};
    struct ipw_rows got;
    size_t start, n_rows = 0;

    while (rows[n_rows]) n_rows++;
    put_levels(&page, repeats);
    put_levels(&page, definitions);
    for (int i = 1; i <= values; i++) ipw_buf_add(&page, (char[]){(char)i, 0, 0, 0}, 4);
    ipw_buf_adds(&file, "PAR1");
    put_page_header(&file, (int64_t)page.len, (int64_t)page.len, leaf.values, PLAIN);
    ipw_buf_add(&file, page.data, page.len);
    leaf.bytes = (int64_t)file.len - 4;
    start = file.len;
    put_elements(&file, elements, n);
    put_number(&file, 1, THRIFT_I64, (int64_t)n_rows);
    put_group(&file, &leaf, 1, (int64_t)n_rows);
    put_end(&file);
    put_tail(&file, start);
    if (ipw_rows_parse(&got, "f.parquet", file.data, file.len, &err)) fail_msg("%s", err.text);
    assert_int_equal(got.n, n_rows);
    for (size_t i = 0; i < n_rows; i++) assert_string_equal(got.rows[i].json, rows[i]);
    ipw_rows_release(&got);
    ipw_buf_release(&file);
    ipw_buf_release(&page);
}

static void lists_of_older_writers(void **state)
{
    static const struct element bare[] = {{"q", INT32, REPEATED, 0, -1}};
    static const struct element two[] = {{"q", GROUP, OPTIONAL, 1, LIST},
                                         {"item", INT32, REPEATED, 0, -1}};
    static const struct element array[] = {{"q", GROUP, OPTIONAL, 1, LIST},
                                           {"array", GROUP, REPEATED, 1, -1},
                                           {"x", INT32, REQUIRED, 0, -1}};
    static const struct element tuple[] = {{"q", GROUP, OPTIONAL, 1, LIST},
                                           {"q_tuple", GROUP, REPEATED, 1, -1},
                                           {"x", INT32, REQUIRED, 0, -1}};
    static const struct element bag[] = {{"q", GROUP, OPTIONAL, 1, LIST},
                                         {"bag", GROUP, REPEATED, 1, -1},
                                         {"array_element", INT32, OPTIONAL, 0, -1}};
    static const char *const lists[] = {"{\"q\":[1,2]}", "{\"q\":[]}", "{\"q\":null}", NULL};
    static const char *const objects[] = {"{\"q\":[{\"x\":1},{\"x\":2}]}", "{\"q\":[]}",
                                          "{\"q\":null}", NULL};

    (void)state;
    check_lists(bare, 1, "010", "110", 2, (const char *const[]){lists[0], lists[1], NULL});
    check_lists(two, 2, "0100", "2210", 2, lists);
    check_lists(array, 3, "0100", "2210", 2, objects);
    check_lists(tuple, 3, "0100", "2210", 2, objects);
    check_lists(bag, 3, "0100", "3310", 2, lists);
    check_lists(bag, 3, "011", "323", 2, (const char *const[]){"{\"q\":[1,null,2]}", NULL});
}

enum { ROWS = 1000000, PAGE_ROWS = 10000 };

static void write_all(FILE *f, struct ipw_buf *bytes, struct frame_column *column)
{
    assert_false(bytes->failed);
    assert_int_equal(fwrite(bytes->data, 1, bytes->len, f), bytes->len);
    column->bytes += (int64_t)bytes->len;
    ipw_buf_clear(bytes);
}

/* A file of two columns, `id` and `text`, in one row group. */
static void write_large(const char *path)
{
    struct frame_column columns[2] = {{.name = "id", .physical = INT64, .values = ROWS, .at = 4},
                                      {.name = "text", .physical = BYTES, .values = ROWS}};
    struct ipw_buf out = IPW_BUF(4 * IPW_MIB), page = IPW_BUF(4 * IPW_MIB);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite("PAR1", 1, 4, f), 4);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < ROWS; i++) {
            char text[64];
            int n = snprintf(text, sizeof text, "the text of the row with number %d", i);
            int64_t id = i;

            if (k == 0) {
                ipw_buf_add(&page, &id, sizeof id); /* the tests run on little-endian machines */
            } else {
                ipw_buf_add(&page, &n, sizeof n);
                ipw_buf_add(&page, text, (size_t)n);
            }
            if ((i + 1) % PAGE_ROWS) continue;
            put_page_header(&out, (int64_t)page.len, (int64_t)page.len, PAGE_ROWS, PLAIN);
            ipw_buf_add(&out, page.data, page.len);
            ipw_buf_clear(&page);
            write_all(f, &out, &columns[k]);
        }
        if (k == 0) columns[1].at = 4 + columns[0].bytes;
    }
    put_footer(&out, columns, 2, ROWS);
    write_all(f, &out, &columns[1]);
    assert_int_equal(fclose(f), 0);
    ipw_buf_release(&out);
    ipw_buf_release(&page);
}

static void million_rows(void **state)
{
    char path[] = "/tmp/ipw-million-XXXXXX.parquet", last[100];
    int fd = mkstemps(path, 8);
    struct ipw_row_reader *reader;
    struct ipw_err err = {0};
    struct ipw_row row = {0};
    struct rusage usage;
    int rc;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    write_large(path);
    assert_int_equal(ipw_row_reader_open(&reader, path, NULL, &err), 0);
    assert_int_equal(ipw_row_reader_count(reader), ROWS);
    assert_int_equal(ipw_row_reader_next(reader, &row, &err), 1);
    assert_string_equal(row.json, "{\"id\":0,\"text\":\"the text of the row with number 0\"}");
    while ((rc = ipw_row_reader_next(reader, &row, &err)) == 1)
        if (row.line == ROWS) snprintf(last, sizeof last, "%s", row.json);
    assert_int_equal(rc, 0);
    assert_string_equal(last,
                        "{\"id\":999999,\"text\":\"the text of the row with number 999999\"}");
    ipw_row_reader_free(reader);
    unlink(path);
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    if (usage.ru_maxrss > 100000) fail_msg("%ld kB were held", usage.ru_maxrss);
#endif
}

UNIT(columnar_limits)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_pages), cmocka_unit_test(names),
        cmocka_unit_test(claims),        cmocka_unit_test(lists_of_older_writers),
        cmocka_unit_test(million_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
