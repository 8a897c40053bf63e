/* Whole documents: read from a folder, patched; and the lines of a file, one after the other. */
#include <unistd.h>

#include "check.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "unit/unit.h"

static char folder[] = "/tmp/ipw_document_XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/f.json", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void put(const char *text)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_read(void **state)
{
    struct ipw_json *doc;
    struct ipw_err err = {0};

    (void)state;
    put("{\"a\":1.50}");
    assert_int_equal(ipw_json_read(&doc, folder, "f.json", &err), 0);
    char *text = ipw_json_text(doc);
    assert_string_equal(text, "{\"a\":1.50}");
    free(text);
    ipw_json_free(doc);
    assert_null(ipw_json_text(NULL));
}

static void test_refused_by_name(void **state)
{
    static const char *const texts[] = {"[1]", "{", ""};
    struct ipw_json *doc;
    struct ipw_err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put(texts[i]);
        assert_int_equal(ipw_json_read(&doc, folder, "f.json", &err), IPW_EPARSE);
        assert_null(doc);
        assert_non_null(strstr(err.text, path));
    }
    assert_int_equal(ipw_json_read(&doc, folder, "none.json", &err), IPW_ENOTFOUND);
    assert_null(doc);
}

static void test_patch(void **state)
{
    static const struct {
        const char *object, *patch, *want;
    } rows[] = {
        {"{}", "{}", "{}"},
        {"{\"b\":2}", "{\"a\":1,\"c\":3}", "{\"a\":1,\"b\":2,\"c\":3}"},
        {"{\"a\":{\"x\":1},\"b\":2}", "{\"a\":{\"y\":1}}", "{\"a\":{\"y\":1},\"b\":2}"},
        {"{\"n\":1e999}", "{\"z\":null}", "{\"n\":1e999,\"z\":null}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_json *doc = parse_text(rows[i].object);
        struct ipw_buf out = IPW_BUF(1000);

        ipw_json_patch(&out, doc, rows[i].patch);
        assert_string_equal(ipw_buf_str(&out), rows[i].want);
        ipw_buf_release(&out);
        ipw_json_free(doc);
    }
}

static int take(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    int *sum = ud;
    int value = atoi(line->text);

    if (value < 0) return ipw_fail(err, IPW_EPARSE, "too small");
    *sum += value;
    return 0;
}

static void test_each_line(void **state)
{
    struct ipw_err err = {0};
    int sum = 0;

    (void)state;
    put("1\n\n2\n4"); /* the last line is torn */
    assert_int_equal(ipw_jsonl_each(path, 100, take, &sum, &err), 0);
    assert_int_equal(sum, 3);
    put("1\n-1\n2\n");
    assert_int_equal(ipw_jsonl_each(path, 100, take, &sum, &err), IPW_EPARSE);
    assert_int_equal(sum, 4);
    assert_non_null(strstr(err.text, "f.json:2: too small"));
    assert_int_equal(ipw_jsonl_each("/nonexistent", 100, take, &sum, &err), IPW_ENOTFOUND);
}

UNIT(document)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_refused_by_name),
        cmocka_unit_test(test_patch),
        cmocka_unit_test(test_each_line),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
