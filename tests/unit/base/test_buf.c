/* The buffer: its ceiling, that it remembers, and that its bytes come and go. */
#include "base/buf.h"
#include "base/err.h"
#include "check.h"
#include "unit/unit.h"

static void test_appends(void **state)
{
    struct ipw_buf b = IPW_BUF(100);

    (void)state;
    assert_string_equal(ipw_buf_str(&b), "");
    assert_null(b.data);
    assert_int_equal(ipw_buf_adds(&b, "abc"), 0);
    assert_int_equal(ipw_buf_addc(&b, 'd'), 0);
    assert_int_equal(ipw_buf_add(&b, "e\0f", 3), 0);
    assert_int_equal(ipw_buf_addf(&b, "%d-%s", 42, "x"), 0);
    assert_int_equal(ipw_buf_add(&b, NULL, 0), 0);
    assert_int_equal(b.len, 11);
    assert_memory_equal(b.data, "abcde\0f42-x", 12);
    ipw_buf_release(&b);
    assert_null(b.data);
    assert_int_equal(b.max, 100);
    assert_int_equal(ipw_buf_adds(&b, "again"), 0);
    ipw_buf_release(&b);
}

/* At every length: what fits to the byte is taken, one byte more is not and changes nothing. */
static void test_ceiling(void **state)
{
    char text[301];

    (void)state;
    memset(text, 'x', sizeof text);
    for (size_t max = 0; max < 300; max++) {
        struct ipw_buf b = IPW_BUF(max);

        assert_int_equal(ipw_buf_add(&b, text, max), 0);
        assert_int_equal(b.len, max);
        assert_false(b.failed);
        assert_int_equal(ipw_buf_addc(&b, 'y'), IPW_ELIMIT);
        assert_true(b.failed);
        assert_int_equal(b.len, max);
        assert_int_equal(strlen(ipw_buf_str(&b)), max);
        assert_int_equal(ipw_buf_add(&b, "", 0), IPW_ELIMIT); /* it remembers */
        ipw_buf_clear(&b);
        assert_false(b.failed);
        assert_int_equal(ipw_buf_add(&b, text, max + 1), IPW_ELIMIT);
        assert_int_equal(b.len, 0);
        ipw_buf_release(&b);
    }
}

static void test_formatted_ceiling(void **state)
{
    struct ipw_buf b = IPW_BUF(400);
    char text[501];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[500] = '\0';
    assert_int_equal(ipw_buf_addf(&b, "%.300s", text), 0); /* longer than vaddf's own 256 bytes */
    assert_int_equal(b.len, 300);
    assert_int_equal(ipw_buf_addf(&b, "%.101s", text), IPW_ELIMIT);
    assert_int_equal(b.len, 300);
    ipw_buf_clear(&b);
    assert_int_equal(ipw_buf_addf(&b, "%s", text), IPW_ELIMIT);
    assert_int_equal(b.len, 0);
    assert_true(b.failed);
    ipw_buf_release(&b);
}

static void test_huge_sizes(void **state)
{
    struct ipw_buf b = IPW_BUF(SIZE_MAX / 2);

    (void)state;
    ipw_buf_adds(&b, "x");
    assert_null(ipw_buf_room(&b, SIZE_MAX));
    ipw_buf_clear(&b);
    assert_null(ipw_buf_room(&b, SIZE_MAX - 1));
    ipw_buf_release(&b);
}

static void test_room(void **state)
{
    struct ipw_buf b = IPW_BUF(10);
    char *to = ipw_buf_room(&b, 8);

    (void)state;
    assert_non_null(to);
    memcpy(to, "12345678", 8);
    ipw_buf_added(&b, 5);
    assert_string_equal(b.data, "12345");
    assert_null(ipw_buf_room(&b, 6));
    assert_true(b.failed);
    ipw_buf_release(&b);
}

static void test_cuts(void **state)
{
    struct ipw_buf b = IPW_BUF(100);
    size_t len;
    char *taken;

    (void)state;
    ipw_buf_drop_front(&b, 3);
    ipw_buf_truncate(&b, 0);
    ipw_buf_adds(&b, "0123456789");
    ipw_buf_drop_front(&b, 3);
    assert_string_equal(b.data, "3456789");
    ipw_buf_truncate(&b, 4);
    assert_string_equal(b.data, "3456");
    ipw_buf_truncate(&b, 50);
    assert_string_equal(b.data, "3456");
    ipw_buf_drop_front(&b, 4);
    assert_string_equal(b.data, "");
    ipw_buf_adds(&b, "xy");
    ipw_buf_drop_front(&b, 99);
    assert_int_equal(b.len, 0);
    ipw_buf_adds(&b, "kept");
    taken = ipw_buf_take(&b, &len);
    assert_string_equal(taken, "kept");
    assert_int_equal(len, 4);
    assert_null(b.data);
    free(taken);
    taken = ipw_buf_take(&b, NULL);
    assert_string_equal(taken, "");
    free(taken);
}

/* What is expected is room at once; more still fits, and the ceiling stays. */
static void test_expected(void **state)
{
    struct ipw_buf b = IPW_BUF(100), small = IPW_BUF(10);
    const char *data;

    (void)state;
    ipw_buf_expect(&b, 50);
    data = b.data;
    assert_string_equal(data, "");
    assert_int_equal(ipw_buf_add(&b, "01234567890123456789012345678901234567890123456789", 50), 0);
    assert_ptr_equal(b.data, data);
    ipw_buf_expect(&b, 70); /* it is not new: nothing changes */
    assert_int_equal(b.len, 50);
    assert_int_equal(ipw_buf_add(&b, "01234567890123456789012345678901234567890123456789", 50), 0);
    assert_int_equal(ipw_buf_addc(&b, 'y'), IPW_ELIMIT);
    ipw_buf_expect(&small, 11);
    assert_null(small.data);
    assert_false(small.failed);
    ipw_buf_release(&b);
}

UNIT(buf)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_formatted_ceiling),
        cmocka_unit_test(test_huge_sizes),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
