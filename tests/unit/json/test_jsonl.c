/* The line reader: numbers, offsets, torn and damaged ends, ceilings. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "json/jsonl.h"
#include "unit/unit.h"

static char folder[] = "/tmp/ipw_jsonl_XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/f.jsonl", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void put(const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

struct expect {
    const char *text;
    size_t n;
    int64_t number, offset;
    bool torn;
};

#define FILE_BYTES(literal) literal, sizeof(literal) - 1
#define LINE(text, number, offset, torn)                                                           \
    {                                                                                              \
        text, sizeof(text) - 1, number, offset, torn                                               \
    }

static void test_lines(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t n;
        struct expect lines[4];
    } cases[] = {
        {"empty", FILE_BYTES(""), {{0}}},
        {"one", FILE_BYTES("{}\n"), {LINE("{}", 1, 0, false)}},
        {"two", FILE_BYTES("{}\n[1]\n"), {LINE("{}", 1, 0, false), LINE("[1]", 2, 3, false)}},
        {"torn", FILE_BYTES("{}\n{\"a\":"), {LINE("{}", 1, 0, false), LINE("{\"a\":", 2, 3, true)}},
        {"torn_alone", FILE_BYTES("{\"a"), {LINE("{\"a", 1, 0, true)}},
        {"torn_but_whole", FILE_BYTES("{}"), {LINE("{}", 1, 0, true)}},
        {"torn_cr", FILE_BYTES("{}\r"), {LINE("{}\r", 1, 0, true)}},
        {"torn_blank", FILE_BYTES("{}\n  "), {LINE("{}", 1, 0, false)}},
        {"crlf", FILE_BYTES("{}\r\n[]\r\n"), {LINE("{}", 1, 0, false), LINE("[]", 2, 4, false)}},
        {"blank",
         FILE_BYTES("\n \t\r\n{}\n\n[]\n\n"),
         {LINE("{}", 3, 5, false), LINE("[]", 5, 9, false)}},
        {"bom",
         FILE_BYTES("\xEF\xBB\xBF{}\n[]\n"),
         {LINE("{}", 1, 3, false), LINE("[]", 2, 6, false)}},
        {"bom_alone", FILE_BYTES("\xEF\xBB\xBF"), {{0}}},
        {"bom_later",
         FILE_BYTES("1\n\xEF\xBB\xBF"
                    "2\n"),
         {LINE("1", 1, 0, false), LINE("\xEF\xBB\xBF"
                                       "2",
                                       2, 2, false)}},
        {"bom_after_blank",
         FILE_BYTES("\n\xEF\xBB\xBF"
                    "2\n"),
         {LINE("\xEF\xBB\xBF"
               "2",
               2, 1, false)}},
        {"nul", FILE_BYTES("{\0}\n{}\n"), {LINE("{\0}", 1, 0, false), LINE("{}", 2, 4, false)}},
        {"nul_tail",
         FILE_BYTES("{}\n\0\0\0\0"),
         {LINE("{}", 1, 0, false), LINE("\0\0\0\0", 2, 3, true)}},
        {"cr_inside", FILE_BYTES("1\r2\n"), {LINE("1\r2", 1, 0, false)}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_jsonl_reader *reader;
        struct ipw_jsonl_line line;
        struct ipw_err err;

        put(cases[i].bytes, cases[i].n);
        assert_int_equal(ipw_jsonl_open(&reader, path, 100, &err), 0);
        for (const struct expect *e = cases[i].lines; e->text; e++) {
            if (ipw_jsonl_next(reader, &line, &err) != 1) fail_msg("%s: no line", cases[i].name);
            if (line.n != e->n || memcmp(line.text, e->text, e->n) != 0 || line.text[line.n] ||
                line.number != e->number || line.offset != e->offset || line.torn != e->torn)
                fail_msg("%s: '%s' line %d offset %d torn %d", cases[i].name, line.text,
                         (int)line.number, (int)line.offset, line.torn);
        }
        assert_int_equal(ipw_jsonl_next(reader, &line, &err), 0);
        assert_int_equal(ipw_jsonl_next(reader, &line, &err), 0);
        ipw_jsonl_close(reader);
    }
}

/* A line over the ceiling is refused by name; the next call goes on behind it. */
static void test_ceiling(void **state)
{
    static const size_t lengths[] = {11, 12, 100, 65536, 65537, 300000};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int torn = 0; torn < 2; torn++) {
            struct ipw_buf bytes = IPW_BUF(IPW_MIB);
            struct ipw_jsonl_reader *reader;
            struct ipw_jsonl_line line;
            struct ipw_err err = {0};

            ipw_buf_adds(&bytes, "1\n1234567890\r\n");
            for (size_t k = 0; k < lengths[i]; k++) ipw_buf_addc(&bytes, 'x');
            if (!torn) ipw_buf_adds(&bytes, "\n4\n");
            put(bytes.data, bytes.len);
            assert_int_equal(ipw_jsonl_open(&reader, path, 10, &err), 0);
            assert_int_equal(ipw_jsonl_next(reader, &line, &err), 1);
            assert_int_equal(ipw_jsonl_next(reader, &line, &err), 1);
            assert_int_equal(line.n, 10);
            assert_int_equal(ipw_jsonl_next(reader, &line, &err), IPW_ELIMIT);
            assert_non_null(strstr(err.text, path));
            assert_non_null(strstr(err.text, "line 3 is longer than 10 bytes"));
            if (!torn) {
                assert_int_equal(ipw_jsonl_next(reader, &line, &err), 1);
                assert_int_equal(line.number, 4);
                assert_int_equal(line.offset, 14 + (int64_t)lengths[i] + 1);
                assert_string_equal(line.text, "4");
            }
            assert_int_equal(ipw_jsonl_next(reader, &line, &err), 0);
            ipw_jsonl_close(reader);
            ipw_buf_release(&bytes);
        }
    }
}

/* Lines of every length across the borders of the reader's chunks. */
static void test_many_lines(void **state)
{
    struct ipw_buf bytes = IPW_BUF(8 * IPW_MIB);
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    struct ipw_err err;
    uint64_t seed = 3;
    int64_t offset = 0;
    size_t lengths[2000];

    (void)state;
    for (size_t i = 0; i < 2000; i++) {
        lengths[i] = i == 1000 ? 500000 : 1 + random_next(&seed) % 3000;
        for (size_t k = 0; k < lengths[i]; k++) ipw_buf_addc(&bytes, (char)('a' + (i + k) % 26));
        ipw_buf_addc(&bytes, '\n');
    }
    put(bytes.data, bytes.len);
    assert_int_equal(ipw_jsonl_open(&reader, path, 500000, &err), 0);
    for (size_t i = 0; i < 2000; i++) {
        assert_int_equal(ipw_jsonl_next(reader, &line, &err), 1);
        assert_int_equal(line.n, lengths[i]);
        assert_int_equal(line.offset, offset);
        assert_int_equal(line.number, i + 1);
        assert_memory_equal(line.text, bytes.data + offset, line.n);
        offset += (int64_t)lengths[i] + 1;
    }
    assert_int_equal(ipw_jsonl_next(reader, &line, &err), 0);
    ipw_jsonl_close(reader);
    ipw_buf_release(&bytes);
}

/* A file that grows: a torn line comes again, whole, under its own number. */
static void test_grows(void **state)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    struct ipw_err err;
    FILE *more;

    (void)state;
    put("{}\n{\"a\":", 8);
    more = fopen(path, "ae");
    assert_non_null(more);
    assert_int_equal(ipw_jsonl_open(&reader, path, 100, &err), 0);
    assert_int_equal(ipw_jsonl_next(reader, &line, &err), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ipw_jsonl_next(reader, &line, &err), 1);
        assert_true(line.torn);
        assert_int_equal(line.number, 2);
        ipw_jsonl_more(reader);
    }
    assert_true(fputs("1}\n", more) >= 0 && fflush(more) == 0);
    assert_int_equal(ipw_jsonl_next(reader, &line, &err), 1);
    assert_string_equal(line.text, "{\"a\":1}");
    assert_false(line.torn);
    assert_int_equal(line.number, 2);
    assert_int_equal(line.offset, 3);
    assert_int_equal(ipw_jsonl_next(reader, &line, &err), 0);
    ipw_jsonl_more(reader);
    assert_int_equal(ipw_jsonl_next(reader, &line, &err), 0);
    assert_true(fputs("3\n", more) >= 0 && fclose(more) == 0);
    ipw_jsonl_more(reader);
    assert_int_equal(ipw_jsonl_next(reader, &line, &err), 1);
    assert_int_equal(line.number, 3);
    ipw_jsonl_close(reader);
}

static void test_not_a_file(void **state)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_err err;

    (void)state;
    unlink(path);
    assert_int_equal(ipw_jsonl_open(&reader, path, 10, &err), IPW_ENOTFOUND);
    assert_null(reader);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(ipw_jsonl_open(&reader, folder, 10, &err), IPW_EINVAL);
    assert_int_equal(mkfifo(path, 0600), 0); /* without a writer: must not wait */
    assert_int_equal(ipw_jsonl_open(&reader, path, 10, &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "not a regular file"));
    ipw_jsonl_close(NULL);
    unlink(path);
}

UNIT(jsonl)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),      cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_many_lines), cmocka_unit_test(test_grows),
        cmocka_unit_test(test_not_a_file),
    };
    int before = open_descriptors(), failed = cmocka_run_group_tests(tests, set_up, tear_down);

    return failed + (open_descriptors() != before);
}
