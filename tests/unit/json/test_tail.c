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
#include "unit/unit.h"

static char path[64], torn[80];

static int set_up(void **state)
{
    int fd;

    (void)state;
    strcpy(path, "/tmp/ipw-tail-XXXXXX");
    fd = mkstemp(path);
    snprintf(torn, sizeof torn, "%s.torn", path);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(torn);
    return unlink(path);
}

static void put(const char *bytes, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void assert_holds(const char *file, const char *bytes, size_t n)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    assert_int_equal(ipw_file_read(&text, file, NULL), 0);
    assert_int_equal(text.len, n);
    if (n) assert_memory_equal(text.data, bytes, n);
    ipw_buf_release(&text);
}

/* D-10: whatever is cut off, whole lines stay and the rest is in the side file. */
static void cut_at_every_byte(void **state)
{
    static const char all[] =
        "{\"a\":1}\n[2,null,\"\xC3\xA9\xF0\x9F\x98\x80\"]\n\"three\"\n{\"b\":[{}]}\n";
    size_t n = sizeof all - 1;

    (void)state;
    for (size_t at = 0; at <= n; at++) {
        struct ipw_jsonl_cut cut;
        size_t whole = at;

        while (whole && all[whole - 1] != '\n') whole--;
        put(all, at);
        assert_int_equal(ipw_jsonl_cut_tail(&cut, path, NULL), 0);
        assert_holds(path, all, whole);
        assert_int_equal(cut.bytes, at - whole);
        if (at == whole) continue;
        assert_int_equal(cut.offset, whole);
        assert_holds(torn, all + whole, at - whole);
        unlink(torn);
    }
}

/* D-10: what a file system without a journal leaves. */
static void zeroes_and_halves_go(void **state)
{
    static const struct {
        const char *bytes;
        size_t n, whole;
    } cases[] = {
        {"{}\n\0\0\0\0", 7, 3},
        {"{}\n\0\0\0\n", 7, 3},
        {"{}\n{\"a\":\n{\"b\":1", 14, 3}, /* two lines that are none */
        {"{}\n\"\xC3\n", 6, 3},           /* half a character */
        {"{}\n{\"a\":\"\0\"}\n", 13, 3},
        {"{}\n{}{}\n", 8, 3},
        {"\0\0\0\0\0\0\0\0", 8, 0},
        {"{}\n\n", 4, 4}, /* a blank line is passed over by readers */
        {"", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_jsonl_cut cut;

        put(cases[i].bytes, cases[i].n);
        assert_int_equal(ipw_jsonl_cut_tail(&cut, path, NULL), 0);
        assert_int_equal(cut.bytes, cases[i].n - cases[i].whole);
        assert_holds(path, cases[i].bytes, cases[i].whole);
        if (cut.bytes) assert_holds(torn, cases[i].bytes + cases[i].whole, (size_t)cut.bytes);
        unlink(torn);
    }
}

/* Whatever it is, what stands before the last whole line is for the readers to judge. */
static void the_middle_is_left_alone(void **state)
{
    static const char text[] = "{}\n{\"a\n{\"b\":1}\n";
    struct ipw_jsonl_cut cut;

    (void)state;
    put(text, sizeof text - 1);
    assert_int_equal(ipw_jsonl_cut_tail(&cut, path, NULL), 0);
    assert_int_equal(cut.bytes, 0);
    assert_holds(path, text, sizeof text - 1);
}

static void long_lines_and_two_crashes(void **state)
{
    size_t n = 300 * 1024;
    char *text = ipw_malloc(n + 8);
    struct ipw_jsonl_cut cut;
    struct ipw_jsonl_appender *a;

    (void)state;
    memset(text, 'x', n);
    text[0] = text[n - 2] = '"';
    text[n - 1] = '\n';
    memcpy(text + n, "\"xx", 3);
    put(text, n + 3);
    assert_int_equal(ipw_jsonl_cut_tail(&cut, path, NULL), 0);
    assert_int_equal(cut.offset, n);
    assert_int_equal(ipw_jsonl_append_open(&a, path, false, NULL), 0); /* not torn any more */
    assert_int_equal(ipw_jsonl_append_close(a, NULL), 0);
    put(text, n - 5);
    assert_int_equal(ipw_jsonl_cut_tail(&cut, path, NULL), 0);
    assert_int_equal(cut.offset, 0);
    memmove(text + 3, text, n - 5); /* the side file has both, in order */
    memcpy(text, "\"xx", 3);
    assert_holds(torn, text, n - 2);
    free(text);
}

static void nothing_there_is_fine_and_links_are_not(void **state)
{
    struct ipw_jsonl_cut cut;
    char link[80];

    (void)state;
    snprintf(link, sizeof link, "%s.link", path);
    assert_int_equal(ipw_jsonl_cut_tail(&cut, link, NULL), 0);
    assert_int_equal(cut.bytes, 0);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(ipw_jsonl_cut_tail(&cut, link, NULL), IPW_EIO);
    unlink(link);
}

UNIT(tail)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(cut_at_every_byte),
        CASE(zeroes_and_halves_go),
        CASE(the_middle_is_left_alone),
        CASE(long_lines_and_two_crashes),
        CASE(nothing_there_is_fine_and_links_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
