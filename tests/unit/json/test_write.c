/* The writer and the escape. */
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/utf8.h"
#include "check.h"
#include "unit/unit.h"

static void test_writer(void **state)
{
    struct ipw_buf out = IPW_BUF(IPW_KIB);
    struct ipw_jw w;

    (void)state;
    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    ipw_jw_kbool(&w, "a", true);
    ipw_jw_key(&w, "b");
    ipw_jw_arr(&w);
    ipw_jw_int(&w, INT64_MIN);
    ipw_jw_num(&w, 0.1);
    ipw_jw_num(&w, NAN);
    ipw_jw_num(&w, 2);
    ipw_jw_null(&w);
    ipw_jw_bool(&w, false);
    ipw_jw_arr(&w);
    ipw_jw_arr_end(&w);
    ipw_jw_obj(&w);
    ipw_jw_obj_end(&w);
    ipw_jw_obj(&w); /* the order begins anew in every object */
    ipw_jw_kint(&w, "a", 1);
    ipw_jw_obj_end(&w);
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "c", 1);
    ipw_jw_knull(&w, "d");
    ipw_jw_knum(&w, "e", -INFINITY);
    ipw_jw_kraw(&w, "f", "{\"x\":\n1}\n", 9);
    ipw_jw_kstr(&w, "g", "q\"\n");
    ipw_jw_kstr(&w, "h", NULL);
    ipw_jw_key_any(&w, "a\"b", 3);
    ipw_jw_strn(&w, "a\0b", 3);
    ipw_jw_obj_end(&w);
    assert_string_equal(
        out.data,
        "{\"a\":true,\"b\":[-9223372036854775808,0.1,null,2.0,null,false,[],{},{\"a\":1}],"
        "\"c\":1,\"d\":null,\"e\":null,\"f\":{\"x\": 1} ,\"g\":\"q\\\"\\n\",\"h\":null,"
        "\"a\\\"b\":\"a\xEF\xBF\xBD"
        "b\"}");
    assert_true(ipw_json_valid(out.data, out.len));
    ipw_buf_release(&out);
}

static void test_top_level_and_depth(void **state)
{
    struct ipw_buf out = IPW_BUF(IPW_KIB);
    struct ipw_jw w;

    (void)state;
    ipw_jw_init(&w, &out);
    ipw_jw_str(&w, "x");
    assert_string_equal(out.data, "\"x\"");
    ipw_buf_clear(&out);
    ipw_jw_init(&w, &out);
    for (int i = 0; i < 20; i++) { /* deeper than the writer keeps keys for */
        ipw_jw_obj(&w);
        ipw_jw_key(&w, "k");
    }
    ipw_jw_null(&w);
    for (int i = 0; i < 20; i++) ipw_jw_obj_end(&w);
    assert_true(ipw_json_valid(out.data, out.len));
    ipw_buf_release(&out);
}

static void test_ceiling(void **state)
{
    const size_t whole = strlen("{'key':'a text of some length\\n','n':12345}");

    (void)state;
    for (size_t max = 0; max < 60; max++) {
        struct ipw_buf out = IPW_BUF(max);
        struct ipw_jw w;

        ipw_jw_init(&w, &out);
        ipw_jw_obj(&w);
        ipw_jw_kstr(&w, "key", "a text of some length\n");
        ipw_jw_kint(&w, "n", 12345);
        ipw_jw_obj_end(&w);
        assert_true(out.len <= max);
        assert_int_equal(out.failed, max < whole);
        if (!out.failed) assert_int_equal(out.len, whole);
        ipw_buf_release(&out);
    }
}

/* How the child that runs `misuse` ends. */
static int signal_of(void (*misuse)(void))
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(9);
        signal(SIGABRT, SIG_DFL);
        misuse();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void two_keys(const char *first, const char *second)
{
    struct ipw_buf out = IPW_BUF(IPW_KIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, first, 1);
    ipw_jw_kint(&w, second, 1);
    ipw_jw_obj_end(&w);
    ipw_buf_release(&out);
}

static void keys_in_order(void) { two_keys("a", "b"); }
static void keys_out_of_order(void) { two_keys("b", "a"); }
static void keys_twice(void) { two_keys("a", "a"); }

static void test_order_is_watched(void **state)
{
    (void)state;
    assert_int_equal(signal_of(keys_in_order), 0);
    assert_int_equal(signal_of(keys_in_order), 0);
#ifdef NDEBUG
    (void)keys_out_of_order, (void)keys_twice;
    skip();
#else
    assert_int_equal(signal_of(keys_out_of_order), SIGABRT);
    assert_int_equal(signal_of(keys_twice), SIGABRT);
#endif
}

/* One byte at a time, by the book: what the fast one must equal. */
static void escape_slowly(struct ipw_buf *out, const char *s, size_t n)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";

    ipw_buf_addc(out, '"');
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        size_t k = ipw_utf8_len(s + i, n - i);
        const char *letter = c ? strchr(from, c) : NULL;

        if (letter) {
            ipw_buf_addf(out, "\\%c", to[letter - from]);
            i++;
        } else if (c && c < 0x20) {
            ipw_buf_addf(out, "\\u%04x", c);
            i++;
        } else if (k == 0 || c == 0) {
            ipw_buf_adds(out, "\xEF\xBF\xBD");
            i++;
        } else {
            ipw_buf_add(out, s + i, k);
            i += k;
        }
    }
    ipw_buf_addc(out, '"');
}

static void j2_written_text_is_valid(void **state)
{
    static const char *const parts[] = {"plain text, sixteen and more bytes of it ",
                                        "a",
                                        "\"",
                                        "\\",
                                        "\n",
                                        "\t",
                                        "\r",
                                        "\b",
                                        "\f",
                                        "\v",
                                        "\x01",
                                        "\x1f",
                                        "\x7f",
                                        "\xC3\xA9",
                                        "\xE4\xB8\xAD",
                                        "\xF0\x9F\x98\x80",
                                        "\xFF",
                                        "\xE2\x82",
                                        "\xED\xA0\x80",
                                        "\xC0\x80",
                                        "\xF0\x9F"};
    uint64_t seed = 5;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct ipw_buf text = IPW_BUF(64 * IPW_KIB), fast = IPW_BUF(IPW_MIB),
                       slow = IPW_BUF(IPW_MIB);
        size_t want = random_next(&seed) % (round % 50 ? 80 : 5000);
        struct ipw_json *doc;
        size_t repairs;
        char *exact;

        while (text.len < want) {
            if (random_next(&seed) % 16 == 0)
                ipw_buf_addc(&text, '\0');
            else
                ipw_buf_adds(&text, parts[random_next(&seed) % (sizeof parts / sizeof *parts)]);
        }
        exact = malloc(text.len + !text.len); /* so that ASan sees a read past the end */
        memcpy(exact, ipw_buf_str(&text), text.len);
        ipw_json_escape(&fast, exact, text.len);
        escape_slowly(&slow, exact, text.len);
        assert_int_equal(fast.len, slow.len);
        assert_memory_equal(fast.data, slow.data, slow.len);
        /* what is written is read back without a repair, and written again is the same */
        assert_int_equal(ipw_json_parse(&doc, fast.data, fast.len, &repairs, NULL), 0);
        assert_int_equal(repairs, 0);
        ipw_buf_clear(&slow);
        ipw_json_print(&slow, doc);
        assert_int_equal(fast.len, slow.len);
        assert_memory_equal(fast.data, slow.data, slow.len);
        ipw_json_free(doc);
        if (round % 10 == 0) { /* a ceiling that fits to the byte, and one that lacks a byte */
            struct ipw_buf fits = IPW_BUF(slow.len), lacks = IPW_BUF(slow.len - 1);
            ipw_json_escape(&fits, exact, text.len);
            assert_false(fits.failed);
            assert_memory_equal(fits.data, slow.data, slow.len);
            ipw_json_escape(&lacks, exact, text.len);
            assert_true(lacks.failed);
            assert_int_equal(lacks.len, 0);
            ipw_buf_release(&fits);
            ipw_buf_release(&lacks);
        }
        free(exact);
        ipw_buf_release(&text);
        ipw_buf_release(&fast);
        ipw_buf_release(&slow);
    }
}

/* Short texts are copied in blocks that overlap: one odd byte is found wherever it is. */
static void j2_short_texts(void **state)
{
    static const char odd[] = {'"', '\\', '\n', '\x1f', '\x7f', '\xC3', '\0', 'a'};

    (void)state;
    for (size_t n = 0; n <= 40; n++) {
        for (size_t k = 0; k < (n ? n * sizeof odd : 1); k++) {
            struct ipw_buf fast = IPW_BUF(IPW_KIB), slow = IPW_BUF(IPW_KIB);
            char *exact = calloc(n + !n, 1); /* gcc cannot see that it is written */

            for (size_t i = 0; i < n; i++) exact[i] = (char)('A' + i % 26);
            if (n) exact[k / sizeof odd] = odd[k % sizeof odd];
            ipw_json_escape(&fast, exact, n);
            escape_slowly(&slow, exact, n);
            assert_int_equal(fast.len, slow.len);
            assert_memory_equal(fast.data, slow.data, slow.len + 1);
            free(exact);
            ipw_buf_release(&fast);
            ipw_buf_release(&slow);
        }
    }
}

UNIT(write)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_top_level_and_depth),
        cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_order_is_watched),
        cmocka_unit_test(j2_written_text_is_valid),
        cmocka_unit_test(j2_short_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
